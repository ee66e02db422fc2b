/** Operations of file systems for writing, and their errors as messages with a suggestion. */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError, usageError } from '../errors.js';
import { setting } from '../text/setting.js';

/**
 * Runs an action that the system may reject.
 * @param target The output as the user wrote it, for the message.
 * @param where Progress of the write so far, for the message.
 * @throws UserError if the system reports an error; rethrows other errors.
 */
export async function withFileErrors<T>(
  target: string,
  act: () => T | Promise<T>,
  where = '',
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw cannotWrite(target, error, where);
  }
}

function cannotWrite(target: string, error: unknown, where: string): unknown {
  const code = codeOf(error);
  if (error instanceof UserError || code === undefined) return error;
  if (code === 'EEXIST') return alreadyExists(target);
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return usageError(
      `cannot write ${target}: there is no such folder`,
      'make the folder first, or choose another',
      error,
    );
  }
  return new UserError('system', `cannot write ${target}${where}: ${(error as Error).message}`, {
    cause: error,
    suggestion: systemAdvice(code, 'folder'),
  });
}

export const alreadyExists = (target: string) =>
  usageError(
    `${target} exists already`,
    `choose another name, or replace it with ${setting('force')}`,
  );

const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'free some space, or write to another disk'],
  ['EDQUOT', 'free some of your quota, or write to another disk'],
  [
    'EFBIG',
    'raise the limit with ulimit -f, or write to a file system that takes files of this size',
  ],
  ['EROFS', 'choose a folder that can be written to'],
  ['ELOOP', 'the link leads back to itself: name the file that it should lead to'],
  ['EMFILE', 'allow more open files, as with: ulimit -n 16384'],
  ['ESTALE', 'the file was replaced on its server: check what writes it, and run again'],
]);

/**
 * Advice about a system code; undefined where there is none.
 * @param place What has the permissions: the file that is read, or the folder that is written to.
 */
export const systemAdvice = (code: string, place: 'file' | 'folder'): string | undefined =>
  code === 'EACCES' || code === 'EPERM'
    ? `check the permissions of the ${place}`
    : ADVICE.get(code);

/** System code of an error, such as ENOSPC. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

// Operations of file systems that not all of them support

/** Renames a file to a name that must be unused. */
export function takeFreeName(from: string, to: string): void {
  try {
    // A link fails if the name is already taken; a rename would replace that file.
    fs.linkSync(from, to);
  } catch (error) {
    // NFS repeats a request whose answer was lost, and the second one finds the name taken by the first.
    if (codeOf(error) === 'EEXIST' && isSameFile(from, to)) return;
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    if (fs.existsSync(to)) throw alreadyExists(to);
    fs.renameSync(from, to);
  }
}

/**
 * Renames a file or folder. NFS repeats a request whose answer was lost, and the second one then finds nothing to rename:
 * that is not an error.
 */
export function renameTo(from: string, to: string): void {
  const before = fs.lstatSync(from, { bigint: true, throwIfNoEntry: false });
  try {
    fs.renameSync(from, to);
  } catch (error) {
    const after = fs.lstatSync(to, { bigint: true, throwIfNoEntry: false });
    const isSame = after !== undefined && after.ino === before?.ino && after.dev === before.dev;
    if (codeOf(error) !== 'ENOENT' || !isSame || exists(from)) throw error;
  }
}

/** Attempts at a file that other machines replace meanwhile. */
const MOST_READS = 5;

/** Text of a small file that other machines replace. Opens it again when NFS reports that the opened one is gone. */
export function readReplaced(file: string): string {
  for (let attempt = 1; ; attempt++) {
    try {
      return fs.readFileSync(file, 'utf8');
    } catch (error) {
      if (codeOf(error) !== 'ESTALE' || attempt >= MOST_READS) throw error;
    }
  }
}

/** Name that a client of NFS gives to a removed file that is still open. It disappears when the file is closed. */
export const isRemovedName = (name: string): boolean => /^\.nfs[0-9a-f]+$/i.test(name);

/** Errors of file systems without hard links (FAT, some network shares), and of all systems for folders. */
const NO_LINKS: ReadonlySet<string> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
]);

/** Makes a folder, unless another process has made it. Not `recursive`: that never returns where no folder can be made, as in /proc. */
export function makeFolder(folder: string): void {
  try {
    fs.mkdirSync(folder);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Syncs the names in a folder to disk. */
export function syncFolder(folder: string): void {
  try {
    const descriptor = fs.openSync(folder, 'r');
    try {
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    // Not every system can open or sync a folder. The content is on disk already.
  }
}

/** The name itself, or with a number before its ending if it is taken: `best-2.yaml`. */
export function freeName(file: string): string {
  const { dir, name, ext } = path.parse(file);
  let free = file;
  for (let number = 2; exists(free); number++) free = path.join(dir, `${name}-${number}${ext}`);
  return free;
}

/** Whether a path exists, even as a broken link. */
export const exists = (file: string) => fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined;

/** Whether two paths, links included, lead to one file. */
export function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((file) =>
    fs.lstatSync(file, { bigint: true, throwIfNoEntry: false }),
  );
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

/** Names in a folder; none where it cannot be read, as writing there fails with its own message. */
export function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}

export function removeQuietly(file: string): void {
  try {
    fs.rmSync(file, { recursive: true, force: true });
  } catch {
    // The earlier error is the one that the user needs.
  }
}

// Moves of several files into place. An interrupted move can be finished or reverted.

/** All three paths are on one file system. */
export interface Move {
  readonly from: string;
  readonly to: string;
  /** Backup path of the file that is replaced. */
  readonly aside: string;
}

/** Whether all moves are done: the source of the last one is gone. */
export const areMovesDone = (moves: readonly Move[]) => !exists(lastOf(moves).from);

/** Replaces the files at the targets. Keeps the old ones aside, and applies their permissions to the new ones. */
export function moveAll(moves: readonly Move[]): void {
  for (const { from, to, aside } of moves) {
    if (exists(to)) {
      const mode = fs.statSync(to, { throwIfNoEntry: false })?.mode;
      if (mode !== undefined) fs.chmodSync(from, mode & 0o777);
      keepAside(to, aside);
    }
    renameTo(from, to);
    syncFolder(path.dirname(to));
  }
}

/** A file stays until it is replaced in one step; a folder cannot be. */
function keepAside(file: string, aside: string): void {
  try {
    fs.linkSync(file, aside);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    fs.renameSync(file, aside);
  }
  syncFolder(path.dirname(aside));
  syncFolder(path.dirname(file));
}

/**
 * Reverts moves that have begun and are not all done.
 * @throws UserError if a new file exists where an old one was moved away.
 */
export function revertMoves(moves: readonly Move[]): void {
  for (const { from, to, aside } of [...moves].reverse()) {
    if (!exists(from) && exists(to)) fs.renameSync(to, from);
    if (!exists(aside)) continue;
    if (!exists(to)) fs.renameSync(aside, to);
    else if (!isSameFile(aside, to)) throw twoOf(to, aside);
    syncFolder(path.dirname(to));
  }
  syncFolder(path.dirname(lastOf(moves).from));
}

const twoOf = (to: string, aside: string) =>
  usageError(
    `an interrupted run moved ${to} to ${aside}, and now there is another ${to}`,
    'move one of the two elsewhere',
  );

function lastOf(moves: readonly Move[]): Move {
  const last = moves.at(-1);
  if (last === undefined) throw new RangeError('no moves');
  return last;
}

// Folders of the system and of the package

/**
 * Path of a file or folder of the package, for the sources and for built files of any depth; undefined where it is
 * missing.
 */
export function packagePath(name: string): string | undefined {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (let depth = 0; depth < 4; depth++) {
    const found = path.join(folder, name);
    if (fs.existsSync(found)) return found;
    folder = path.dirname(folder);
  }
  return undefined;
}

/** @param name Its path in the package. @throws Error for a package that is not built. */
export function builtThread(name: string): string {
  const file = packagePath(name);
  if (file === undefined) throw new Error(`${name} is missing: run npm run build`);
  return file;
}

/** Home folder of the user, from HOME or the account; a temporary folder where neither has an absolute path. */
export function homeFolder(): string {
  for (const find of [() => os.homedir(), () => os.userInfo().homedir]) {
    try {
      const home = find();
      if (path.isAbsolute(home)) return home;
    } catch {
      // An account without an entry, as in a container with a number for its user.
    }
  }
  return os.tmpdir();
}

// Advice on a path with nothing at it.

/** Reason why nothing is at a path, or what to write instead; undefined where none is known. */
export function missingReason(file: string): string | undefined {
  if (file === '') return 'write the path of a file';
  if (file === '-') return 'write the path of a file: standard input cannot be read here';
  if (/^~(?:[/\\]|$)/.test(file)) {
    return `write $HOME${file.slice(1)}: the shell replaces ~ only at the start of a word`;
  }
  const target = readLink(file);
  if (target !== undefined) return `it is a link to ${target}, which does not exist`;
  const above = firstAbove(file);
  if (pathStatus(above)?.isFile()) return `${above} is a file`;
  return undefined;
}

/** `missingReason`, or the files with the same ending in its folder. */
export function missingAdvice(file: string): string | undefined {
  const reason = missingReason(file);
  if (reason !== undefined) return reason;
  const folder = path.dirname(file);
  const names = namesLike(file, folder);
  if (names.length === 0) return pathStatus(folder) ? undefined : `there is no folder ${folder}`;
  const shown = names.slice(0, MOST_SHOWN).map((name) => path.join(folder, name));
  return `there is ${shown.join(', ')}${names.length > shown.length ? ', …' : ''}`;
}

const MOST_SHOWN = 3;

function readLink(file: string): string | undefined {
  try {
    return fs.readlinkSync(file);
  } catch {
    return undefined;
  }
}

/** Nearest existing folder or file above the end of a path. */
function firstAbove(file: string): string {
  let above = file.replace(/[/\\]+$/, '');
  if (above === file) above = path.dirname(file);
  while (!pathStatus(above) && path.dirname(above) !== above) above = path.dirname(above);
  return above;
}

const pathStatus = (file: string): fs.Stats | undefined => {
  try {
    return fs.statSync(file);
  } catch {
    return undefined;
  }
};

function namesLike(file: string, folder: string): string[] {
  const ending = path.extname(file);
  if (ending === '') return [];
  try {
    return fs
      .readdirSync(folder)
      .filter((name) => path.extname(name) === ending && name !== path.basename(file))
      .sort();
  } catch {
    return [];
  }
}

/** Whether a path is a folder. False where the file system reports an error: reading the path reports it too. */
export const isFolder = (file: string): boolean => pathStatus(file)?.isDirectory() ?? false;
