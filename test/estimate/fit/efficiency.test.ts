import { describe, expect, it } from 'vitest';
import { efficienciesOn, hopSeconds } from '../../../src/estimate/fit/efficiency.js';
import { linkFor } from '../../../src/estimate/fit/parallelism/collectives.js';
import { ratesOf } from '../../../src/estimate/fit/serving/roofline.js';
import {
  WEIGHT_DTYPE_NAMES,
  WEIGHT_DTYPES,
  type WeightDtype,
} from '../../../src/estimate/fit/serving/weight-types.js';
import {
  computingSharesOn,
  expertShare,
  hiddenShare,
} from '../../../src/estimate/fit/training/training-shares.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import type { Gpu } from '../../../src/estimate/hardware/gpu.js';
import { ARCHITECTURES, peakIfKnown } from '../../../src/estimate/hardware/gpu.js';
import { GPUS, gpuNamed } from '../../../src/estimate/hardware/gpus.js';

const NOTHING_OWN = { gpus: [], machines: [] };
const on = (name: string) => clusterNamed(name, undefined, NOTHING_OWN);

describe('shares of the peak in training', () => {
  it.each([undefined, ...ARCHITECTURES])('on %s stay below the peak', (each) => {
    const { products, narrow = products, attention } = computingSharesOn(each);
    for (const share of [products, narrow, attention]) {
      expect(share).toBeGreaterThan(0.2);
      expect(share).toBeLessThan(0.9);
    }
  });

  it('narrow experts and FP8 products reach less', () => {
    expect(expertShare(768, 1)).toBeLessThan(expertShare(2880, 1));
    expect(expertShare(2048, 2)).toBeLessThan(expertShare(2048, 1));
    expect(hiddenShare(1536, 1)).toBeLessThan(hiddenShare(4096, 1));
  });
});

describe('expected efficiency of reading', () => {
  const shares = (name: string, dtype: WeightDtype) => {
    const { expected } = ratesOf(on(name), 1, null, dtype).efficiencies;
    return [expected.memoryUtilisation, expected.weightUtilisation];
  };

  it.each([
    ['a100-80gb', 'bf16', 0.72, 0.72],
    ['a100-80gb', 'int8', 0.72, 0.62],
    ['a100-80gb', 'f8', 0.72, 0.62],
    ['a100-80gb', 'int4', 0.72, 0.5],
    ['h100-80gb', 'q4_k_m', 0.72, 0.5],
    ['h20', 'bf16', 0.72, 0.34],
    ['rtx-4090', 'f16', 0.84, 0.84],
    ['rtx-4090', 'q4_k_m', 0.84, 0.77],
    ['m2-ultra-192gb', 'nvfp4', 0.72, 0.77],
  ] as const)('on %s in %s is %f of caches and %f of weights', (name, dtype, caches, weights) => {
    expect(shares(name, dtype)).toEqual([caches, weights]);
  });

  it.each([undefined, ...ARCHITECTURES])(
    'on %s is within the bounds, also for the sum in a prefill',
    (each) => {
      const gpu = each ? { architecture: each } : {};
      for (const weights of ['wide', 'eight', 'four'] as const) {
        for (const isNarrow of [false, true]) {
          const { expected, upper } = efficienciesOn(gpu, { weights, isNarrow });
          expect(expected.weightUtilisation).toBeGreaterThanOrEqual(upper.weightUtilisation);
          // Computing and moving one after the other must not be slower than the upper bound.
          const sum =
            upper.computeUtilisation / expected.computeUtilisation +
            upper.memoryUtilisation / expected.memoryUtilisation;
          expect(sum).toBeLessThanOrEqual(1);
        }
      }
    },
  );
});

describe('prefill in a narrow type', () => {
  const rateOf = (gpu: Gpu, dtype: WeightDtype) => {
    const peak = peakIfKnown(gpu, WEIGHT_DTYPES[dtype].computes);
    if (peak === null) return null;
    const { efficiencies } = ratesOf({ gpu, gpus: 1, network: null }, 1, peak, dtype);
    return peak.value * efficiencies.expected.computeUtilisation;
  };

  it.each(GPUS.map((gpu) => [gpu.name, gpu] as const))(
    'on %s computes no slower than in bf16',
    (_, gpu) => {
      const bf16 = rateOf(gpu, 'bf16');
      for (const dtype of WEIGHT_DTYPE_NAMES.filter((each) => each !== 'f32')) {
        const narrow = rateOf(gpu, dtype);
        expect(narrow === null, dtype).toBe(bf16 === null);
        expect(narrow ?? 0, dtype).toBeGreaterThanOrEqual(bf16 ?? 0);
      }
    },
  );
});

describe('a hop', () => {
  const { expected, upper } = efficienciesOn({});
  const linkOf = (name: string, gpus: number, apart = 1) => {
    const link = linkFor({ cluster: on(name) }, gpus, apart);
    if (!link) throw new Error('no link');
    return link;
  };

  // NCCL, tuning.cc: two steps of 0.6 and 1.9 µs, of 1.0 and 2.5, of 2.7 and 4.0.
  it('takes two steps over NVLink, PCIe or the network', () => {
    const seconds = (link: ReturnType<typeof linkOf>) =>
      [expected, upper].map((each) => Number((1e6 * hopSeconds(each, link)).toFixed(3)));
    expect(seconds(linkOf('h100-80gb', 8))).toEqual([1.2, 3.8]);
    expect(seconds(linkOf('rtx-4090', 8))).toEqual([2, 5]);
    // Every eighth GPU: each hop leaves a machine.
    expect(seconds(linkOf('dgx-h100', 64, 8))).toEqual([5.4, 8]);
    // All: one of eight does.
    expect(seconds(linkOf('dgx-h100', 64))).toEqual([1.725, 4.325]);
  });

  it('follows the kind of the link for a GPU of the table', () => {
    expect(gpuNamed('rtx-4090').links[0]?.name).toMatch(/^PCIe/);
  });
});
