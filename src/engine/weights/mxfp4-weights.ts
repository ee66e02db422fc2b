/** Packed experts stored as MXFP4 (OCP Microscaling Formats 1.0, 2023), in the layout of gpt-oss. */

import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { readRows } from '../../checkpoint/view.js';
import type { Param } from '../../model/architecture/param.js';

/** Values with one scale, two to a byte. */
const BLOCK = 32;
const BLOCK_BYTES = BLOCK / 2;
const SCALE_BIAS = 127;

/** Values of four bits: a sign, two bits of exponent, one of fraction; the first value is in the low bits. */
const MAGNITUDES = [0, 0.5, 1, 1.5, 2, 3, 4, 6] as const;
const VALUES = Float32Array.from({ length: 16 }, (_, code) => {
  const magnitude = MAGNITUDES[code & 7] ?? 0;
  return code < 8 ? magnitude : -magnitude;
});

/** `NAME_blocks` [experts, out, in / 32, 16] and `NAME_scales` [experts, out, in / 32], in bytes. */
export interface Mxfp4Parts {
  readonly blocks: StoredTensor;
  readonly scales: StoredTensor;
}

/** Whether the parts hold a tensor [experts, in, out]. */
export function holdsMxfp4({ shape }: Param, { blocks, scales }: Mxfp4Parts): boolean {
  const [experts = 0, from = 0, to = 0] = shape;
  const groups = from / BLOCK;
  return (
    shape.length === 3 &&
    blocks.dtype === 'U8' &&
    scales.dtype === 'U8' &&
    blocks.shape.join() === [experts, to, groups, BLOCK_BYTES].join() &&
    scales.shape.join() === [experts, to, groups].join()
  );
}

/** Reader of the elements of a tensor [experts, in, out]. It keeps the last expert. */
export function mxfp4Reader({ shape }: Param, parts: Mxfp4Parts) {
  const [, from = 0, to = 0] = shape;
  const size = from * to;
  let last: { readonly expert: number; readonly values: Float32Array } | undefined;
  const valuesOf = (expert: number): Float32Array => {
    if (last?.expert !== expert) last = { expert, values: expertValues(parts, expert, from, to) };
    return last.values;
  };
  return (first: number, target: Float32Array): void => {
    for (let done = 0; done < target.length; ) {
      const expert = Math.floor((first + done) / size);
      const start = first + done - expert * size;
      const count = Math.min(size - start, target.length - done);
      target.set(valuesOf(expert).subarray(start, start + count), done);
      done += count;
    }
  };
}

/** One expert, [in, out]; it is stored as [out, in]. */
function expertValues(
  { blocks, scales }: Mxfp4Parts,
  expert: number,
  from: number,
  to: number,
): Float32Array {
  const packed = new Uint8Array((from * to) / 2);
  const exponents = new Uint8Array((from * to) / BLOCK);
  readRows(blocks, expert, 1, packed);
  readRows(scales, expert, 1, exponents);
  const values = new Float32Array(from * to);
  for (const [index, byte] of packed.entries()) {
    const scale = 2 ** ((exponents[Math.floor(index / BLOCK_BYTES)] ?? 0) - SCALE_BIAS);
    const [row, column] = [Math.floor((2 * index) / from), (2 * index) % from];
    values[column * to + row] = (VALUES[byte & 15] ?? 0) * scale;
    values[(column + 1) * to + row] = (VALUES[byte >> 4] ?? 0) * scale;
  }
  return values;
}
