import { expect } from 'vitest';
import type { Checkpoint } from '../../../src/checkpoint/checkpoint.js';
import { readInChunks, readTensor } from '../../../src/checkpoint/view.js';

/** Expects the tensors of a safetensors file, read as a whole and in chunks of `chunkBytes`. */
export async function expectSameValues(
  read: Checkpoint,
  saved: Checkpoint,
  chunkBytes: number,
): Promise<void> {
  expect([...read.tensors.keys()].sort()).toEqual([...saved.tensors.keys()].sort());
  for (const [key, tensor] of saved.tensors) {
    const actual = read.tensors.get(key);
    if (actual === undefined) throw new Error(`no ${key}`);
    const values = Buffer.from(readTensor(tensor));
    expect([key, actual.dtype, actual.shape]).toEqual([key, tensor.dtype, tensor.shape]);
    expect(Buffer.from(readTensor(actual)).equals(values), key).toBe(true);
    const chunks: Buffer[] = [];
    for await (const chunk of readInChunks(actual, chunkBytes)) chunks.push(Buffer.from(chunk));
    expect(Buffer.concat(chunks).equals(values), key).toBe(true);
  }
}
