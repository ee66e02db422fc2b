import { describe, expect, it } from 'vitest';
import {
  accumulationChoices,
  partialAccumulation,
  runSizeOf,
  worthOfRepeated,
} from '../../../src/estimate/training/run-size.js';
import {
  highestRate,
  learningRateOf,
  publishedRate,
} from '../../../src/estimate/training/schedules.js';
import { trainingSettings } from '../../../src/estimate/training/training-settings.js';
import {
  assumedUnderflow,
  FP16_LARGEST,
  FP16_SMALLEST,
  MagnitudeCount,
} from '../../../src/estimate/training/underflow.js';

const base = { parameters: 124e6, context: 1024 };

describe('the size of a run', () => {
  // nanoGPT, train.py: 12 × 1024 × 40 = 491,520 tokens per iteration, 600,000 iterations.
  it('is 491,520 tokens per step and 294.9B tokens for nanoGPT', () => {
    const values = { batch_size: 12, gradient_accumulation_steps: 40, max_steps: 600_000 };
    const size = runSizeOf(values, base);
    expect(size).toMatchObject({
      tokensPerStep: 491_520,
      tokens: 294_912_000_000,
      microSteps: 24_000_000,
      sequencesPerStep: 480,
      length: 'steps',
    });
    expect(size.tokensPerParameter).toBeCloseTo(2378.3, 1);
  });

  it.each([
    [{ total_tokens: 1e6 }, 'tokens', Math.ceil(1e6 / 8192)],
    [{ num_epochs: 3, dataset_tokens: 1e6 }, 'epochs', Math.ceil(3e6 / 8192)],
    // 20 tokens per parameter.
    [{}, 'default', Math.ceil((20 * 124e6) / 8192)],
    [{ num_epochs: 3 }, 'default', Math.ceil((20 * 124e6) / 8192)],
  ] as const)('follows, for %j, from %s', (values, length, steps) => {
    const size = runSizeOf({ batch_size: 8, ...values }, base);
    expect([size.length, size.steps]).toEqual([length, steps]);
  });

  it('includes the GPUs in a step, but not in micro-steps', () => {
    const values = { batch_size: 4, gradient_accumulation_steps: 2, max_steps: 100, gpus: 8 };
    const size = runSizeOf(values, base);
    expect(size.sequencesPerStep).toBe(64);
    expect(size.microSteps).toBe(200);
    expect(runSizeOf(values, { ...base, gpus: 2 }).sequencesPerStep).toBe(16);
  });

  it('can have leftover micro-steps', () => {
    // 101 sequences in micro-batches of 4: 26 micro-steps, with 2 in the last group of 8.
    const values = {
      batch_size: 4,
      gradient_accumulation_steps: 8,
      num_epochs: 1,
      dataset_tokens: 101 * 1024 + 5,
    };
    expect(partialAccumulation(runSizeOf(values, base))).toEqual({ microSteps: 26, last: 2 });
    const whole = { ...values, dataset_tokens: 128 * 1024 };
    expect(partialAccumulation(runSizeOf(whole, base))).toBeUndefined();
  });

  it('has other divisions of a step with the same sequences', () => {
    const values = { batch_size: 8, gradient_accumulation_steps: 4, gpus: 2, max_steps: 1 };
    const choices = accumulationChoices(runSizeOf(values, base));
    expect(choices.map(({ microBatch }) => microBatch)).toEqual([1, 2, 4, 8, 16, 32]);
    for (const { microBatch, accumulation, gpus } of choices) {
      expect(microBatch * accumulation * gpus).toBe(64);
    }
  });

  it('counts repeated tokens by their worth in the paper', () => {
    expect(worthOfRepeated(1e9, 0.5)).toBe(0.5e9);
    expect(worthOfRepeated(1e9, 1)).toBe(1e9);
    // arXiv 2305.16264: 4 epochs are nearly as good as new data, and the value ends at 1 + R*.
    expect(worthOfRepeated(1e9, 4) / 4e9).toBeGreaterThan(0.92);
    expect(worthOfRepeated(1e9, 1000)).toBeCloseTo(16.39e9, -7);
  });
});

describe('the learning rate of a run', () => {
  it('takes warm-up and decay from shares of the steps', () => {
    const values = {
      learning_rate: 1e-3,
      lr_scheduler: 'wsd',
      warmup_ratio: 0.015,
      decay_ratio: 0.2,
    };
    const { setting } = learningRateOf(values, 1000, 768);
    expect([setting.warmup, setting.decay]).toEqual([15, 200]);
  });

  it('lists settings that the schedule does not read', () => {
    const values = { learning_rate: 1e-3, lr_scheduler: 'minimind', warmup_steps: 10, power: 2 };
    expect(learningRateOf(values, 1000, 768).unread).toEqual(['warmup_steps', 'power']);
  });

  it('ends at a floor with cosine and linear', () => {
    const values = { learning_rate: 1e-3, min_lr: 1e-4, warmup_steps: 1 };
    expect(learningRateOf({ ...values, lr_scheduler: 'cosine' }, 9, 768).schedule).toBe(
      'cosine_with_min_lr',
    );
    expect(learningRateOf({ ...values, lr_scheduler: 'linear' }, 9, 768).schedule).toBe(
      'polynomial',
    );
  });

  it('has a published value for each width, below the limit', () => {
    for (const width of [64, 512, 768, 4096, 12_288]) {
      expect(publishedRate(width).rate).toBeLessThan(highestRate(width));
    }
    expect(publishedRate(4096).rate).toBe(1.2e-4);
  });
});

describe('training settings', () => {
  it('can have the names of other projects', () => {
    const { values, placeOf } = trainingSettings({
      training: { max_iters: 10, grad_clip: 1, block_size: 64 },
      data: { tokens: 5, anything: {} },
    });
    expect(values).toEqual({
      max_steps: 10,
      max_grad_norm: 1,
      max_seq_length: 64,
      dataset_tokens: 5,
    });
    expect(placeOf('max_grad_norm')).toBe('training.grad_clip');
    expect(placeOf('dataset_tokens')).toBe('data.tokens');
  });

  it('are replaced by flags, including others of the same meaning', () => {
    const document = { training: { max_steps: 10, warmup_ratio: 0.1 } };
    const { values, placeOf, isGiven } = trainingSettings(document, {
      total_tokens: { setting: 'tokens', value: 5 },
      warmup_steps: { setting: 'warmup', value: 3 },
    });
    expect(values).toEqual({ total_tokens: 5, warmup_steps: 3 });
    expect([placeOf('warmup_steps'), isGiven('warmup_steps')]).toEqual(['--warmup', true]);
  });
});

describe('the underflow of gradients in fp16', () => {
  it('is counted: values below the smallest, rounded to 0, or above the largest', () => {
    const count = new MagnitudeCount([1, 1024]);
    const values = [0, FP16_SMALLEST / 4, FP16_SMALLEST / 2, -FP16_SMALLEST * 0.75, FP16_SMALLEST];
    count.add(Float64Array.from([...values, 1e-3, 100, FP16_LARGEST, Number.NaN, -1e9]));
    expect([count.values, count.zeros, count.notFinite, count.largest]).toEqual([8, 1, 1, 1e9]);
    const [plain, scaled] = count.shares();
    expect(plain).toEqual({
      scale: 1,
      below: 3 / 8,
      zeroed: 2 / 8,
      imprecise: 4 / 8,
      above: 1 / 8,
    });
    expect(scaled).toMatchObject({ below: 0, zeroed: 0, above: 3 / 8 });
  });

  it('is that of a normal distribution without a measurement', () => {
    // P(|x| < σ) = 68.27%, P(|x| < 3σ) = 99.73%.
    const parameters = 1e6;
    const normOf = (deviations: number) => (FP16_SMALLEST / deviations) * Math.sqrt(parameters);
    expect(assumedUnderflow(parameters, normOf(1), 1).below).toBeCloseTo(0.682689, 6);
    expect(assumedUnderflow(parameters, normOf(3), 1).below).toBeCloseTo(0.9973, 4);
    expect(assumedUnderflow(parameters, normOf(1), 1024).below).toBeLessThan(1e-3);
  });
});
