import { describe, expect, it } from 'vitest';
import { fitTrainingMemory } from '../../src/fit/training-memory.js';
import type { TrainingFitSetting } from '../../src/fit/training-setting.js';
import { fitSetting, gptLike, H100 } from './settings.js';

/** V 100, h 8, f 32, L 2. */
const MODEL = gptLike({ vocab_size: 100, n_positions: 64, n_embd: 8, n_layer: 2, n_head: 4 });
const block = 32 + 216 + 72 + 288 + 264;

const workspace = (wish: Partial<TrainingFitSetting>) =>
  Object.fromEntries(
    fitTrainingMemory(MODEL, fitSetting({ context: 16, ...wish })).workspaceParts.map(
      ({ part, bytes: { lower, expected, upper } }) => [
        part,
        [lower.value, expected.value, upper.value],
      ],
    ),
  );

describe('workspace', () => {
  it('has the logits in float32, their gradient, and both in 16 bits', () => {
    const logits = 3 * 16 * 100;
    expect(workspace({ microBatch: 3 }).loss).toEqual([0, 6 * logits, 12 * logits]);
    expect(workspace({ microBatch: 3, precision: 'float32' }).loss).toEqual([
      0,
      4 * logits,
      8 * logits,
    ]);
  });

  it('has the logits of a chunk, as the Liger kernel cuts them, and a gradient to be added', () => {
    // ⌈48 tokens / ⌈100 / 8⌉⌉ is a power of two already.
    const [chunk, hidden] = [4, 8];
    const wish = { microBatch: 3, loss: 'chunked' } as const;
    const upper = 6 * chunk * 100 + 4 * 100 * hidden;
    expect(workspace(wish).loss).toEqual([0, 2 * chunk * 100, upper]);
    const again = workspace({ ...wish, globalBatchTokens: 2 * 48 }).loss;
    expect(again).toEqual([0, 2 * 100 * (chunk + hidden), upper]);
  });

  it('gathers a block with ZeRO-3, but for its own part', () => {
    const { gathered = [] } = workspace({ cluster: H100(4), zero: 3 });
    expect(gathered.slice(0, 2)).toEqual([(2 * block * 3) / 4, 2 * 2 * block + 2 * block]);
    expect(workspace({ cluster: H100(4), zero: 1 }).gathered).toBeUndefined();
  });

  it('of one GPU needs no communication', () => {
    const { communicators, buckets, context } = workspace({});
    expect([communicators, buckets]).toEqual([undefined, undefined]);
    expect(context).toEqual([0, 500 * 2 ** 20, 1343 * 2 ** 20]);
  });

  it('of three kinds of parallelism has three communicators', () => {
    const { communicators } = workspace({
      cluster: H100(8),
      tensorParallel: 2,
      pipelineParallel: 2,
    });
    expect(communicators).toEqual([0, 3 * 128 * 2 ** 20, 3 * 256 * 2 ** 20]);
  });
});
