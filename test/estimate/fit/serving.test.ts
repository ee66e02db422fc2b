import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { largestCount } from '../../../src/estimate/fit/bounds.js';
import { servedWeights, weightLayout } from '../../../src/estimate/fit/serving/quantized.js';
import { fitServing } from '../../../src/estimate/fit/serving/serving.js';
import { servingMemoryOf } from '../../../src/estimate/fit/serving/serving-memory.js';
import { sequenceState, servedModel } from '../../../src/estimate/fit/serving/serving-work.js';
import {
  parseWeightDtype,
  usualFormat,
  WEIGHT_DTYPES,
  type WeightDtype,
  type WeightFormat,
} from '../../../src/estimate/fit/serving/weight-types.js';
import type { GpuArchitecture, GpuKind } from '../../../src/estimate/hardware/gpu.js';
import { gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import { FAMILY_NAMES, loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { presetDocument, presetsOf } from '../../../src/model/architecture/presets.js';
import type { Bounds, Figure, Quantity } from '../../../src/model/budget/figure.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { stateOf } from '../../../src/model/budget/state.js';
import { evaluateIndependently } from '../../model/budget/independent.js';
import { publishedConfig } from '../../model/budget/published-models.js';
import { sampled } from '../../sampled.js';
import { LLAMA_2_70B, LLAMA_3_70B, MINIGPT, OPT_13B, setting } from './serving-models.js';

/** Decoding of a fit that has a speed. */
function decodingOf({ decode }: ReturnType<typeof fitServing>) {
  if (decode === null) throw new Error('no speed');
  return decode;
}

const DTYPES = Object.keys(WEIGHT_DTYPES) as readonly WeightDtype[];
const CUDA = { kind: 'nvidia' } as const;

describe('keys and values of a token', () => {
  // arXiv 2505.09343, table 1, in bfloat16.
  it.each([
    ['deepseek-v3-main', 70_272],
    ['qwen2.5-72b', 327_680],
    ['llama-3.1-405b', 516_096],
  ])('%s: %i bytes', async (name, bytes) => {
    const { model } = await publishedConfig(name);
    expect(sequenceState(servedModel(model, setting()), 1).perToken.value).toBe(bytes);
  });

  it('OPT-13B: 819,200 bytes (arXiv 2309.06180, section 3)', () => {
    expect(sequenceState(servedModel(OPT_13B, setting()), 1).perToken.value).toBe(819_200);
  });

  it('are half as large in 8 bits, and limited by a window', async () => {
    const { model } = await publishedConfig('mistral-7b-v0.1');
    const bytes = (context: number, cacheDtype: 'bf16' | 'f8_e4m3') =>
      sequenceState(servedModel(model, setting({ cacheDtype })), context).cache.value;
    // 32 layers, 8 key-value heads of 128, window 4096 with the next token.
    expect(bytes(1000, 'bf16')).toBe(1000 * 131_072);
    expect(bytes(9999, 'bf16')).toBe(4095 * 131_072);
    expect(bytes(9999, 'f8_e4m3')).toBe(4095 * 65_536);
  });

  it('are divided by heads, and replicated for latents and too few heads', async () => {
    const perToken = async (name: string, tensorParallel: number) => {
      const { model } = await publishedConfig(name);
      return sequenceState(servedModel(model, setting({ tensorParallel })), 1).perToken.value;
    };
    expect(await perToken('qwen2.5-72b', 8)).toBe(327_680 / 8);
    expect(await perToken('qwen2.5-72b', 16)).toBe(327_680 / 8);
    expect(await perToken('deepseek-v3-main', 16)).toBe(70_272);
  });

  it('are those of the fullest GPU with windowed and full heads', () => {
    const model = hybrid.build(
      hybrid.schema.parse({
        model: {
          family: 'hybrid',
          hidden_size: 64,
          num_layers: 1,
          num_heads: 4,
          global_heads: 2,
          window_size: 8,
        },
      }),
    );
    const kept = (gpus: number) => {
      const { keyValuePerToken, keyValuePerTokenPastWindows, keyValueCache } = stateOf(model, {
        batch: 1,
        context: 32,
        dtype: 'bf16',
        gpus,
      });
      return [keyValuePerToken, keyValuePerTokenPastWindows, keyValueCache].map(
        ({ value }) => value,
      );
    };
    // Keys and values of a head of 16: 64 bytes. Two see all 32 tokens, two see a token and the 4 before it. On two
    // GPUs, each has two heads of one kind.
    expect(kept(1)).toEqual([256, 128, 2 * 64 * 32 + 2 * 64 * 5]);
    expect(kept(2)).toEqual([128, 128, 2 * 64 * 32]);
    expect(kept(4)).toEqual([64, 64, 64 * 32]);
    expect(kept(8)).toEqual([64, 64, 64 * 32]);
  });
});

describe('Mamba states', () => {
  const preset = presetDocument('hybrid', 'tiny');
  const model = hybrid.build(hybrid.schema.parse(preset));

  it('have their own dtype at any context', () => {
    const bytes = (stateDtype: 'f32' | 'bf16', context: number) =>
      sequenceState(servedModel(model, setting({ stateDtype })), context).state.value;
    // 2 layers, 128 channels: 64 state values and 3 kept inputs each.
    expect(bytes('f32', 7)).toBe(2 * 128 * (64 + 3) * 4);
    expect(bytes('bf16', 64)).toBe(2 * 128 * (64 + 3) * 2);
  });

  it('are divided by channels', () => {
    const { mambaState, convolutionState } = stateOf(model, {
      batch: 1,
      context: 8,
      dtype: 'f32',
      gpus: 3,
    });
    expect(mambaState.value).toBe(2 * 43 * 64 * 4);
    expect(convolutionState.value).toBe(2 * 43 * 3 * 4);
  });
});

describe('weights', () => {
  const bytes = (layout: ReturnType<typeof weightLayout>, format: WeightFormat, gpus = 1) =>
    Number(servedWeights(layout, format, gpus).total.value);

  it('in 16 bits take two bytes per parameter', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    expect(bytes(weightLayout(model), usualFormat('bf16'))).toBe(
      2 * countParameters(model).parameters,
    );
  });

  it('Llama-2-7B in groups of 128: 3.90 GB (TheBloke/Llama-2-7B-GPTQ, main)', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    const estimate = bytes(weightLayout(model), usualFormat('int4'));
    const products = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11_008);
    const others = 2 * 32_000 * 4096 + 65 * 4096;
    // 4 bits each; for every 128 values, a scale of 16 bits and a zero point of 4.
    expect(estimate).toBe((products * 4 + (products / 128) * 20) / 8 + 2 * others);
    // The file also has the group of each input, and biases that are all zero.
    const groupNumbers = 32 * (6 * 4096 + 11_008) * 4;
    const biases = 32 * (5 * 4096 + 2 * 11_008) * 2;
    expect(((estimate + groupNumbers + biases) / 1e9).toFixed(2)).toBe('3.90');
  });

  // llama.cpp, tools/quantize, README: GiB of Llama-3.1-8B.
  it.each([
    ['q8_0', 7.95],
    ['q6_k', 6.14],
    ['q5_k_m', 5.33],
    ['q5_k_s', 5.21],
    ['q4_k_m', 4.58],
    ['q4_k_s', 4.36],
    ['iq4_nl', 4.38],
    ['iq4_xs', 4.17],
    ['q3_k_l', 4.02],
    ['q3_k_s', 3.41],
    ['iq3_s', 3.42],
    ['q2_k', 2.95],
    ['iq2_xs', 2.42],
    ['iq1_s', 1.87],
  ] as const)('Llama-3.1-8B in %s: %f GiB', async (dtype, gibibytes) => {
    const { model } = await publishedConfig('llama-3.1-8b');
    const estimate = bytes(weightLayout(model), usualFormat(dtype)) / 2 ** 30;
    expect(Math.abs(estimate - gibibytes)).toBeLessThan(0.0102);
  });

  it('Llama-3.1-70B in q4_k_m: 43.1 GB by the same table, with fewer of the larger products', async () => {
    const { model } = await publishedConfig('llama-3.1-8b');
    expect(bytes(weightLayout(LLAMA_3_70B), usualFormat('q4_k_m')) / 43.1e9).toBeCloseTo(1, 1);
    // Blocks of 32 and 16 values with a scale of 8 bits; all else in 16 bits.
    const layout = weightLayout(model);
    const products = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14_336);
    const others = 2 * (countParameters(model).parameters - products);
    expect(bytes(layout, usualFormat('mxfp4'))).toBe((products * 4.25) / 8 + others);
    expect(bytes(layout, usualFormat('nvfp4'))).toBe((products * 4.5) / 8 + others);
  });

  it('in GGUF types are divided among GPUs', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    const whole = bytes(weightLayout(model), usualFormat('q4_k_m'));
    const share = bytes(weightLayout(model), usualFormat('q4_k_m'), 4);
    expect(share).toBeGreaterThan(whole / 4);
    expect(share).toBeLessThan((whole / 4) * 1.01);
  });

  it.each([
    ['Q4_K_M', 'q4_k_m'],
    ['IQ4-XS', 'iq4_xs'],
    ['fp8', 'f8'],
    ['float16', 'f16'],
    ['half', 'f16'],
    ['i4', 'int4'],
    ['q9_z', undefined],
    ['float64', undefined],
  ])('written as %s are %s', (text, dtype) => {
    expect(parseWeightDtype(text)).toBe(dtype);
  });

  it('keep embedding, head, norms, routers and gates of shared experts unquantized', async () => {
    const { model } = await publishedConfig('qwen1.5-moe-a2.7b');
    const { quantised, owned } = weightLayout(model);
    const left = owned
      .filter(({ tensor }) => !quantised.has(tensor) && tensor.shape.length > 1)
      .map(({ tensor }) => tensor.name.replace(/\.\d+\./, '.*.'));
    expect(new Set(left)).toEqual(
      new Set([
        'model.embed_tokens.weight',
        'lm_head.weight',
        'model.layers.*.mlp.gate.weight',
        'model.layers.*.mlp.shared_expert_gate.weight',
      ]),
    );
  });

  it('have a scale for the shorter last group of a row, too', () => {
    // 384 inputs are 4 groups of 100 (the last of 84), 1536 are 16.
    const layout = weightLayout(MINIGPT);
    const format = { dtype: 'int8', groupSize: 100, scaleDtype: 'f16', zeroPoints: false } as const;
    const perLayer = (rows: number, length: number) =>
      rows * (length + 2 * Math.ceil(length / 100));
    const part = (name: string) =>
      servedWeights(layout, format, 1).parts.find(({ part }) => part === name)?.bytes.value;
    expect(part('feedForward')).toBe(12 * (perLayer(2 * 1536, 384) + perLayer(384, 1536)));
    // 12 query heads, 3 of keys and values, 32 wide.
    expect(part('attention')).toBe(12 * perLayer(2 * 384 + 2 * 96, 384));
  });

  it.each(['llama-3.1-8b', 'gpt2', 'mixtral-8x7b', 'phi-3-mini', 'deepseek-v3-main'])(
    '%s: fewer bits take less memory, and the shares of GPUs sum to at least the whole',
    async (name) => {
      const { model } = await publishedConfig(name);
      const layout = weightLayout(model);
      const [f32, bf16, int8, int4] = (['f32', 'bf16', 'int8', 'int4'] as const).map((dtype) =>
        bytes(layout, usualFormat(dtype)),
      ) as [number, number, number, number];
      expect(int4).toBeLessThan(int8);
      expect(int8).toBeLessThan(bf16);
      expect(bf16).toBeLessThan(f32);
      for (const dtype of ['bf16', 'int4'] as const) {
        const whole = bytes(layout, usualFormat(dtype));
        for (const gpus of [2, 3, 8]) {
          const share = bytes(layout, usualFormat(dtype), gpus);
          expect(share * gpus).toBeGreaterThanOrEqual(whole);
          expect(share).toBeLessThan(whole);
        }
      }
    },
  );

  it('on two GPUs are halved for heads and inner values, and whole for norms', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    const share = bytes(weightLayout(model), usualFormat('bf16'), 2);
    const norms = 65 * 4096 * 2;
    expect(share).toBe((2 * countParameters(model).parameters - norms) / 2 + norms);
  });
});

const isQuantity = (value: unknown): value is Quantity =>
  typeof value === 'object' && value !== null && 'formula' in value;

/** All quantities with a formula, at any depth. */
function derived(value: unknown): Quantity[] {
  if (isQuantity(value)) return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(derived) : [];
}

const inOrder = ({ lower, expected, upper }: Bounds) =>
  lower.value <= expected.value && expected.value <= upper.value;

describe('every preset', () => {
  it.each(sampled(FAMILY_NAMES, 4))('%s is served in every dtype', async (name) => {
    const family = await loadFamily(name);
    for (const [at, { document }] of presetsOf(name).entries()) {
      const model = family.build(family.schema.parse(document));
      // The first preset is checked in every dtype and under a load, the others in two dtypes.
      for (const dtype of at === 0 ? DTYPES : (['bf16', 'int4'] as const)) {
        for (const tensorParallel of [1, 2]) {
          const hasLoad = at === 0 && dtype === 'bf16' && tensorParallel === 1;
          const load = hasLoad ? { requestsPerSecond: 100, p95Seconds: 5 } : undefined;
          const fit = fitServing(model, setting({ dtype, tensorParallel, load }));
          const { prefill } = fit;
          if (!prefill) throw new Error('no prefill');
          const bounds = [fit.workspace, fit.total, prefill.seconds, decodingOf(fit).seconds];
          for (const each of [...bounds, decodingOf(fit).tokensPerSecond]) {
            expect(inOrder(each)).toBe(true);
          }
          // Thousands of quantities: an `expect` for each would take as long as the fit.
          const wrong = derived(fit).filter(
            ({ value }) => !(value >= 0 && Number.isFinite(Number(value))),
          );
          expect(wrong.map(({ label, value }) => `${label}: ${value}`)).toEqual([]);
          expect(fit.verdict === 'fits').toBe(fit.total.upper.value <= fit.capacity.value);
        }
      }
    }
  });
});

describe('searches', () => {
  it('find the largest batch that fits', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    const fit = fitServing(model, setting({ context: 4096, batch: 2 }));
    const at = servingMemoryOf(servedModel(model, setting()), CUDA);
    const batch = fit.largestBatch?.value ?? 0;
    expect(batch).toBeGreaterThan(1);
    expect(at(batch, 4096).total.expected.value).toBeLessThanOrEqual(fit.capacity.value);
    expect(at(batch + 1, 4096).total.expected.value).toBeGreaterThan(fit.capacity.value);
  });

  it('find the largest context that fits', async () => {
    const { model } = await publishedConfig('llama-3.1-8b');
    const fit = fitServing(model, setting({ batch: 16 }));
    const at = servingMemoryOf(servedModel(model, setting()), CUDA);
    const context = fit.largestContext?.value ?? 0;
    expect(context).toBeGreaterThan(1000);
    expect(context).toBeLessThan(model.positions);
    expect(at(16, context).total.expected.value).toBeLessThanOrEqual(fit.capacity.value);
    expect(at(16, context + 1).total.expected.value).toBeGreaterThan(fit.capacity.value);
  });

  it('find no batch for a model that is too large, and the full context for a small one', async () => {
    const { model } = await publishedConfig('qwen2.5-72b');
    const fit = fitServing(model, setting());
    expect(fit).toMatchObject({
      largestBatch: null,
      largestContext: null,
      verdict: 'does not fit',
    });
    expect(fitServing(MINIGPT, setting()).largestContext?.value).toBe(MINIGPT.positions);
  });

  it('agree with a search over all numbers', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.integer({ min: 0, max: 400 }),
        (most, to) => {
          expect(largestCount(most, (count) => count <= to)).toBe(Math.min(most, to));
        },
      ),
    );
  });
});

describe('memory', () => {
  it('never decreases with batch or context', async () => {
    const { model } = await publishedConfig('gemma-2-2b');
    const at = servingMemoryOf(servedModel(model, setting()), CUDA);
    const bounds = ['lower', 'expected', 'upper'] as const;
    const small = fc.integer({ min: 1, max: 64 });
    const tokens = fc.integer({ min: 1, max: 8192 });
    fc.assert(
      fc.property(small, small, tokens, tokens, (batch, more, context, longer) => {
        const [a, b] = [at(batch, context), at(batch + more, Math.min(8192, context + longer))];
        for (const bound of bounds) {
          expect(b.total[bound].value).toBeGreaterThanOrEqual(a.total[bound].value);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('has parts that sum to the total, with formulas that a second evaluator confirms', async () => {
    const { model } = await publishedConfig('mixtral-8x7b');
    const at = servingMemoryOf(
      servedModel(model, setting({ dtype: 'int4', tensorParallel: 3 })),
      CUDA,
    );
    const { weights, weightParts, cachePerSequence, state } = at(2, 100);
    const figures: Figure[] = [weights, cachePerSequence, state];
    for (const each of [...figures, ...weightParts.map(({ bytes }) => bytes)]) {
      expect(BigInt(each.value)).toBe(evaluateIndependently(each.formula, each.inputs));
    }
    const sum = weightParts.reduce((total, { bytes }) => total + Number(bytes.value), 0);
    expect(weights.value).toBe(sum);
  });
});

describe('time', () => {
  it('of a step never decreases with a larger batch or context', () => {
    const step = (batch: number, context: number) =>
      decodingOf(fitServing(MINIGPT, setting({ batch, context }))).seconds;
    const number = fc.integer({ min: 1, max: 512 });
    fc.assert(
      fc.property(number, number, number, number, (batch, more, context, longer) => {
        const [a, b] = [step(batch, context), step(batch + more, context + longer)];
        expect(b.lower.value).toBeGreaterThanOrEqual(a.lower.value);
        expect(b.expected.value).toBeGreaterThanOrEqual(a.expected.value);
      }),
      { numRuns: 25 },
    );
  });

  const A100 = { gpu: gpuNamed('a100-80gb'), network: null };
  const tokensOf = (model: LanguageModel, gpus: number) =>
    decodingOf(
      fitServing(
        model,
        setting({ cluster: { ...A100, gpus }, tensorParallel: gpus, batch: 1, context: 200 }),
      ),
    ).tokensPerSecond;

  it('is within 10% of the measurement on Llama-2-7B (gpt-fast, README)', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    expect(Math.abs(tokensOf(model, 1).expected.value / 104.9 - 1)).toBeLessThan(0.1);
  });

  // gpt-fast, README (2023), tensor parallelism in bfloat16. The estimate does not use these measurements.
  it.each([
    ['llama-2-7b', 2, 168.84],
    ['llama-2-7b', 4, 254.02],
    ['llama-2-7b', 8, 328.43],
    ['llama-2-70b', 2, 21.32],
    ['llama-2-70b', 4, 38.01],
    ['llama-2-70b', 8, 62.5],
  ])('for %s on %d A100 is near the measured %d tokens/s', async (name, gpus, measured) => {
    const model = name === 'llama-2-70b' ? LLAMA_2_70B : (await publishedConfig(name)).model;
    const { lower, expected, upper } = tokensOf(model, gpus);
    expect(lower.value).toBeLessThan(measured);
    expect(upper.value).toBeGreaterThan(measured);
    expect(Math.max(expected.value / measured, measured / expected.value)).toBeLessThan(1.3);
  });
});

it('tensor parallelism over more GPUs than there are is refused', () => {
  const cluster = { ...setting().cluster, gpus: 2 };
  expect(() => fitServing(MINIGPT, setting({ cluster, tensorParallel: 4 }))).toThrow(
    /--tensor-parallel: expected at most the 2 GPUs of --gpus, found 4/,
  );
});

it('has no speed without a known link', async () => {
  const { model } = await publishedConfig('llama-2-7b');
  const on = (tensorParallel: number) => fitServing(model, setting({ tensorParallel }));
  const { limits } = decodingOf(on(8));
  expect(on(8).withoutLink).toBeNull();
  expect(limits.find(({ limit }) => limit === 'links')?.seconds.value).toBeGreaterThan(0);
  expect(on(16)).toMatchObject({ prefill: null, decode: null });
  expect(on(16).withoutLink).toMatch(/^no link between more than 8 of h100-80gb is known: /);
});

describe('a chip without a published peak', () => {
  const cluster = { gpu: gpuNamed('m4-max-36gb'), gpus: 1, network: null };

  it('has every figure that needs no peak', () => {
    const fit = fitServing(MINIGPT, { ...setting(), cluster });
    expect(fit).toMatchObject({ peak: null, prefill: null, verdict: 'fits' });
    expect(fit.withoutPeak).toMatch(/^no peak of m4-max-36gb is published for bf16: /);
    expect(fit.largestBatch?.value).toBeGreaterThan(1);
    expect(inOrder(decodingOf(fit).seconds)).toBe(true);
  });

  it('has decoding limited by reading only', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    const decode = decodingOf(fitServing(model, { ...setting({ batch: 1, context: 1 }), cluster }));
    // 6,738,415,616 parameters of 2 bytes without the rows of the embedding, and the keys and values of a token.
    const bytes = 2 * (6_738_415_616 - 32_000 * 4096) + 2 * 32 * 4096 * 2;
    expect(decode.seconds.lower.value).toBeCloseTo(bytes / 410e9, 9);
    expect(decode.limits.map(({ limit }) => limit)).not.toContain('compute');
    expect(decode.seconds.upper.source).toContain('compute is not counted');
  });

  it('refuses a load', () => {
    const load = { requestsPerSecond: 1, p95Seconds: 1 };
    expect(() => fitServing(MINIGPT, { ...setting({ load }), cluster })).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining('no peak') }),
    );
  });
});

describe('memory of libraries', () => {
  const library = [
    'driver context and kernels',
    'workspace of matrix products',
    'buffers of all-reduces',
  ];
  const boundsOn = (kind: GpuKind, architecture?: GpuArchitecture) => {
    const { workspaceParts } = servingMemoryOf(
      servedModel(MINIGPT, setting({ tensorParallel: 2 })),
      { kind, ...(architecture && { architecture }) },
    )(1, 100);
    return workspaceParts
      .filter(({ part }) => library.includes(part))
      .map(({ bytes: { lower, expected, upper } }) => [lower.value, expected.value, upper.value]);
  };

  it('has the bounds of CUDA libraries on NVIDIA GPUs', () => {
    const mib = 2 ** 20;
    expect(boundsOn('nvidia')).toEqual([
      [0, 500 * mib, 1343 * mib],
      [0, 32 * mib, 64 * mib],
      [0, 392 * mib, 1536 * mib],
    ]);
  });

  it('has a cuBLAS workspace of 8 MiB before Hopper, in a segment of 20 MiB', () => {
    const cublas = (architecture: GpuArchitecture) => boundsOn('nvidia', architecture)[1];
    expect(cublas('sm80')).toEqual([0, 8_519_680, 24 * 2 ** 20]);
    expect(cublas('sm89')).toEqual(cublas('sm80'));
    expect(cublas('sm90')).toEqual([0, 32 * 2 ** 20, 64 * 2 ** 20]);
    expect(cublas('sm120')).toEqual(cublas('sm90'));
  });

  it('is zero on a processor', () => {
    expect(boundsOn('processor')).toEqual(library.map(() => [0, 0, 0]));
  });

  it('is zero in the estimate where unknown, and NVIDIA’s in the upper bound', () => {
    const most = boundsOn('nvidia').map(([, , upper]) => upper);
    expect(boundsOn('other')).toEqual(most.map((upper) => [0, 0, upper]));
  });
});

describe('a cache in blocks of llama.cpp', () => {
  it.each([
    ['f16', 64],
    ['q8_0', 34],
    ['q4_0', 18],
  ] as const)('of %s has %i bytes for 32 values', async (cacheDtype, bytes) => {
    const { model } = await publishedConfig('llama-3.1-8b');
    const { keyValueCache, keyValuePerToken } = stateOf(model, {
      ...{ batch: 3, context: 1000, dtype: 'bf16', cacheDtype },
    });
    // 8 heads of 128 keys and values in each of 32 layers.
    const perToken = (2 * 32 * 8 * 128 * bytes) / 32;
    expect(keyValuePerToken.value).toBe(perToken);
    expect(keyValueCache.value).toBe(3000 * perToken);
  });

  it('leaves states of recurrent layers in 16 bits', async () => {
    const { model } = await publishedConfig('mamba-2.8b');
    const setting = { batch: 1, context: 10, dtype: 'bf16' } as const;
    const state = (cacheDtype: 'q4_0' | 'bf16') => stateOf(model, { ...setting, cacheDtype });
    expect(state('q4_0').mambaState.value).toBe(state('bf16').mambaState.value);
  });
});
