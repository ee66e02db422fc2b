/** PyTorch's generator on the CPU: the same seed and the same fills give the same values. */
import { UserError } from '../errors.js';
import { elementCount, type Shape, shapeText } from '../tensor/dtype.js';
import { fillNormalBlocks, fillUniform, isPaired, normalPair, uniform53 } from './distributions.js';
import { MersenneTwister } from './mersenne-twister.js';

/** Which side of a matrix its values are scaled for: the inputs (columns) or the outputs (rows). */
const FANS = { fan_in: 'fanIn', fan_out: 'fanOut' } as const satisfies Record<string, keyof Fans>;
export type FanMode = keyof typeof FANS;

/**
 * What `torch.manual_seed` makes. Fills follow each other as calls on contiguous float32 tensors do in PyTorch:
 * equal to the last bit to those of its builds for x86-64 on a processor with AVX2 or AVX-512, and normal values to some
 * units in the last place elsewhere. Other dtypes draw otherwise there, and so does what is not contiguous.
 */
export class Generator {
  #twister: MersenneTwister;
  /** The second of the last pair of normal values, which the next small fill begins with. */
  #waiting: number | undefined;

  /** @throws UserError when PyTorch refuses the seed. */
  constructor(seed: number | bigint) {
    this.#twister = new MersenneTwister(wordOf(seed));
  }

  /**
   * Begins again with a seed.
   * @throws UserError when PyTorch refuses it.
   */
  manualSeed(seed: number | bigint): this {
    this.#twister = new MersenneTwister(wordOf(seed));
    this.#waiting = undefined;
    return this;
  }

  /**
   * `Tensor.uniform_`: from `low` up to below `high`.
   * @throws UserError when the bounds are no float32 numbers in their order, or too far apart for one.
   */
  uniform(target: Float32Array, low = 0, high = 1): Float32Array {
    const range = Math.fround(high) - Math.fround(low);
    if (!(range >= 0 && Number.isFinite(Math.fround(range)))) {
      throw new UserError('usage', `no values lie evenly between ${low} and ${high}`, {
        suggestion: 'Give two finite numbers, the lower one first.',
      });
    }
    fillUniform(this.#twister, target, { kind: 'uniform', low, high });
    return target;
  }

  /**
   * `Tensor.normal_`.
   * @throws UserError when the mean is no number, or the deviation none or negative.
   */
  normal(target: Float32Array, mean = 0, deviation = 1): Float32Array {
    if (Number.isNaN(mean) || !(deviation >= 0)) {
      throw new UserError('usage', `mean ${mean} and standard deviation ${deviation}`, {
        suggestion: 'Give a number, and one that is not negative.',
      });
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

  /** `torch.rand(count)`. @throws UserError when that is no number of values. */
  rand(count: number): Float32Array {
    return this.uniform(zeros(count));
  }

  /** `torch.randn(count)`. @throws UserError when that is no number of values. */
  randn(count: number): Float32Array {
    return this.normal(zeros(count));
  }

  /**
   * `Tensor.bernoulli_`: 1 with this probability, else 0; one by one, as PyTorch's own kernel draws them. (Its builds
   * with Intel's MKL have another way for Intel's processors, DistributionKernels.cpp, whose values are others.)
   * @throws UserError when that is no probability.
   */
  bernoulli(target: Float32Array, probability: number): Float32Array {
    checkProbability(probability);
    for (let i = 0; i < target.length; i++) {
      target[i] = uniform53(this.#twister) < probability ? 1 : 0;
    }
    return target;
  }

  /**
   * What `torch.nn.functional.dropout` multiplies `count` values with when it trains: 0 with this probability,
   * else 1 / (1 − probability).
   * @throws UserError when that is no probability, or no number of values.
   */
  dropoutMask(count: number, probability: number): Float32Array {
    checkProbability(probability);
    const mask = zeros(count);
    // Nothing is drawn where nothing is open.
    if (probability === 0) return mask.fill(1);
    if (probability === 1) return mask;
    const kept = 1 / Math.fround(1 - probability);
    this.bernoulli(mask, 1 - probability);
    for (let i = 0; i < count; i++) mask[i] = (mask[i] ?? 0) * kept;
    return mask;
  }

  /**
   * `torch.nn.init.xavier_uniform_`: evenly within ±gain · sqrt(6 / (inputs + outputs)).
   * @param shape [outputs, inputs, …kernel], of as many elements as `target`.
   * @throws UserError when it is not.
   */
  xavierUniform(target: Float32Array, shape: Shape, gain = 1): Float32Array {
    const { fanIn, fanOut } = fansOf(target, shape);
    const bound = Math.sqrt(3) * (gain * Math.sqrt(2 / (fanIn + fanOut)));
    return this.#within(target, bound);
  }

  /**
   * `torch.nn.init.kaiming_normal_` for a ReLU: normal, with a standard deviation of sqrt(2 / fan).
   * @param shape [outputs, inputs, …kernel], of as many elements as `target`.
   * @param mode The outputs, as projectors begin with. PyTorch's own default is `fan_in`: name it to have that.
   * @throws UserError when the shape holds another number of elements, or there is no such mode.
   */
  kaimingNormal(target: Float32Array, shape: Shape, mode: FanMode = 'fan_out'): Float32Array {
    checkMode(mode);
    const fan = fansOf(target, shape)[FANS[mode]];
    return target.length === 0 ? target : this.normal(target, 0, Math.SQRT2 / Math.sqrt(fan));
  }

  /**
   * What `torch.nn.Linear` begins with: weight, then bias, evenly within ±1 / sqrt(inputs).
   * @param shape [outputs, inputs] of the weight.
   * @param bias [outputs]
   * @throws UserError when the arrays are not of these sizes.
   */
  linearDefault(weight: Float32Array, shape: Shape, bias?: Float32Array): void {
    const { fanIn } = fansOf(weight, shape);
    const [outputs = 0] = shape;
    if (bias && bias.length !== outputs) {
      throw new UserError(
        'usage',
        `a bias of ${bias.length} values for a weight of shape ${shapeText(shape)}`,
        { suggestion: `It has one for each output: ${outputs}.` },
      );
    }
    if (weight.length > 0) {
      // The steps of kaiming_uniform_ with a = sqrt(5), as PyTorch rounds them.
      const gain = Math.sqrt(2 / (1 + Math.sqrt(5) ** 2));
      this.#within(weight, Math.sqrt(3) * (gain / Math.sqrt(fanIn)));
    }
    if (bias) this.#within(bias, fanIn > 0 ? 1 / Math.sqrt(fanIn) : 0);
  }

  #within(target: Float32Array, bound: number): Float32Array {
    return this.uniform(target, -bound, bound);
  }
}

/** A generator for a seed, as `torch.manual_seed` sets the one of the CPU. @throws UserError for a seed it refuses. */
export const manualSeed = (seed: number | bigint): Generator => new Generator(seed);

const LOWEST_SEED = -(2n ** 63n);
const HIGHEST_SEED = 2n ** 64n - 1n;

/** The low 32 bits of a seed: the others, PyTorch's Mersenne Twister leaves out. */
function wordOf(seed: number | bigint): number {
  const isExact = typeof seed === 'bigint' || Number.isSafeInteger(seed);
  const whole = isExact ? BigInt(seed) : undefined;
  if (whole === undefined || whole < LOWEST_SEED || whole > HIGHEST_SEED) {
    throw new UserError('usage', `${seed} is no seed`, {
      suggestion:
        'A seed is a whole number from -2^63 to 2^64 - 1; beyond 2^53, write it as a bigint.',
    });
  }
  return Number(BigInt.asIntN(32, whole));
}

function zeros(count: number): Float32Array {
  if (Number.isSafeInteger(count) && count >= 0) return new Float32Array(count);
  throw new UserError('usage', `${count} is no number of values`, {
    suggestion: 'Give a whole number from 0 on.',
  });
}

function checkProbability(probability: number): void {
  if (probability >= 0 && probability <= 1) return;
  throw new UserError('usage', `${probability} is no probability`, {
    suggestion: 'Give a number from 0 to 1.',
  });
}

function checkMode(mode: string): void {
  if (Object.hasOwn(FANS, mode)) return;
  throw new UserError('usage', `${JSON.stringify(mode)} is no mode`, {
    suggestion: `Give one of ${Object.keys(FANS).join(', ')}.`,
  });
}

/** Of how many values one of a matrix or a kernel is a part. */
interface Fans {
  /** At its input. */
  readonly fanIn: number;
  /** At its output. */
  readonly fanOut: number;
}

function fansOf(target: Float32Array, shape: Shape): Fans {
  if (shape.length < 2 || elementCount(shape) !== target.length) {
    throw new UserError('usage', `shape ${shapeText(shape)} for ${target.length} values`, {
      suggestion:
        'Give [outputs, inputs], and behind them the sizes of a kernel, that hold as many.',
    });
  }
  const [outputs = 0, inputs = 0, ...kernel] = shape;
  const field = kernel.reduce((product, size) => product * size, 1);
  return { fanIn: inputs * field, fanOut: outputs * field };
}
