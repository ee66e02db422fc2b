/**
 * Files that come with a model: those that another file names (shards of an index, parts of a distributed checkpoint,
 * external data of an ONNX model), and those found in its folder. Their names and links are untrusted.
 */
import fs from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { UserError } from '../errors.js';

/** Characters with a special meaning on some system: drives, schemes, streams, separators, end of a C string. */
const SPECIAL = /[:\\\0]/;

/** Whether a name is a path that goes down from its folder, on every system. */
export function goesDown(name: string): boolean {
  const isPlain = (segment: string) => segment !== '' && segment !== '.' && segment !== '..';
  return !SPECIAL.test(name) && name.split('/').every(isPlain);
}

/** Folders where the files that a file in `folder` names may be, such as the shards of an index. Links are resolved. */
export function allowedFolders(folder: string): readonly string[] {
  try {
    return foldersFor(fs.realpathSync(folder));
  } catch {
    return foldersFor(folder);
  }
}

export const isAllowed = (target: string, folders: readonly string[]): boolean =>
  folders.some((folder) => isBelow(folder, target));

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

/** Whether a path, as it is written, leads to a place below a folder. */
export const isInside = (folder: string, path: string): boolean =>
  isBelow(resolve(folder), resolve(path));

function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/**
 * Refuses a file that was found in a folder and leads out of it: a link in an untrusted folder could name any file.
 * @throws UserError; system errors when it is missing.
 */
export function refuseLinkOutside(path: string): void {
  const target = fs.realpathSync(path);
  if (isAllowed(target, allowedFolders(dirname(path)))) return;
  throw new UserError('refused-file', `${path} is a link out of its folder, to ${target}`, {
    suggestion: 'put a copy of the file in its place',
  });
}
