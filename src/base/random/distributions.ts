/**
 * PyTorch's random distributions from Mersenne Twister draws, as computed by its CPU kernels for contiguous
 * float32 tensors (aten/src/ATen/core/TransformationHelper.h and DistributionsHelper.h, and
 * native/cpu/DistributionTemplates.h, of 2.13).
 */

/**
 * Logarithm, sine and cosine of float32 values, as in PyTorch's kernels for processors with AVX2
 * (aten/src/ATen/native/cpu/avx_mathfun.h of 2.13, after the single precision functions of Moshier's Cephes). A
 * product and its sum are rounded once (FMA), as compiled in its builds.
 */
const f32 = Math.fround;

const word = new Int32Array(1);
const number = new Float32Array(word.buffer);

const SQRT_HALF = f32(Math.SQRT1_2);
const LOGARITHM = Float32Array.of(
  ...[7.0376836292e-2, -1.151461031e-1, 1.167699874e-1, -1.2420140846e-1, 1.4249322787e-1],
  ...[-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1],
);
/** ln 2 in two parts; the first has few bits. */
const [LN2_HIGH, LN2_LOW] = [f32(0.693359375), f32(-2.1219444e-4)];

const SINE = Float32Array.of(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1);
const COSINE = Float32Array.of(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2);
/** π / 4 in three parts. */
const [EIGHTH_1, EIGHTH_2, EIGHTH_3] = [
  f32(0.78515625),
  f32(2.4187564849853516e-4),
  f32(3.774894977445941e-8),
];
const EIGHTHS = f32(1.27323954473516);

function polynomial(coefficients: Float32Array, x: number): number {
  let sum = coefficients[0] ?? 0;
  for (let i = 1; i < coefficients.length; i++) sum = f32(sum * x + (coefficients[i] ?? 0));
  return sum;
}

/** @param x A normal float32 above zero. */
function logarithm(x: number): number {
  number[0] = x;
  const bits = word[0] ?? 0;
  let exponent = (bits >> 23) - 0x7e;
  word[0] = (bits & 0x7fffff) | 0x3f000000;
  const mantissa = number[0] ?? 0;
  let rest = mantissa - 1;
  if (mantissa < SQRT_HALF) {
    exponent--;
    rest += mantissa;
  }
  const square = f32(rest * rest);
  const tail = f32(polynomial(LOGARITHM, rest) * rest);
  let sum = f32(tail * square + f32(exponent * LN2_LOW));
  sum = f32(sum - square * 0.5);
  return f32(exponent * LN2_HIGH + f32(rest + sum));
}

/** @param angle From 0 to a few turns. @param point Receives cosine and sine. */
function cosineAndSine(angle: number, point: Float32Array): void {
  // Rounds to the nearest multiple of a quarter turn.
  const eighths = (Math.trunc(f32(angle * EIGHTHS)) + 1) & ~1;
  let rest = f32(angle - eighths * EIGHTH_1);
  rest = f32(rest - eighths * EIGHTH_2);
  rest = f32(rest - eighths * EIGHTH_3);
  const square = f32(rest * rest);
  const even = f32(polynomial(COSINE, square) * square);
  const cosine = f32(f32(even * square - square * 0.5) + 1);
  const sine = f32(f32(polynomial(SINE, square) * square) * rest + rest);
  const isTurned = (eighths & 2) !== 0;
  const x = isTurned ? sine : cosine;
  const y = isTurned ? cosine : sine;
  point[0] = ((eighths - 2) & 4) === 0 ? -x : x;
  point[1] = (eighths & 4) === 0 ? y : -y;
}

/** A whole number of normal blocks, small enough to save memory. */
const DRAWS_AT_ONCE = 4096;
const scratch = new Int32Array(DRAWS_AT_ONCE);

/** Normal values come in blocks: eight radii, eight angles. */
const BLOCK = 16;
const HALF = BLOCK / 2;
const TWO_PI = Math.fround(2 * Math.PI);
const point = new Float32Array(2);

/** Uniform from `low` up to below `high`, or normal with `mean` and the standard deviation `deviation`. */
export type Distribution =
  | { readonly kind: 'uniform'; readonly low: number; readonly high: number }
  | { readonly kind: 'normal'; readonly mean: number; readonly deviation: number };

export type Uniform = Extract<Distribution, { kind: 'uniform' }>;
export type Normal = Extract<Distribution, { kind: 'normal' }>;

/** One draw per value: its low 24 bits, which fit in a float32. Values rounded up to `high` become `low`. */
export function fillUniform(twister: MersenneTwister, target: Float32Array, of: Uniform): void {
  const low = Math.fround(of.low);
  const high = Math.fround(of.high);
  const range = Math.fround(high - low) * 2 ** -24;
  drawn(twister, target.length, (draws, at) => {
    for (let i = 0; i < draws.length; i++) {
      const value = Math.fround(((draws[i] ?? 0) & 0xffffff) * range + low);
      target[at + i] = value === high ? low : value;
    }
  });
}

/** Draws for `count` values, in chunks that reuse one buffer. */
function drawn(
  twister: MersenneTwister,
  count: number,
  take: (draws: Int32Array, at: number) => void,
): void {
  for (let at = 0; at < count; at += DRAWS_AT_ONCE) {
    const draws = scratch.subarray(0, Math.min(DRAWS_AT_ONCE, count - at));
    twister.fill(draws);
    take(draws, at);
  }
}

/** Whether a tensor is small enough that its normal values come in pairs, in double precision. */
export const isPaired = (count: number): boolean => count < BLOCK;

/** Fills a tensor that is large enough for blocks; the last block is redrawn if the length is not a multiple. */
export function fillNormalBlocks(twister: MersenneTwister, target: Float32Array, of: Normal): void {
  const whole = target.length - (target.length % BLOCK);
  normalBlocks(twister, target.subarray(0, whole), of);
  if (whole === target.length) return;
  // PyTorch first draws for all values, including the last block.
  twister.seek(twister.position + target.length - whole);
  normalBlocks(twister, target.subarray(target.length - BLOCK), of);
}

/** Box-Muller values, with each step rounded to float32 as in PyTorch. `target` is a whole number of blocks. */
function normalBlocks(twister: MersenneTwister, target: Float32Array, of: Normal): void {
  const mean = Math.fround(of.mean);
  const deviation = Math.fround(of.deviation);
  drawn(twister, target.length, (draws, at) => {
    for (let block = 0; block < draws.length; block += BLOCK) {
      for (let i = block; i < block + HALF; i++) {
        const fromOne = 1 - ((draws[i] ?? 0) & 0xffffff) * 2 ** -24;
        const radius = Math.fround(Math.sqrt(-2 * logarithm(fromOne)));
        const angle = Math.fround(TWO_PI * (((draws[i + HALF] ?? 0) & 0xffffff) * 2 ** -24));
        cosineAndSine(angle, point);
        target[at + i] = Math.fround(radius * (point[0] ?? 0)) * deviation + mean;
        target[at + i + HALF] = Math.fround(radius * (point[1] ?? 0)) * deviation + mean;
      }
    }
  });
}

const pair = new Int32Array(2);

/** Uniform from 0 to below 1, with 53 bits: two draws, the first for the high word. */
export function uniform53(twister: MersenneTwister): number {
  twister.fill(pair);
  return fraction53(pair[0] ?? 0, pair[1] ?? 0);
}

const fraction53 = (high: number, low: number) =>
  ((high & 0x1fffff) * 2 ** 32 + (low >>> 0)) * 2 ** -53;

const pairs = new Int32Array(2 ** 9);

/** Fills with 1 where a value of `uniform53` is below `probability`, else with 0. */
export function fillBernoulli(
  twister: MersenneTwister,
  target: Float32Array,
  probability: number,
): void {
  const block = pairs.length / 2;
  for (let start = 0; start < target.length; start += block) {
    const count = Math.min(block, target.length - start);
    twister.fill(count === block ? pairs : pairs.subarray(0, 2 * count));
    for (let i = 0; i < count; i++) {
      const value = fraction53(pairs[2 * i] ?? 0, pairs[2 * i + 1] ?? 0);
      target[start + i] = value < probability ? 1 : 0;
    }
  }
}

/** Two standard normal values, in double precision. */
export function normalPair(twister: MersenneTwister): readonly [number, number] {
  const angle = 2 * Math.PI * uniform53(twister);
  const radius = Math.sqrt(-2 * Math.log1p(-uniform53(twister)));
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}

/**
 * Values of a tensor, readable in any part, equal to a complete fill from a freshly seeded generator. Sequential
 * reads cost no more than filling; other reads have to skip the values before them.
 */
export class SeededFill {
  readonly #twister: MersenneTwister;
  readonly #count: number;
  readonly #distribution: Distribution;

  /** @param count Number of values in the tensor. */
  constructor(seed: number, count: number, distribution: Distribution) {
    this.#twister = new MersenneTwister(seed);
    this.#count = count;
    this.#distribution = distribution;
  }

  /** Fills with the values from index `first` on. @throws RangeError past the end of the tensor. */
  read(first: number, target: Float32Array): void {
    if (first < 0 || first + target.length > this.#count) {
      throw new RangeError(`${target.length} from ${first} on, of ${this.#count}`);
    }
    const distribution = this.#distribution;
    switch (distribution.kind) {
      case 'uniform':
        this.#twister.seek(first);
        fillUniform(this.#twister, target, distribution);
        return;
      case 'normal':
        if (isPaired(this.#count)) this.#readPairs(first, target, distribution);
        else this.#readBlocks(first, target, distribution);
    }
  }

  #readPairs(first: number, target: Float32Array, { mean, deviation }: Normal): void {
    const values: number[] = [];
    this.#twister.seek(0);
    while (values.length < this.#count) values.push(...normalPair(this.#twister));
    for (let i = 0; i < target.length; i++) {
      target[i] = (values[first + i] ?? 0) * deviation + mean;
    }
  }

  /** If the length is not a multiple of the block, the last 16 values form their own block after all others. */
  #readBlocks(first: number, target: Float32Array, normal: Normal): void {
    const count = this.#count;
    const inBlocks = count % BLOCK === 0 ? count : count - BLOCK;
    const before = Math.min(Math.max(inBlocks - first, 0), target.length);
    this.#readAligned(first, target.subarray(0, before), normal);
    const rest = target.subarray(before);
    if (rest.length === 0) return;
    const last = new Float32Array(BLOCK);
    this.#twister.seek(count);
    normalBlocks(this.#twister, last, normal);
    const from = first + before - inBlocks;
    rest.set(last.subarray(from, from + rest.length));
  }

  /** Values from `first` on in whole blocks; blocks cut by the range are generated separately. */
  #readAligned(first: number, target: Float32Array, normal: Normal): void {
    const cut = new Float32Array(BLOCK);
    for (let at = 0; at < target.length; ) {
      const into = (first + at) % BLOCK;
      this.#twister.seek(first + at - into);
      const whole = target.length - at - ((target.length - at) % BLOCK);
      if (into === 0 && whole > 0) {
        normalBlocks(this.#twister, target.subarray(at, at + whole), normal);
        at += whole;
      } else {
        normalBlocks(this.#twister, cut, normal);
        const taken = Math.min(BLOCK - into, target.length - at);
        target.set(cut.subarray(into, into + taken), at);
        at += taken;
      }
    }
  }
}

/**
 * MT19937: Matsumoto and Nishimura, Mersenne Twister, ACM TOMACS 8 (1998), 3–30; seeded as in their code of 2002.
 */

const WORDS = 624;
const MIDDLE = 397;
const UPPER = 0x80000000;
const LOWER = 0x7fffffff;
const MATRIX = 0x9908b0df;

/** Sequence of 32-bit draws. */
export class MersenneTwister {
  readonly #seed: number;
  readonly #state = new Int32Array(WORDS);
  /** Number of words drawn from the state. */
  #used = WORDS;
  #position = 0;

  /** @param seed Only its low 32 bits are used. */
  constructor(seed: number) {
    this.#seed = seed | 0;
    this.#restart();
  }

  /** Number of draws so far. */
  get position(): number {
    return this.#position;
  }

  /** Fills with the next draws, as signed words. */
  fill(target: Int32Array): void {
    for (let at = 0; at < target.length; ) {
      if (this.#used === WORDS) this.#twist();
      const count = Math.min(WORDS - this.#used, target.length - at);
      temper(this.#state, this.#used, count, target, at);
      this.#used += count;
      at += count;
    }
    this.#position += target.length;
  }

  /**
   * Moves to the draw at `position`. Skipping forward costs about a third of drawing; going back restarts from the
   * seed.
   */
  seek(position: number): void {
    if (position < this.#position) this.#restart();
    let rest = position - this.#position;
    while (rest > 0) {
      if (this.#used === WORDS) this.#twist();
      const count = Math.min(WORDS - this.#used, rest);
      this.#used += count;
      rest -= count;
    }
    this.#position = position;
  }

  #restart(): void {
    const state = this.#state;
    let word = this.#seed;
    state[0] = word;
    for (let i = 1; i < WORDS; i++) {
      word = (Math.imul(word ^ (word >>> 30), 1812433253) + i) | 0;
      state[i] = word;
    }
    this.#used = WORDS;
    this.#position = 0;
  }

  #twist(): void {
    const state = this.#state;
    let word = state[0] ?? 0;
    for (let i = 0; i < WORDS; i++) {
      const next = state[i + 1 < WORDS ? i + 1 : 0] ?? 0;
      const far = state[i < WORDS - MIDDLE ? i + MIDDLE : i + MIDDLE - WORDS] ?? 0;
      const mixed = (word & UPPER) | (next & LOWER);
      state[i] = far ^ (mixed >>> 1) ^ (-(next & 1) & MATRIX);
      word = next;
    }
    this.#used = 0;
  }
}

/** `count` tempered output words of the state, from `from` on. */
function temper(
  state: Int32Array,
  from: number,
  count: number,
  target: Int32Array,
  at: number,
): void {
  for (let i = 0; i < count; i++) {
    let word = state[from + i] ?? 0;
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    target[at + i] = word ^ (word >>> 18);
  }
}
