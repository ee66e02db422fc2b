/** On a graphics card: under WebGPU, or its software adapter, and under CUDA; skipped where there is none. */
import { afterAll, describe, expect, it } from 'vitest';
import { mambaLayer } from '../../src/architecture/constructors/recurrent-layers.js';
import type { Layer } from '../../src/architecture/layer.js';
import type { Engine, RunInput } from '../../src/runtime/engine.js';
import { GUARANTEED_BYTES } from '../../src/runtime/onnx/context.js';
import { onnxVersion } from '../../src/runtime/onnx/library.js';
import { openOnnx } from '../../src/runtime/onnx/onnx-engine.js';
import { selfCheck } from '../../src/runtime/select/self-check.js';
import type { WeightSource } from '../../src/runtime/weights.js';
import { randomWeights } from '../../src/runtime/weights.js';
import { ALL_CASES, casesToRun, familyCase } from './family-cases.js';
import { differenceAt, fixtureModel, idsOf, modelOfConfig } from './fixture-models.js';
import { decoded } from './onnx/support.js';
import { largestDifference } from './tfjs/support.js';

const opened = await openOnnx({ threads: 1, provider: 'webgpu' }).catch((error: Error) => error);
const engine = opened as Engine;
const why = opened instanceof Error ? ` (${opened.message.split('\n', 1)[0]})` : '';
afterAll(async () => {
  if (why === '') await engine.close();
});

/** Cards have exponentials of their own; software has those of the processor. */
const limit = why === '' && engine.info.isSoftware ? 2e-5 : 2e-4;

const CASES = casesToRun();

async function caseOf(place: string) {
  if (place.startsWith('hybrid/')) return fixtureModel(place.slice('hybrid/'.length));
  return { ...(await familyCase(place)), every: 1 };
}

/** What a graphics card makes of it, and the processor. */
async function onBoth(layer: Layer, weights: WeightSource, input: RunInput) {
  const outputs = [];
  const processor = await openOnnx({ threads: 2 });
  for (const each of [engine, processor]) {
    const program = await each.load(layer, weights);
    outputs.push((await program.run(input)).output);
    await program.release();
  }
  return outputs.map(({ data }) => data) as [Float32Array, Float32Array];
}

const cuda = await openOnnx({ threads: 1, provider: 'cuda' }).catch((error: Error) => error);
const whyNoCuda = cuda instanceof Error ? ` (${cuda.message.split('\n', 1)[0]})` : '';

describe.skipIf(whyNoCuda !== '')(`CUDA${whyNoCuda}`, () => {
  const card = cuda as Engine;
  afterAll(() => card.close());

  it('passes the check', async () => {
    expect(await selfCheck(card)).toMatchObject({ passed: true });
  });

  it.each(ALL_CASES)('computes what the original does: %s', async (place) => {
    const { model, weights, ids, expected, every } = await caseOf(place);
    const logits = expected.get('logits');
    const program = await card.load(model, weights);
    const { output } = await program.run({ ids });
    await program.release();
    expect(logits && differenceAt(output, logits, every)).toBeLessThan(2e-4);
  });
});

describe.skipIf(onnxVersion() === undefined || why !== '')(`WebGPU${why}`, () => {
  it('passes the check', async () => {
    expect(await selfCheck(engine)).toMatchObject({ passed: true });
  });

  it.each(CASES)('computes what the original does: %s', async (place) => {
    const { model, weights, ids, expected, every } = await caseOf(place);
    const logits = expected.get('logits');
    const program = await engine.load(model, weights);
    const { output } = await program.run({ ids });
    await program.release();
    expect(logits && differenceAt(output, logits, every)).toBeLessThan(limit);
  });

  it.each(['hybrid/shared-lowrank-tied', 'hf/gemma2-window'])('decodes: %s', async (place) => {
    const { model, weights, ids, expected, every } = await caseOf(place);
    const logits = expected.get('logits');
    const program = await engine.load(model, weights, { decoding: { totalTokens: ids.tokens } });
    const found = await decoded(program, ids, [ids.tokens - 3, 1, 2]);
    await program.release();
    expect(logits && differenceAt(found, logits, every)).toBeLessThan(limit);
  });

  it('splits a table that is larger than what one operation sees', async () => {
    const [vocabulary, hidden] = [135_000, 256];
    expect(4 * vocabulary * hidden).toBeGreaterThan(GUARANTEED_BYTES.webgpu);
    const model = modelOfConfig({
      vocab_size: vocabulary,
      hidden_size: hidden,
      num_layers: 1,
      num_heads: 4,
      window_size: 4,
      gate_rank: 2,
      max_position_embeddings: 16,
      tie_word_embeddings: true,
    });
    const ids = idsOf([[0, vocabulary - 1, 131_072, 131_071, 7]]);
    const [found, wanted] = await onBoth(model, randomWeights(model, 1), { ids });
    expect(largestDifference(found, wanted)).toBeLessThan(2e-4);
  });

  it('scans sequences beyond one operation in chunks', async () => {
    const [tokens, inner, state, hidden] = [600, 1024, 64, 16];
    expect(4 * tokens * inner * state).toBeGreaterThan(GUARANTEED_BYTES.webgpu);
    const layer = mambaLayer('mamba', { hidden, inner, state, kernel: 4, stepRank: 4 });
    const data = Float32Array.from({ length: tokens * hidden }, (_, at) => Math.sin(at));
    const inputs = [{ shape: [1, tokens, hidden], data }];
    const [found, wanted] = await onBoth(layer, randomWeights(layer, 1), { inputs });
    expect(largestDifference(found, wanted)).toBeLessThan(2e-4);
  });

  it('refuses a call whose scores are more than one operation sees', async () => {
    const { model, weights, ids } = await caseOf('hybrid/shared-lowrank-tied');
    const tight = await openOnnx({ threads: 1, provider: 'webgpu', maxBindingBytes: 8192 });
    const program = await tight.load(model, weights);
    await expect(program.run({ ids })).rejects.toMatchObject({
      code: 'system',
      suggestion: expect.stringContaining('take a batch of'),
    });
    await program.release();
    await tight.close();
  });
});
