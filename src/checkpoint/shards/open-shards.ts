/** Finds and opens the shards of an index. */

import fs from 'node:fs';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import type { ByteFile } from '../byte-file.js';
import { cannotRead } from '../byte-file.js';
import type { FileIndex } from '../checkpoint.js';
import type { OpenedFile, OpenOptions } from '../open-file.js';
import { openFile } from '../open-file.js';
import { listed, quoted, refusal } from '../rules.js';
import type { ShardIndex } from './index-file.js';
import { readShardIndex } from './index-file.js';
import { checkAgreement, checkLikeness, joined } from './join.js';

/**
 * Path of each shard by name, in index order.
 * @param allowed Allowed folders, from `allowedFolders`.
 * @throws UserError if a shard is missing, or is a link to another folder.
 */
function locateShards(index: ShardIndex, allowed: readonly string[]): ReadonlyMap<string, string> {
  const folder = dirname(index.path);
  const paths = new Map<string, string>();
  const missing: string[] = [];
  for (const name of index.shards.keys()) {
    const path = join(folder, name);
    const target = realPath(path);
    paths.set(name, path);
    if (target === undefined) missing.push(name);
    else if (!isAllowed(target, allowed)) throw outside(index, name, target);
  }
  if (missing.length > 0) {
    throw refusal(index.path, {
      rule: 'shard-exists',
      message: `names ${index.shards.size} files, and these are not there: ${listed(missing)}`,
      suggestion: 'download them into the folder of the index',
    });
  }
  return paths;
}

/**
 * Checks the location of a shard again after opening: a link may have changed since.
 * @throws UserError if the file is in another folder, or its path leads to another file.
 */
function checkShardPlace(
  index: ShardIndex,
  allowed: readonly string[],
  name: string,
  file: ByteFile,
): void {
  const target = file.locate();
  if (!isAllowed(target, allowed)) throw outside(index, name, target);
}

const outside = ({ path }: ShardIndex, name: string, target: string) =>
  refusal(path, {
    rule: 'shard-in-folder',
    place: `shard ${name}`,
    message: `is a link to ${quoted(target)}, which is outside of the folder`,
    suggestion: 'put the file itself into the folder',
  });

/** Folders where the shards of an index may be. */
function allowedFolders({ path }: ShardIndex): readonly string[] {
  const folder = dirname(path);
  return foldersFor(realPath(folder) ?? folder);
}

const isAllowed = (target: string, folders: readonly string[]): boolean =>
  folders.some((folder) => isBelow(folder, target));

/** Path with all links resolved; undefined if it does not exist. */
function realPath(path: string): string | undefined {
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

export interface OpenedFiles {
  readonly files: readonly ByteFile[];
  readonly index: FileIndex;
}

/**
 * Opens all shards of an index as one checkpoint. Each stays open with its own descriptor, unless this throws.
 * @param path The path of the index as the user wrote it.
 * @throws UserError if a file cannot be read or violates a rule, or index and shards disagree.
 */
export function openShards(path: string, options: OpenOptions): OpenedFiles {
  const index = readShardIndex(path);
  const opened: OpenedFile[] = [];
  try {
    const shards = new Map<string, FileIndex>();
    const allowed = allowedFolders(index);
    for (const [name, place] of locateShards(index, allowed)) {
      const check = (file: ByteFile) => checkShardPlace(index, allowed, name, file);
      const shard = openFile(place, options, check);
      opened.push(shard);
      checkAgreement(index, name, shard.index);
      checkLikeness(index, name, shard.index, opened[0]?.index ?? shard.index);
      shards.set(name, shard.index);
    }
    return { files: opened.map(({ file }) => file), index: joined(index, shards) };
  } catch (error) {
    for (const { file } of opened) file.close();
    throw error;
  }
}
