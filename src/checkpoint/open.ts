/** Opens whatever path leads to weights: a file, the index of several, or a folder. */
import fs from 'node:fs';
import { basename } from 'node:path';
import { cannotRead } from './byte-file.js';
import type { Checkpoint } from './checkpoint.js';
import { weightsIn } from './folder.js';
import { isShardIndex } from './shards/index-file.js';
import { type OpenedFiles, openShards } from './shards/open.js';
import { type OpenOptions, openFile } from './single-file.js';

/**
 * The index of the checkpoint at `path`: a file of weights, whose bytes say which format it has; the
 * index of several (`*.index.json`); or a folder with one or the other. Reads no tensor. The files stay
 * open until the checkpoint is closed.
 * @throws UserError when there is nothing at `path`, it cannot be read, or it breaks a rule. No file
 * stays open then.
 */
export function openCheckpoint(path: string, options: OpenOptions = {}): Checkpoint {
  const found = isFolder(path) ? weightsIn(path) : path;
  const { files, index } = isShardIndex(found)
    ? openShards(found, options)
    : openAlone(found, options);
  return {
    ...index,
    path,
    files,
    close() {
      for (const file of files) file.close();
    },
  };
}

function isFolder(path: string): boolean {
  try {
    return fs.statSync(path).isDirectory();
  } catch (error) {
    throw cannotRead(path, error);
  }
}

function openAlone(path: string, options: OpenOptions): OpenedFiles {
  const { file, index } = openFile(path, options);
  const part = partOfSeveral(path);
  return {
    files: [file],
    index: part === undefined ? index : { ...index, warnings: [part, ...index.warnings] },
  };
}

/** What to say of one shard without the others. */
function partOfSeveral(path: string): string | undefined {
  const name = basename(path);
  const [, number, count] = /-(\d+)-of-(\d+)\.\w+$/.exec(name) ?? [];
  if (Number(count ?? 1) <= 1) return undefined;
  return `${name} is shard ${Number(number)} of ${Number(count)}, and the others were not opened: name the folder or the index`;
}
