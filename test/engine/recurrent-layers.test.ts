import { describe, expect, it } from 'vitest';
import type { Program, ProgramOptions, Values } from '../../src/engine/engine.js';
import { ON_CPU } from '../../src/engine/onnx/context.js';
import { randomWeights, type WeightSource } from '../../src/engine/weights/weights.js';
import {
  fusedProjection,
  gatedRmsNorm,
  linear,
  rmsNormLayer,
  sequence,
} from '../../src/model/architecture/constructors/basic-layers.js';
import {
  kimiDelta,
  lightningAttention,
} from '../../src/model/architecture/constructors/linear-attention-layers.js';
import {
  causalConv,
  gatedConv,
  gatedDelta,
  mambaLayer,
  stateSpaceDual,
} from '../../src/model/architecture/constructors/recurrent-layers.js';
import type { Layer } from '../../src/model/architecture/layer.js';
import { forwardFlopsOf } from '../../src/model/budget/flops.js';
import { stateOf } from '../../src/model/budget/state.js';
import { primitivesOf } from '../../src/model/operations/lower.js';
import { withEachEngine } from './both-engines.js';
import { differenceAt } from './fixture-models.js';
import { describeWithOnnx, loadedFor } from './onnx/support.js';
import { referenceEngine } from './reference-engine.js';
import { largestDifference } from './tfjs/support.js';

const [BATCH, TOKENS] = [2, 11];

const value = (width: number, phase = 0, tokens = TOKENS): Values => ({
  shape: [BATCH, tokens, width],
  data: Float32Array.from({ length: BATCH * tokens * width }, (_, i) => Math.sin(i + phase)),
});

/** Random weights that are not all ones or zeros. */
function uneven(layer: Layer): WeightSource {
  const weights = randomWeights(layer, 5);
  return {
    ...weights,
    read(tensor, first, target) {
      weights.read(tensor, first, target);
      for (const i of target.keys()) target[i] = (target[i] ?? 0) + 0.2 * Math.sin(first + i);
    },
  };
}

withEachEngine('a gated norm equals the reference:', (load) => {
  const sizes = { eps: 1e-5, width: 12 };
  it.each([
    ['gated before', { gated: 'before' }],
    ['gated before, in groups', { gated: 'before', groups: 3 }],
    ['gated after, in groups', { gated: 'after', groups: 2 }],
    [
      'gated after by a sigmoid, one weight for all heads',
      { gated: 'after', groups: 4, sharedWeight: true, activation: 'sigmoid' },
    ],
  ] as const)('%s', async (_title, options) => {
    const layer = gatedRmsNorm('norm', { ...sizes, ...options });
    const weights = uneven(layer);
    const input = { inputs: [value(12), value(12, 1)] };
    const expected = await (await referenceEngine().load(layer, weights)).run(input);
    const actual = await (await load(layer, weights)).run(input);
    expect(differenceAt(actual.output, expected.output, 1)).toBeLessThan(1e-5);
    expect(Math.max(...expected.output.data)).toBeGreaterThan(0.3);
  });
});

it('the cost of a gated norm includes its groups', () => {
  const norm = gatedRmsNorm('norm', { eps: 1e-5, width: 12, groups: 3, gated: 'before' });
  expect(primitivesOf(norm)).toMatchObject([{ kind: 'norm', size: 4, input: 12, output: 12 }]);
});

withEachEngine('a causal convolution equals the reference', (load) => {
  it.each([true, false])('with a bias: %s', async (bias) => {
    const layer = causalConv('conv', 6, 3, { bias });
    const weights = uneven(layer);
    const input = { inputs: [value(6)] };
    const expected = await (await referenceEngine().load(layer, weights)).run(input);
    const actual = await (await load(layer, weights)).run(input);
    expect(differenceAt(actual.output, expected.output, 1)).toBeLessThan(1e-5);
  });
});

const SIZES = { hidden: 6, heads: 6, headDim: 3, state: 5, groups: 2, kernel: 3 };

/** Recurrent layers with every option of their kinds. */
const RECURRENT = {
  'a state space dual': stateSpaceDual('m', SIZES),
  'a state space dual with a group for each head': stateSpaceDual(
    'm',
    { ...SIZES, groups: 6 },
    { bias: true, conv: { bias: false } },
  ),
  'a state space dual with norm, scales and limits': stateSpaceDual(
    'm',
    { ...SIZES, groups: 1 },
    {
      norm: gatedRmsNorm('m.norm', { eps: 1e-5, width: 18, groups: 2, gated: 'before' }),
      activation: 'geluTanh',
      stepLimits: [0.9, 1.4],
      inputScales: [0.5, 1.5, 0.7, 1.2, 0.8],
    },
  ),
  'a selective scan with a single bias': mambaLayer(
    'm',
    { hidden: 6, inner: 8, state: 5, kernel: 3, stepRank: 4 },
    { bias: false, activation: 'relu' },
  ),
  'a selective scan with norms inside': mambaLayer(
    'm',
    { hidden: 6, inner: 8, state: 5, kernel: 3, stepRank: 4 },
    {
      conv: { bias: false },
      innerNorms: [
        rmsNormLayer('m.dt_norm', 4, 1e-5),
        rmsNormLayer('m.b_norm', 5, 1e-5),
        rmsNormLayer('m.c_norm', 5, 1e-5),
      ],
    },
  ),
  'a selective scan with norms without weights': mambaLayer(
    'm',
    { hidden: 6, inner: 8, state: 5, kernel: 3, stepRank: 4 },
    { innerNormEps: 1e-3 },
  ),
};

const delta = (
  keyHeads: number,
  valueHeads: number,
  inputs: (keys: number, values: number) => Parameters<typeof gatedDelta>[1]['inputs'],
  betaScale = 1,
): Layer => {
  const [keyDim, valueDim] = [4, 3];
  const [keys, values] = [keyHeads * keyDim, valueHeads * valueDim];
  return gatedDelta('m', {
    convs:
      betaScale === 2
        ? [keys, keys, values].map((width, index) => causalConv(`m.${index}conv`, width, 3))
        : [causalConv('m.conv1d', 2 * keys + values, 3, { bias: false })],
    inputs: inputs(keys, values),
    norm: gatedRmsNorm('m.norm', {
      eps: 1e-5,
      width: values,
      groups: valueHeads,
      sharedWeight: true,
      gated: 'after',
    }),
    outProj: linear('m.out_proj', values, 6),
    keyHeads,
    keyDim,
    valueHeads,
    valueDim,
    activation: 'silu',
    betaScale,
  });
};

const plain = { bias: false };

const kimi = (convs: readonly string[]) =>
  kimiDelta('m', {
    tensors: 'm',
    inputs: ['q', 'k', 'v'].map((leaf) => linear(`m.${leaf}`, 6, 12, plain)),
    convs: convs.map((leaf) => causalConv(`m.${leaf}`, 36 / convs.length, 3, plain)),
    forget: sequence('m.forget', [linear('m.fa', 6, 4, plain), linear('m.fb', 4, 12, plain)]),
    beta: linear('m.b', 6, 3, plain),
    gate: sequence('m.gate', [linear('m.ga', 6, 4, plain), linear('m.gb', 4, 12, plain)]),
    norm: gatedRmsNorm('m.norm', {
      eps: 1e-5,
      width: 12,
      groups: 3,
      sharedWeight: true,
      activation: 'sigmoid',
      gated: 'after',
    }),
    outProj: linear('m.out', 12, 6, plain),
    heads: 3,
    headDim: 4,
    activation: 'silu',
  });

const DELTA = {
  'a gated delta rule with fused inputs': delta(2, 6, (keys, values) => [
    fusedProjection(linear('m.qkvz', 6, 2 * keys + 2 * values), [keys, keys, values, values], 2),
    fusedProjection(linear('m.ba', 6, 12), [6, 6], 2),
  ]),
  'a gated delta rule with an input for each value': delta(
    3,
    3,
    (keys, values) =>
      [keys, keys, values, values, 3, 3].map((width, index) => linear(`m.${index}`, 6, width)),
    2,
  ),
  'lightning attention': lightningAttention('m', {
    inputs: [
      fusedProjection(linear('m.qkv', 6, 36, { bias: false }), [12, 12, 12], 3),
      linear('m.gate', 6, 12, { bias: false }),
    ],
    norm: gatedRmsNorm('m.norm', {
      eps: 1e-6,
      width: 12,
      activation: 'sigmoid',
      gated: 'after',
    }),
    outProj: linear('m.out', 12, 6, { bias: false }),
    slopes: [0.9, 0.2, 0.01],
    headDim: 4,
    activation: 'silu',
    block: 8,
  }),
  'Kimi delta attention with one convolution': kimi(['conv']),
  'Kimi delta attention with three convolutions': kimi(['q_conv', 'k_conv', 'v_conv']),
  'a gated short convolution': gatedConv('m', 6, 3, { bias: true }),
};

type Load = (layer: Layer, weights: WeightSource, options?: ProgramOptions) => Promise<Program>;

function recurrentTests(load: Load): void {
  const cases = Object.entries({ ...RECURRENT, ...DELTA });
  // More tokens than a chunk, and a partial last chunk.
  it.each(cases)('gives the results of the reference: %s', async (_title, layer) => {
    const weights = uneven(layer);
    const input = { inputs: [value(6, 0, 150)] };
    const expected = await (await referenceEngine().load(layer, weights)).run(input);
    const actual = await (await load(layer, weights)).run(input);
    const size = Math.max(...expected.output.data.map(Math.abs));
    expect(differenceAt(actual.output, expected.output, 1)).toBeLessThan(1e-5 * size);
    expect(size).toBeGreaterThan(0.05);
  });

  it.each(cases)('continues from its state: %s', async (_title, layer) => {
    const weights = uneven(layer);
    const whole = value(6);
    const { output } = await (await load(layer, weights)).run({ inputs: [whole] });
    const program = await load(layer, weights, { decoding: { totalTokens: TOKENS } });
    const rows = (of: Values, from: number, to: number): Float32Array => {
      const width = of.shape[2] ?? 0;
      return Float32Array.from(
        [0, 1].flatMap((row) => [
          ...of.data.subarray((row * TOKENS + from) * width, (row * TOKENS + to) * width),
        ]),
      );
    };
    let state: Awaited<ReturnType<typeof program.run>>['state'];
    for (const [from, to] of [
      [0, 4],
      [4, 5],
      [5, 6],
      [6, TOKENS],
    ] as const) {
      const input = { shape: [BATCH, to - from, 6], data: rows(whole, from, to) };
      const run = await program.run({ inputs: [input], state });
      expect(largestDifference(run.output.data, rows(output, from, to))).toBeLessThan(2e-6);
      state = run.state;
    }
  });
}

withEachEngine('a recurrent layer', recurrentTests);

describeWithOnnx('a recurrent layer, as products for other devices,', () => {
  recurrentTests((layer, weights, options) =>
    loadedFor({ ...ON_CPU, provider: 'webgpu' }, layer, weights, options),
  );
});

describe('a gated delta rule', () => {
  const layer = DELTA['a gated delta rule with fused inputs'];
  const values = 6 * 3 * 4;

  it('has 7 FLOP for a value of the state, and 2 for a channel', () => {
    const { parts } = forwardFlopsOf(layer, { batch: 2, context: 7, causal: true });
    const scan = parts.find(({ kind }) => kind === 'scan');
    expect(scan?.flops.value).toBe(14 * (7 * values + 2 * 18));
  });

  it('keeps its state in float32 for any type of the cache', () => {
    const setting = { batch: 2, context: 7, dtype: 'bf16' } as const;
    expect(stateOf(layer, setting).mambaState.value).toBe(2 * values * 4);
    expect(stateOf(layer, setting).convolutionState.value).toBe(2 * (16 + 18) * 2 * 2);
  });
});

describe('a state space dual', () => {
  const layer = RECURRENT['a state space dual'];
  const values = 6 * 3 * 5;

  it('has 5 FLOP for a value of the state, and 3 for a channel', () => {
    const { parts } = forwardFlopsOf(layer, { batch: 2, context: 7, causal: true });
    const scan = parts.find(({ kind }) => kind === 'scan');
    expect(scan?.flops.value).toBe(14 * (5 * values + 3 * 18));
  });

  it('keeps its state in float32 for any type of the cache', () => {
    const setting = { batch: 2, context: 7, dtype: 'bf16' } as const;
    expect(stateOf(layer, setting).mambaState.value).toBe(2 * values * 4);
    expect(stateOf(layer, setting).convolutionState.value).toBe(2 * (18 + 20) * 2 * 2);
  });

  it('is cut by heads and groups', () => {
    const [projection] = primitivesOf(layer);
    const [, cut] = projection?.cuts[0] ?? expect.unreachable();
    expect(cut.runs.map(({ count, size }) => count * size)).toEqual([18, 18, 10, 10, 6]);
  });
});
