import { describe, expect, it } from 'vitest';
import { countParameters } from '../../src/budget/parameters.js';
import { fitTraining } from '../../src/fit/fit-training.js';
import { mfuOf, publishedFlopsPerToken } from '../../src/fit/step-time.js';
import type { TrainingFitSetting } from '../../src/fit/training-setting.js';
import type { Gpu } from '../../src/hardware/gpu.js';
import { fitSetting, gptLike } from './settings.js';

describe('published', () => {
  it('PaLM 540B: 46.2 % of the peak (arXiv 2204.02311, table 3)', () => {
    const flopsPerToken = publishedFlopsPerToken({
      parameters: 540.35e9,
      layers: 118,
      heads: 48,
      headDim: 256,
      context: 2048,
    }).value;
    const mfu = mfuOf({ tokensPerSecond: 238.3e3, flopsPerToken, gpus: 6144, peakFlops: 275e12 });
    expect((100 * mfu.value).toFixed(1)).toBe('46.2');
  });

  it('GPT-3: 174.6e9 parameters and 3.14e23 FLOP of 300e9 tokens (arXiv 2005.14165, table D.1)', () => {
    const model = gptLike({ n_positions: 2048, n_embd: 12_288, n_layer: 96, n_head: 96 });
    const { parameters } = countParameters(model);
    expect((parameters / 1e9).toFixed(1)).toBe('174.6');
    const noAttention = { layers: 0, heads: 0, headDim: 0, context: 0 };
    const { value } = publishedFlopsPerToken({ parameters, ...noAttention });
    expect((value * 300e9).toExponential(2)).toBe('3.14e+23');
  });
});

/** Round numbers: 1 kB/s of memory, 1 MFLOP/s, links of 10 B/s among 4 and 1 B/s among all. */
const SLOW: Gpu = {
  name: 'slow',
  title: 'slow',
  kind: 'other',
  memoryBytes: 80e9,
  bandwidth: 1e3,
  peakFlops: { bf16: 1e6 },
  links: [{ name: 'near', bandwidth: 10, gpus: 4 }],
  source: 'made up',
};
const FAR = { name: 'far', bandwidth: 1, gpus: Number.POSITIVE_INFINITY };

const MODEL = gptLike({ vocab_size: 10, n_positions: 8, n_embd: 4, n_layer: 2, n_head: 2 });
// Per block 12 · 16 weights in products; the head has 40; scores and sums 4 · 8 · 8 · 4 per block.
const forward = 2 * 8 * (2 * 192 + 40) + 2 * (4 * 8 * 8 * 4);

const stepOf = ({
  gpus = 1,
  gpu = SLOW,
  ...wish
}: Partial<TrainingFitSetting> & { gpus?: number; gpu?: Gpu }) => {
  const cluster = { gpu, gpus, network: FAR };
  const { step, time } = fitTraining(MODEL, fitSetting({ context: 8, ...wish, cluster }));
  const seconds = Object.fromEntries(
    (step?.limits ?? []).map(({ limit, seconds: { value } }) => [limit, value]),
  );
  return { step, time, seconds };
};

describe('a step', () => {
  it('computes three forward passes, four of the blocks when all are recomputed', () => {
    expect(stepOf({}).seconds.compute).toBeCloseTo((3 * forward) / 1e6, 12);
    const full = 2 * 8 * 2 * 192 + 2 * (4 * 8 * 8 * 4);
    expect(stepOf({ recompute: 'full' }).seconds.compute).toBeCloseTo(
      (4 * full + 3 * 2 * 8 * 40) / 1e6,
      12,
    );
  });

  it('fills and empties a pipeline', () => {
    const block = 2 * 8 * 192 + 4 * 8 * 8 * 4;
    const [first, last] = [3 * block, 3 * (block + 2 * 8 * 40)];
    const { seconds } = stepOf({ gpus: 2, pipelineParallel: 2, globalBatchTokens: 4 * 8 });
    expect(seconds.compute).toBeCloseTo((3 * last + first + last) / 1e6, 12);
  });

  it('exchanges gradients and weights of replicas', () => {
    const n = countParameters(MODEL).parameters;
    const communication = (zero: 0 | 1 | 2 | 3) =>
      stepOf({ gpus: 8, zero, globalBatchTokens: 3 * 8 * 8 }).seconds.communication;
    // 2 bytes of each, seven of eight parts, over the far link, which four of a machine use at a time; three
    // micro-batches.
    expect(communication(0)).toBeCloseTo((2 * 2 * n * 7) / 8 / 4, 6);
    expect(communication(1)).toBeCloseTo((2 * 2 * n * 7) / 8 / 4, 6);
    expect(communication(2)).toBeCloseTo((2 * (3 + 1) * n * 7) / 8 / 4, 6);
    expect(communication(3)).toBeCloseTo((2 * 9 * n * 7) / 8 / 4, 6);
  });

  it('takes turns on the network, however many ways each exchange has to it', () => {
    const setting = fitSetting({
      context: 8,
      pipelineParallel: 2,
      cluster: { gpu: SLOW, gpus: 16, network: FAR },
    });
    const { stages, step } = fitTraining(MODEL, setting);
    const largest = Math.max(...stages.map(({ parameters }) => Number(parameters.value)));
    // 2 + 2 bytes of each parameter to seven of eight replicas by four ways; two micro-batches of the residual stream,
    // 8 tokens of 4 values in 2 bytes, to the next stage by one.
    const communication = step?.limits.find(({ limit }) => limit === 'communication');
    expect(communication?.seconds.value).toBeCloseTo((4 * largest * 7) / 8 / 4 + 2 * 8 * 4 * 2, 6);
  });

  it('exchanges activations of GPUs that share layers, over the nearer link', () => {
    // 8bsh of each block, 2bsh of the embedding and of the head, half of it, 2 bytes, at 10 bytes a second.
    const { seconds } = stepOf({ gpus: 2, tensorParallel: 2 });
    expect(seconds.communication).toBeCloseTo((8 * 4 * (2 * 8 + 2 + 2) * 2) / 2 / 10, 6);
  });

  it('is expected at the utilisation that is stated, and never below the best case', () => {
    const fast: Gpu = { ...SLOW, bandwidth: 1e30 };
    const { step, time } = stepOf({ gpu: fast, mfu: 0.5, trainTokens: 81 });
    expect(step?.limitedBy).toBe('compute');
    expect(step?.seconds.expected.value).toBeCloseTo((3 * forward) / 0.5e6, 12);
    expect(step?.seconds.upper.value).toBeCloseTo((3 * forward) / 0.213e6, 12);
    expect(time?.steps.value).toBe(11);
    expect(time?.totalSeconds.expected.value).toBeCloseTo((11 * 3 * forward) / 0.5e6, 10);
    const { step: bound } = stepOf({});
    expect(bound?.limitedBy).toBe('memory');
    expect(bound?.seconds.expected.value).toBe(bound?.roofline.value);
  });

  it('gives back the utilisation that its throughput means', () => {
    const fast: Gpu = { ...SLOW, bandwidth: 1e30 };
    const { step } = stepOf({ gpu: fast, mfu: 0.37 });
    const mfu = mfuOf({
      tokensPerSecond: step?.tokensPerSecond.value ?? 0,
      flopsPerToken: (3 * forward) / 8,
      gpus: 1,
      peakFlops: 1e6,
    });
    expect(mfu.value).toBeCloseTo(0.37, 10);
  });
});
