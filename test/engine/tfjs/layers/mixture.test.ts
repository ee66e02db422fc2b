import { beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../../src/engine/engine.js';
import { openTfjs } from '../../../../src/engine/tfjs/tfjs-engine.js';
import type { WeightSource } from '../../../../src/engine/weights/weights.js';
import { linear } from '../../../../src/model/architecture/constructors/basic-layers.js';
import {
  gatedMlp,
  mixtureOfExperts,
  packedExperts,
  router,
} from '../../../../src/model/architecture/constructors/feed-forward-layers.js';
import type {
  GatedMlp,
  MixtureOfExperts,
  Router,
} from '../../../../src/model/architecture/layer.js';
import { buffer } from '../../../../src/model/architecture/param.js';
import { identity, rowsThrough, weightsBy } from '../given-weights.js';
import { largestDifference, tf, weightsOf } from '../support.js';

let engine: Engine;
beforeAll(async () => {
  engine = await openTfjs({ threads: 1, backend: 'wasm' });
});

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

describe('a router', () => {
  /** Weights of a router whose logits are its input. */
  const routed = (parts: Omit<Parameters<typeof router>[2], 'experts'>, ...row: number[]) =>
    rowsThrough(router('gate', row.length, { experts: row.length, ...parts }), identity, [row]);

  it('chooses the best, the first of equal ones, and gives the others weight 0', async () => {
    const parts = { expertsPerToken: 2, scoring: 'softmax' } as const;
    const [output = []] = await routed(parts, 0, Math.log(2), 0, Math.log(4));
    expect(largestDifference(output, [0, 0.25, 0, 0.5])).toBeLessThan(1e-6);
    const [equal = []] = await routed(parts, 1, 1, 1, 1);
    expect(largestDifference(equal, [0.25, 0.25, 0, 0])).toBeLessThan(1e-6);
    const renormalised = { ...parts, renormalised: { eps: 0.25 }, scale: 3 };
    const [whole = []] = await routed(renormalised, 0, Math.log(2), 0, Math.log(4));
    expect(largestDifference(whole, [0, 0.75, 0, 1.5])).toBeLessThan(1e-6);
  });

  it('mixes sparsely: each expert by its share of the remaining near scores', async () => {
    const parts = { expertsPerToken: 2, scoring: 'sparseMixer', nearness: 0.6 } as const;
    // Relative to log(4), log(2) is at a distance of a half, and zeros of 1.
    const [output = []] = await routed(parts, 0, Math.log(2), 0, Math.log(4));
    expect(largestDifference(output, [0, 1, 0, 2 / 3])).toBeLessThan(1e-6);
    // For negative scores, the distance is relative to the score itself.
    const [below = []] = await routed(parts, -2, -1, -4);
    expect(
      largestDifference(below, [1 / (1 + Math.exp(-2)), 1 / (1 + Math.exp(-1)), 0]),
    ).toBeLessThan(1e-6);
  });

  it('chooses with the correction, but scales without it', async () => {
    const correction = buffer('gate.e_score_correction_bias', [3]);
    const layer = router('gate', 3, {
      experts: 3,
      expertsPerToken: 1,
      scoring: 'sigmoid',
      correction,
    });
    const weights = weightsBy((tensor, at) => {
      if (tensor === correction) return at === 0 ? 10 : 0;
      return Math.floor(at / 3) === at % 3 ? 1 : 0;
    });
    const [output = []] = await rowsThrough(layer, weights, [[-2, 0, 1]]);
    expect(largestDifference(output, [sigmoid(-2), 0, 0])).toBeLessThan(1e-6);
  });

  it.each([
    // Groups {4, 0}, {3, 3}, {1, 1}: the first has the best score, the second the best two.
    ['best', [0.98, 0, 0, 0, 0, 0]],
    ['bestTwo', [0, 0, 0.95, 0, 0, 0]],
  ] as const)('keeps groups by their %s', async (score, expected) => {
    const groups = { count: 3, kept: 1, score, dropped: Number.NEGATIVE_INFINITY };
    const parts = { expertsPerToken: 1, scoring: 'sigmoid', groups } as const;
    const [output = []] = await routed(parts, 4, 0, 3, 3, 1, 1);
    expect(largestDifference(output, expected)).toBeLessThan(0.01);
  });
});

const [HIDDEN, INNER, EXPERTS] = [6, 5, 4];

const network = (name: string): GatedMlp =>
  gatedMlp(name, {
    inputs: ['gate', 'up'].map((leaf) => linear(`${name}.${leaf}`, HIDDEN, INNER, { bias: false })),
    activation: 'silu',
    down: linear(`${name}.down`, INNER, HIDDEN, { bias: false }),
  });

const routerOf = (expertsPerToken: number): Router =>
  router('gate', HIDDEN, { experts: EXPERTS, expertsPerToken, scoring: 'softmax' });

const TOKENS = Array.from({ length: 9 }, (_, row) =>
  Array.from({ length: HIDDEN }, (_, at) => 2 * Math.sin(5 * row * row + at)),
);

/** The mixture by definition: every expert computes all tokens, weighted by the router. */
async function densely(layer: MixtureOfExperts, weights: WeightSource): Promise<number[]> {
  const shares = await rowsThrough(layer.router, weights, TOKENS);
  const sum = new Float64Array(TOKENS.length * HIDDEN);
  const add = (rows: number[][], share: (row: number) => number) => {
    for (const [row, values] of rows.entries()) {
      for (const [at, value] of values.entries())
        sum[row * HIDDEN + at] = (sum[row * HIDDEN + at] ?? 0) + share(row) * value;
    }
  };
  for (const [index, expert] of (layer.experts as GatedMlp[]).entries()) {
    add(await rowsThrough(expert, weights, TOKENS), (row) => shares[row]?.[index] ?? 0);
  }
  const gates = layer.sharedGate && (await rowsThrough(layer.sharedGate, weights, TOKENS));
  for (const shared of layer.shared) {
    add(await rowsThrough(shared, weights, TOKENS), (row) =>
      gates ? sigmoid(gates[row]?.[0] ?? 0) : 1,
    );
  }
  return [...sum];
}

describe('a mixture of experts', () => {
  const experts = Array.from({ length: EXPERTS }, (_, index) => network(`experts.${index}`));

  it.each([1, 2, EXPERTS])('sums the %d experts of each token', async (perToken) => {
    const layer = mixtureOfExperts('mlp', { router: routerOf(perToken), experts });
    const output = await rowsThrough(layer, weightsOf(layer), TOKENS);
    const expected = await densely(layer, weightsOf(layer));
    expect(largestDifference(output.flat(), expected)).toBeLessThan(1e-6);
  });

  it('adds shared experts, gated or not', async () => {
    const shared = [network('shared.0'), network('shared.1')];
    const sharedGate = linear('shared_gate', HIDDEN, 1, { bias: false });
    for (const gated of [{}, { sharedGate }]) {
      const layer = mixtureOfExperts('mlp', { router: routerOf(2), experts, shared, ...gated });
      const output = await rowsThrough(layer, weightsOf(layer), TOKENS);
      const expected = await densely(layer, weightsOf(layer));
      expect(largestDifference(output.flat(), expected)).toBeLessThan(1e-6);
    }
  });

  it('gives the same results for packed and separate experts, and frees them', async () => {
    const separate = mixtureOfExperts('mlp', { router: routerOf(2), experts });
    const sizes = { experts: EXPERTS, hidden: HIDDEN, inner: INNER };
    const packed = packedExperts('experts', sizes, 'silu');
    const whole = mixtureOfExperts('mlp', { router: separate.router, experts: packed });
    const source = weightsOf(separate);
    // In order: expert, gate or up or down, row, column.
    const weights = weightsBy((tensor, at) => {
      const value = new Float32Array(1);
      if (tensor === separate.router.weight) source.read(tensor, at, value);
      else {
        const size = tensor.elements / EXPERTS;
        const own = experts[Math.floor(at / size)] as GatedMlp;
        const inputs = own.inputs as readonly ReturnType<typeof linear>[];
        const parts = tensor === packed.down ? [own.down] : inputs;
        const half = size / parts.length;
        const part = parts[Math.floor((at % size) / half)] as ReturnType<typeof linear>;
        source.read(part.weight, at % half, value);
      }
      return value[0] ?? Number.NaN;
    });
    const before = tf.memory().numTensors;
    const output = await rowsThrough(whole, weights, TOKENS);
    expect(tf.memory().numTensors).toBe(before);
    const expected = await rowsThrough(separate, source, TOKENS);
    expect(largestDifference(output.flat(), expected.flat())).toBeLessThan(1e-6);
  });

  it('computes an expert only for its own tokens', async () => {
    const layer = mixtureOfExperts('mlp', { router: routerOf(1), experts });
    const program = await engine.load(layer, weightsOf(layer), { taps: true });
    const shape = [1, TOKENS.length, HIDDEN];
    const { taps } = await program.run({
      inputs: [{ shape, data: Float32Array.from(TOKENS.flat()) }],
    });
    await program.release();
    const counts = experts.map(({ name }) => taps.get(name)?.shape[1] ?? 0);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(TOKENS.length);
  });
});
