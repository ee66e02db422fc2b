import { describe, expect, it } from 'vitest';
import {
  type ActivationName,
  type AngleTableOptions,
  activation,
  activationGradient,
  applyInterleavedRotaryPosEmb,
  applyRotaryPosEmb,
  cast,
  groupedQueryAttention,
  groupRmsNorm,
  interleavedTables,
  layerNorm,
  type ModuleDtype,
  NtkAwareRope,
  type NtkAwareRopeOptions,
  onlineSoftmaxAttention,
  rmsNorm,
  sinusoidalPositions,
  swiglu,
  type Tensor,
  toFloat32,
  vocabEmbedding,
} from '../../../src/model/modules/index.js';
import { readJson } from '../../fixtures.js';
import { idsOf, largestDifference, type Stored, tensorOf } from './support.js';

type Argument = Stored | NtkAwareRopeOptions | AngleTableOptions | string | number | boolean;
type Arguments = Readonly<Record<string, Argument>>;

interface Case {
  readonly block: string;
  readonly arguments: Arguments;
  readonly output: Stored;
}

interface Way {
  /** Keys of a tile, for tiled attention. */
  readonly tile?: number;
  /** Type that all tensors are first cast to. */
  readonly dtype?: ModuleDtype;
}

const dtypeOf = (argument: Argument | undefined) => (argument as Stored).dtype;

function compute({ block, arguments: given }: Case, { tile, dtype }: Way = {}): Tensor {
  const at = (name: string) => cast(tensorOf(given[name] as Stored), dtype ?? dtypeOf(given[name]));
  const number = (name: string) => given[name] as number;
  switch (block) {
    case 'groupRmsNorm':
      return groupRmsNorm(at('x'), at('gamma'), number('groupSize'), number('eps'));
    case 'rmsNorm':
      return rmsNorm(at('x'), at('gamma'), number('eps'));
    case 'layerNorm':
      return layerNorm(at('x'), at('gamma'), at('beta'), number('eps'));
    case 'swiglu':
      return swiglu(at('gate'), at('up'));
    case 'vocabEmbedding':
      return vocabEmbedding(idsOf(given.ids as Stored), at('table'));
    case 'applyRotaryPosEmb':
      return applyRotaryPosEmb(at('x'), at('cos'), at('sin'));
    case 'activation':
      return activation(given.name as ActivationName, at('x'));
    case 'activationGradient':
      return activationGradient(given.name as ActivationName, at('x'));
    case 'applyInterleavedRotaryPosEmb': {
      const { cos, sin } = interleavedTables(given.options as AngleTableOptions);
      return applyInterleavedRotaryPosEmb(at('x'), cos, sin);
    }
    case 'sinusoidalPositions':
      return sinusoidalPositions(given.options as AngleTableOptions);
    case 'NtkAwareRope':
      return new NtkAwareRope(given.options as NtkAwareRopeOptions).apply(
        at('x'),
        number('offset'),
      );
    case 'groupedQueryAttention': {
      const options = { causal: given.causal as boolean };
      return tile === undefined
        ? groupedQueryAttention(at('q'), at('k'), at('v'), options)
        : onlineSoftmaxAttention(at('q'), at('k'), at('v'), { ...options, tile });
    }
    default:
      throw new Error(block);
  }
}

const cases = readJson<Case[]>('fixtures/modules/torch.json');
const labelled = cases.map((each, at) => {
  const { block, output } = each;
  return [`${at}: ${block}, ${output.dtype}`, each] as const;
});

const WITHIN = 1e-6;

/**
 * Float32 results are within 1e-6. Half-precision ones equal PyTorch's bit for bit, unless the unrounded value is
 * within 1e-6 of the middle between two values: there, PyTorch's kernels differ from each other.
 */
function expectPyTorch(each: Case, way: Way = {}): void {
  const computed = compute(each, way);
  const expected = tensorOf(each.output);
  if (each.output.dtype === 'f32') {
    expect(largestDifference(computed, expected)).toBeLessThan(WITHIN);
    return;
  }
  expect({ ...computed, data: [] }).toEqual({ ...expected, data: [] });
  const [own, reference] = [toFloat32(computed), toFloat32(expected)];
  const unrounded = toFloat32(compute(each, { ...way, dtype: 'f32' }));
  for (const [at, value] of own.entries()) {
    const other = reference[at] ?? Number.NaN;
    if (value === other) continue;
    expect(Math.abs((unrounded[at] ?? Number.NaN) - (value + other) / 2)).toBeLessThan(WITHIN);
    expect(Math.abs((computed.data[at] ?? 0) - (expected.data[at] ?? 0))).toBe(1);
  }
}

describe('blocks give the results of PyTorch:', () => {
  it.each(labelled)('%s', (_, each) => expectPyTorch(each));

  it('half precision is nearly always exact', () => {
    const halves = cases.filter(({ output }) => output.dtype !== 'f32');
    const codes = halves.flatMap((each) => {
      const own = compute(each).data;
      return each.output.data.map((code, at) => code === own[at]);
    });
    expect(codes.length).toBeGreaterThan(5000);
    expect(codes.filter((isSame) => !isSame).length).toBeLessThan(5);
  });
});

describe('tiled attention gives the results of PyTorch:', () => {
  const attention = labelled.filter(([, { block }]) => block === 'groupedQueryAttention');

  it.each(attention)('%s', (_, each) => {
    for (const tile of [1, 2, 4, 64]) expectPyTorch(each, { tile });
  });

  it('the cases cover every dtype', () => {
    expect(new Set(attention.map(([, { output }]) => output.dtype)).size).toBe(3);
  });
});
