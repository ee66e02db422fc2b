/** Opens the files that an index names as one checkpoint. */
import type { ByteFile } from '../byte-file.js';
import type { FileIndex } from '../checkpoint.js';
import { type OpenedFile, type OpenOptions, openFile } from '../single-file.js';
import { checkAgreement, checkLikeness } from './agreement.js';
import { readShardIndex } from './index-file.js';
import { joined } from './join.js';
import { allowedFolders, checkShardPlace, locateShards } from './locate.js';

export interface OpenedFiles {
  readonly files: readonly ByteFile[];
  readonly index: FileIndex;
}

/**
 * Opens all shards of an index. They stay open, each with a descriptor, unless this throws.
 * @param path Of the index, as the user wrote it.
 * @throws UserError when a file cannot be read or breaks a rule, or index and shards disagree.
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
