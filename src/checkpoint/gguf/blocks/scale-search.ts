/**
 * Searches for the scale of a single group, in float32 and in the order of ggml's reference as in `search-kernels.ts`.
 * Every operation is rounded to float32.
 */
import { ZERO_GROUP } from './search-kernels.js';

const f32 = Math.fround;

/** 1.5 · 2^23: a float32 sum with it has no fraction, rounded to nearest, halves to even. */
const ROUNDER = 12582912;

/** Nearest integer of a float32 number below 2^22, halves to even. */
export const nearest = (value: number): number => f32(f32(value + ROUNDER) - ROUNDER);

/** The value of largest size. */
function peakOf(values: Float32Array, at: number, count: number): number {
  let peak = f32(0);
  for (let i = at; i < at + count; i++) {
    const x = f32(values[i] as number);
    if (Math.abs(x) > Math.abs(peak)) peak = x;
  }
  return peak;
}

const signedCode = (value: number, half: number): number => {
  const code = nearest(value);
  return code < -half ? -half : code > half - 1 ? half - 1 : code;
};

const signedCodes = new Int8Array(16);

/** `symmetricScale` for 16 values of Q3_K without importances: codes are improved one by one, five times at most. */
export function refinedScale(
  values: Float32Array,
  at: number,
  half: number,
  codes: Uint8Array,
): number {
  const count = 16;
  const peak = peakOf(values, at, count);
  if (Math.abs(peak) < ZERO_GROUP) {
    codes.fill(0, at, at + count);
    return 0;
  }
  const inverse = f32(-half / peak);
  let sumLX = f32(0);
  let sumL2 = f32(0);
  for (let i = 0; i < count; i++) {
    const x = f32(values[at + i] as number);
    const code = signedCode(f32(inverse * x), half);
    signedCodes[i] = code;
    const w = f32(x * x);
    sumLX = f32(sumLX + f32(f32(w * x) * code));
    sumL2 = f32(sumL2 + f32(f32(w * code) * code));
  }
  for (let round = 0, isChanged = true; round < 5 && isChanged; round++) {
    isChanged = false;
    for (let i = 0; i < count; i++) {
      const x = f32(values[at + i] as number);
      const w = f32(x * x);
      const wx = f32(w * x);
      const old = signedCodes[i] as number;
      let lx = f32(sumLX - f32(wx * old));
      if (!(lx > 0)) continue;
      let l2 = f32(sumL2 - f32(f32(w * old) * old));
      const code = signedCode(f32(f32(x * l2) / lx), half);
      if (code === old) continue;
      lx = f32(lx + f32(wx * code));
      l2 = f32(l2 + f32(f32(w * code) * code));
      if (l2 > 0 && f32(f32(lx * lx) * sumL2) > f32(f32(sumLX * sumLX) * l2)) {
        signedCodes[i] = code;
        sumLX = lx;
        sumL2 = l2;
        isChanged = true;
      }
    }
  }
  for (let i = 0; i < count; i++) codes[at + i] = (signedCodes[i] as number) + half;
  return sumL2 > 0 ? f32(sumLX / sumL2) : 0;
}

/**
 * Scale s with value ≈ s · code for values that are not negative, codes from 0 to `largestCode`: the scales and minima
 * of a block, with importances.
 */
export function positiveScale(
  values: Float32Array,
  count: number,
  largestCode: number,
  codes: Uint8Array,
  weights: Float32Array,
): number {
  let high = f32(0);
  for (let i = 0; i < count; i++) high = Math.max(high, values[i] as number);
  if (high < ZERO_GROUP) {
    codes.fill(0, 0, count);
    return 0;
  }
  let inverse = f32(largestCode / high);
  const errorOf = (own: number): number => {
    const scale = f32(1 / own);
    let sum = f32(0);
    for (let i = 0; i < count; i++) {
      const x = f32(values[i] as number);
      const code = Math.min(largestCode, nearest(f32(own * x)));
      const difference = f32(x - f32(scale * code));
      sum = f32(sum + f32(f32(f32(weights[i] as number) * difference) * difference));
    }
    return sum;
  };
  let least = errorOf(inverse);
  for (let trial = -4; trial <= 4; trial++) {
    if (trial === 0) continue;
    const own = f32(f32(f32(f32(0.1) * trial) + largestCode) / high);
    const error = errorOf(own);
    if (error < least) {
      least = error;
      inverse = own;
    }
  }
  let sumLX = f32(0);
  let sumL2 = f32(0);
  for (let i = 0; i < count; i++) {
    const x = f32(values[i] as number);
    const code = Math.min(largestCode, nearest(f32(inverse * x)));
    codes[i] = code;
    const w = f32(weights[i] as number);
    sumLX = f32(sumLX + f32(f32(w * x) * code));
    sumL2 = f32(sumL2 + f32(f32(w * code) * code));
  }
  for (let round = 0, isChanged = true; round < 5 && isChanged; round++) {
    isChanged = false;
    for (let i = 0; i < count; i++) {
      const [x, w] = [f32(values[i] as number), f32(weights[i] as number)];
      const old = codes[i] as number;
      let lx = f32(sumLX - f32(f32(w * x) * old));
      let l2 = f32(sumL2 - f32(f32(w * old) * old));
      if (!(lx > 0 && l2 > 0)) continue;
      const code = Math.min(largestCode, nearest(f32(f32(x * l2) / lx)));
      if (code === old) continue;
      lx = f32(lx + f32(f32(w * x) * code));
      l2 = f32(l2 + f32(f32(w * code) * code));
      if (f32(f32(lx * lx) * sumL2) > f32(f32(sumLX * sumLX) * l2)) {
        codes[i] = code;
        sumLX = lx;
        sumL2 = l2;
        isChanged = true;
      }
    }
  }
  return sumL2 > 0 ? f32(sumLX / sumL2) : 0;
}
