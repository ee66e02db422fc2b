/** Files that another file names: shards of an index, parts of a distributed checkpoint, external data of an ONNX model. Their names are untrusted. */
import fs from 'node:fs';
import { isAbsolute, relative, sep } from 'node:path';
import { cannotRead } from '../byte-file.js';

/** Characters with a special meaning on some system: drives, schemes, streams, separators, end of a C string. */
const SPECIAL = /[:\\\0]/;

/** Whether a name is a path that goes down from its folder, on every system. */
export function goesDown(name: string): boolean {
  const isPlain = (segment: string) => segment !== '' && segment !== '.' && segment !== '..';
  return !SPECIAL.test(name) && name.split('/').every(isPlain);
}

/** Folders where the files that a file in `folder` names may be, such as the shards of an index. Links are resolved. */
export const allowedFolders = (folder: string): readonly string[] =>
  foldersFor(realPath(folder) ?? folder);

export const isAllowed = (target: string, folders: readonly string[]): boolean =>
  folders.some((folder) => isBelow(folder, target));

/** Path with all links resolved; undefined if it does not exist. */
export function realPath(path: string): string | undefined {
  try {
    return fs.realpathSync(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return undefined;
    throw cannotRead(path, error);
  }
}

/**
 * Folders where the files of a checkpoint may be. The cache of the Hugging Face hub stores a file under its
 * hash in `models--NAME/blobs`, and links to it from `models--NAME/snapshots/REVISION`.
 * https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
function foldersFor(folder: string): readonly string[] {
  const parts = folder.split(sep);
  const at = parts.findLastIndex(
    (part, position) => part.startsWith('models--') && parts[position + 1] === 'snapshots',
  );
  const isRevision = at >= 0 && parts.length > at + 2;
  return isRevision ? [folder, [...parts.slice(0, at + 1), 'blobs'].join(sep)] : [folder];
}

function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
