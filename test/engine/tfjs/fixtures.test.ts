import { describe, expect, it } from 'vitest';
import type { BackendName } from '../../../src/engine/tfjs/backends.js';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import { differenceAt, fixtureModel, SHORT_FIXTURES } from '../fixture-models.js';

const LONG = ['long-2048', 'long-2049', 'long-blockwise', 'long-wide-window'];

/** Largest difference of each value from the original implementation, by name. */
async function differences(name: string, backend: BackendName): Promise<[string, number][]> {
  const { model, weights, ids, expected, every } = fixtureModel(name);
  const engine = await openTfjs({ threads: 1, backend });
  const program = await engine.load(model, weights, { taps: true });
  const { output, blocks, taps } = await program.run({ ids });
  await program.release();
  const outputs = new Map([
    ...[...blocks.values()].map((value, index) => [`hidden.${index}`, value] as const),
    ['logits', output],
    ['embed', taps.get('embed_tokens')],
    ['layer0.srte', taps.get(model.shared[0]?.name ?? 'layers.0.srte')],
    ['layer0.mamba', taps.get('layers.0.mamba')],
    ['layer0.attention', taps.get('layers.0.attention')],
  ]);
  return [...expected].map(([key, target]) => {
    const value = outputs.get(key);
    return [key, value ? differenceAt(value, target, every) : Number.NaN];
  });
}

describe.each([
  ['wasm', [...SHORT_FIXTURES, ...LONG]],
  ['cpu', SHORT_FIXTURES],
] as const)('the backend %s gives the results of the original:', (backend, cases) => {
  it.each(cases)('%s', async (name) => {
    const compared = await differences(name, backend);
    expect(compared.length).toBeGreaterThan(1);
    for (const [key, difference] of compared) expect(difference, key).toBeLessThan(2e-5);
  });
});
