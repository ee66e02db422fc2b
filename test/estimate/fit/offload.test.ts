import { describe, expect, it } from 'vitest';
import { hostSeconds, hostStateBytes } from '../../../src/estimate/fit/training/offload.js';
import { replicatedState } from '../../../src/estimate/fit/training/training-memory.js';
import type {
  TrainingFitSetting,
  TrainingOffload,
} from '../../../src/estimate/fit/training/training-setting.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import { systemMemory } from '../../../src/estimate/hardware/system-memory.js';

const GIB = 2 ** 30;
const MIXED = { precision: 'mixed', optimizer: 'adamw' } as const;

const offloadOf = (part: TrainingOffload['part'], speed?: string): TrainingOffload => ({
  part,
  memory: systemMemory(null, speed),
});

/** t5-3b as DeepSpeed counts it: 2851M parameters, the largest layer with 32M. */
const T5_3B = [{ elements: 32e6, count: 89 }, { elements: 3e6 }];
/** t5-large and t5-small. */
const T5_LARGE = [{ elements: 737.67e6 }];
const T5_SMALL = [{ elements: 60.5e6 }];

/**
 * DeepSpeed, docs/code-docs/source/memory.rst (commit 0cca539), and the same estimators on t5-small (a post of
 * 2023-08 at blog.csdn.net/u012327567). Of a GPU, without the largest layer; of the system memory, with 1.5 times for
 * buffers. GB there are GiB.
 */
describe('the memory of a training with offload is that of DeepSpeed', () => {
  it.each([
    ['t5-3b, ZeRO-2, optimizer, 8 GPUs', T5_3B, 2, 8, 'optimizer', 5.31],
    ['t5-3b, ZeRO-3, optimizer, 8 GPUs', T5_3B, 3, 8, 'optimizer', 0.78 - 0.12],
    ['t5-3b, ZeRO-3, both, 8 GPUs', T5_3B, 3, 8, 'parameters', 0],
    ['t5-large, ZeRO-3, optimizer, 4 GPUs', T5_LARGE, 3, 4, 'optimizer', (477 - 125) / 1024],
    ['t5-small, ZeRO-3, optimizer', T5_SMALL, 3, 1, 'optimizer', 0.17 - 0.06],
  ] as const)('on a GPU: %s', (_, trained, zero, shards, part, gibibytes) => {
    const { weights, optimizer } = replicatedState(trained, {
      ...MIXED,
      ...{ zero, shards, convention: 'zero', offload: offloadOf(part) },
    });
    expect(Number(weights.value) / GIB).toBeCloseTo(gibibytes, 2);
    expect(Number(optimizer.value)).toBe(0);
  });

  it.each([
    ['t5-3b, ZeRO-3, both', T5_3B, 'parameters', 71.69],
    ['t5-3b, ZeRO-3, optimizer', T5_3B, 'optimizer', 63.72],
    ['t5-small, both', T5_SMALL, 'parameters', 1.52],
    ['t5-small, optimizer', T5_SMALL, 'optimizer', 1.35],
  ] as const)('in system memory: %s', (_, trained, part, gibibytes) => {
    const { lower, expected, upper } = hostStateBytes(trained, MIXED, part);
    expect(upper.value / GIB).toBeCloseTo(gibibytes, 1);
    expect(expected.value).toBeCloseTo(upper.value / 1.5, 0);
    expect(lower.value).toBeLessThan(expected.value);
  });

  it('keeps one gradient at a time on a GPU', () => {
    const of = (offload: TrainingOffload | undefined) =>
      replicatedState(T5_3B, { ...MIXED, zero: 0, shards: 1, convention: 'zero', offload });
    expect(Number(of(offloadOf('optimizer')).gradients.value)).toBe(2 * 32e6);
    expect(Number(of(undefined).gradients.value)).toBe(2 * 2851e6);
  });
});

describe('the time of a step with offload', () => {
  const setting = {
    ...MIXED,
    cluster: clusterNamed('rtx-4090', undefined, { gpus: [], machines: [] }),
    recompute: 'none',
  } as unknown as TrainingFitSetting;
  const seconds = (offload: TrainingOffload, microBatches = 1, gpus = 1) =>
    hostSeconds({
      setting: { ...setting, cluster: { ...setting.cluster, gpus } },
      offload,
      parameters: 1e9,
      microBatches,
    });

  it('is that of copies over PCIe and of the update in memory', () => {
    const { lower, expected, upper } = seconds(offloadOf('optimizer', '100GB/s'));
    // 4 bytes over PCIe 4 x16, 30 bytes in memory.
    expect(lower.value).toBeCloseTo(Math.max(4 / 32, 30 / 100), 6);
    expect(expected.value).toBeCloseTo(4 / (0.8 * 32) + 30 / (0.74 * 100), 6);
    expect(upper.value).toBeGreaterThan(expected.value);
  });

  it('grows with the passes over weights in system memory, and falls with GPUs and memory', () => {
    const once = seconds(offloadOf('parameters')).expected.value;
    expect(seconds(offloadOf('parameters'), 4).expected.value).toBeGreaterThan(once);
    expect(seconds(offloadOf('optimizer')).expected.value).toBeLessThan(once);
    expect(seconds(offloadOf('parameters'), 1, 4).expected.value).toBeLessThan(once);
    const server = seconds(offloadOf('parameters', '12xddr5-4800')).expected.value;
    expect(server).toBeLessThan(once);
  });
});
