/** Cuts of sequences along their tokens. */
import type { TokenIds, Values } from '../../src/engine/engine.js';

/** Tokens `from` to `to` of every sequence. */
export function partOf({ batch, tokens, data }: TokenIds, from: number, to: number): TokenIds {
  const rows = Array.from({ length: batch }, (_, row) => [
    ...data.subarray(row * tokens + from, row * tokens + to),
  ]);
  return { batch, tokens: to - from, data: Int32Array.from(rows.flat()) };
}

/** Values [B, T, C] of tokens `from` to `to`. */
export function rowsOf(
  { shape: [batch = 0, tokens = 0, width = 0], data }: Values,
  from: number,
  to: number,
): Float32Array {
  const rows = Array.from({ length: batch }, (_, row) => [
    ...data.subarray((row * tokens + from) * width, (row * tokens + to) * width),
  ]);
  return Float32Array.from(rows.flat());
}
