/** PyTorch's CPU generator: equal seeds and fills give equal values. */
import { usageError } from '../errors.js';
import { elementCount, type Shape, shapeText } from '../tensor/dtype.js';
import {
  fillBernoulli,
  fillNormalBlocks,
  fillUniform,
  isPaired,
  MersenneTwister,
  normalPair,
} from './distributions.js';

/** Whether a number is whole and has 32 bits. */
const isWord = (value: number) => (value | 0) === value;

/** Side of a matrix that scales its values: inputs (columns) or outputs (rows). */
const FANS = { fan_in: 'fanIn', fan_out: 'fanOut' } as const satisfies Record<string, keyof Fans>;
export type FanMode = keyof typeof FANS;

/**
 * Generator as set by `torch.manual_seed`. Successive fills match calls on contiguous float32 tensors in PyTorch.
 * They are bit-identical to its x86-64 builds on a processor with AVX2 or AVX-512. Elsewhere, normal values differ
 * by some units in the last place. Other dtypes and tensors that are not contiguous draw differently in PyTorch.
 */
export class Generator {
  #twister: MersenneTwister;
  /** Second of the last pair of normal values, used first by the next small fill. */
  #waiting: number | undefined;

  /** @throws UserError for a seed that PyTorch rejects. */
  constructor(seed: number | bigint) {
    this.#twister = new MersenneTwister(wordOf(seed));
  }

  /**
   * Restarts with a seed.
   * @throws UserError for a seed that PyTorch rejects.
   */
  manualSeed(seed: number | bigint): this {
    this.#twister = new MersenneTwister(wordOf(seed));
    this.#waiting = undefined;
    return this;
  }

  /**
   * `Tensor.uniform_`: from `low` up to below `high`.
   * @throws UserError when the bounds are not ordered float32 numbers, or too far apart for one.
   */
  uniform(target: Float32Array, low = 0, high = 1): Float32Array {
    const range = Math.fround(high) - Math.fround(low);
    if (!(range >= 0 && Number.isFinite(Math.fround(range)))) {
      throw usageError(
        `no float32 values lie between ${low} and ${high}`,
        'write two finite bounds, the lower one first',
      );
    }
    fillUniform(this.#twister, target, { kind: 'uniform', low, high });
    return target;
  }

  /**
   * `Tensor.normal_`.
   * @throws UserError when the mean is NaN, or the deviation NaN or negative.
   */
  normal(target: Float32Array, mean = 0, deviation = 1): Float32Array {
    if (Number.isNaN(mean) || !(deviation >= 0)) {
      throw usageError(
        `expected a mean and a standard deviation of at least 0, found mean ${mean} and deviation ${deviation}`,
        'write a number for the mean, and one from 0 on for the deviation',
      );
    }
    if (isPaired(target.length)) {
      for (let i = 0; i < target.length; i++) target[i] = this.#nextNormal() * deviation + mean;
    } else {
      fillNormalBlocks(this.#twister, target, { kind: 'normal', mean, deviation });
    }
    return target;
  }

  #nextNormal(): number {
    if (this.#waiting !== undefined) {
      const value = this.#waiting;
      this.#waiting = undefined;
      return value;
    }
    const [value, second] = normalPair(this.#twister);
    this.#waiting = second;
    return value;
  }

  /** `torch.rand(count)`. @throws UserError for an invalid count. */
  rand(count: number): Float32Array {
    return this.uniform(zeroArray(count));
  }

  /** `torch.randn(count)`. @throws UserError for an invalid count. */
  randn(count: number): Float32Array {
    return this.normal(zeroArray(count));
  }

  /**
   * `torch.randint(low, high, …)`: whole numbers from `low` up to below `high`, one draw each, for ranges below 2^28.
   * @throws UserError for an invalid count or range.
   */
  randint(count: number, low: number, high: number): Int32Array {
    const range = high - low;
    if (!(isWord(low) && isWord(high - 1) && range >= 1 && range < 2 ** 28)) {
      throw usageError(
        `no whole numbers from ${low} up to below ${high}`,
        'give two whole numbers, the lower one first',
      );
    }
    const draws = new Int32Array(zeroArray(count).length);
    this.#twister.fill(draws);
    return draws.map((draw) => low + ((draw >>> 0) % range));
  }

  /**
   * `Tensor.bernoulli_`: 1 with this probability, else 0; value by value, as PyTorch's own kernel. (Its builds
   * with Intel's MKL give different values on Intel processors, DistributionKernels.cpp.)
   * @throws UserError for an invalid probability.
   */
  bernoulli(target: Float32Array, probability: number): Float32Array {
    checkProbability(probability);
    fillBernoulli(this.#twister, target, probability);
    return target;
  }

  /**
   * Factors of `torch.nn.functional.dropout` in training: 0 with this probability, else 1 / (1 − probability).
   * @throws UserError for an invalid probability or count.
   */
  dropoutMask(count: number, probability: number): Float32Array {
    checkProbability(probability);
    const mask = zeroArray(count);
    // Certain outcomes draw nothing.
    if (probability === 0) return mask.fill(1);
    if (probability === 1) return mask;
    const kept = 1 / Math.fround(1 - probability);
    this.bernoulli(mask, 1 - probability);
    for (let i = 0; i < count; i++) mask[i] = (mask[i] ?? 0) * kept;
    return mask;
  }

  /**
   * `torch.nn.init.xavier_uniform_`: uniform within ±gain · sqrt(6 / (inputs + outputs)).
   * @param shape [outputs, inputs, …kernel], the shape of `target`.
   * @throws UserError when its size differs from that of `target`.
   */
  xavierUniform(target: Float32Array, shape: Shape, gain = 1): Float32Array {
    const { fanIn, fanOut } = fansOf(target, shape);
    const bound = Math.sqrt(3) * (gain * Math.sqrt(2 / (fanIn + fanOut)));
    return this.#within(target, bound);
  }

  /**
   * `torch.nn.init.kaiming_normal_` for a ReLU: normal, with a standard deviation of sqrt(2 / fan).
   * @param shape [outputs, inputs, …kernel], the shape of `target`.
   * @param mode Default `fan_out`, the initialisation of projectors. PyTorch's own default is `fan_in`.
   * @throws UserError when the size of the shape differs from that of `target`, or the mode is unknown.
   */
  kaimingNormal(target: Float32Array, shape: Shape, mode: FanMode = 'fan_out'): Float32Array {
    checkMode(mode);
    const fan = fansOf(target, shape)[FANS[mode]];
    return target.length === 0 ? target : this.normal(target, 0, Math.SQRT2 / Math.sqrt(fan));
  }

  /**
   * Initial values of `torch.nn.Linear`: weight, then bias, uniform within ±1 / sqrt(inputs).
   * @param shape [outputs, inputs] of the weight.
   * @param bias [outputs]
   * @throws UserError when the arrays do not have these sizes.
   */
  linearDefault(weight: Float32Array, shape: Shape, bias?: Float32Array): void {
    const { fanIn } = fansOf(weight, shape);
    const [outputs = 0] = shape;
    if (bias && bias.length !== outputs) {
      throw usageError(
        `a bias of ${bias.length} values for a weight of shape ${shapeText(shape)}`,
        `give one value per output: ${outputs}`,
      );
    }
    if (weight.length > 0) {
      // Steps of kaiming_uniform_ with a = sqrt(5), rounded as in PyTorch.
      const gain = Math.sqrt(2 / (1 + Math.sqrt(5) ** 2));
      this.#within(weight, Math.sqrt(3) * (gain / Math.sqrt(fanIn)));
    }
    if (bias) this.#within(bias, fanIn > 0 ? 1 / Math.sqrt(fanIn) : 0);
  }

  #within(target: Float32Array, bound: number): Float32Array {
    return this.uniform(target, -bound, bound);
  }
}

/**
 * Generator for a seed, like the CPU's after `torch.manual_seed`. @throws UserError for a seed that PyTorch
 * rejects.
 */
export const manualSeed = (seed: number | bigint): Generator => new Generator(seed);

const LOWEST_SEED = -(2n ** 63n);
const HIGHEST_SEED = 2n ** 64n - 1n;

/** Low 32 bits of a seed; PyTorch's Mersenne Twister ignores the others. */
function wordOf(seed: number | bigint): number {
  const isExact = typeof seed === 'bigint' || Number.isSafeInteger(seed);
  const whole = isExact ? BigInt(seed) : undefined;
  if (whole === undefined || whole < LOWEST_SEED || whole > HIGHEST_SEED) {
    throw usageError(
      `${seed} is not a seed`,
      'a seed is a whole number from -2^63 to 2^64 - 1; beyond 2^53, write it as a bigint',
    );
  }
  return Number(BigInt.asIntN(32, whole));
}

function zeroArray(count: number): Float32Array {
  if (Number.isSafeInteger(count) && count >= 0) return new Float32Array(count);
  throw usageError(`${count} is not a number of values`, 'give a whole number from 0 on');
}

function checkProbability(probability: number): void {
  if (probability >= 0 && probability <= 1) return;
  throw usageError(`${probability} is not a probability`, 'give a number from 0 to 1');
}

function checkMode(mode: string): void {
  if (Object.hasOwn(FANS, mode)) return;
  throw usageError(
    `${JSON.stringify(mode)} is not a mode`,
    `give one of ${Object.keys(FANS).join(', ')}`,
  );
}

/** Connections of a matrix or kernel. */
interface Fans {
  /** Inputs per output, including the kernel. */
  readonly fanIn: number;
  /** Outputs per input, including the kernel. */
  readonly fanOut: number;
}

function fansOf(target: Float32Array, shape: Shape): Fans {
  if (shape.length < 2 || elementCount(shape) !== target.length) {
    throw usageError(
      `shape ${shapeText(shape)} for ${target.length} values`,
      'give [outputs, inputs] and then the sizes of a kernel, with the same number of values',
    );
  }
  const [outputs = 0, inputs = 0, ...kernel] = shape;
  const field = kernel.reduce((product, size) => product * size, 1);
  return { fanIn: inputs * field, fanOut: outputs * field };
}
