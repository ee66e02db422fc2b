import { expect, it } from 'vitest';
import { causalConv, gatedRmsNorm } from '../../src/architecture/constructors.js';
import type { Layer } from '../../src/architecture/layer.js';
import { primitivesOf } from '../../src/operations/lower.js';
import type { Values } from '../../src/runtime/engine.js';
import { randomWeights, type WeightSource } from '../../src/runtime/weights.js';
import { withEachEngine } from './both-engines.js';
import { differenceAt } from './fixture-models.js';
import { referenceEngine } from './reference-engine.js';

const [BATCH, TOKENS] = [2, 11];

const value = (width: number, phase = 0): Values => ({
  shape: [BATCH, TOKENS, width],
  data: Float32Array.from({ length: BATCH * TOKENS * width }, (_, i) => Math.sin(i + phase)),
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

withEachEngine('a norm with a gate', (load) => {
  const sizes = { eps: 1e-5, width: 12 };
  it.each([
    ['gated before', { gated: 'before' }],
    ['gated before, in groups', { gated: 'before', groups: 3 }],
    ['gated after, in groups', { gated: 'after', groups: 2 }],
    [
      'gated after by a sigmoid, a weight for all heads',
      { gated: 'after', groups: 4, sharedWeight: true, activation: 'sigmoid' },
    ],
  ] as const)('%s', async (_title, options) => {
    const layer = gatedRmsNorm('norm', { ...sizes, ...options });
    const weights = uneven(layer);
    const input = { inputs: [value(12), value(12, 1)] };
    const wanted = await (await referenceEngine().load(layer, weights)).run(input);
    const found = await (await load(layer, weights)).run(input);
    expect(differenceAt(found.output, wanted.output, 1)).toBeLessThan(1e-5);
    expect(Math.max(...wanted.output.data)).toBeGreaterThan(0.3);
  });
});

it('counts the groups of a norm with a gate', () => {
  const norm = gatedRmsNorm('norm', { eps: 1e-5, width: 12, groups: 3, gated: 'before' });
  expect(primitivesOf(norm)).toMatchObject([{ kind: 'norm', size: 4, input: 12, output: 12 }]);
});

withEachEngine('a causal convolution', (load) => {
  it.each([true, false])('with a bias: %s', async (bias) => {
    const layer = causalConv('conv', 6, 3, { bias });
    const weights = uneven(layer);
    const input = { inputs: [value(6)] };
    const wanted = await (await referenceEngine().load(layer, weights)).run(input);
    const found = await (await load(layer, weights)).run(input);
    expect(differenceAt(found.output, wanted.output, 1)).toBeLessThan(1e-5);
  });
});
