/**
 * The files that the running command reads or has written, so that no output replaces one of them. The functions that
 * open files note them here, and those that write check here: no command can forget it.
 */

import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { isModelFileName } from './config-names.js';

// Where a path leads, by what the system says of files: one file has many names, and texts do not tell.

/** What a file or folder is known by: the same under each of its names. */
export type Identity = string;

/**
 * The identities of a file: two paths that share one lead to the same file. Device and inode are one. The path is
 * another, for network and FUSE file systems without case may number the names that are asked for, and not files.
 * @param file A path of it.
 */
const identitiesOf = (
  { dev, ino }: Pick<fs.BigIntStats, 'dev' | 'ino'>,
  file: string,
): readonly Identity[] => [...(ino === 0n ? [] : [`${dev}:${ino}`]), listedPath(realPath(file))];

/** A path with the names as their folders list them, where they are found in any case. */
function listedPath(file: string): string {
  const folder = path.dirname(file);
  if (folder === file) return file;
  return path.join(listedPath(folder), listedName(folder, path.basename(file)));
}

function listedName(folder: string, name: string): string {
  const upper = name.toUpperCase();
  const otherCase = upper === name ? name.toLowerCase() : upper;
  if (otherCase === name || statusOf(path.join(folder, otherCase)) === undefined) return name;
  try {
    const names = fs.readdirSync(folder);
    if (names.includes(name)) return name;
    return names.find((each) => each.toUpperCase() === upper) ?? name;
  } catch {
    return name;
  }
}

/** The identities of what is at a path, links followed; none where nothing is. */
export function identitiesAt(file: string): readonly Identity[] {
  const status = statusOf(file);
  return status ? identitiesOf(status, file) : [];
}

/** Whether two paths lead to the same place, or one of them into the other, whether or not it is there yet. */
export function overlap(a: string, b: string): boolean {
  const [one, other] = [locationOf(a), locationOf(b)];
  return isAround(one, other) || isAround(other, one);
}

/** Whether a path leads to a folder, or to something in it or below. */
export const isIn = (file: string, folder: string): boolean =>
  isAround(locationOf(folder), locationOf(file));

interface Location {
  /** Of what is there, or else of the first folder above that is. */
  readonly found: readonly Identity[];
  /** The same, and those of each folder above. */
  readonly above: ReadonlySet<Identity>;
  /** Names below what was found. */
  readonly missing: readonly string[];
}

function isAround(outer: Location, inner: Location): boolean {
  if (outer.missing.length === 0) return outer.found.some((each) => inner.above.has(each));
  // What is not there can only be around what is not there either.
  return (
    outer.found.some((each) => inner.found.includes(each)) &&
    outer.missing.every((name, index) => name === inner.missing[index])
  );
}

function locationOf(file: string): Location {
  const missing: string[] = [];
  let place = behindLinks(file);
  while (statusOf(place) === undefined && path.dirname(place) !== place) {
    missing.unshift(path.basename(place));
    place = path.dirname(place);
  }
  const above = new Set<Identity>();
  for (let each = realPath(place), last = ''; each !== last; each = path.dirname(each)) {
    for (const identity of identitiesAt(each)) above.add(identity);
    last = each;
  }
  return { found: identitiesAt(place), above, missing };
}

/** As Linux has it. */
const MAX_LINKS = 40;

/** Links may lead to what does not exist yet, or no more: `realPath` would refuse. */
export function behindLinks(file: string): string {
  let place = file;
  for (let links = 0; links < MAX_LINKS && isLink(place); links++) {
    const target = fs.readlinkSync(place);
    // Not joined: that takes `..` for what the text says, and not for what the system finds.
    place = path.isAbsolute(target) ? target : `${path.dirname(place)}${path.sep}${target}`;
  }
  return place;
}

function isLink(file: string): boolean {
  try {
    return fs.lstatSync(file).isSymbolicLink();
  } catch {
    return false;
  }
}

function statusOf(file: string): fs.BigIntStats | undefined {
  try {
    return fs.statSync(file, { bigint: true });
  } catch {
    // Whoever reads or writes it will say what is wrong.
    return undefined;
  }
}

/** As the system finds it: behind a link, `..` is the folder above where it leads. */
function realPath(file: string): string {
  try {
    return fs.realpathSync.native(file);
  } catch {
    return path.resolve(file);
  }
}

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
