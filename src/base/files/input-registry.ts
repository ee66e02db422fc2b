/**
 * Registry of the files that the current command reads or has written, so that no output replaces one of them.
 * Functions that open files register them, and functions that write check the registry, so no command can forget it.
 */

import fs from 'node:fs';
import path from 'node:path';
import { type UserError, usageError } from '../errors.js';
import { isModelFileName } from './config-names.js';

// Identity of files: one file can have many paths, so comparing paths is not enough.

/** Identity of a file or folder, equal under all of its names. */
export type FileIdentity = string;

/**
 * Identities of a file: two paths that share one lead to the same file. One is device and inode. The other is
 * the path, because case-insensitive network and FUSE file systems may give each spelling its own inode.
 * @param file A path of the file.
 */
const identitiesOf = (
  { dev, ino }: Pick<fs.BigIntStats, 'dev' | 'ino'>,
  file: string,
): readonly FileIdentity[] => [
  ...(ino === 0n ? [] : [`${dev}:${ino}`]),
  listedPath(realPath(file)),
];

/** Spellings of folders that were asked for: a checkpoint can have thousands of files in one. */
const listedFolders = new Map<string, string>();

/** A path in the spelling of the folder listings, matched without case. */
function listedPath(file: string): string {
  const folder = path.dirname(file);
  if (folder === file) return file;
  const listed = listedFolders.get(folder) ?? listedPath(folder);
  listedFolders.set(folder, listed);
  return path.join(listed, listedName(folder, path.basename(file)));
}

function listedName(folder: string, name: string): string {
  const upper = name.toUpperCase();
  const otherCase = upper === name ? name.toLowerCase() : upper;
  if (otherCase === name || registeredStatus(path.join(folder, otherCase)) === undefined)
    return name;
  try {
    const names = fs.readdirSync(folder);
    if (names.includes(name)) return name;
    return names.find((each) => each.toUpperCase() === upper) ?? name;
  } catch {
    return name;
  }
}

/** Identities of the file at a path, with links resolved; empty if it does not exist. */
export function identitiesAt(file: string): readonly FileIdentity[] {
  const status = registeredStatus(file);
  return status ? identitiesOf(status, file) : [];
}

/** The first of some files that is equal to a path, contains it or is in it; they need not exist. */
export const firstOverlapping = (files: readonly string[], place: string): string | undefined =>
  firstAt(files, place, (file, other) => isAround(file, other) || isAround(other, file));

/** The first of some files that is a folder or is inside it. */
export const firstInFolder = (files: readonly string[], folder: string): string | undefined =>
  firstAt(files, folder, (file, outer) => isAround(outer, file));

function firstAt(
  files: readonly string[],
  place: string,
  isMeant: (file: PathIdentity, place: PathIdentity) => boolean,
): string | undefined {
  const known: KnownFolders = new Map();
  const other = locationOf(place, known);
  return files.find((file) => isMeant(locationOf(file, known), other));
}

interface PathIdentity {
  /** Identities of the path, or of its nearest existing parent. */
  readonly found: readonly FileIdentity[];
  /** These identities and those of each parent. */
  readonly above: ReadonlySet<FileIdentity>;
  /** Missing names below the existing path. */
  readonly missing: readonly string[];
}

function isAround(outer: PathIdentity, inner: PathIdentity): boolean {
  if (outer.missing.length === 0) return outer.found.some((each) => inner.above.has(each));
  // A missing path can only contain missing paths.
  return (
    outer.found.some((each) => inner.found.includes(each)) &&
    outer.missing.every((name, index) => name === inner.missing[index])
  );
}

/**
 * Identities of folders and all folders above them. Cached, because inputs share folders and a shared disk answers
 * slowly.
 */
type KnownFolders = Map<string, ReadonlySet<FileIdentity>>;

function locationOf(file: string, known: KnownFolders): PathIdentity {
  const missing: string[] = [];
  let place = linkTarget(file);
  while (registeredStatus(place) === undefined && path.dirname(place) !== place) {
    missing.unshift(path.basename(place));
    place = path.dirname(place);
  }
  const found = identitiesAt(place);
  const folders = identitiesAbove(path.dirname(realPath(place)), known);
  return { found, above: new Set([...folders, ...found]), missing };
}

function identitiesAbove(folder: string, known: KnownFolders): ReadonlySet<FileIdentity> {
  const found = known.get(folder);
  if (found) return found;
  const parent = path.dirname(folder);
  const above = parent === folder ? [] : identitiesAbove(parent, known);
  const identities = new Set([...above, ...identitiesAt(folder)]);
  known.set(folder, identities);
  return identities;
}

/** The limit on Linux. */
const MAX_LINKS = 40;

/** Target of a link that may not exist: `realPath` would fail. */
export function linkTarget(file: string): string {
  let place = file;
  for (let links = 0; links < MAX_LINKS && isLink(place); links++) {
    const target = fs.readlinkSync(place);
    // Not path.join: it resolves `..` by text, not through links.
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

function registeredStatus(file: string): fs.BigIntStats | undefined {
  try {
    return fs.statSync(file, { bigint: true });
  } catch {
    // The function that reads or writes it reports the error.
    return undefined;
  }
}

/** Path as the system resolves it: after a link, `..` is the parent of the link's target. */
function realPath(file: string): string {
  try {
    return fs.realpathSync.native(file);
  } catch {
    return path.resolve(file);
  }
}

interface RegisteredFile {
  /** The path as the user wrote it. */
  readonly file: string;
  readonly why: 'is read' | 'was just written';
}

/** Undefined outside commands: library callers may replace files they have read. */
let kept: Map<FileIdentity, RegisteredFile> | undefined;

/** Starts a command: forgets files that an earlier command in this process used. */
export function beginInputs(): void {
  kept = new Map();
  listedFolders.clear();
}

/**
 * Registers a file that is opened for reading.
 * @param status Status of the open file: its name may lead to another file by now.
 */
export function noteInput(file: string, status: fs.BigIntStats): void {
  // Pipes and devices have no content to replace.
  if (kept === undefined || !status.isFile()) return;
  const input = { file, why: 'is read' } as const;
  for (const each of identitiesOf(status, file)) kept.set(each, input);
}

/** Registers the file that standard input is redirected from, if any. */
export function noteStandardInput(): void {
  try {
    // On Linux this path leads to the file itself, elsewhere to a device.
    noteInput('/dev/stdin', fs.fstatSync(0, { bigint: true }));
  } catch {
    // Standard input is closed. Reading it will fail.
  }
}

/** Registers a file that is written and in place. */
export function noteOutput(file: string): void {
  if (kept === undefined) return;
  for (const each of identitiesAt(file)) kept.set(each, { file, why: 'was just written' });
}

/** Files that the current command has read so far, as the user named them. */
export const readInputs = (): readonly string[] =>
  [...new Set(kept?.values())].flatMap(({ file, why }) => (why === 'is read' ? [file] : []));

/** Files that the current command has written so far, as the user named them. */
export const writtenFiles = (): readonly string[] =>
  [...new Set(kept?.values())].flatMap(({ file, why }) =>
    why === 'was just written' ? [file] : [],
  );

/** Unregisters a file that the command will update. */
export function forgetInput(file: string): void {
  for (const each of identitiesAt(file)) kept?.delete(each);
}

/**
 * Checks that writing a file does not replace an input.
 * @param file The output path.
 * @param target The output path as the user wrote it.
 * @throws UserError if the output is an input file, under any name.
 */
export function refuseInput(file: string, target = file): void {
  if (kept === undefined) return;
  for (const each of identitiesAt(file)) {
    const input = kept.get(each);
    if (input) throw replaces(target, input);
  }
}

/**
 * Checks that a report does not replace a model file that belongs to an input, even if it is not open.
 * @throws UserError if the file exists, has the name of a model file, and is in the folder of an input.
 */
export function refuseModelFile(target: string): void {
  if (kept === undefined || !fs.existsSync(target)) return;
  refuseInput(target);
  const places = linkedPaths(target).filter((each) => isModelFileName(path.basename(each)));
  if (places.length === 0) return;
  const folders = new Set(places.flatMap((each) => identitiesAt(path.dirname(each))));
  for (const { file, why } of new Set(kept.values())) {
    if (why !== 'is read') continue;
    const isBeside = linkedPaths(file).some((each) =>
      identitiesAt(path.dirname(each)).some((identity) => folders.has(identity)),
    );
    if (!isBeside) continue;
    throw usageError(
      `${target} belongs to the same model as ${file}`,
      'choose another name for the output',
    );
  }
}

/** A path as it is written, and where its links lead if it exists. */
export const linkedPaths = (file: string): readonly string[] => {
  try {
    return [file, fs.realpathSync.native(file)];
  } catch {
    return [file];
  }
};

/**
 * Checks that replacing a folder removes no input file.
 * @throws UserError if an input is in it, or is the same file as one in it.
 */
export function refuseInputsIn(folder: string, target: string): void {
  if (kept === undefined || kept.size === 0) return;
  for (const name of fs.readdirSync(folder)) refuseInput(path.join(folder, name), target);
  const inputs = new Map([...kept.values()].map((input) => [input.file, input]));
  const inside = inputs.get(firstInFolder([...inputs.keys()], folder) ?? '');
  if (inside) throw replaces(target, inside);
}

function replaces(target: string, { file, why }: RegisteredFile): UserError {
  const by = file === target ? '' : `: ${target} leads to the same place`;
  return usageError(
    `${file} ${why}, and would be replaced${by}`,
    'choose another name for the output',
  );
}
