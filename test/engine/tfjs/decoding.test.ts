import { beforeAll, describe, expect, it } from 'vitest';
import type { Engine, RunOutput } from '../../../src/engine/engine.js';
import type { LayerStates } from '../../../src/engine/tfjs/run.js';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import { walk } from '../../../src/model/architecture/walk.js';
import { familyCase } from '../family-cases.js';
import { fixtureModel, modelOfConfig } from '../fixture-models.js';
import { partOf, rowsOf } from '../sequences.js';
import { largestDifference, weightsOf } from './support.js';

let engine: Engine;
beforeAll(async () => {
  engine = await openTfjs({ threads: 1, backend: 'wasm' });
});

describe('decoding', () => {
  it.each([
    ['shared-lowrank-tied', 'window < tokens'],
    ['window-not-below-length', 'window ≥ tokens'],
    ['per-layer-sincos', 'an SRTE without a table'],
    ['pyramidal-windowed', 'windows of both kinds'],
  ])('equals a full forward pass for %s: %s', async (name) => {
    const { model, weights, ids } = fixtureModel(name);
    const whole = await engine.load(model, weights);
    const full = await whole.run({ ids });
    const program = await engine.load(model, weights, { decoding: { totalTokens: ids.tokens } });
    let before: RunOutput | undefined;
    // A prefill, then several tokens, then one at a time.
    const singly = Array.from({ length: 11 }, (_, index) => ids.tokens - 10 + index);
    const ends = [ids.tokens - 14, ...singly];
    for (const [index, to] of ends.entries()) {
      const from = ends[index - 1] ?? 0;
      const run = await program.run({ ids: partOf(ids, from, to), state: before?.state });
      expect(run.state?.position).toBe(to);
      expect(largestDifference(run.output.data, rowsOf(full.output, from, to))).toBeLessThan(1e-5);
      before = run;
    }
    await whole.release();
    await program.release();
  });

  it('can continue twice from one state', async () => {
    const { model, weights, ids } = fixtureModel('shared-learnable');
    const program = await engine.load(model, weights, { decoding: { totalTokens: ids.tokens } });
    const { state } = await program.run({ ids: partOf(ids, 0, 7) });
    const once = await program.run({ ids: partOf(ids, 7, 9), state });
    const again = await program.run({ ids: partOf(ids, 7, 9), state });
    expect(again.output).toEqual(once.output);
    await program.release();
  });

  it('works for a block alone', async () => {
    const { model, weights, ids } = fixtureModel('shared-learnable');
    const [block] = model.blocks;
    if (!block) throw new Error('no block');
    const tapped = await engine.load(model, weights, { taps: true });
    const { taps } = await tapped.run({ ids });
    const input = taps.get('embed_tokens');
    const output = taps.get(block.name);
    if (!input || !output) throw new Error('no taps');
    const program = await engine.load(block, weights, { decoding: { totalTokens: ids.tokens } });
    const width = input.shape[2] ?? 0;
    const inputOf = (from: number, to: number) => [
      { shape: [ids.batch, to - from, width], data: rowsOf(input, from, to) },
    ];
    const first = await program.run({ inputs: inputOf(0, 12) });
    const second = await program.run({ inputs: inputOf(12, ids.tokens), state: first.state });
    expect(largestDifference(second.output.data, rowsOf(output, 12, ids.tokens))).toBeLessThan(
      1e-5,
    );
    await tapped.release();
    await program.release();
  });
});

it('a local head keeps only the keys that it will see', async () => {
  const config = { vocab_size: 8, hidden_size: 8, num_layers: 1, num_heads: 2, global_heads: 1 };
  const model = modelOfConfig({
    ...config,
    window_size: 6,
    gate_rank: 2,
    max_position_embeddings: 64,
  });
  const program = await engine.load(model, weightsOf(model), { decoding: { totalTokens: 40 } });
  const { state } = await program.run({ ids: { batch: 1, tokens: 30, data: new Int32Array(30) } });
  const { kept } = state as unknown as {
    kept: { attentions: Map<unknown, { first: number; keys: Float32Array }[]> };
  };
  const [local, global] = [...kept.attentions.values()][0] ?? [];
  // The next token is at position 30 and sees 3 keys before it.
  expect(local).toMatchObject({ first: 27 });
  expect(local?.keys.length).toBe(3 * 4);
  expect(global?.keys.length).toBe(30 * 4);
  await program.release();
});

it('latent attention keeps the latent and one rotated key of each token', async () => {
  const { model, weights, ids } = await familyCase('hf/deepseek-v3');
  const layers = walk(model).flatMap(({ layer }) =>
    layer.kind === 'latentAttention' ? [layer] : [],
  );
  const program = await engine.load(model, weights, { decoding: { totalTokens: ids.tokens } });
  const { state } = await program.run({ ids });
  const { kept } = state as unknown as { kept: LayerStates };
  expect(layers.length).toBeGreaterThan(0);
  expect(kept.attentions.size).toBe(0);
  for (const layer of layers) {
    const { latents = [], keys = [] } = kept.latents.get(layer) ?? {};
    expect(latents.map(({ length }) => length)).toEqual(
      new Array(ids.batch).fill(ids.tokens * layer.latentRank),
    );
    expect(keys.map(({ length }) => length)).toEqual(
      new Array(ids.batch).fill(ids.tokens * layer.sharedDim),
    );
  }
  await program.release();
});
