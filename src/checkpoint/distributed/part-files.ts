/** The files of a checkpoint that several processes wrote into one folder. */

import path from 'node:path';
import { allowedFolders, isAllowed } from '../../base/files/linked-files.js';
import { announceFiles, mountedPath, pathExists, smallTextAt } from '../../base/files/mounted.js';
import { ByteFile, fileNamesAt } from '../byte-file.js';
import { quoted, quotedNames, refusal } from '../checkpoint-rules.js';
import { isZeroName, ZERO_LATEST } from '../formats.js';

/** Open files of a folder by name. */
export class PartFiles {
  readonly #folder: string;
  readonly #files = new Map<string, ByteFile>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  get all(): readonly ByteFile[] {
    return [...this.#files.values()];
  }

  /** Bytes of all files. */
  get bytes(): number {
    return this.all.reduce((sum, { size }) => sum + size, 0);
  }

  get(name: string): ByteFile {
    const file = this.#files.get(name);
    if (file === undefined) throw new Error(`${name} is not open`);
    return file;
  }

  /**
   * Opens files, and returns the names of those that are not there.
   * @throws UserError when a file is a link that leads out of the folder.
   */
  openAll(names: Iterable<string>, check: (name: string) => void): string[] {
    const allowed = allowedFolders(this.#folder);
    const missing: string[] = [];
    const ordered = [...names].sort(compareNumbers);
    for (const name of ordered) check(name);
    const placeOf = (name: string) => path.join(this.#folder, name);
    announceFiles(ordered.map(placeOf).filter(pathExists));
    for (const name of ordered) {
      const place = placeOf(name);
      if (!pathExists(place)) {
        missing.push(name);
        continue;
      }
      const file = ByteFile.open(place);
      this.#files.set(name, file);
      if (mountedPath(place)) continue;
      const target = file.locate();
      if (isAllowed(target, allowed)) continue;
      throw refusal(place, {
        rule: 'part-in-folder',
        message: `is a link to ${quoted(target)}, which is outside of the folder`,
        suggestion: 'put the file itself into the folder',
      });
    }
    return missing;
  }

  close(): void {
    for (const file of this.#files.values()) file.close();
  }
}

/** `__2_0` sorts before `__10_0`. */
const { compare: compareNumbers } = new Intl.Collator('en', { numeric: true });

// The files of a checkpoint of DeepSpeed ZeRO, by their names: deepspeed/runtime/engine.py.

export interface ZeroFiles {
  /** The folder of one step. */
  readonly folder: string;
  /** Files with the parameters, by the number of the process. */
  readonly optimizers: readonly string[];
  /** Files with names, shapes and buffers: one, or in stage 3 one for each process. */
  readonly models: readonly string[];
}

const OPTIMIZER = /^(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$/;
const MODEL = /^(?:zero_pp_rank_(\d+)_)?mp_rank_(\d+)_model_states\.pt$/;

/** Far above the length of a step's name. */
const MAX_TAG_BYTES = 1000;

/**
 * The files of a step: in this folder, or in the one that its file `latest` names.
 * @returns Undefined for a folder without ZeRO files.
 */
export function zeroFilesIn(folder: string, names: readonly string[]): ZeroFiles | undefined {
  if (names.some(isZeroName)) return filesOf(folder, names);
  if (!names.includes(ZERO_LATEST)) return undefined;
  const tag = tagIn(path.join(folder, ZERO_LATEST));
  if (tag === undefined) return undefined;
  const step = path.join(folder, tag);
  const inside = fileNamesAt(step);
  if (inside?.some(isZeroName)) return filesOf(step, inside);
  if (inside === undefined && !/^global_step\d+$/.test(tag)) return undefined;
  throw refusal(folder, {
    rule: 'zero-latest',
    place: `file ${ZERO_LATEST}`,
    message: `names ${quoted(tag)}, ${inside ? 'a folder without files of ZeRO' : 'which is not there'}`,
    suggestion: 'copy the folder of that step, or name the folder of another one',
  });
}

/** The name in a file `latest`; undefined for a file that is something else. */
function tagIn(file: string): string | undefined {
  const tag = smallTextAt(file, MAX_TAG_BYTES)?.trim();
  if (tag === undefined) return undefined;
  const isPlain = tag !== '' && tag !== '.' && tag !== '..' && !/[\p{Cc}:\\/]/u.test(tag);
  if (isPlain) return tag;
  throw refusal(file, {
    rule: 'zero-tag',
    message: `names the folder ${quoted(tag)}; expected one next to it`,
    suggestion: 'do not use this checkpoint unless you know who made it',
  });
}

function filesOf(folder: string, names: readonly string[]): ZeroFiles {
  const optimizers = byRank(folder, names, OPTIMIZER);
  const models = byRank(folder, names, MODEL);
  if (models.length === 0) {
    throw refusal(folder, {
      rule: 'zero-model-states',
      message:
        'holds no file mp_rank_00_model_states.pt or zero_pp_rank_0_mp_rank_00_model_states.pt, which have the names of the parameters',
      suggestion: 'copy the whole folder of the step',
    });
  }
  return { folder, optimizers, models };
}

/** Files by the number of their process, from 0 on. */
function byRank(folder: string, names: readonly string[], pattern: RegExp): string[] {
  const files: string[] = [];
  for (const name of names) {
    const [, rank = '0', parallel] = pattern.exec(name) ?? [];
    if (parallel === undefined) continue;
    if (Number(parallel) !== 0) {
      throw refusal(folder, {
        rule: 'zero-model-parallel',
        message: `holds ${quoted(name)}: the model is split between processes before ZeRO splits its parameters`,
        suggestion:
          'merge the parts of tensors with the program that split them, such as Megatron-DeepSpeed',
      });
    }
    const number = Number(rank);
    if (number < MAX_PROCESSES && files[number] === undefined) files[number] = name;
    else {
      throw refusal(folder, {
        rule: 'zero-rank-once',
        message: `holds ${quoted(name)}, and another file for process ${number}`,
        suggestion: 'remove the files of other runs from the folder',
      });
    }
  }
  const missing = [...files.keys()].filter((rank) => files[rank] === undefined);
  if (missing.length === 0) return files;
  throw refusal(folder, {
    rule: 'zero-rank-missing',
    message: `holds files of ${files.length - missing.length} processes; missing: ${quotedNames(missing.map(String))}`,
    suggestion: 'copy the files of all processes into the folder',
  });
}

const MAX_PROCESSES = 100_000;
