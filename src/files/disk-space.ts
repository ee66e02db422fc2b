/** Refusal of output that does not fit on its disk. */
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { formatBytes } from '../text/units.js';

/**
 * @param target Where the files go: a file, or a folder that may not be there yet.
 * @throws UserError when the disk has less space than they take.
 */
export function refuseFullDisk(target: string, files: readonly { readonly bytes: number }[]): void {
  const neededBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const freeBytes = freeBytesOf(path.dirname(path.resolve(target)));
  if (freeBytes === undefined || neededBytes <= freeBytes) return;
  throw new UserError(
    'system',
    `cannot write ${target}: it takes ${formatBytes(neededBytes)}, and the disk has ${formatBytes(freeBytes)} free`,
    { suggestion: 'free some space, or write to another disk' },
  );
}

/** Undefined where the system does not say. */
function freeBytesOf(folder: string): number | undefined {
  try {
    const { blocks, bavail, bsize } = fs.statfsSync(folder);
    return blocks === 0 ? undefined : bavail * bsize;
  } catch {
    return undefined;
  }
}
