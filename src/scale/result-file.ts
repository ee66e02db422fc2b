/** Files with results of units. Each is there as a whole or not at all, whenever a runner ends. */
import fs from 'node:fs';
import path from 'node:path';
import { removeQuietly, renameTo, syncFolder, withFileErrors } from '../base/files/file-system.js';
import { temporaryFileName } from '../base/files/temporary.js';
import { type ByteSink, writeThrough } from '../base/files/write-whole.js';
import type { PartLock } from './part-lock.js';

/** Writes the content of a file. */
export type Fill = (sink: Pick<ByteSink, 'write' | 'position'>) => Promise<void>;

/**
 * Writes the file of a unit whose lock this runner has: first under another name in the same folder, then syncs and
 * renames it. Removes what an owner that is gone has left.
 * @param id Name of the unit.
 * @throws UserError when it cannot be written; rethrows errors of `fill`.
 */
export async function writeLocked(
  file: string,
  id: string,
  { token }: PartLock,
  fill: Fill,
): Promise<void> {
  const folder = path.dirname(file);
  const prefix = `.${id}.`;
  for (const name of await withFileErrors(file, () => fs.readdirSync(folder))) {
    if (name.startsWith(prefix)) removeQuietly(path.join(folder, name));
  }
  await writeSynced(path.join(folder, `${prefix}${token}.tmp`), file, fill);
}

/** Writes a small file under another name, syncs it and renames it. @throws UserError when it cannot be written. */
export const writeText = (file: string, text: string): Promise<void> =>
  writeSynced(path.join(path.dirname(file), temporaryFileName()), file, (sink) =>
    sink.write(Buffer.from(text)),
  );

const writeSynced = (temporary: string, file: string, fill: Fill): Promise<void> =>
  writeThrough(temporary, file, undefined, fill, () => {
    renameTo(temporary, file);
    syncFolder(path.dirname(file));
  });
