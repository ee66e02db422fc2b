/** Files of a model folder that a conversion copies as they are: tokenizer, chat template, generation config. */

import fs from 'node:fs';
import path from 'node:path';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { isKind } from '../../checkpoint/torch/pickle/pickle-machine.js';
import type { Dict, Value } from '../../checkpoint/torch/pickle/values.js';
import type { Writable, WritableDict } from '../../checkpoint/torch/pickle/write-values.js';
import { isIndexName, isWeightsName } from '../../checkpoint/weight-names.js';
import { listed } from '../../checkpoint/wording.js';
import { isMapping, splitDotted } from '../../config/path.js';
import { UserError } from '../../errors.js';
import { CONFIG_NAMES, isSidecarName } from '../../files/config-names.js';
import { readFileAtMost } from '../../files/read-file.js';
import type { LeftOut } from '../plan/plan.js';
import type { OutputFile } from './output-files.js';

export interface Sidecar {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  /** When it was last changed, in milliseconds since 1970. */
  readonly changedAt: number;
}

/** The largest tokenizers have 35 MB. */
const MOST_BYTES = 100e6;

/** The sidecars in the folder of a checkpoint, by name. Links are followed, as in the hub's cache. */
export function sidecarsOf(checkpoint: Pick<Checkpoint, 'path' | 'files'>): Sidecar[] {
  const folder = folderOf(checkpoint);
  return namesIn(folder)
    .filter(isSidecarName)
    .flatMap((name): Sidecar[] => {
      const file = path.join(folder, name);
      const stat = fs.statSync(file, { throwIfNoEntry: false });
      if (!stat?.isFile()) return [];
      return [{ name, path: file, bytes: stat.size, changedAt: stat.mtimeMs }];
    });
}

/** The output's copies. @throws UserError, when they are written, for one that is too large or has changed. */
export const copiesOf = (sidecars: readonly Sidecar[]): OutputFile[] =>
  sidecars.map(({ name, path: file, bytes }) => ({
    name,
    bytes,
    fill: async (sink) => {
      const content = await readFileAtMost(file, { most: MOST_BYTES, isFound: true });
      if (content?.length !== bytes) {
        const why =
          content === undefined ? 'is larger than 100 MB' : 'was changed while it was read';
        throw new UserError('refused-file', `${file} ${why}`, {
          suggestion: 'move it out of the folder, and copy it to the output by hand',
        });
      }
      await sink.write(content);
    },
  }));

/** What a user is told about files beside the input that the output does not have. */
export function sidecarNotes(
  checkpoint: Pick<Checkpoint, 'path' | 'files'>,
  kind: 'file' | 'folder',
): string[] {
  const sidecars = sidecarsOf(checkpoint).map(({ name }) => name);
  if (kind === 'file') {
    return sidecars.length > 0
      ? [`Not copied, because OUT is a file: ${listed(sidecars)}; name a folder to have them in it`]
      : [];
  }
  if (!isFolderInput(checkpoint)) return [];
  const others = namesIn(folderOf(checkpoint)).filter(
    (name) =>
      !name.startsWith('.') &&
      !isWeightsName(name) &&
      !isIndexName(name) &&
      !CONFIG_NAMES.includes(name) &&
      !sidecars.includes(name),
  );
  return others.length > 0 ? [`Not copied from the folder of the input: ${listed(others)}`] : [];
}

/** @throws UserError when a folder that would be replaced holds sidecars that the new one would lack. */
export function refuseLostSidecars(out: string, written: readonly Sidecar[]): void {
  const kept = new Set(written.map(({ name }) => name));
  const lost = namesIn(out).filter((name) => isSidecarName(name) && !kept.has(name));
  if (lost.length === 0) return;
  throw new UserError(
    'usage',
    `${out} is not replaced: it holds ${lost.join(', ')}, which the new folder would not have`,
    {
      suggestion: 'move them away, put them beside the input, or choose another name',
    },
  );
}

const isFolderInput = ({ path: input }: Pick<Checkpoint, 'path'>): boolean =>
  fs.statSync(input, { throwIfNoEntry: false })?.isDirectory() ?? false;

const folderOf = ({ path: input, files }: Pick<Checkpoint, 'path' | 'files'>): string =>
  isFolderInput({ path: input }) ? input : path.dirname(files[0]?.path ?? input);

/** Names in a folder, sorted; none where it cannot be read. */
function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder).sort();
  } catch {
    return [];
  }
}

// Configs as PyTorch files hold them.

interface Setting {
  readonly path: string;
  readonly value: unknown;
}

/**
 * The config of a checkpoint with some values changed, all others as they were saved: the whole numbers
 * and the floats among them. Undefined when it holds none that is a dict.
 */
export function configWith(
  { content }: Checkpoint,
  settings: readonly Setting[],
): Writable | undefined {
  const config = content.get('config');
  if (config === undefined || !isKind(config, 'dict')) return undefined;
  return settings.reduce<Value>(
    (whole, { path, value }) => withValue(whole, splitDotted(path), value),
    config,
  );
}

function withValue(at: Value, [key, ...rest]: readonly string[], value: unknown): Value {
  // Plain values are written as they are read.
  if (key === undefined) return writableOf(value) as Value;
  const dict: Dict = isKind(at, 'dict') ? at : { kind: 'dict', type: 'dict', entries: new Map() };
  const inner = withValue(dict.entries.get(key) ?? null, rest, value);
  return { ...dict, entries: new Map(dict.entries).set(key, inner) };
}

/** Plain data as what Python would have read from the same YAML. */
export function writableOf(data: unknown): Writable {
  if (data === null || data === undefined) return null;
  if (typeof data === 'number') {
    return Number.isSafeInteger(data) && !Object.is(data, -0)
      ? data
      : { kind: 'float', value: data };
  }
  if (typeof data === 'string' || typeof data === 'boolean' || typeof data === 'bigint')
    return data;
  if (Array.isArray(data)) return { kind: 'list', items: data.map(writableOf) };
  const entries = isMapping(data) ? Object.entries(data) : [];
  const dict: WritableDict = {
    kind: 'dict',
    type: 'dict',
    entries: new Map(entries.map(([key, value]) => [key, writableOf(value)] as const)),
  };
  return dict;
}

// What stands in a training checkpoint beside the model, and is not part of what is converted.

/** Kept in the output: see `torchFile`. */
const STEP = 'step';
const CONFIG = 'config';

const OPTIMIZER = /optim/i;

/** @param hasConfig Whether the output has the config, or one in its place. */
export function leftOutOf({ content }: Checkpoint, hasConfig: boolean): LeftOut[] {
  return [...content.keys()]
    .filter((key) => key !== STEP && !(key === CONFIG && hasConfig))
    .map((name) => ({ name, why: reasonOf(name) }));
}

function reasonOf(name: string): string {
  if (name === CONFIG) return 'it would not be true of the output, and cannot be read here';
  return OPTIMIZER.test(name)
    ? 'the state of an optimizer belongs to the tensors that it has trained'
    : 'it is not part of the model';
}

/** Training steps, as the file says. */
export function stepOf({ content, metadata }: Checkpoint): number | bigint | null {
  const step = content.get('step') ?? metadata.get('step');
  if (typeof step === 'number' || typeof step === 'bigint') return step;
  return typeof step === 'string' && /^\d{1,15}$/.test(step) ? Number(step) : null;
}
