/** Values of a stored tensor that are not finite, or that float16 cannot hold, found by their bits in one pass. */
import type { StoredDtype } from '../base/tensor/dtype.js';
import type { StoredTensor } from './stored-tensor.js';
import { streamTensor } from './view.js';

/** Non-finite values of a tensor. */
export interface NonFinite {
  readonly nan: number;
  readonly infinite: number;
  /** Position of the first one in the tensor, row-major; null without any. */
  readonly first: number | null;
  /** Finite values beyond 65,504, which become infinite in float16. */
  readonly beyondFloat16: number;
}

/** Bits of a type without the sign, in words of 16 or 32 bits. */
interface FloatBits {
  readonly words: 16 | 32;
  readonly mask: number;
  /** Bits of infinity; everything above is NaN. */
  readonly infinity: number;
  /** Smallest bits that round to infinity in float16. */
  readonly beyond: number;
}

const FLOAT_BITS: Partial<Record<StoredDtype, FloatBits>> = {
  F32: { words: 32, mask: 0x7fff_ffff, infinity: 0x7f80_0000, beyond: 0x477f_f000 },
  BF16: { words: 16, mask: 0x7fff, infinity: 0x7f80, beyond: 0x4780 },
  F16: { words: 16, mask: 0x7fff, infinity: 0x7c00, beyond: 0x7c00 },
};

/** Whether the values of a type can be searched. */
export const canHoldNonFinite = (dtype: StoredDtype): boolean => FLOAT_BITS[dtype] !== undefined;

/** Searches a tensor. @throws UserError if reading fails. */
export async function nonFiniteIn(
  tensor: StoredTensor,
  onBytes: (bytes: number) => void,
): Promise<NonFinite> {
  const bits = FLOAT_BITS[tensor.dtype];
  let [nan, infinite, beyondFloat16, done] = [0, 0, 0, 0];
  let first: number | null = null;
  if (bits === undefined) return { nan, infinite, first, beyondFloat16 };
  const { words, mask, infinity, beyond } = bits;
  await streamTensor(tensor, (bytes) => {
    const values = wordsOf(bytes, words);
    for (let at = 0; at < values.length; at++) {
      const size = (values[at] ?? 0) & mask;
      if (size < beyond) continue;
      if (size < infinity) {
        beyondFloat16++;
        continue;
      }
      if (size === infinity) infinite++;
      else nan++;
      first ??= done + at;
    }
    done += values.length;
    onBytes(bytes.length);
  });
  return { nan, infinite, first, beyondFloat16 };
}

/** Little-endian words, copied where they are not aligned. */
function wordsOf(bytes: Uint8Array, words: 16 | 32): Uint16Array | Uint32Array {
  const size = words / 8;
  const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  const count = Math.floor(aligned.length / size);
  return words === 16
    ? new Uint16Array(aligned.buffer, aligned.byteOffset, count)
    : new Uint32Array(aligned.buffer, aligned.byteOffset, count);
}

/** Index of a row-major position in each axis: 327 in [64, 64] is [5, 7]. */
export function indexAt(position: number, shape: readonly number[]): number[] {
  let rest = position;
  const index: number[] = [];
  for (const size of shape.toReversed()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return index;
}
