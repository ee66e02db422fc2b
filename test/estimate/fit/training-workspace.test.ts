import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { roundingBytes } from '../../../src/estimate/fit/training/gpu-overhead.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import type { GpuKind } from '../../../src/estimate/hardware/gpu.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import type { Optimizer } from '../../../src/model/budget/optimizers.js';
import { fitSetting, gptLike, H100 } from './settings.js';

/** V 100, h 8, f 32, L 2. */
const MODEL = gptLike({ vocab_size: 100, n_positions: 64, n_embd: 8, n_layer: 2, n_head: 4 });
const block = 32 + 216 + 72 + 288 + 264;
/** Tokens, positions, two blocks, the final norm. */
const n = 100 * 8 + 64 * 8 + 2 * block + 16;
const MIB = 2 ** 20;

const partsOf = (model: LanguageModel, changes: Partial<TrainingFitSetting>) =>
  Object.fromEntries(
    fitTrainingMemory(model, fitSetting({ context: 16, ...changes })).workspaceParts.map(
      ({ part, bytes: { lower, expected, upper } }) => [
        part,
        [lower.value, expected.value, upper.value],
      ],
    ),
  );

const workspace = (changes: Partial<TrainingFitSetting>) => partsOf(MODEL, changes);

describe('the workspace', () => {
  it('has gradients of the log-softmax and of the logits, and the logits, in float32', () => {
    const logits = 3 * 16 * 100;
    for (const precision of ['mixed', 'float32'] as const) {
      const { loss } = workspace({ microBatch: 3, precision });
      expect(loss).toEqual([0, 2 * 4 * logits, 3 * 4 * logits]);
    }
  });

  it('has the saved values of unfused GELU, and norm statistics', () => {
    // For 16 tokens: three values of 32 in two blocks; mean and deviation of five norms in float32.
    const kept = (bytes: number) => 16 * (2 * 3 * 32 * bytes + 5 * 2 * 4);
    expect(workspace({}).unfused).toEqual([0, kept(2), kept(2)]);
    expect(workspace({ precision: 'float32' }).unfused).toEqual([0, kept(4), kept(4)]);
    // One block runs again, and the saved values of the final norm are kept.
    const again = 16 * (3 * 32 * 2 + 3 * 2 * 4);
    expect(workspace({ recompute: 'full' }).unfused).toEqual([0, again, again]);
  });

  it('has both gradients of a tied weight before their sum', () => {
    const weight = 100 * 8;
    expect(workspace({}).added).toEqual([0, 2 * 2 * weight, 2 * 2 * weight]);
    expect(workspace({ globalBatchTokens: 2 * 16 }).added?.[1]).toBe(3 * 2 * weight);
    const untied = gptLike({ n_embd: 8, n_layer: 1, n_head: 4, tie_word_embeddings: false });
    expect(partsOf(untied, {}).added).toBeUndefined();
  });

  it('has no memory for a fused loss, or a float32 copy of its logits', () => {
    expect(workspace({ loss: 'fused' }).loss).toEqual([0, 0, 4 * 16 * 100]);
  });

  it('has the logits of a chunk, as in the Liger kernel, and an accumulated gradient', () => {
    // ⌈48 tokens / ⌈100 / 8⌉⌉ is a power of two already.
    const [chunk, hidden] = [4, 8];
    const changes = { microBatch: 3, loss: 'chunked' } as const;
    const upper = 6 * chunk * 100 + 4 * 100 * hidden;
    expect(workspace(changes).loss).toEqual([0, 2 * chunk * 100, upper]);
    const again = workspace({ ...changes, globalBatchTokens: 2 * 48 }).loss;
    expect(again).toEqual([0, 2 * 100 * (chunk + hidden), upper]);
  });

  it('has a gathered block with ZeRO-3, without the part of the GPU', () => {
    const { gathered = [] } = workspace({ cluster: H100(4), zero: 3 });
    expect(gathered.slice(0, 2)).toEqual([(2 * block * 3) / 4, 2 * 2 * block + 2 * block]);
    expect(workspace({ cluster: H100(4), zero: 1 }).gathered).toBeUndefined();
  });

  it('has no communication buffers on one GPU', () => {
    const { communicators, buckets, context } = workspace({});
    expect([communicators, buckets]).toEqual([undefined, undefined]);
    expect(context).toEqual([0, 500 * 2 ** 20, 1343 * 2 ** 20]);
  });

  it('has three communicators for three kinds of parallelism', () => {
    const { communicators } = workspace({
      cluster: H100(8),
      tensorParallel: 2,
      pipelineParallel: 2,
    });
    // The first includes loaded kernels; each other has 64 channels of 9.19 MiB at most.
    const channels = 64 * (4 * 2 ** 20 + 4_915_200 + 524_288);
    expect(communicators).toEqual([0, 3 * 392 * 2 ** 20, 1536 * 2 ** 20 + 2 * channels]);
  });
});

describe('buckets of gradients', () => {
  const bucketsOf = (model: LanguageModel, changes: Partial<TrainingFitSetting>) =>
    partsOf(model, { cluster: H100(4), ...changes }).buckets;

  it('hold all gradients of a small model', () => {
    expect(bucketsOf(MODEL, {})).toEqual([0, 2 * n, 2 * n]);
    expect(bucketsOf(MODEL, { convention: 'megatron' })).toEqual([0, 4 * n, 4 * n]);
    expect(bucketsOf(MODEL, { zero: 1 })).toEqual([0, 2 * n, 4 * n]);
  });

  it('are two of 25 MiB for GPT-2, or all its gradients in the upper bound', () => {
    const gpt2 = gptLike({ n_embd: 768, n_layer: 12, n_head: 12 });
    expect(bucketsOf(gpt2, {})).toEqual([0, 52_428_800, 2 * 124_439_808]);
  });

  it('are 5e8 values with ZeRO, and 9 times this in the upper bound', () => {
    const large = gptLike({ n_embd: 2560, n_layer: 32, n_head: 32 });
    expect(bucketsOf(large, { zero: 1 })).toEqual([0, 1e9, 9e9]);
  });
});

describe('the backward pass of a block', () => {
  // 16 tokens, 2 bytes: inputs of the attention, of the second norm and of the feed-forward, q, k, v, output; 2 · 32.
  const layers = 16 * 2 * (3 * 8 + 4 * 8 + 2 * 32);
  // 4 heads.
  const scores = 4 * 16 * 16 * 2;
  const gradients = (changes: Partial<TrainingFitSetting>) => workspace(changes).blockGradients;

  it('has two gradients of the scores of plain attention, and the saved softmax', () => {
    const both = [0, layers / 2 + 2 * scores, layers + 2 * scores];
    expect(gradients({ recompute: 'none' })).toEqual(both);
    expect(gradients({ recompute: 'full' })).toEqual(both);
  });

  it('also has the softmax with selective recomputation', () => {
    const all = [0, layers / 2 + 3 * scores, layers + 3 * scores];
    expect(gradients({ recompute: 'selective' })).toEqual(all);
  });

  it('has three score matrices of one block for plain attention, as PyTorch does', () => {
    const squares = (recompute: TrainingFitSetting['recompute']) => {
      const of = (attention: 'plain' | 'fused') => {
        const { stages, workspaceParts } = fitTrainingMemory(
          MODEL,
          fitSetting({ context: 16, recompute, attention }),
        );
        const kept = stages[0]?.activations.parts ?? [];
        const sums = kept.find(({ part }) => part === 'softmaxSums')?.bytes.value ?? 0;
        const live = workspaceParts.find(({ part }) => part === 'blockGradients');
        return (
          Number(stages[0]?.activations.total.value) -
          Number(sums) +
          Number(live?.bytes.upper.value)
        );
      };
      return (of('plain') - of('fused')) / scores;
    };
    expect(squares('selective')).toBe(3);
    // The other block also keeps its softmax.
    expect(squares('none')).toBe(4);
  });

  it('has no score matrices in fused attention', () => {
    for (const recompute of ['none', 'selective', 'full'] as const) {
      expect(gradients({ attention: 'fused', recompute })).toEqual([0, layers / 2, layers]);
    }
  });

  it('has two gradients of the scores with dropout', () => {
    const [, expected = 0] = gradients({ dropout: true, recompute: 'selective' }) ?? [];
    const masks = 16 * 2 * 8;
    // The softmax, the softmax after dropout, and a mask are recomputed.
    expect(expected).toBe((layers + masks) / 2 + 2 * scores + (scores / 2) * 5);
  });
});

describe('the update of the weights', () => {
  /** One token: few activations. */
  const update = (changes: Partial<TrainingFitSetting>) =>
    workspace({ context: 1, ...changes }).update;
  // Per block 128 values and a score for each of 4 heads; norm and head; 100 logits.
  const activations = 2 * 2 * (128 + 4) + 2 * 2 * 8 + 4 * 100;
  // Insides of two GELUs and statistics of five norms; two gradients of the tied weight.
  const both = 2 * 3 * 32 * 2 + 5 * 2 * 4 + 2 * 2 * 800;
  const temporary = 8 * 100 + 120 + 2 * 8 + both;
  const most = 12 * 100 + 240 + 2 * 8 + both;

  it.each([
    ['adamw', 4, 8],
    ['adamw-8bit', 0, 4],
    ['sgd', 0, 8],
    ['sgd-momentum', 0, 8],
  ] as const)(
    'takes, with %s, %d bytes a parameter, and at most %d',
    (optimizer, bytes, largest) => {
      expect(update({ optimizer })).toEqual([
        0,
        Math.max(0, bytes * n - activations - temporary),
        largest * n - activations - most,
      ]);
    },
  );

  it('makes no copy of float32 gradients', () => {
    const upper = (optimizer: Optimizer) => update({ optimizer, convention: 'megatron' })?.[2];
    // The two gradients of the tied weight are also in float32.
    const rest = activations + most + 2 * 2 * 800;
    expect(upper('adamw')).toBe(4 * n - rest);
    expect(upper('sgd')).toBe(4 * n - rest);
    expect(upper('adamw-8bit')).toBe(0);
  });

  it('covers only a part of the weights with ZeRO', () => {
    const [, expected] = update({ cluster: H100(2), zero: 1 }) ?? [];
    expect(expected).toBe((4 * n) / 2 - activations - temporary);
  });

  it('is zero when the backward pass takes more', () => {
    expect(workspace({}).update).toEqual([0, 0, 0]);
  });
});

describe('fragmentation', () => {
  it('depends on temporaries of the backward pass, not on the update', () => {
    const gaps = (context: number, changes: Partial<TrainingFitSetting> = {}) =>
      workspace({ context, ...changes }).fragmentation?.map((bytes) => Math.round(bytes));
    // 528 in two blocks, norm and head, 100 logits; insides of GELUs and norms; temporary logits.
    const short = [528 + 32 + 400 + 424 + 800, 528 + 32 + 400 + 424 + 1200] as const;
    const ofShort = [0, (short[0] * 15) / 85, (short[1] * 33) / 67];
    expect(gaps(1)).toEqual(ofShort.map(Math.round));
    // 128 values of 16 tokens and the scores of two blocks, the inputs of norm and head, and the logits are kept.
    const kept = 2 * (16 * 2 * 128 + 2048) + 16 * 2 * 2 * 8 + 4 * 16 * 100;
    // The loss needs more than the backward pass of a block: half of 3840, or all, and two squares of 2048.
    const expected = kept + 16 * 424 + 8 * 1600;
    const upper = kept + 16 * 424 + 12 * 1600;
    const shares = [0, (expected * 15) / 85, (upper * 33) / 67];
    expect(gaps(16)).toEqual(shares.map(Math.round));
  });
});

describe('the allocator', () => {
  const on = (kind: GpuKind, part: string, changes: Partial<TrainingFitSetting> = {}) => {
    const { gpu, ...cluster } = changes.cluster ?? H100(1);
    return workspace({ ...changes, cluster: { ...cluster, gpu: { ...gpu, kind } } })[part];
  };

  it('rounds up weight, gradient, copy and each part of the state', () => {
    // Per block, norms 4 · 8, biases of 24, 8, 32 and 8, products of 192, 64 and twice 256; 800 and 512, and 2 · 8.
    const sizes = [192, 64, 256, 256, 24, 8, 32, 8, 8, 8, 8, 8].flatMap((size) => [size, size]);
    const tensors = [...sizes, 800, 512, 8, 8];
    const upTo512 = (bytes: number) => 512 * Math.ceil(bytes / 512);
    const rounded = (...bytesOfValue: number[]) =>
      bytesOfValue.flatMap((bytes) => tensors.map((each) => upTo512(bytes * each)));
    const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
    const rounding = (changes: Partial<TrainingFitSetting>) => on('nvidia', 'rounding', changes);
    const expectRounding = (changes: Partial<TrainingFitSetting>, bytes: number[]) => {
      // Sizes of 512 to 4096 leave at most a tenth of a percent at the ends of 2 MiB.
      const [, expected = 0, upper = 0] = rounding(changes) ?? [];
      const exactly = sum(rounded(...bytes)) - n * sum(bytes);
      expect(expected - MIB).toBeGreaterThanOrEqual(exactly);
      expect(expected - MIB).toBeLessThan(exactly * 1.01);
      expect(upper - 2 * MIB).toBeGreaterThanOrEqual(exactly);
      expect(upper - 2 * MIB).toBeLessThan(exactly * 1.01);
    };
    expectRounding({}, [2, 2, 4, 4, 4]);
    expectRounding({ precision: 'float32' }, [4, 4, 4, 4]);
    expectRounding({ optimizer: 'sgd' }, [2, 2, 4]);
    expectRounding({ optimizer: 'adamw-8bit' }, [2, 2, 4, 1, 1, 1 / 64, 1 / 64]);
    expectRounding({ zero: 3, cluster: H100(4), optimizer: 'sgd' }, [2 / 4, 2 / 4, 4 / 4]);
  });

  it('has known overhead only for PyTorch on NVIDIA GPUs', () => {
    for (const part of ['rounding', 'fragmentation']) {
      const [, expected = 0, upper = 0] = on('nvidia', part) ?? [];
      expect(expected).toBeGreaterThan(0);
      expect(on('other', part)).toEqual([0, 0, upper]);
      expect(on('processor', part)).toEqual([0, 0, 0]);
    }
  });

  it('takes tensors from segments of 2 and 20 MiB, and large ones in steps of 2 MiB', () => {
    const { lower, expected, upper } = roundingBytes({ kind: 'nvidia' }, [
      { count: 1, bytes: 0.75 * MIB },
      { count: 3, bytes: 6 * MIB },
      { count: 2, bytes: 11 * MIB },
    ]);
    // Two of the first are in 2 MiB, three of the second in 20 MiB; the third take 12 MiB each.
    const ends = 0.25 * MIB + 2 * MIB;
    expect(lower.value).toBe(0);
    expect(expected.value).toBeCloseTo(ends / 2 + 2 * MIB + 11 * MIB, 6);
    expect(upper.value).toBeCloseTo(ends + 2 * MIB + 22 * MIB, 6);
  });

  it('reserves at most the upper bound for equal tensors', () => {
    /** Like the allocator: from a segment with room, or a new one. */
    const reserved = (count: number, bytes: number) => {
      const size = Math.ceil(bytes / 512) * 512;
      if (size >= 10 * MIB) return count * Math.ceil(size / (2 * MIB)) * 2 * MIB;
      const segment = size <= MIB ? 2 * MIB : 20 * MIB;
      return Math.ceil(count / Math.floor(segment / size)) * segment;
    };
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 24 * MIB }),
        (count, bytes) => {
          const { upper } = roundingBytes({ kind: 'nvidia' }, [{ count, bytes }]);
          expect(reserved(count, bytes) - count * bytes).toBeLessThanOrEqual(upper.value + 1);
        },
      ),
    );
  });
});

describe('memory that is never held at once', () => {
  const gradients = 2 * n;
  const kept = (changes: Partial<TrainingFitSetting>) => {
    const [stage] = fitTrainingMemory(MODEL, fitSetting({ context: 16, ...changes })).stages;
    return Number(stage?.activations.total.value);
  };

  const apart = (changes: Partial<TrainingFitSetting>) => {
    const bounds = fitTrainingMemory(MODEL, fitSetting({ context: 16, ...changes })).apart;
    return bounds ? [bounds.lower.value, bounds.expected.value, bounds.upper.value] : undefined;
  };

  // Half of the values of a block, or all, and two squares of scores.
  const block = [3840 / 2 + 2 * 2048, 3840 + 2 * 2048] as const;
  const tied = 2 * 100 * 8;

  it('consists of gradients, a block and a tied weight when the loss is the peak', () => {
    expect(gradients).toBeLessThan(kept({}));
    expect(apart({})).toEqual([
      -gradients,
      -(gradients + block[0] + 2 * tied),
      // Gradients can exist from the start.
      -(block[1] + 2 * tied),
    ]);
    expect(apart({ globalBatchTokens: 2 * 16 })).toEqual([
      0,
      -(block[0] + 3 * tied),
      -(block[1] + 3 * tied),
    ]);
  });

  it('is the recomputed block, or the logits', () => {
    const changes = { recompute: 'full', globalBatchTokens: 2 * 16 } as const;
    const logits = 4 * 16 * 100;
    expect(kept(changes) - kept({ ...changes, loss: 'chunked' })).toBe(logits);
    // A fused loss keeps the logits in the type of the training.
    expect(kept(changes) - kept({ ...changes, loss: 'fused' })).toBe(logits / 2);
    const again = 3840 + 2048;
    expect(apart(changes)).toEqual([
      -Math.min(again, logits),
      -(again + block[0] + 3 * tied),
      -(again + block[1] + 3 * tied),
    ]);
  });

  it('lowers only the lower bound of the total', () => {
    const { total, stages } = fitTrainingMemory(MODEL, fitSetting({ context: 16 }));
    const exactly = Number(stages[0]?.exactBytes.value);
    expect(total.lower.value).toBe(exactly - gradients);
    expect(total.expected.value).toBeGreaterThan(exactly);
  });
});
