/** Tests on a graphics card, with WebGPU (or its software adapter) and CUDA. Skipped where there is none. */
import { afterAll, describe, expect, it } from 'vitest';
import type { Engine, RunInput } from '../../src/engine/engine.js';
import { GUARANTEED_BYTES } from '../../src/engine/onnx/context.js';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { openOnnx } from '../../src/engine/onnx/onnx-engine.js';
import { selfCheck } from '../../src/engine/select/self-check.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { randomWeights } from '../../src/engine/weights/weights.js';
import { mambaLayer } from '../../src/model/architecture/constructors/recurrent-layers.js';
import type { Layer } from '../../src/model/architecture/layer.js';
import { ALL_CASES, casesToRun, familyCase } from './family-cases.js';
import { differenceAt, fixtureModel, idsOf, modelOfConfig } from './fixture-models.js';
import { decoded } from './onnx/support.js';
import { largestDifference } from './tfjs/support.js';

const opened = await openOnnx({ threads: 1, provider: 'webgpu' }).catch((error: Error) => error);
const engine = opened as Engine;
const reason = opened instanceof Error ? ` (${opened.message.split('\n', 1)[0]})` : '';
afterAll(async () => {
  if (reason === '') await engine.close();
});

/** Cards compute exponentials differently; software uses the processor. */
const limit = reason === '' && engine.info.isSoftware ? 2e-5 : 2e-4;

const CASES = casesToRun();

async function caseOf(place: string) {
  if (place.startsWith('hybrid/')) return fixtureModel(place.slice('hybrid/'.length));
  return { ...(await familyCase(place)), every: 1 };
}

/** Outputs of a layer on the graphics card and on the processor. */
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
const reasonNoCuda = cuda instanceof Error ? ` (${cuda.message.split('\n', 1)[0]})` : '';

describe.skipIf(reasonNoCuda !== '')(`CUDA${reasonNoCuda}`, () => {
  const card = cuda as Engine;
  afterAll(() => card.close());

  it('passes the self-check', async () => {
    expect(await selfCheck(card)).toMatchObject({ passed: true });
  });

  it.each(ALL_CASES)('gives the results of the original: %s', async (place) => {
    const { model, weights, ids, expected, every } = await caseOf(place);
    const logits = expected.get('logits');
    const program = await card.load(model, weights);
    const { output } = await program.run({ ids });
    await program.release();
    expect(logits && differenceAt(output, logits, every)).toBeLessThan(2e-4);
  });
});

describe.skipIf(onnxVersion() === undefined || reason !== '')(`WebGPU${reason}`, () => {
  it('passes the self-check', async () => {
    expect(await selfCheck(engine)).toMatchObject({ passed: true });
  });

  it.each(CASES)('gives the results of the original: %s', async (place) => {
    const { model, weights, ids, expected, every } = await caseOf(place);
    const logits = expected.get('logits');
    const program = await engine.load(model, weights);
    const { output } = await program.run({ ids });
    await program.release();
    expect(logits && differenceAt(output, logits, every)).toBeLessThan(limit);
  });

  it.each(['hybrid/shared-lowrank-tied', 'hf/gemma2-window'])(
    'decodes to the results of the original: %s',
    async (place) => {
      const { model, weights, ids, expected, every } = await caseOf(place);
      const logits = expected.get('logits');
      const program = await engine.load(model, weights, { decoding: { totalTokens: ids.tokens } });
      const logitsInSteps = await decoded(program, ids, [ids.tokens - 3, 1, 2]);
      await program.release();
      expect(logits && differenceAt(logitsInSteps, logits, every)).toBeLessThan(limit);
    },
  );

  it('splits a table that is too large for one operation', async () => {
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
    const [onCard, onProcessor] = await onBoth(model, randomWeights(model, 1), { ids });
    expect(largestDifference(onCard, onProcessor)).toBeLessThan(2e-4);
  });

  it('scans sequences that are too long for one operation in chunks', async () => {
    const [tokens, inner, state, hidden] = [600, 1024, 64, 16];
    expect(4 * tokens * inner * state).toBeGreaterThan(GUARANTEED_BYTES.webgpu);
    const layer = mambaLayer('mamba', { hidden, inner, state, kernel: 4, stepRank: 4 });
    const data = Float32Array.from({ length: tokens * hidden }, (_, at) => Math.sin(at));
    const inputs = [{ shape: [1, tokens, hidden], data }];
    const [onCard, onProcessor] = await onBoth(layer, randomWeights(layer, 1), { inputs });
    expect(largestDifference(onCard, onProcessor)).toBeLessThan(2e-4);
  });

  it('refuses a call whose scores are too large for one operation', async () => {
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
