import { expect, it } from 'vitest';
import { mamba } from '../../../src/architecture/constructors.js';
import { randomWeights } from '../../../src/runtime/random-weights.js';
import type { Values } from '../../../src/runtime/values.js';
import type { WeightSource } from '../../../src/runtime/weights.js';
import { differenceAt } from '../fixture-models.js';
import { referenceEngine } from '../reference-engine.js';
import { describeWithOnnx, loaded } from './support.js';

const [BATCH, TOKENS, HIDDEN, INNER] = [2, 5, 8, 560];

/** Its state has 35,840 values a sequence: more than the engine works on at a time. */
const layer = mamba('mamba', { hidden: HIDDEN, inner: INNER, state: 64, kernel: 4, stepRank: 2 });

const input: Values = {
  shape: [BATCH, TOKENS, HIDDEN],
  data: Float32Array.from({ length: BATCH * TOKENS * HIDDEN }, (_, i) => Math.sin(i)),
};

/** Weights whose steps go from 0 to 2 · `largest`: the bias of their projection is added twice. */
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

describeWithOnnx('a scan in several parts, the last of them smaller', () => {
  it.each([
    ['small steps', 1],
    ['steps after which nothing is left, and beyond what exp(x) can hold', 60],
  ])('%s', async (_what, largest) => {
    const weights = stepsUpTo(largest);
    const wanted = await (await referenceEngine().load(layer, weights)).run({ inputs: [input] });
    const found = await (await loaded(layer, weights)).run({ inputs: [input] });
    const size = Math.max(...wanted.output.data.map(Math.abs));
    expect(differenceAt(found.output, wanted.output, 1)).toBeLessThan(1e-5 * size);
    expect(size).toBeGreaterThan(0.01);
  });

  it('goes on from the state of the tokens before', async () => {
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
