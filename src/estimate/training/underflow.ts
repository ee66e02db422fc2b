/** Gradients in fp16: the share of values that are below its smallest number at a scale of the loss. */

/** Smallest positive value of fp16, 2^−24 = 5.96e-8. */
export const FP16_SMALLEST = 2 ** -24;

/** Smallest value of fp16 with all its bits, 2^−14 = 6.1e-5. */
const FP16_SMALLEST_NORMAL = 2 ** -14;

export const FP16_LARGEST = 65_504;

/** First scale of GradScaler (torch.amp). */
export const FIRST_SCALE = 65_536;

/** Counts of gradient values at a scale. Zeros are left out: they are exact. */
export interface Underflow {
  /** Scale of the loss. */
  readonly scale: number;
  /** Share of the values other than 0 that are below the smallest value of fp16. */
  readonly below: number;
  /** Share that rounds to 0: at most half of the smallest value. */
  readonly zeroed: number;
  /** Share that is below the smallest normal value, and so loses bits. */
  readonly imprecise: number;
  /** Share beyond the largest value: one such value makes the step infinite. */
  readonly above: number;
}

/** Magnitudes of gradient values, counted by their exponent of two. */
export class MagnitudeCount {
  /** Values other than 0. */
  values = 0;
  zeros = 0;
  /** Values that are infinite or not a number. */
  notFinite = 0;
  largest = 0;
  readonly #counts: readonly { -readonly [Key in keyof Underflow]: number }[];

  /** @param scales Scales at which to count. */
  constructor(scales: readonly number[]) {
    this.#counts = scales.map((scale) => ({ scale, below: 0, zeroed: 0, imprecise: 0, above: 0 }));
  }

  add(numbers: ArrayLike<number>): void {
    for (let index = 0; index < numbers.length; index++) {
      const size = Math.abs(numbers[index] ?? 0);
      if (size === 0) this.zeros++;
      else if (!Number.isFinite(size)) this.notFinite++;
      else this.#addValue(size);
    }
  }

  #addValue(size: number): void {
    this.values++;
    if (size > this.largest) this.largest = size;
    for (const count of this.#counts) {
      const scaled = size * count.scale;
      if (scaled < FP16_SMALLEST) count.below++;
      if (scaled <= FP16_SMALLEST / 2) count.zeroed++;
      if (scaled < FP16_SMALLEST_NORMAL) count.imprecise++;
      if (scaled > FP16_LARGEST) count.above++;
    }
  }

  /** The shares at each scale. */
  shares(): Underflow[] {
    const all = Math.max(1, this.values);
    return this.#counts.map(({ scale, below, zeroed, imprecise, above }) => ({
      scale,
      below: below / all,
      zeroed: zeroed / all,
      imprecise: imprecise / all,
      above: above / all,
    }));
  }
}

/**
 * Shares under a stated assumption: the values are normal around 0, and their norm over all parameters is `norm`.
 */
export function assumedUnderflow(parameters: number, norm: number, scale: number): Underflow {
  const deviation = (norm / Math.sqrt(parameters)) * scale;
  const within = (limit: number) => errorFunction(limit / (deviation * Math.SQRT2));
  return {
    scale,
    below: within(FP16_SMALLEST),
    zeroed: within(FP16_SMALLEST / 2),
    imprecise: within(FP16_SMALLEST_NORMAL),
    above: 1 - within(FP16_LARGEST),
  };
}

/** erf by its Taylor series, which is exact to rounding below 3; the rest is 1 within 3e-5. */
function errorFunction(x: number): number {
  if (x >= 5) return 1;
  let term = x;
  let sum = x;
  for (let n = 1; n < 200; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return Math.min(1, (2 / Math.sqrt(Math.PI)) * sum);
}
