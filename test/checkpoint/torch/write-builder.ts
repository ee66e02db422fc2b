/** Values to be written. */
import type { Writable, WritableTensor } from '../../../src/checkpoint/torch/write-values.js';

export const list = (...items: readonly Writable[]): Writable => ({ kind: 'list', items });
export const tuple = (...items: readonly Writable[]) => ({ kind: 'tuple', items }) as const;
export const dict = (type: string, ...entries: readonly [Writable, Writable][]): Writable => ({
  kind: 'dict',
  type,
  entries: new Map(entries),
});
/** As many zeros. */
export const bytesOf = (bytes: number) => ({ bytes, chunks: () => [new Uint8Array(bytes)] });
/** A float32 tensor [2, 3] on a storage of its own, unless said otherwise. */
export const tensor = (given: Partial<WritableTensor> = {}): WritableTensor => ({
  kind: 'tensor',
  dtype: 'F32',
  shape: [2, 3],
  strides: [3, 1],
  offset: 0,
  storage: bytesOf(24),
  ...given,
});
