/** The files that the tensors of an output go into. */
import { UserError } from '../errors.js';
import type { PlannedShard, PlannedTensor } from './plan.js';

/** What a shard holds at most unless the user says otherwise: 5 GB, as the Hugging Face hub has it. */
export const DEFAULT_SHARD_BYTES = 5e9;

/** More files than this are a mistake in the size. */
const MOST_SHARDS = 99_999;

/**
 * Fills shards one after the other, in the order of the tensors; one that is larger than a shard gets its
 * own.
 * @throws UserError when there would be more shards than their names can count.
 */
export function shardsOf(tensors: readonly PlannedTensor[], shardBytes: number): PlannedShard[] {
  const shards: { tensors: string[]; bytes: number }[] = [];
  for (const { name, bytes } of tensors) {
    const last = shards.at(-1);
    if (last && last.bytes + bytes <= shardBytes) {
      last.tensors.push(name);
      last.bytes += bytes;
    } else shards.push({ tensors: [name], bytes });
  }
  if (shards.length > MOST_SHARDS) {
    throw new UserError('usage', `shards of ${shardBytes} bytes would be ${shards.length} files`, {
      suggestion: 'choose a larger --shard-size',
    });
  }
  const [first = { tensors: [], bytes: 0 }] = shards;
  if (shards.length <= 1) return [{ file: 'model.safetensors', ...first }];
  const digits = (number: number) => String(number).padStart(5, '0');
  return shards.map((shard, index) => ({
    file: `model-${digits(index + 1)}-of-${digits(shards.length)}.safetensors`,
    ...shard,
  }));
}

/** The index of several shards, as the Hugging Face hub has it. */
export function indexOfShards(shards: readonly PlannedShard[]): string {
  const total_size = shards.reduce((sum, { bytes }) => sum + bytes, 0);
  const entries = shards.flatMap(({ file, tensors }) =>
    tensors.map((name) => [name, file] as const),
  );
  const weight_map = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify({ metadata: { total_size }, weight_map }, null, 2)}\n`;
}
