import type { FileIndex } from '../checkpoint.js';
import { refusal } from '../refusal.js';
import { listed, quoted } from '../wording.js';
import type { ShardIndex } from './index-file.js';

/** What helps when files of different versions of a checkpoint have been mixed. */
const FETCH_ALL = 'download the index and all of its files together';

/**
 * Checks that a shard holds what the index says, and nothing else.
 * @throws UserError when it does not.
 */
export function checkAgreement(
  { path, shards, weightMap }: ShardIndex,
  shard: string,
  { tensors }: FileIndex,
): void {
  const place = `shard ${shard}`;
  const absent = (shards.get(shard) ?? []).filter((name) => !tensors.has(name));
  if (absent.length > 0) {
    throw refusal(path, {
      rule: 'shard-tensor-present',
      place,
      message: `lacks tensors that the index places in it: ${listed(absent)}`,
      suggestion: FETCH_ALL,
    });
  }
  const names = [...tensors.keys()];
  const unlisted = names.filter((name) => !weightMap.has(name));
  if (unlisted.length > 0) {
    throw refusal(path, {
      rule: 'shard-tensor-listed',
      place,
      message: `holds tensors that the index does not name: ${listed(unlisted)}`,
      suggestion: FETCH_ALL,
    });
  }
  const misplaced = names.filter((name) => weightMap.get(name) !== shard);
  if (misplaced.length > 0) {
    throw refusal(path, {
      rule: 'shard-tensor-place',
      place,
      message: `holds tensors that the index places in another shard: ${listed(misplaced)}`,
      suggestion: FETCH_ALL,
    });
  }
}

/**
 * Checks that a shard can be part of the same checkpoint as the first.
 * @throws UserError when it is of another kind.
 */
export function checkLikeness(
  { path }: ShardIndex,
  shard: string,
  { format, stateDict }: FileIndex,
  first: FileIndex,
): void {
  const place = `shard ${shard}`;
  if (format !== first.format) {
    throw refusal(path, {
      rule: 'shard-format',
      place,
      message: `has the format ${format}, but the first shard has ${first.format}`,
      suggestion: FETCH_ALL,
    });
  }
  if (stateDict.join('.') !== first.stateDict.join('.')) {
    throw refusal(path, {
      rule: 'shard-state-dict',
      place,
      message: `holds its tensors under ${keysText(stateDict)}, but the first shard under ${keysText(first.stateDict)}`,
      suggestion: 'save the shards as plain state dicts',
    });
  }
}

const keysText = (keys: readonly string[]) =>
  keys.length === 0 ? 'no key' : quoted(keys.join('.'));
