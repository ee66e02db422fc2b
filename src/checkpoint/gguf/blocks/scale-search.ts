/**
 * Searches for the scale of a group of values, in float32 and in the order of ggml's reference, so that the chosen codes
 * agree with those of llama.cpp bit for bit (ggml 0.21.0, commit d99724f2, src/ggml-quants.c, compiled without fused
 * multiply-add). Every operation is rounded to float32.
 */

const f32 = Math.fround;

/** 1.5 · 2^23: a float32 sum with it has no fraction, rounded to nearest, halves to even. */
const ROUNDER = 12582912;

/** Nearest integer of a float32 number below 2^22, halves to even. */
export const nearest = (value: number): number => f32(f32(value + ROUNDER) - ROUNDER);

/** A group whose largest value is below this counts as zeros. */
export const ZERO_GROUP = f32(1e-15);

/** Trials of a scale: the largest code is replaced by these numbers, which shrinks or widens the range. */
export type Trials = Float32Array;

/** `count` trials from `first` on, each `step` more, for a largest code. */
export function affineTrials(
  first: number,
  step: number,
  count: number,
  largestCode: number,
): Trials {
  return Float32Array.from({ length: count }, (_, index) =>
    f32(f32(f32(first) + f32(f32(step) * index)) + largestCode),
  );
}

/** A group of values, the importance of each, and where its codes go. */
export interface Group {
  readonly values: Float32Array;
  readonly weights: Float32Array;
  readonly codes: Uint8Array;
}

const trialCodes = new Uint8Array(32);

/**
 * Scale s and minimum m ≤ 0 with value ≈ s · code + m, codes from 0 to `largestCode`.
 * @param at Index of the group in values and codes; weights begin at 0.
 * @param minima Receives −m at `slot`. @param isAbsolute Whether to sum absolute errors instead of squares.
 * @returns s
 */
export function affineScale(
  { values, weights, codes }: Group,
  at: number,
  count: number,
  largestCode: number,
  trials: Trials,
  isAbsolute: boolean,
  minima: Float32Array,
  slot: number,
): number {
  let low = f32(values[at] as number);
  let high = low;
  let sumW = f32(weights[0] as number);
  let sumX = f32(sumW * low);
  for (let i = 1; i < count; i++) {
    const x = f32(values[at + i] as number);
    if (x < low) low = x;
    if (x > high) high = x;
    const w = f32(weights[i] as number);
    sumW = f32(sumW + w);
    sumX = f32(sumX + f32(w * x));
  }
  if (low > 0) low = 0;
  if (high <= low) {
    codes.fill(0, at, at + count);
    minima[slot] = -low;
    return 0;
  }
  const range = f32(high - low);
  const first = f32(largestCode / range);
  let scale = f32(1 / first);
  let minimum = low;
  let least = f32(0);
  for (let i = 0; i < count; i++) {
    const x = f32(values[at + i] as number);
    const code = clamped(nearest(f32(first * f32(x - low))), largestCode);
    codes[at + i] = code;
    const difference = f32(f32(f32(scale * code) + low) - x);
    const error = isAbsolute ? Math.abs(difference) : f32(difference * difference);
    least = f32(least + f32(f32(weights[i] as number) * error));
  }
  for (let trial = 0; trial < trials.length; trial++) {
    // A better minimum also moves the range of the trials after it.
    const inverse = f32(f32(trials[trial] as number) / f32(high - minimum));
    let sumL = f32(0);
    let sumL2 = f32(0);
    let sumXL = f32(0);
    for (let i = 0; i < count; i++) {
      const x = f32(values[at + i] as number);
      const code = clamped(nearest(f32(inverse * f32(x - minimum))), largestCode);
      trialCodes[i] = code;
      const wl = f32(f32(weights[i] as number) * code);
      sumL = f32(sumL + wl);
      sumL2 = f32(sumL2 + f32(wl * code));
      sumXL = f32(sumXL + f32(wl * x));
    }
    const determinant = f32(f32(sumW * sumL2) - f32(sumL * sumL));
    if (!(determinant > 0)) continue;
    let ownScale = f32(f32(f32(sumW * sumXL) - f32(sumX * sumL)) / determinant);
    let ownMinimum = f32(f32(f32(sumL2 * sumX) - f32(sumL * sumXL)) / determinant);
    if (ownMinimum > 0) {
      ownMinimum = 0;
      ownScale = f32(sumXL / sumL2);
    }
    let sum = f32(0);
    // Terms are not negative: a sum that has reached the least error stays there.
    for (let i = 0; i < count && sum < least; i++) {
      const x = f32(values[at + i] as number);
      const difference = f32(f32(f32(ownScale * (trialCodes[i] as number)) + ownMinimum) - x);
      const error = isAbsolute ? Math.abs(difference) : f32(difference * difference);
      sum = f32(sum + f32(f32(weights[i] as number) * error));
    }
    if (sum < least) {
      for (let i = 0; i < count; i++) codes[at + i] = trialCodes[i] as number;
      least = sum;
      scale = ownScale;
      minimum = ownMinimum;
    }
  }
  minima[slot] = -minimum;
  return scale;
}

const clamped = (code: number, largest: number): number =>
  code < 0 ? 0 : code > largest ? largest : code;

/**
 * Scale s with value ≈ s · (code − half), codes from 0 to 2 · half − 1, as a least-squares fit to the best of 19 ranges.
 * @param weights Importance of each value; undefined for the squares of the values.
 */
export function symmetricScale(
  values: Float32Array,
  at: number,
  count: number,
  half: number,
  codes: Uint8Array,
  codesAt: number,
  weights: Float32Array | undefined,
  weightsAt = 0,
): number {
  const peak = peakOf(values, at, count);
  if (Math.abs(peak) < ZERO_GROUP) {
    codes.fill(0, codesAt, codesAt + count);
    return 0;
  }
  let scale = f32(0);
  let best = f32(0);
  for (let trial = -10; trial <= 9; trial++) {
    if (trial === 0) continue;
    const isFirst = trial === -10;
    const inverse = isFirst ? f32(-half / peak) : f32(-f32(half + f32(f32(0.1) * trial)) / peak);
    let sumLX = f32(0);
    let sumL2 = f32(0);
    for (let i = 0; i < count; i++) {
      const x = f32(values[at + i] as number);
      const code = signedCode(f32(inverse * x), half);
      const w = weights === undefined ? f32(x * x) : f32(weights[weightsAt + i] as number);
      sumLX = f32(sumLX + f32(f32(w * x) * code));
      sumL2 = f32(sumL2 + f32(f32(w * code) * code));
    }
    if (isFirst) scale = sumL2 === 0 ? 0 : f32(sumLX / sumL2);
    else if (!(sumL2 > 0 && f32(sumLX * sumLX) > f32(best * sumL2))) continue;
    else scale = f32(sumLX / sumL2);
    best = f32(scale * sumLX);
    for (let i = 0; i < count; i++) {
      codes[codesAt + i] = half + signedCode(f32(inverse * f32(values[at + i] as number)), half);
    }
  }
  return scale;
}

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
