/** Values for the writer. */

import type { ByteSink } from '../../../src/base/files/write-whole.js';
import { Members, Table } from '../../../src/checkpoint/torch/pickle/values.js';
import type { Writable, WritableTensor } from '../../../src/checkpoint/torch/pickle/writable.js';
import { planTorch } from '../../../src/checkpoint/torch/write-torch.js';
import { writeZip } from '../../../src/checkpoint/torch/zip/write-zip.js';

export const list = (...items: readonly Writable[]): Writable => ({ kind: 'list', items });
export const tuple = (...items: readonly Writable[]) => ({ kind: 'tuple', items }) as const;
export const dict = (type: string, ...entries: readonly [Writable, Writable][]): Writable => ({
  kind: 'dict',
  type,
  entries: new Map(entries),
});
/** Storage of zeros. */
export const bytesOf = (bytes: number) => ({ bytes, chunks: () => [new Uint8Array(bytes)] });
/** Tensor; by default float32 [2, 3] on a new storage. */
export const tensor = (given: Partial<WritableTensor> = {}): WritableTensor => ({
  kind: 'tensor',
  dtype: 'F32',
  shape: [2, 3],
  strides: [3, 1],
  offset: 0,
  storage: bytesOf(24),
  ...given,
});

/** Value with a Map for every table and a Set for every set, for comparisons. */
export function comparable(value: unknown): unknown {
  if (value instanceof Uint8Array || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(comparable);
  if (value instanceof Table || value instanceof Map) {
    return new Map([...value].map(([key, part]) => [comparable(key), comparable(part)]));
  }
  if (value instanceof Members || value instanceof Set) return new Set([...value].map(comparable));
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, comparable(part)]));
}

/** Writes a value like `torch.save`. */
export async function writeTorch(sink: ByteSink, value: Writable, root?: string): Promise<void> {
  await writeZip(sink, planTorch(value, root));
}
