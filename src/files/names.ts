/** Names of files: taking them, and bringing them to the disk. */
import fs from 'node:fs';
import { alreadyExists, codeOf } from './refusals.js';

/** Gives a file another name, which must be free still. */
export function takeFreeName(from: string, to: string): void {
  try {
    // A link fails when the name was taken meanwhile; a rename would replace what took it.
    fs.linkSync(from, to);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    if (fs.existsSync(to)) throw alreadyExists(to);
    fs.renameSync(from, to);
  }
}

/** What file systems without hard links (FAT, some network shares) answer, and all of them for folders. */
export const NO_LINKS: ReadonlySet<string> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
]);

/** Brings the names in a folder to the disk. */
export function syncFolder(folder: string): void {
  try {
    const descriptor = fs.openSync(folder, 'r');
    try {
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    // Not every system lets a folder be opened or synced. The content is on the disk already.
  }
}

/** Whether something stands there, be it a link to nothing. */
export const exists = (file: string) => fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined;

/** Whether two names, of links too, are those of one file. */
export function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((file) =>
    fs.lstatSync(file, { bigint: true, throwIfNoEntry: false }),
  );
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

export function removeQuietly(file: string): void {
  try {
    fs.rmSync(file, { recursive: true, force: true });
  } catch {
    // What went wrong before is what the user has to know.
  }
}
