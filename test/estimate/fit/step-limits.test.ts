import { describe, expect, it } from 'vitest';
import { stepTimeOf } from '../../../src/estimate/fit/training/step-time.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { fitSetting, gptLike, H100, SMALL_MIXTURE } from './settings.js';

/** Lower bound of the bytes that a step of one micro-batch moves, without activations. */
function movedBytes(model: LanguageModel, changes: Partial<TrainingFitSetting>): number {
  const one = H100(1);
  const cluster = { ...one, ...changes.cluster, gpu: { ...one.gpu, bandwidth: 1 } };
  const setting = fitSetting({ ...changes, cluster });
  const { stages } = fitTrainingMemory(model, setting);
  const step = stepTimeOf(model, setting, stages);
  const memory = step.limits.find(({ limit }) => limit === 'memory')?.seconds.lower;
  if (memory === undefined) throw new Error('no memory limit');
  return memory.value - 2 * Number(memory.inputs.activations) * Number(memory.inputs.turns);
}

describe('the weights that a step moves at least', () => {
  it('include only the looked-up rows of positions, except for gradient and update', () => {
    const model = gptLike({ vocab_size: 10, n_positions: 8, n_embd: 4, n_layer: 2, n_head: 2 });
    const { parameters: n } = countParameters(model);
    const positions = 8 * 4;
    // Read forwards and backwards, gradient written; the embedding is the head's weight. Gradients of the positions;
    // optimizer of 12 bytes read and written, weights written.
    const bytes = 3 * 2 * (n - positions) + 2 * positions + 2 * 12 * n + 2 * n;
    expect(movedBytes(model, { context: 2 })).toBeCloseTo(bytes, 3);
  });

  it('include the reached experts, but not the embedding table', async () => {
    const { build, schema } = await loadFamily('qwen3_moe');
    const model = build(
      schema.parse({
        model: {
          family: 'qwen3_moe',
          ...SMALL_MIXTURE,
          tie_word_embeddings: false,
        },
      }),
    );
    const { parameters: n } = countParameters(model);
    const table = 500 * 64;
    const expert = 3 * 64 * 32;
    const moved = (reached: number) => {
      const read = n - table - 4 * (8 - reached) * expert;
      return 3 * 2 * read + 2 * table + 2 * 12 * n + 2 * n;
    };
    expect(movedBytes(model, { context: 1 })).toBeCloseTo(moved(2), 3);
    // The second token reaches each of the six other experts with probability 1/4.
    expect(movedBytes(model, { context: 2 })).toBeCloseTo(moved(2 + 6 / 4), 3);
    expect(movedBytes(model, { context: 512 })).toBeCloseTo(moved(8), 3);
  });

  it('have gradients in float32 by the convention of Megatron', () => {
    const model = gptLike({ vocab_size: 10, n_positions: 8, n_embd: 4, n_layer: 2, n_head: 2 });
    const { parameters: n } = countParameters(model);
    const bytes = (2 * 2 + 4) * (n - 32) + 4 * 32 + 2 * 12 * n + 2 * n;
    expect(movedBytes(model, { context: 2, convention: 'megatron' })).toBeCloseTo(bytes, 3);
  });

  it('do not include a tied embedding on the first of two stages', () => {
    // Enough positions that the first stage takes longest.
    const config = { vocab_size: 10, n_positions: 1024, n_embd: 4, n_layer: 2, n_head: 2 };
    const block = 12 * 16 + 13 * 4;
    const tables = 10 * 4 + 1024 * 4;
    const n = block + tables;
    const two = {
      cluster: H100(2),
      pipelineParallel: 2,
      globalBatchTokens: 2,
      context: 1,
    } as const;
    // Two micro-batches of a token.
    const bytes = 2 * 3 * 2 * block + 2 * tables + 2 * 12 * n + 2 * n;
    expect(movedBytes(gptLike(config), two)).toBeCloseTo(bytes, 3);
  });
});
