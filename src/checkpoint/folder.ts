/** Which of the files in a folder is its checkpoint. */
import fs from 'node:fs';
import { join } from 'node:path';
import { cannotRead } from './byte-file.js';
import { refusal } from './refusal.js';
import { readShardIndex } from './shards/index-file.js';
import { isIndexName, isWeightsName } from './weight-names.js';
import { listed } from './wording.js';

/** transformers/utils/__init__.py: SAFE_WEIGHTS_NAME, WEIGHTS_NAME */
const STANDALONE = /^(?:model\.safetensors|pytorch_model\.bin)$/;

const SHARD = /-\d+-of-\d+\.\w+$/;

/**
 * The path of a folder's checkpoint: an index of shards, or a single file.
 * @throws UserError when the folder holds none, or several.
 */
export function weightsIn(folder: string): string {
  const names = namesIn(folder);
  const marked = markedIn(folder, names);
  const candidates = marked.length > 0 ? marked : names.filter(isWeightsName);
  const [first, ...others] = candidates;
  if (first === undefined) {
    throw refusal(folder, {
      rule: 'folder-holds-weights',
      message:
        'holds no weights: no .safetensors, .pt, .pth, .bin or .ckpt file, and no index of some',
      suggestion: names.includes('config.json')
        ? 'download the weights too: config.json only describes the model'
        : 'name the folder or the file that holds the weights',
    });
  }
  if (others.length > 0) {
    throw refusal(folder, {
      rule: 'folder-is-one',
      message: `holds ${candidates.length} files that could be meant: ${listed(candidates)}`,
      suggestion: candidates.every((name) => SHARD.test(name))
        ? 'add the index of these shards (*.index.json), or name one of them'
        : 'name one of them',
    });
  }
  return join(folder, first);
}

/** Files that are no folders and not hidden, by name. */
function namesIn(folder: string): string[] {
  try {
    return fs
      .readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    throw cannotRead(folder, error);
  }
}

/** The files whose names say that they are the whole checkpoint. */
function markedIn(folder: string, names: readonly string[]): string[] {
  const indexes = names.filter(isIndexName);
  const standalone = names.filter((name) => STANDALONE.test(name));
  const [index] = indexes;
  if (index === undefined || indexes.length > 1 || standalone.length === 0) {
    return [...indexes, ...standalone];
  }
  const { shards } = readShardIndex(join(folder, index));
  return [index, ...standalone.filter((name) => !shards.has(name))];
}
