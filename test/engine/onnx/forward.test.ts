import fs from 'node:fs';
import { expect, it } from 'vitest';
import type { HybridBlock, LanguageModel } from '../../../src/model/architecture/layer.js';
import { inPackage } from '../../fixtures.js';
import { differenceAt, fixtureModel } from '../fixture-models.js';
import { decoded, describeWithOnnx, loaded } from './support.js';

const TOLERANCE = 2e-5;

/** Paths of the engine's values by their names in the fixtures. */
function pathsOf(model: LanguageModel): Map<string, string> {
  const [first] = model.blocks as readonly HybridBlock[];
  return new Map([
    ['embed', 'embed_tokens'],
    ['layer0.srte', first?.srte.name ?? ''],
    ['layer0.mamba', 'layers.0.mamba'],
    ['layer0.attention', 'layers.0.attention'],
    ['logits', ''],
    ...model.blocks.map(({ name }, index) => [`hidden.${index}`, name] as const),
  ]);
}

describeWithOnnx('the engine gives the results of the original implementation:', () => {
  it.each(fs.readdirSync(inPackage('fixtures/hybrid')))('%s', async (name) => {
    const { model, weights, ids, expected, every } = fixtureModel(name);
    const paths = pathsOf(model);
    const plain = await (await loaded(model, weights)).run({ ids });
    const tapped = await (await loaded(model, weights, { taps: true })).run({ ids });
    expect(plain.taps.size).toBe(0);
    expect([...tapped.blocks.keys()]).toEqual(model.blocks.map((block) => block.name));
    for (const [key, reference] of expected) {
      const path = paths.get(key) ?? key;
      for (const { output, blocks, taps } of [plain, tapped]) {
        const value = path === '' ? output : (blocks.get(path) ?? taps.get(path));
        if (!value && taps.size === 0) continue;
        expect(value, key).toBeDefined();
        if (value) expect(differenceAt(value, reference, every), key).toBeLessThan(TOLERANCE);
      }
    }
    expect(expected.size).toBeGreaterThan(model.blocks.length);
  });
});

describeWithOnnx('decoding equals a whole forward pass:', () => {
  it.each([
    ['shared-lowrank-tied', 'a batch of two, window < tokens', 8],
    ['shared-learnable', 'one token at a time from the start', 1],
    ['window-not-below-length', 'window ≥ tokens', 7],
    ['per-layer-sincos', 'an SRTE without a table', 2],
    ['pyramidal-windowed', 'every block has its own window', 150],
  ])('%s: %s', async (name, _what, prefill) => {
    const { model, weights, ids, expected, every } = fixtureModel(name);
    const program = await loaded(model, weights, { decoding: { totalTokens: ids.tokens } });
    const steps = Array.from({ length: ids.tokens - prefill }, () => 1);
    const logits = await decoded(program, ids, [prefill, ...steps]);
    const reference = expected.get('logits');
    expect(reference && differenceAt(logits, reference, every)).toBeLessThan(TOLERANCE);
    const [half, rest] = [Math.floor(ids.tokens / 2), Math.ceil(ids.tokens / 2)];
    const inHalves = await decoded(program, ids, [half, rest]);
    expect(reference && differenceAt(inHalves, reference, every)).toBeLessThan(TOLERANCE);
  });
});
