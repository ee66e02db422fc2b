/**
 * The files that the running command reads or has written, so that nothing it writes takes the place of one of
 * them. Whatever opens a file of the user's notes it here, and whatever writes asks here: no command can forget it.
 */
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { type Identity, identitiesAt, identitiesOf, isIn } from './location.js';

interface Kept {
  /** As the user wrote it. */
  readonly file: string;
  readonly why: 'is read' | 'was just written';
}

/** Undefined outside of commands: who calls a library may replace what was read before. */
let kept: Map<Identity, Kept> | undefined;

/** Begins a command: what another has used in the same process is free again. */
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
