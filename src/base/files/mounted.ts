/**
 * Folders that are not on this machine's disk, such as a repository of the hub, under the path of the reference that
 * names them: `hf:org/name` is then a folder, and `hf:org/name/config.json` a file in it. Functions that look for files
 * ask here first.
 */
import fs from 'node:fs';
import { refuseUnconfined } from './confined-reads.js';

/** A file of a mounted folder. */
export interface MountedFile {
  readonly size: number;
  /** A number that differs when the content does. */
  readonly version: number;
  /** Where the file is on this machine; undefined when only parts of it are here. */
  readonly localPath: string | undefined;
  /** Hash or tag of the content by which its server names it, equal on all machines; undefined when it states none. */
  readonly contentTag: string | undefined;
  /** Fills `target` with the bytes from `position` on. */
  readInto(target: Uint8Array, position: number): void;
  readIntoAsync(target: Uint8Array, position: number): Promise<void>;
  /** Announces ranges that are about to be read one by one. */
  willRead(ranges: readonly ByteRange[]): void;
}

export interface ByteRange {
  readonly position: number;
  readonly length: number;
}

export interface MountedFolder {
  /** Paths of all files, with slashes. */
  readonly names: ReadonlySet<string>;
  open(name: string): MountedFile;
  /** Bytes of a small file; undefined if it has more than `most`. */
  read(name: string, most: number): Promise<Buffer | undefined>;
  /** Announces files that are about to be opened one by one. */
  willOpen(names: readonly string[]): void;
}

const folders = new Map<string, MountedFolder>();

/** Work that goes on while a read of a mounted file blocks the process, whose timers do not run then. */
const pulses = new Set<() => void>();

/** @returns A function that ends it. */
export function onPulse(work: () => void): () => void {
  pulses.add(work);
  return () => pulses.delete(work);
}

/** Called every few seconds of a blocking read. */
export function pulse(): void {
  for (const work of pulses) work();
}

/** Forgets the folders of an earlier command in this process. */
export const beginMounts = (): void => folders.clear();

/** @param root Path of the folder, without a slash at the end. */
export function mount(root: string, folder: MountedFolder): void {
  folders.set(root, folder);
}

export interface MountedPath {
  readonly folder: MountedFolder;
  /** Path in the folder; empty for the folder itself. */
  readonly name: string;
}

/** The mounted folder with a path; undefined for a path on the disk. */
export function mountedPath(file: string): MountedPath | undefined {
  if (folders.size === 0) return undefined;
  const plain = file.replaceAll('\\', '/').replace(/\/+$/, '');
  for (const [root, folder] of folders) {
    const rest = plain.slice(root.length);
    if (plain.startsWith(root) && (rest === '' || /^(?::\/?|\/)/.test(rest))) {
      return { folder, name: rest.replace(/^:?\/?/, '') };
    }
  }
  return undefined;
}

/** The kind of a path; undefined when there is nothing. Errors of the disk other than that are thrown. */
export function pathKind(file: string): 'file' | 'folder' | 'other' | undefined {
  const found = mountedPath(file);
  if (found === undefined) {
    const status = fs.statSync(file, { throwIfNoEntry: false });
    return status && (status.isDirectory() ? 'folder' : status.isFile() ? 'file' : 'other');
  }
  const { folder, name } = found;
  if (name === '') return 'folder';
  if (folder.names.has(name)) return 'file';
  return hasBelow(folder, name) ? 'folder' : undefined;
}

function hasBelow({ names }: MountedFolder, name: string): boolean {
  for (const each of names) if (each.startsWith(`${name}/`)) return true;
  return false;
}

/** Whether there is something at a path. */
export function pathExists(file: string): boolean {
  return mountedPath(file) === undefined ? fs.existsSync(file) : pathKind(file) !== undefined;
}

/** Names of the files in a folder, without those in folders below it. @throws as `fs.readdirSync`. */
export function fileNamesIn(folder: string): string[] {
  const found = mountedPath(folder);
  if (found === undefined) {
    return entriesOf(folder)
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => name);
  }
  const prefix = found.name === '' ? '' : `${found.name}/`;
  return [...found.folder.names]
    .filter((name) => name.startsWith(prefix) && !name.includes('/', prefix.length))
    .map((name) => name.slice(prefix.length));
}

function entriesOf(folder: string): fs.Dirent[] {
  refuseUnconfined(folder);
  return fs.readdirSync(folder, { withFileTypes: true });
}

/** Names of the folders in a folder. @throws as `fs.readdirSync`. */
export function folderNamesIn(folder: string): string[] {
  const found = mountedPath(folder);
  if (found === undefined) {
    return entriesOf(folder)
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  }
  const prefix = found.name === '' ? '' : `${found.name}/`;
  const below = [...found.folder.names].filter(
    (name) => name.startsWith(prefix) && name.includes('/', prefix.length),
  );
  return [
    ...new Set(below.map((name) => name.slice(prefix.length, name.indexOf('/', prefix.length)))),
  ];
}

/** Announces files that are about to be opened one by one; does nothing for files on the disk. */
export function announceFiles(files: readonly string[]): void {
  const found = files.flatMap((file) => mountedPath(file) ?? []);
  const [first] = found;
  first?.folder.willOpen(found.map(({ name }) => name));
}

export interface FileStatus {
  readonly size: number;
  /** Time of the last change in milliseconds since 1970, or a number that differs when the content does. */
  readonly changedAt: number;
}

/** Status of a regular file; undefined when there is none. */
export function fileStatus(file: string): FileStatus | undefined {
  const mounted = mountedPath(file);
  const opened = mounted?.folder.names.has(mounted.name) && mounted.folder.open(mounted.name);
  if (opened) return { size: opened.size, changedAt: opened.version };
  const status = mounted ? undefined : fs.statSync(file, { throwIfNoEntry: false });
  return status?.isFile() ? { size: status.size, changedAt: status.mtimeMs } : undefined;
}

/** Tag of the content of a file of a mounted folder; undefined for other files, and without one. */
export function contentTagOf(file: string): string | undefined {
  const mounted = mountedPath(file);
  return mounted?.folder.names.has(mounted.name)
    ? mounted.folder.open(mounted.name).contentTag
    : undefined;
}

/** Text of a small file; undefined when there is none, or it has more than `most` bytes. */
export function smallTextAt(file: string, most: number): string | undefined {
  const status = fileStatus(file);
  if (status === undefined || status.size > most) return undefined;
  const mounted = mountedPath(file);
  const opened = mounted?.folder.open(mounted.name);
  if (opened === undefined) {
    refuseUnconfined(file);
    return fs.readFileSync(file, 'utf8');
  }
  if (opened.localPath !== undefined) return fs.readFileSync(opened.localPath, 'utf8');
  const bytes = Buffer.alloc(status.size);
  opened.readInto(bytes, 0);
  return bytes.toString('utf8');
}
