import { describe, expect, it } from 'vitest';
import { differenceAt, fixtureModel, SHORT_FIXTURES } from './fixture-models.js';
import { referenceEngine } from './reference-engine.js';

const TAPS = {
  embed: 'embed_tokens',
  'layer0.mamba': 'layers.0.mamba',
  'layer0.attention': 'layers.0.attention',
};

describe('the reference engine gives the results of the original:', () => {
  it.each(SHORT_FIXTURES)('%s', async (name) => {
    const { model, weights, ids, expected, every } = fixtureModel(name);
    const program = await referenceEngine().load(model, weights, { taps: true });
    const { output, blocks, taps } = await program.run({ ids });
    const outputs = new Map([
      ['logits', output],
      ...[...blocks.values()].map((value, index) => [`hidden.${index}`, value] as const),
      ...Object.entries(TAPS).flatMap(([key, path]) => {
        const tap = taps.get(path);
        return tap ? [[key, tap] as const] : [];
      }),
    ]);
    let compared = 0;
    for (const [key, target] of expected) {
      const value = outputs.get(key);
      if (!value) continue;
      compared++;
      expect(differenceAt(value, target, every), key).toBeLessThan(1e-5);
    }
    expect(compared).toBeGreaterThan(model.blocks.length);
  });
});

describe('the reference engine decodes to the results of a whole forward pass:', () => {
  it.each([
    ['shared-lowrank-tied', 'window < tokens'],
    ['window-not-below-length', 'window ≥ tokens'],
    ['per-layer-sincos', 'an SRTE without a table'],
  ])('%s: %s', async (name) => {
    const { model, weights, ids, expected } = fixtureModel(name);
    const decoding = { totalTokens: ids.tokens };
    const program = await referenceEngine().load(model, weights, { decoding });
    const logits = expected.get('logits');
    let state: Awaited<ReturnType<typeof program.run>>['state'];
    for (let from = 0; from < ids.tokens; ) {
      const tokens = from === 0 ? 5 : 1;
      const data = Int32Array.from({ length: ids.batch * tokens }, (_, at) => {
        const row = Math.floor(at / tokens);
        return ids.data[row * ids.tokens + from + (at % tokens)] ?? 0;
      });
      const run = await program.run({ ids: { batch: ids.batch, tokens, data }, state });
      const vocabulary = model.head.weight.shape[0] ?? 0;
      for (const [at, value] of run.output.data.entries()) {
        const row = Math.floor(at / (tokens * vocabulary));
        const place = (row * ids.tokens + from) * vocabulary + (at % (tokens * vocabulary));
        expect(Math.abs(value - (logits?.data[place] ?? Number.NaN))).toBeLessThan(1e-5);
      }
      state = run.state;
      from += tokens;
      expect(state?.position).toBe(from);
    }
  });
});
