import { expect, it } from 'vitest';
import type { Values } from '../../../src/engine/engine.js';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import { mambaLayer } from '../../../src/model/architecture/constructors/recurrent-layers.js';
import { differenceAt } from '../fixture-models.js';
import { referenceEngine } from '../reference-engine.js';
import { rowsOf } from '../sequences.js';
import { largestDifference } from '../tfjs/support.js';
import { describeWithOnnx, loaded, loadedFor } from './support.js';

const [BATCH, TOKENS, HIDDEN, INNER] = [2, 5, 8, 560];

/** A layer whose state has 35,840 values per sequence, more than the engine processes at a time. */
const layer = mambaLayer(
  'mamba',
  { hidden: HIDDEN, inner: INNER, state: 64, kernel: 4, stepRank: 2 },
  { doubledStepBias: true },
);

const input: Values = {
  shape: [BATCH, TOKENS, HIDDEN],
  data: Float32Array.from({ length: BATCH * TOKENS * HIDDEN }, (_, i) => Math.sin(i)),
};

/** Weights with steps from 0 to 2 · `largest`, because the bias of their projection is added twice. */
function stepsUpTo(largest: number): WeightSource {
  const weights = randomWeights(layer, 3);
  return {
    ...weights,
    read(tensor, first, target) {
      weights.read(tensor, first, target);
      if (tensor !== layer.dtProj.bias) return;
      for (const i of target.keys()) target[i] = ((2 * (first + i)) / INNER - 1) * largest;
    },
  };
}

describeWithOnnx('a scan in several parts, the last one smaller,', () => {
  it.each([
    ['small steps', 1],
    ['steps that erase the state and overflow exp(x)', 60],
  ])('is correct for %s', async (_what, largest) => {
    const weights = stepsUpTo(largest);
    const expected = await (await referenceEngine().load(layer, weights)).run({ inputs: [input] });
    const actual = await (await loaded(layer, weights)).run({ inputs: [input] });
    const size = Math.max(...expected.output.data.map(Math.abs));
    expect(differenceAt(actual.output, expected.output, 1)).toBeLessThan(1e-5 * size);
    expect(size).toBeGreaterThan(0.01);
  });

  it('continues from the state of earlier tokens', async () => {
    const weights = stepsUpTo(1);
    const whole = await (await loaded(layer, weights)).run({ inputs: [input] });
    const row = input.data.subarray(0, TOKENS * HIDDEN);
    const tokens = (from: number, to: number) => ({
      shape: [1, to - from, HIDDEN],
      data: row.slice(from * HIDDEN, to * HIDDEN),
    });
    const program = await loaded(layer, weights, { decoding: { totalTokens: TOKENS } });
    const first = await program.run({ inputs: [tokens(0, 3)] });
    const second = await program.run({ inputs: [tokens(3, TOKENS)], state: first.state });
    const data = Float32Array.from([...first.output.data, ...second.output.data]);
    const atOnce = { shape: [1, TOKENS, HIDDEN], data: whole.output.data.slice(0, data.length) };
    expect(differenceAt({ shape: atOnce.shape, data }, atOnce, 1)).toBeLessThan(1e-5);
  });
});

/** A target whose operations can hold the decays of this many tokens of a sequence. */
const chunksOf = (tokens: number) =>
  ({ provider: 'webgpu', compute: 'f32', maxBindingBytes: 4 * INNER * 64 * tokens }) as const;

describeWithOnnx('a scan in chunks of tokens', () => {
  it.each([
    ['all tokens of both sequences at once', BATCH * TOKENS, 1],
    ['chunks of two tokens, the last of one', BATCH * 2, 1],
    ['one token at a time', BATCH, 1],
    ['steps that erase the state and overflow exp(x)', BATCH * 3, 60],
  ])('is correct for %s', async (_what, tokens, largest) => {
    const weights = stepsUpTo(largest);
    const expected = await (await referenceEngine().load(layer, weights)).run({ inputs: [input] });
    const program = await loadedFor(chunksOf(tokens), layer, weights);
    const actual = await program.run({ inputs: [input] });
    const size = Math.max(...expected.output.data.map(Math.abs));
    expect(differenceAt(actual.output, expected.output, 1)).toBeLessThan(1e-5 * size);
  });

  it('continues from the state of earlier tokens', async () => {
    const weights = stepsUpTo(1);
    const whole = await (await loaded(layer, weights)).run({ inputs: [input] });
    const options = { decoding: { totalTokens: TOKENS } };
    const program = await loadedFor(chunksOf(BATCH * 2), layer, weights, options);
    const first = await program.run({ inputs: [tokensOf(0, 3)] });
    const second = await program.run({ inputs: [tokensOf(3, 4)], state: first.state });
    const third = await program.run({ inputs: [tokensOf(4, TOKENS)], state: second.state });
    for (const [from, { output }] of [
      [0, first],
      [3, second],
      [4, third],
    ] as const) {
      const to = from + (output.shape[1] ?? 0);
      const expected = rowsOf(whole.output, from, to);
      expect(largestDifference(output.data, expected)).toBeLessThan(1e-5);
    }
  });
});

/** Some tokens of both sequences. */
const tokensOf = (from: number, to: number): Values => ({
  shape: [BATCH, to - from, HIDDEN],
  data: rowsOf(input, from, to),
});
