import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linkFor } from '../../../src/estimate/fit/parallelism/collectives.js';
import { stepTimeOf, trainingTimeOf } from '../../../src/estimate/fit/training/step-time.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import type { Gpu } from '../../../src/estimate/hardware/gpu.js';
import { gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import { loadFamily } from '../../../src/model/architecture/families.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { fitSetting, gptLike } from './settings.js';

interface Throughput {
  readonly tokensPerSecond: number;
  readonly flopsPerToken: number;
  readonly gpus: number;
  readonly peakFlops: number;
}

/** Share of the peak that a throughput reaches (PaLM, arXiv 2204.02311, appendix B). */
const utilisationOf = ({ tokensPerSecond, flopsPerToken, gpus, peakFlops }: Throughput) =>
  (tokensPerSecond * flopsPerToken) / (gpus * peakFlops);

/** FLOPs of a token in training, by the same appendix. */
const publishedFlops = (parameters: number, layers = 0, heads = 0, headDim = 0, context = 0) =>
  6 * parameters + 12 * layers * heads * headDim * context;

describe('the published figures match for', () => {
  it('PaLM 540B: 46.2 % of the peak (arXiv 2204.02311, table 3)', () => {
    const flopsPerToken = publishedFlops(540.35e9, 118, 48, 256, 2048);
    const mfu = utilisationOf({
      tokensPerSecond: 238.3e3,
      flopsPerToken,
      gpus: 6144,
      peakFlops: 275e12,
    });
    expect((100 * mfu).toFixed(1)).toBe('46.2');
  });

  it('GPT-3: 174.6e9 parameters and 3.14e23 FLOP for 300e9 tokens (arXiv 2005.14165, table D.1)', () => {
    const model = gptLike({ n_positions: 2048, n_embd: 12_288, n_layer: 96, n_head: 96 });
    const { parameters } = countParameters(model);
    expect((parameters / 1e9).toFixed(1)).toBe('174.6');
    expect((publishedFlops(parameters) * 300e9).toExponential(2)).toBe('3.14e+23');
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

/** Two norms, c_attn, the attention, c_proj, c_fc, GELU, c_proj. */
const LAYERS_OF_BLOCK = 8;

const stepOf = ({
  gpus = 1,
  gpu = SLOW,
  ...changes
}: Partial<TrainingFitSetting> & { gpus?: number; gpu?: Gpu }) => {
  const cluster = { gpu, gpus, network: FAR };
  const setting = fitSetting({ context: 8, ...changes, cluster });
  const step = stepTimeOf(MODEL, setting, fitTrainingMemory(MODEL, setting).stages);
  const time = trainingTimeOf(step, changes.trainTokens ?? 1);
  const seconds = Object.fromEntries(
    step.limits.map(({ limit, seconds: { lower } }) => [limit, lower.value]),
  );
  return { step, time, seconds };
};

describe('links between GPUs', () => {
  const joining = (name: string, gpus: number) =>
    linkFor({ cluster: { gpu: gpuNamed(name), gpus, network: null } }, gpus)?.name;

  it('are a link for this number of GPUs, or a known network', () => {
    expect(joining('h100-80gb', 8)).toBe('NVLink 4');
    expect(joining('h100-80gb', 64)).toBeUndefined();
    expect(joining('gb200', 72)).toBe('NVLink 5');
    expect(joining('gb200', 576)).toBeUndefined();
    expect(
      linkFor({ cluster: clusterNamed('dgx-h100', 64, { gpus: [], machines: [] }) }, 64),
    ).toEqual(
      // 8 ways of 400 Gbit/s, or as fast as the links within.
      { name: 'InfiniBand NDR', bandwidth: 8 * 50e9, gpus: Number.POSITIVE_INFINITY, ways: 8 },
    );
  });

  it('are counted within a machine, but not where unknown', () => {
    const of = (gpus: number, tensorParallel: number) => {
      const cluster = { gpu: gpuNamed('h100-80gb'), gpus, network: null };
      const setting = fitSetting({ context: 8, tensorParallel, cluster });
      const step = stepTimeOf(MODEL, setting, fitTrainingMemory(MODEL, setting).stages);
      const communication = step.limits.find(({ limit }) => limit === 'communication');
      return { ...communication?.seconds.lower, withoutLink: step.withoutLink };
    };
    const reason =
      'no link between more than 8 of h100-80gb is known: name a machine, as in --gpu dgx-h100, or describe one with ' +
      'its network in a file for --hardware';
    expect(of(8, 1).withoutLink).toBeNull();
    expect(of(64, 1)).toMatchObject({ value: 0, withoutLink: reason });
    expect(of(64, 1).source).toContain(`not counted: ${reason}`);
    expect(of(64, 2).value).toBe(of(2, 2).value);
    expect(of(64, 2).withoutLink).toBe(reason);
  });
});

describe('a step', () => {
  it('computes three forward passes, four of the blocks when all are recomputed', () => {
    expect(stepOf({}).seconds.compute).toBeCloseTo((3 * forward) / 1e6, 12);
    const full = 2 * 8 * 2 * 192 + 2 * (4 * 8 * 8 * 4);
    expect(stepOf({ recompute: 'full' }).seconds.compute).toBeCloseTo(
      (4 * full + 3 * 2 * 8 * 40) / 1e6,
      12,
    );
  });

  it('fills and drains a pipeline, while no stage waits in the best case', () => {
    const block = 2 * 8 * 192 + 4 * 8 * 8 * 4;
    const [first, last] = [3 * block, 3 * (block + 2 * 8 * 40)];
    const { step, seconds } = stepOf({
      gpus: 2,
      pipelineParallel: 2,
      globalBatchTokens: 4 * 8,
      mfu: 0.4,
    });
    expect(seconds.compute).toBeCloseTo((4 * last) / 1e6, 12);
    const { upper } = step.limits.find(({ limit }) => limit === 'compute')?.seconds ?? {};
    const atPeak = Number(upper?.value) * Number(upper?.inputs.utilisation);
    expect(atPeak).toBeCloseTo((3 * last + first + last) / 1e6, 12);
  });

  it('computes undivided parts on each GPU, for its tokens only with sequence parallelism', async () => {
    const { build, schema } = await loadFamily('qwen3_moe');
    const model = build(
      schema.parse({
        model: { family: 'qwen3_moe', num_hidden_layers: 2, hidden_size: 64, num_experts: 8 },
      }),
    );
    const flops = (gpus: number, sequenceParallel: boolean) => {
      const cluster = { gpu: SLOW, gpus, network: FAR };
      const changes = { context: 8, sequenceParallel, tensorParallel: gpus, cluster };
      const setting = fitSetting(changes);
      const { limits } = stepTimeOf(model, setting, fitTrainingMemory(model, setting).stages);
      return 1e6 * (limits.find(({ limit }) => limit === 'compute')?.seconds.lower.value ?? 0);
    };
    const all = flops(1, false);
    // Three times 2 FLOP of 8 tokens for each weight of two routers.
    const routers = 3 * 2 * 8 * (2 * 8 * 64);
    expect(flops(2, false)).toBeCloseTo((all - routers) / 2 + routers, 3);
    expect(flops(2, true)).toBeCloseTo(all / 2, 3);
  });

  it('communicates gradients and weights of replicas', () => {
    const n = countParameters(MODEL).parameters;
    const communication = (zero: 0 | 1 | 2 | 3) =>
      stepOf({ gpus: 8, zero, globalBatchTokens: 3 * 8 * 8 }).seconds.communication;
    // 2 bytes of each, seven of eight parts, over the far link, which four GPUs of a machine use at a time; three
    // micro-batches.
    expect(communication(0)).toBeCloseTo((2 * 2 * n * 7) / 8 / 4, 6);
    expect(communication(1)).toBeCloseTo((2 * 2 * n * 7) / 8 / 4, 6);
    expect(communication(2)).toBeCloseTo((2 * (3 + 1) * n * 7) / 8 / 4, 6);
    expect(communication(3)).toBeCloseTo((2 * 9 * n * 7) / 8 / 4, 6);
  });

  it('shares the network between collectives, at any number of links', () => {
    const setting = fitSetting({
      context: 8,
      pipelineParallel: 2,
      cluster: { gpu: SLOW, gpus: 16, network: FAR },
    });
    const { stages } = fitTrainingMemory(MODEL, setting);
    const step = stepTimeOf(MODEL, setting, stages);
    const largest = Math.max(...stages.map(({ parameters }) => Number(parameters.value)));
    // 2 + 2 bytes of each parameter to seven of eight replicas by four ways; two micro-batches of the residual stream,
    // 8 tokens of 4 values in 2 bytes, to the next stage by one.
    const communication = step.limits.find(({ limit }) => limit === 'communication');
    expect(communication?.seconds.lower.value).toBeCloseTo(
      (4 * largest * 7) / 8 / 4 + 2 * 8 * 4 * 2,
      6,
    );
  });

  it('communicates activations of tensor parallelism over the faster link', () => {
    // 8bsh of each block, 2bsh of the embedding and of the head, half of it, 2 bytes, at 10 bytes a second.
    const { seconds } = stepOf({ gpus: 2, tensorParallel: 2 });
    expect(seconds.communication).toBeCloseTo((8 * 4 * (2 * 8 + 2 + 2) * 2) / 2 / 10, 6);
  });

  it('is estimated at the assumed utilisation, and never below the best case', () => {
    const fast: Gpu = { ...SLOW, bandwidth: 1e30 };
    const { step, time } = stepOf({ gpu: fast, mfu: 0.5, trainTokens: 81 });
    expect(step.limitedBy).toBe('compute');
    expect(step.seconds.expected.value).toBeCloseTo((3 * forward) / 0.5e6, 12);
    expect(step.seconds.upper.value).toBeCloseTo((3 * forward) / 0.213e6, 12);
    expect(time.steps.value).toBe(11);
    expect(time.totalSeconds.expected.value).toBeCloseTo((11 * 3 * forward) / 0.5e6, 10);
    const { step: bound } = stepOf({});
    expect(bound.limitedBy).toBe('memory');
    expect(bound.decidedBy).toBe('memory');
    // The median of published runs on HBM; three microseconds for a launch are negligible.
    expect(bound.seconds.expected.value).toBeCloseTo(bound.roofline.value / 0.72, 2);
  });

  it('of a tiny model consists of kernel launches: one per layer forward, two backward, one per weight', () => {
    const instant: Gpu = { ...SLOW, bandwidth: 1e30, peakFlops: { bf16: 1e30 } };
    const { step } = stepOf({ gpu: instant, globalBatchTokens: 5 * 8 });
    // Embedding, positions, final norm and head, and the blocks.
    const layers = 4 + 2 * LAYERS_OF_BLOCK;
    // Token and position embeddings, final norm 2; a block: two of each of its norms and products.
    const tensors = 4 + 2 * 12;
    const launches = 5 * 3 * layers + tensors;
    expect(step.seconds.expected.value).toBeCloseTo(launches * 3e-6, 12);
    expect(step.seconds.upper.value).toBeCloseTo(launches * 84e-6, 12);
    expect(step.decidedBy).toBe('memory');
    const full = stepOf({ gpu: instant, globalBatchTokens: 5 * 8, recompute: 'full' }).step;
    const again = 5 * 2 * LAYERS_OF_BLOCK;
    expect(full.seconds.upper.value).toBeCloseTo((launches + again) * 84e-6, 12);
  });

  it('waits for each all-reduce of tensor parallelism', () => {
    const gpu: Gpu = {
      ...SLOW,
      bandwidth: 1e30,
      peakFlops: { bf16: 1e30 },
      links: [{ name: 'near', bandwidth: 1e30, gpus: 4 }],
    };
    const { step } = stepOf({ gpu, gpus: 2, tensorParallel: 2 });
    const communication = step.limits.find(({ limit }) => limit === 'communication');
    // Two in each block forwards and two backwards, that of the embedding, and that of the head's input.
    const waits = 2 * 4 + 2;
    expect(communication?.seconds.lower.value).toBeCloseTo(0, 12);
    expect(communication?.seconds.expected.value).toBeCloseTo(waits * (6.6e-6 + 1.2e-6), 12);
    expect(communication?.seconds.upper.value).toBeCloseTo(waits * (14e-6 + 3.8e-6), 12);
  });

  it('waits for replicas in a tree for an all-reduce, and in a ring for the collectives of ZeRO', () => {
    const gpu: Gpu = {
      ...SLOW,
      bandwidth: 1e30,
      peakFlops: { bf16: 1e30 },
      links: [{ name: 'near', bandwidth: 1e30, gpus: 64 }],
    };
    const waits = (zero: 0 | 1 | 2 | 3) =>
      stepOf({ gpu, gpus: 64, zero, globalBatchTokens: 3 * 64 * 8 }).step.limits.find(
        ({ limit }) => limit === 'communication',
      )?.seconds.expected.value;
    // Two blocks and the layers around them. A hop of 1.2 µs is two steps; a ring of 64 has 63 of them.
    const [tree, ring] = [6.6e-6 + 6 * 1.2e-6, 6.6e-6 + 63 * 0.6e-6];
    expect(waits(0)).toBeCloseTo(3 * tree, 12);
    expect(waits(1)).toBeCloseTo(3 * 2 * ring, 12);
    expect(waits(2)).toBeCloseTo(3 * 4 * ring, 12);
    expect(waits(3)).toBeCloseTo(3 * 9 * ring, 12);
  });

  it('reports the lower utilisation when other work takes longer than assumed', () => {
    const { step } = stepOf({});
    const seconds = step.seconds.expected.value;
    expect(step.mfu.value).toBeCloseTo((3 * forward) / (1e6 * seconds), 12);
    expect(step.mfu.value).toBeLessThan(step.assumedMfu.value);
    const { step: usual } = stepOf({ gpu: { ...SLOW, bandwidth: 1e30 } });
    expect(usual.decidedBy).toBe('utilisation');
    expect(usual.mfu.value).toBeCloseTo(usual.assumedMfu.value, 12);
  });

  it('has ordered bounds for all GPUs and all kinds of parallelism', () => {
    const powers = (least: number, most: number) =>
      fc.integer({ min: least, max: most }).map((power) => 10 ** power);
    const settings = fc.record({
      gpus: fc.constantFrom(1, 2, 4, 8, 64),
      tensorParallel: fc.constantFrom(1, 2),
      pipelineParallel: fc.constantFrom(1, 2),
      zero: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
      recompute: fc.constantFrom('none' as const, 'selective' as const, 'full' as const),
      attention: fc.constantFrom('plain' as const, 'fused' as const),
      loss: fc.constantFrom('full' as const, 'chunked' as const),
      microBatch: fc.constantFrom(1, 7, 1000),
      globalBatchTokens: fc.constantFrom(undefined, 8, 4000),
      mfu: fc.constantFrom(undefined, 0.01, 0.4, 1),
      gpu: fc.record({ bandwidth: powers(0, 15), peak: powers(0, 18), link: powers(0, 15) }),
    });
    fc.assert(
      fc.property(settings, ({ gpu: { bandwidth, peak, link }, gpus, ...changes }) => {
        const least = changes.tensorParallel * changes.pipelineParallel;
        const gpu: Gpu = {
          ...SLOW,
          bandwidth,
          peakFlops: { bf16: peak },
          links: [{ name: 'near', bandwidth: link, gpus: 4 }],
        };
        const { step } = stepOf({ ...changes, gpu, gpus: Math.max(gpus, least) });
        for (const { lower, expected, upper } of [
          step.seconds,
          ...step.limits.map(({ seconds }) => seconds),
        ]) {
          expect(lower.value).toBeGreaterThanOrEqual(0);
          expect(expected.value).toBeGreaterThanOrEqual(lower.value);
          expect(upper.value).toBeGreaterThanOrEqual(expected.value);
        }
        expect(step.mfu.value).toBeLessThanOrEqual(step.assumedMfu.value * (1 + 1e-9));
        expect(step.decidedBy === 'utilisation').toBe(
          step.mfu.value >= step.assumedMfu.value * (1 - 1e-12),
        );
      }),
      { numRuns: 100 },
    );
  });

  it('has the utilisation of its throughput', () => {
    const fast: Gpu = { ...SLOW, bandwidth: 1e30 };
    const { step } = stepOf({ gpu: fast, mfu: 0.37 });
    const mfu = utilisationOf({
      tokensPerSecond: step.tokensPerSecond.value,
      flopsPerToken: (3 * forward) / 8,
      gpus: 1,
      peakFlops: 1e6,
    });
    expect(mfu).toBeCloseTo(0.37, 10);
  });
});
