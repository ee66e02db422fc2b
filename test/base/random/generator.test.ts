import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { type FanMode, Generator, manualSeed } from '../../../src/base/random/index.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { valuesOf } from '../../engine/fixture-models.js';
import { inPackage, readJson } from '../../fixtures.js';

interface Step {
  readonly call: string;
  readonly numbers?: readonly (number | string)[];
  readonly size?: number;
  readonly shape?: readonly number[];
  readonly places?: readonly number[];
  readonly values: readonly number[];
  readonly bias?: readonly number[];
}

interface Case {
  readonly seed: string;
  readonly steps: readonly Step[];
}

/** Runs a step and returns the values and the expected ones. */
function runStep(generator: Generator, step: Step): [number[], number[]] {
  const { call, numbers = [], shape = [step.size ?? 0], places } = step;
  const target = new Float32Array(shape.reduce((product, size) => product * size, 1));
  const [first, second] = numbers as number[];
  let bias: Float32Array | undefined;
  let values = target;
  switch (call) {
    case 'uniform':
      generator.uniform(target, first, second);
      break;
    case 'normal':
      generator.normal(target, first, second);
      break;
    case 'bernoulli':
      generator.bernoulli(target, first ?? Number.NaN);
      break;
    case 'dropoutMask':
      values = generator.dropoutMask(target.length, first ?? Number.NaN) as typeof target;
      break;
    case 'xavierUniform':
      generator.xavierUniform(target, shape, first);
      break;
    case 'kaimingNormal':
      generator.kaimingNormal(target, shape, numbers[0] as FanMode);
      break;
    case 'linearDefault':
      bias = new Float32Array(shape[0] ?? 0);
      generator.linearDefault(target, shape, bias);
      break;
    default:
      throw new Error(call);
  }
  const shown = places ? places.map((place) => values[place] ?? Number.NaN) : [...values];
  return [
    [...shown, ...(bias ?? [])],
    [...step.values, ...(step.bias ?? [])],
  ];
}

/** Expects equality to the last bit. */
const expectSame = (values: readonly number[], expected: readonly number[]) =>
  expect(values).toEqual(expected.map(Math.fround));

describe('successive fills equal those of PyTorch:', () => {
  const cases = readJson<Case[]>('fixtures/random/sequences.json');
  const label = ({ seed, steps }: Case) =>
    `${seed}: ${steps.map(({ call, size, shape, numbers = [] }) => `${call} ${shape ?? size} (${numbers})`).join(', ')}`;

  it.each(cases.map((each) => [label(each), each] as const))('%s', (_, { seed, steps }) => {
    const generator = manualSeed(BigInt(seed));
    for (const step of steps) {
      const [values, expected] = runStep(generator, step);
      expectSame(values, expected);
    }
  });
});

describe('published fills equal those of PyTorch:', () => {
  const { tensors } = openCheckpoint(inPackage('fixtures/random/fills.safetensors'));

  const FILLS: Record<string, (generator: Generator, target: Float32Array) => void> = {
    uniform: (generator, target) => generator.uniform(target),
    'uniform_-0.1_0.1': (generator, target) => generator.uniform(target, -0.1, 0.1),
    normal: (generator, target) => generator.normal(target),
    'normal_0.5_2': (generator, target) => generator.normal(target, 0.5, 2),
    xavier_uniform: (generator, target) => generator.xavierUniform(target, [12, 20]),
    // The default mode is that of new projectors.
    kaiming_normal_fan_out: (generator, target) => generator.kaimingNormal(target, [12, 20]),
    linear_default: (generator, target) => generator.linearDefault(target, [7, 5]),
    two_fills_in_a_row: (generator, target) => {
      generator.normal(target.subarray(0, 5));
      generator.uniform(target.subarray(5));
    },
  };

  it.each([...tensors])('%s', (name, tensor) => {
    const expected = valuesOf(tensor).data;
    const [, seed, fill = ''] = /^seed(\d+)\.(.+)\.[^.]+$/.exec(name) ?? [];
    const target = new Float32Array(expected.length);
    FILLS[fill]?.(manualSeed(Number(seed)), target);
    expectSame([...target], [...expected]);
  });

  it('there are more than 40 cases', () => {
    expect(tensors.size).toBeGreaterThan(40);
  });
});

describe('a generator', () => {
  it('gives the well-known values of PyTorch', () => {
    // torch.manual_seed(0); torch.rand(5), torch.randn(20) and torch.randn(5), as PyTorch prints them.
    const printed = (values: Float32Array, digits: number) =>
      [...values].map((value) => Number(value.toFixed(digits)));
    expect(printed(manualSeed(0).rand(5), 8)).toEqual([
      0.49625659, 0.7682218, 0.08847743, 0.13203049, 0.30742282,
    ]);
    expect(printed(manualSeed(0).randn(20).subarray(0, 4), 7)).toEqual([
      -1.1258398, -1.1523602, -0.2505786, -0.4338788,
    ]);
    expect(printed(manualSeed(0).randn(5).subarray(0, 2), 7)).toEqual([1.5409961, -0.2934289]);
  });

  it('restarts with a seed, without the pending normal value', () => {
    const generator = manualSeed(4);
    const first = generator.randn(3);
    expect(generator.manualSeed(4).randn(3)).toEqual(first);
    expect(new Generator(4).randn(3)).toEqual(first);
    expect(generator.manualSeed(5n).rand(2)).toEqual(manualSeed(5).rand(2));
  });

  it('fills only the requested part of an array', () => {
    const whole = new Float32Array(40);
    manualSeed(1).normal(whole.subarray(3, 24));
    expect([...whole.subarray(3, 24)]).toEqual([...manualSeed(1).randn(21)]);
    expect([...whole.subarray(0, 3), ...whole.subarray(24)].every((value) => value === 0)).toBe(
      true,
    );
  });

  it('returns the filled array', () => {
    const target = new Float32Array(20);
    const generator = manualSeed(0);
    expect(generator.uniform(target)).toBe(target);
    expect(generator.normal(target)).toBe(target);
    expect(generator.bernoulli(target, 0.5)).toBe(target);
    expect(generator.xavierUniform(target, [4, 5])).toBe(target);
    expect(generator.kaimingNormal(target, [4, 5])).toBe(target);
  });

  it('accepts matrices without values', () => {
    const none = new Float32Array(0);
    const generator = manualSeed(0);
    expect(generator.kaimingNormal(none, [0, 3])).toBe(none);
    generator.linearDefault(none, [2, 0], new Float32Array(2).fill(7));
    expect(generator.xavierUniform(none, [0, 3])).toBe(none);
  });
});

const few = () => new Float32Array(6);

describe('an invalid argument is reported:', () => {
  it.each<[string, () => unknown, RegExp]>([
    ['a fraction', () => manualSeed(1.5), /^1\.5 is not a seed$/],
    ['a seed of NaN', () => manualSeed(Number.NaN), /^NaN is not a seed$/],
    ['an inexact seed', () => manualSeed(2 ** 53), /is not a seed$/],
    ['a seed beyond 64 bits', () => manualSeed(2n ** 64n), /^18446744073709551616 is not a seed$/],
    ['a seed below −2^63', () => new Generator(-(2n ** 63n) - 1n), /is not a seed$/],
    ['a fraction to restart with', () => manualSeed(0).manualSeed(0.5), /is not a seed$/],
    ['reversed bounds', () => manualSeed(0).uniform(few(), 1, 0), /between 1 and 0/],
    ['a bound of NaN', () => manualSeed(0).uniform(few(), 0, Number.NaN), /between 0 and NaN/],
    ['an infinite bound', () => manualSeed(0).uniform(few(), 0, 1e39), /between 0 and 1e\+39/],
    ['bounds too far apart', () => manualSeed(0).uniform(few(), -3e38, 3e38), /between -3e\+38/],
    ['a negative deviation', () => manualSeed(0).normal(few(), 0, -1), /deviation -1/],
    ['a deviation of NaN', () => manualSeed(0).normal(few(), 0, Number.NaN), /deviation NaN/],
    ['a mean of NaN', () => manualSeed(0).normal(few(), Number.NaN), /mean NaN/],
    [
      'a probability above one',
      () => manualSeed(0).bernoulli(few(), 1.1),
      /^1\.1 is not a probability/,
    ],
    [
      'a negative probability',
      () => manualSeed(0).dropoutMask(6, -0.1),
      /^-0\.1 is not a probability/,
    ],
    ['a shape of another size', () => manualSeed(0).xavierUniform(few(), [2, 4]), /\[2, 4\] for 6/],
    ['a negative shape', () => manualSeed(0).kaimingNormal(few(), [-2, -3]), /\[-2, -3\] for 6/],
    ['a vector', () => manualSeed(0).kaimingNormal(few(), [6]), /shape \[6\] for 6 values/],
    [
      'an unknown mode',
      () => manualSeed(0).kaimingNormal(few(), [2, 3], 'fanout' as FanMode),
      /^"fanout" is not a mode$/,
    ],
    [
      'a bias of another size',
      () => manualSeed(0).linearDefault(few(), [2, 3], few()),
      /bias of 6 values/,
    ],
    ['a count below zero', () => manualSeed(0).rand(-1), /^-1 is not a number of values/],
    ['a fractional count', () => manualSeed(0).randn(0.5), /^0\.5 is not a number of values/],
    ['a mask of negative size', () => manualSeed(0).dropoutMask(-3, 0.5), /^-3 is not a number/],
  ])('%s', (_, attempt, message) => {
    expect(attempt).toThrow(UserError);
    expect(attempt).toThrow(message);
    try {
      attempt();
    } catch (error) {
      expect((error as UserError).suggestion).toBeTruthy();
    }
  });
});
