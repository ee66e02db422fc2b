import { describe, expect, it } from 'vitest';
import { efficienciesOn } from '../../../src/estimate/fit/efficiency.js';
import {
  type DecodeWork,
  decodeStep,
  prefill,
} from '../../../src/estimate/fit/serving/roofline.js';
import {
  decodeWork,
  prefillWork,
  servedModel,
} from '../../../src/estimate/fit/serving/serving-work.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { publishedConfig } from '../../model/budget/published-models.js';
import { LLAMA_2_13B, setting } from './serving-models.js';

const ALONE = { expertGroups: [], scoreFlops: 0, allReduces: 0, reducedBytes: 0, launches: 0 };

/** Eight TPUs v5e as one: 8 · 0.82 TB/s, 8 · 197 TFLOP/s. */
const RATES = {
  bandwidth: 8 * 0.82e12,
  peakFlops: 8 * 197e12,
  gpus: 1,
  efficiencies: efficienciesOn({ architecture: 'tpu-v5e' }),
};

const milliseconds = (work: DecodeWork, batch: number) =>
  (1000 * decodeStep(work, RATES, batch).seconds.lower.value).toFixed(2);

describe('a step of decoding Llama-2-13B at 8192 tokens ("How to Scale Your Model", inference)', () => {
  // The book rounds: 13e9 parameters, 26 GB in bfloat16, 6.7 GB for the keys and values of a sequence.
  const BOOK = { ...ALONE, weightBytes: 26e9, cacheBytes: 6.7e9, flops: 2 * 13e9 };

  it.each([
    [1, '4.98'],
    [8, '12.13'],
    [16, '20.30'],
    [32, '36.65'],
    [64, '69.33'],
    [240, '249.09'],
  ])('takes, with batch %i, %s ms', (batch, printed) => {
    expect(milliseconds(BOOK, batch)).toBe(printed);
  });

  it('differs from the book only by its rounding', () => {
    const work = decodeWork(servedModel(LLAMA_2_13B, setting()), 8192);
    expect(work.cacheBytes).toBe(2 * 40 * 5120 * 2 * 8192); // 6.71 GB
    const table = 2 * 32_000 * 5120; // only one row is looked up; the book reads all of it
    expect(work.weightBytes + table).toBe(2 * countParameters(LLAMA_2_13B).parameters); // 26.03 GB
    expect(work.flops / 2 / 13e9).toBeCloseTo(1, 1);
    const whole = { ...work, weightBytes: work.weightBytes + table };
    expect([1, 16, 240].map((batch) => milliseconds(whole, batch))).toEqual([
      '4.99',
      '20.34',
      '249.49',
    ]);
    expect([1, 16, 240].map((batch) => milliseconds(work, batch))).toEqual([
      '4.94',
      '20.29',
      '249.44',
    ]);
  });

  it('is limited by the weights, then by the caches', () => {
    const limit = (batch: number) => decodeStep(BOOK, RATES, batch).limitedBy;
    expect([1, 4, 240].map(limit)).toEqual(['weights', 'cache', 'cache']);
  });

  it('is limited by compute beyond the critical batch, without a cache', () => {
    // 1.97e14 / 8.2e11 = 240 tokens (the same chapter).
    const limit = (batch: number) => decodeStep({ ...BOOK, cacheBytes: 0 }, RATES, batch).limitedBy;
    expect([240, 241].map(limit)).toEqual(['weights', 'compute']);
  });

  it('is limited by its slowest single part', () => {
    const work = { ...ALONE, weightBytes: 5, cacheBytes: 4, scoreFlops: 3, flops: 3 };
    const step = decodeStep(work, { ...RATES, bandwidth: 1, peakFlops: 1 }, 1);
    expect([step.seconds.lower.value, step.limitedBy]).toEqual([9, 'weights']);
  });
});

describe('experts', () => {
  it('are read when a token is routed to them', async () => {
    const { model } = await publishedConfig('mixtral-8x7b');
    const { expertGroups, weightBytes } = decodeWork(servedModel(model, setting()), 1);
    // 32 layers of 8 experts, 3 matrices of 4096 × 14336, 2 bytes.
    const all = 32 * 8 * 3 * 4096 * 14_336 * 2;
    expect(expertGroups).toEqual([{ experts: 8, expertsPerToken: 2, bytes: all }]);
    const read = (batch: number) => {
      const none = { ...ALONE, cacheBytes: 0, flops: 0, weightBytes: 0 };
      const { seconds } = decodeStep({ ...none, expertGroups }, RATES, batch);
      return (seconds.lower.value * RATES.bandwidth) / all;
    };
    expect(read(1)).toBeCloseTo(2 / 8, 12);
    // The second token misses the two of the first with 6/8 · 5/7 …: 2/8 + 6/8 · 2/8.
    expect(read(2)).toBeCloseTo(7 / 16, 12);
    expect(read(1000)).toBeCloseTo(1, 12);
    expect(weightBytes).toBe(2 * (countParameters(model).parameters - 32_000 * 4096) - all);
  });

  it('that are read match the average of a simulation', () => {
    const [experts, expertsPerToken, batch, trials] = [16, 3, 7, 4000];
    let state = 1;
    const random = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    let hit = 0;
    for (let trial = 0; trial < trials; trial++) {
      const seen = new Set<number>();
      for (let token = 0; token < batch; token++) {
        const chosen = new Set<number>();
        while (chosen.size < expertsPerToken) chosen.add(Math.floor(random() * experts));
        for (const each of chosen) seen.add(each);
      }
      hit += seen.size;
    }
    const work = {
      ...ALONE,
      weightBytes: 0,
      cacheBytes: 0,
      flops: 0,
      expertGroups: [{ experts, expertsPerToken, bytes: experts }],
    };
    const { seconds } = decodeStep(work, { ...RATES, bandwidth: 1 }, batch);
    expect(hit / trials).toBeCloseTo(seconds.lower.value, 1);
  });
});

describe('prefill', () => {
  it('takes 2 FLOPs per parameter and token, and is limited by compute for long prompts', () => {
    const served = servedModel(LLAMA_2_13B, setting());
    const long = prefillWork(served, 2048);
    const products = countParameters(LLAMA_2_13B).parameters - 2 * 32_000 * 5120;
    // Causal scores of 40 layers add 4 · 5120 · 2048 · 2049 / 2 FLOP each; the head counts for one token.
    const scores = (40 * 4 * 5120 * 2048 * 2049) / 2;
    const norms = 81 * 5120;
    expect(long.flops).toBe(2 * (products - norms) * 2048 + 2 * 32_000 * 5120 + scores);
    expect(prefill(long, RATES)?.limitedBy).toBe('compute');
    expect(prefill(prefillWork(served, 8), RATES)?.limitedBy).toBe('memory');
  });

  it('writes each key and value once', () => {
    expect(prefillWork(servedModel(LLAMA_2_13B, setting()), 100, 3).cacheBytes).toBe(
      3 * 100 * 2 * 40 * 5120 * 2,
    );
  });
});

describe('several GPUs', () => {
  it('reduce the residual stream twice a block', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    const work = decodeWork(servedModel(model, setting({ tensorParallel: 8 })), 1);
    expect(work.allReduces).toBe(2 * 32 + 1);
    expect(work.reducedBytes).toBe((2 * 32 + 1) * 4096 * 2);
    const rates = {
      ...RATES,
      bandwidth: 1e24,
      peakFlops: 1e24,
      gpus: 8,
      link: { name: 'ICI', gpus: 8, ways: 1, bandwidth: 450e9 },
    };
    const { seconds, limitedBy } = decodeStep(work, rates, 64);
    // A ring sends 2 · 7/8 of what it reduces.
    expect(seconds.lower.value).toBeCloseTo((1.75 * 64 * work.reducedBytes) / 450e9, 9);
    expect(limitedBy).toBe('links');
  });

  it('reduce attention and feed-forward together in parallel blocks', async () => {
    const { model } = await publishedConfig('gpt-neox-20b');
    expect(decodeWork(servedModel(model, setting()), 1).allReduces).toBe(44 + 1);
  });
});

describe('with tensor parallelism, a GPU computes', () => {
  const flopsOf = async (name: string, tensorParallel: number) => {
    const { model } = await publishedConfig(name);
    return decodeWork(servedModel(model, setting({ tensorParallel })), 1);
  };

  it('latent projections and routers whole (DeepSeek-V3)', async () => {
    const [h, q, heads] = [7168, 1536, 128];
    const whole = 61 * (h * q + h * 576) + 58 * 256 * h;
    const shared =
      61 * (q * heads * 192 + 512 * heads * 256 + heads * 128 * h) +
      3 * 3 * h * 18_432 +
      58 * 9 * 3 * h * 2048 +
      129_280 * h;
    for (const gpus of [1, 8, 16]) {
      const { flops, scoreFlops } = await flopsOf('deepseek-v3-main', gpus);
      expect(flops).toBe(2 * (whole + shared / gpus));
      // A score with latent and rotated key, and the latent times it.
      expect(scoreFlops).toBe((61 * 2 * heads * (2 * 512 + 64)) / gpus);
    }
  });

  it('its own key-value head when there are fewer heads than GPUs', async () => {
    // Qwen2.5-72B: 80 layers of 8192, 64 heads and 8 of keys and values of 128, inner 29,568, vocabulary 152,064.
    for (const [gpus, keyHeads] of [
      [8, 1],
      [16, 1],
      [64, 1],
    ] as const) {
      const { flops } = await flopsOf('qwen2.5-72b', gpus);
      const block = 8192 * 128 * (2 * (64 / gpus) + 2 * keyHeads) + (3 * 8192 * 29_568) / gpus;
      expect(flops).toBe(2 * (80 * block + 8192 * (152_064 / gpus)));
    }
  });
});

it('Llama-2-7B has the kernel launches from which the upper launch time is derived', async () => {
  const { model } = await publishedConfig('llama-2-7b');
  expect(decodeWork(servedModel(model, setting()), 1).launches).toBe(387);
});
