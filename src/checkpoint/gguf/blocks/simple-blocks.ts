/**
 * Encoders of blocks of 32 values with one scale: Q8_0, Q4_0 and Q5_0, and a minimum: Q4_1 and Q5_1. The float32 steps
 * are those of ggml's reference (quantize_row_q8_0_ref and the like, and quantize_row_q4_0_impl with importances).
 */
import { putHalf } from './half.js';
import {
  affineTrials,
  groupCodes,
  groupMinima,
  groupScales,
  groupValues,
  groupWeights,
  STRIDE,
  searchAffine,
  searchSymmetric,
} from './search-kernels.js';

const f32 = Math.fround;

/** Values of a block. */
const QK = 32;

/**
 * Encodes the block of 32 values from `from` on into the bytes from `at` on.
 * @param weights Importances of the 32 values; undefined without an importance matrix.
 * @returns Whether all scales are finite.
 */
export type EncodeBlock = (
  values: Float32Array,
  from: number,
  target: Uint8Array,
  at: number,
  weights: Float32Array | undefined,
) => boolean;

const codes = new Uint8Array(QK);

/** Makes a block the first group of a search. */
function loadGroup(values: Float32Array, from: number, weights: Float32Array): void {
  for (let i = 0; i < QK; i++) {
    groupValues[STRIDE * i] = values[from + i] as number;
    groupWeights[STRIDE * i] = weights[i] as number;
  }
}

/** Takes the codes of the first group. @returns Its scale. */
function takeFound(): number {
  for (let i = 0; i < QK; i++) codes[i] = groupCodes[STRIDE * i] as number;
  return groupScales[0] as number;
}

/** Away from zero for halves. */
const rounded = (value: number): number => Math.sign(value) * Math.floor(Math.abs(value) + 0.5);

const q8: EncodeBlock = (values, from, target, at) => {
  let size = 0;
  for (let i = from; i < from + QK; i++) size = Math.max(size, Math.abs(values[i] as number));
  const scale = f32(size / 127);
  const inverse = scale === 0 ? 0 : f32(1 / scale);
  for (let i = 0; i < QK; i++) {
    target[at + 2 + i] = rounded(f32((values[from + i] as number) * inverse));
  }
  return putHalf(scale, target, at);
};

/** Writes `codes` as nibbles, and their fifth bits before them. */
function pack(target: Uint8Array, at: number, hasFifthBit: boolean): void {
  const nibbles = at + (hasFifthBit ? 4 : 0);
  if (hasFifthBit) target.fill(0, at, nibbles);
  for (let i = 0; i < 16; i++) {
    const [low, high] = [codes[i] as number, codes[i + 16] as number];
    target[nibbles + i] = (low & 15) | ((high & 15) << 4);
    if (!hasFifthBit) continue;
    target[at + (i >> 3)] = (target[at + (i >> 3)] as number) | ((low >> 4) << (i & 7));
    target[at + 2 + (i >> 3)] = (target[at + 2 + (i >> 3)] as number) | ((high >> 4) << (i & 7));
  }
}

/** Q4_0 and Q5_0: codes around 2^(bits − 1). */
const symmetric = (bits: 4 | 5): EncodeBlock => {
  const halfway = 2 ** (bits - 1);
  return (values, from, target, at, weights) => {
    let scale: number;
    if (weights) {
      loadGroup(values, from, weights);
      searchSymmetric(STRIDE, QK, halfway);
      scale = takeFound();
    } else {
      // A block of zeros has the sign of its first one, as in Python's gguf package; ggml has −0.
      let peak = values[from] as number;
      for (let i = from; i < from + QK; i++) {
        const x = values[i] as number;
        if (Math.abs(x) > Math.abs(peak)) peak = x;
      }
      scale = f32(peak / -halfway);
      const inverse = scale === 0 ? 0 : f32(1 / scale);
      for (let i = 0; i < QK; i++) {
        const code = Math.trunc(f32(f32((values[from + i] as number) * inverse) + halfway + 0.5));
        codes[i] = code < 0 ? 0 : code > 2 * halfway - 1 ? 2 * halfway - 1 : code;
      }
    }
    pack(target, at + 2, bits === 5);
    return putHalf(scale, target, at);
  };
};

/** Q4_1 and Q5_1: codes from the smallest value on. */
const affine = (bits: 4 | 5): EncodeBlock => {
  const largestCode = 2 ** bits - 1;
  const trials = affineTrials(-0.9, 0.05, 37, largestCode);
  return (values, from, target, at, weights) => {
    let scale: number;
    let lowest: number;
    if (weights) {
      loadGroup(values, from, weights);
      searchAffine(STRIDE, QK, largestCode, trials, false);
      scale = takeFound();
      lowest = -(groupMinima[0] as number);
    } else {
      lowest = values[from] as number;
      let high = lowest;
      for (let i = from; i < from + QK; i++) {
        lowest = Math.min(lowest, values[i] as number);
        high = Math.max(high, values[i] as number);
      }
      scale = f32(f32(high - lowest) / largestCode);
      const inverse = scale === 0 ? 0 : f32(1 / scale);
      for (let i = 0; i < QK; i++) {
        const x = f32(f32((values[from + i] as number) - lowest) * inverse);
        codes[i] = Math.min(largestCode, Math.trunc(f32(x + 0.5)));
      }
    }
    pack(target, at + 4, bits === 5);
    const isScaleWhole = putHalf(scale, target, at);
    return putHalf(lowest, target, at + 2) && isScaleWhole;
  };
};

/** Encoders of blocks of 32 values. */
export const SIMPLE_BLOCKS = {
  Q8_0: q8,
  Q4_0: symmetric(4),
  Q4_1: affine(4),
  Q5_0: symmetric(5),
  Q5_1: affine(5),
} as const;
