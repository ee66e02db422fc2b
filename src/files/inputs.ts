/**
 * The files that the running command reads or has written, so that no output replaces one of them. The functions that
 * open files note them here, and those that write check here: no command can forget it.
 */
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { isModelFileName } from './config-names.js';
import { type Identity, identitiesAt, identitiesOf, isIn } from './location.js';

interface Kept {
  /** As the user wrote it. */
  readonly file: string;
  readonly why: 'is read' | 'was just written';
}

/** Undefined outside of commands: a caller of the library may replace what it read before. */
let kept: Map<Identity, Kept> | undefined;

/** Begins a command: files that an earlier command of this process has used are free again. */
export function beginInputs(): void {
  kept = new Map();
}

/**
 * Notes a file that is opened to be read.
 * @param status Of the open file: its name may lead to another one by now.
 */
export function noteInput(file: string, status: fs.BigIntStats): void {
  // Pipes and devices have no content to replace.
  if (kept === undefined || !status.isFile()) return;
  const input = { file, why: 'is read' } as const;
  for (const each of identitiesOf(status, file)) kept.set(each, input);
}

/** Notes the file that standard input is redirected from, if any. */
export function noteStandardInput(): void {
  try {
    // On Linux the name leads to the file itself, elsewhere to a device.
    noteInput('/dev/stdin', fs.fstatSync(0, { bigint: true }));
  } catch {
    // Standard input is closed. Reading it will fail.
  }
}

/** Notes a file that is in its place now. */
export function noteOutput(file: string): void {
  if (kept === undefined) return;
  for (const each of identitiesAt(file)) kept.set(each, { file, why: 'was just written' });
}

/** Frees a file that a command reads in order to bring it up to date. */
export function forgetInput(file: string): void {
  for (const each of identitiesAt(file)) kept?.delete(each);
}

/**
 * Checks that writing a file replaces none that is read.
 * @param file Where it will be.
 * @param target The same as the user wrote it.
 * @throws UserError when that is a file that is read, under whatever name.
 */
export function refuseInput(file: string, target = file): void {
  if (kept === undefined) return;
  for (const each of identitiesAt(file)) {
    const input = kept.get(each);
    if (input) throw replaces(target, input);
  }
}

/**
 * Checks that a report replaces no file of a model that the command reads, including those it has not opened.
 * @throws UserError when the file exists, is named as one of a model, and lies in the folder of an input.
 */
export function refuseModelFile(target: string): void {
  if (kept === undefined || !fs.existsSync(target)) return;
  refuseInput(target);
  const places = namesOf(target).filter((each) => isModelFileName(path.basename(each)));
  if (places.length === 0) return;
  const folders = new Set(places.flatMap((each) => identitiesAt(path.dirname(each))));
  for (const { file, why } of new Set(kept.values())) {
    if (why !== 'is read') continue;
    const isBeside = namesOf(file).some((each) =>
      identitiesAt(path.dirname(each)).some((identity) => folders.has(identity)),
    );
    if (!isBeside) continue;
    throw new UserError('usage', `${target} belongs to the same model as ${file}`, {
      suggestion: 'choose another name for the output',
    });
  }
}

/** A path, and the one that it leads to. */
const namesOf = (file: string): readonly string[] => {
  try {
    return [file, fs.realpathSync.native(file)];
  } catch {
    return [file];
  }
};

/**
 * Checks that replacing a whole folder removes no file that is read.
 * @throws UserError when one is in it, or is the same file as one in it.
 */
export function refuseInputsIn(folder: string, target: string): void {
  if (kept === undefined || kept.size === 0) return;
  for (const name of fs.readdirSync(folder)) refuseInput(path.join(folder, name), target);
  for (const input of new Set(kept.values())) {
    if (isIn(input.file, folder)) throw replaces(target, input);
  }
}

function replaces(target: string, { file, why }: Kept): UserError {
  const by = file === target ? '' : `: ${target} leads to the same place`;
  return new UserError('usage', `${file} ${why}, and would be replaced${by}`, {
    suggestion: 'choose another name for the output',
  });
}
