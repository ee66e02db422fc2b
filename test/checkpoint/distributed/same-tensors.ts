import { expect } from 'vitest';
import type { Checkpoint } from '../../../src/checkpoint/checkpoint.js';
import { readInChunks, readTensor } from '../../../src/checkpoint/view.js';

/**
 * Both have the same names, types, shapes and values, read whole and in chunks.
 * @param chunk Bytes of a chunk.
 */
export async function expectSameTensors(
  read: Checkpoint['tensors'],
  saved: Checkpoint['tensors'],
  chunk: number,
): Promise<void> {
  expect([...read.keys()].sort()).toEqual([...saved.keys()].sort());
  for (const [key, tensor] of saved) {
    const found = read.get(key);
    if (found === undefined) throw new Error(`no ${key}`);
    const values = Buffer.from(readTensor(tensor));
    expect([key, found.dtype, found.shape]).toEqual([key, tensor.dtype, tensor.shape]);
    expect(Buffer.from(readTensor(found)).equals(values), key).toBe(true);
    const chunks: Buffer[] = [];
    for await (const part of readInChunks(found, chunk)) chunks.push(Buffer.from(part));
    expect(Buffer.concat(chunks).equals(values), key).toBe(true);
  }
}
