import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StatePart } from '../../../src/estimate/fit/training/training-fit.js';
import {
  fitTrainingMemory,
  replicatedState,
} from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { loadFamily } from '../../../src/model/architecture/families.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import type { Exact } from '../../../src/model/budget/figure.js';
import { OPTIMIZER_NAMES } from '../../../src/model/budget/optimizers.js';
import { trainingMemoryOf } from '../../../src/model/budget/training-budget.js';
import { evaluateIndependently } from '../../model/budget/independent.js';
import { fitSetting, gptLike, H100, SMALL_MIXTURE } from './settings.js';

describe('ZeRO (arXiv 1910.02054, figure 1): 7.5e9 parameters on 64 GPUs', () => {
  it.each([
    [0, '120.0'],
    [1, '31.4'],
    [2, '16.6'],
    [3, '1.9'],
  ] as const)('stage %d takes %s GB of each', (zero, gigabytes) => {
    const { weights, gradients, optimizer } = replicatedState([{ elements: 7.5e9 }], {
      precision: 'mixed',
      optimizer: 'adamw',
      convention: 'zero',
      zero,
      shards: 64,
    });
    const bytes = [weights, gradients, optimizer].reduce(
      (sum, { value }) => sum + Number(value),
      0,
    );
    expect((bytes / 1e9).toFixed(1)).toBe(gigabytes);
  });

  it('takes 18 bytes each by the convention of Megatron, or 6 + 12/N with the distributed optimizer', () => {
    const bytes = (zero: 0 | 1) => {
      const state = replicatedState([{ elements: 64e9 }], {
        precision: 'mixed',
        optimizer: 'adamw',
        convention: 'megatron',
        zero,
        shards: 64,
      });
      return Object.values(state).reduce((sum, { value }) => sum + Number(value), 0);
    };
    expect(bytes(0)).toBe(18 * 64e9);
    expect(bytes(1)).toBe((6 + 12 / 64) * 64e9);
  });
});

/** V 101, P 64, h 8, f 32, L 3, a 4. */
const TINY = gptLike({ vocab_size: 101, n_positions: 64, n_embd: 8, n_layer: 3, n_head: 4 });

describe('a tiny model by hand', () => {
  const stagesOf = (settings: Partial<TrainingFitSetting>) =>
    fitTrainingMemory(TINY, fitSetting({ context: 16, ...settings })).stages.map(
      ({ blocks, parameters, parts }) => {
        const bytes: Partial<Record<StatePart, Exact>> = Object.fromEntries(
          parts.map(({ part, bytes }) => [part, bytes.value]),
        );
        return { blocks, parameters: parameters.value, ...bytes };
      },
    );
  // Per block: two norms 2 · 16; c_attn 8 · 24 + 24; c_proj 64 + 8; c_fc 8 · 32 + 32; c_proj 32 · 8 + 8.
  const block = 32 + 216 + 72 + 288 + 264;

  it('has these bytes on one GPU', () => {
    const n = 101 * 8 + 64 * 8 + 3 * block + 16;
    const [stage] = stagesOf({});
    expect(stage).toMatchObject({
      parameters: n,
      weights: 2 * n,
      gradients: 2 * n,
      optimizer: 12 * n,
      buffers: 0,
    });
  });

  it('has these bytes with two GPUs per layer and two stages', () => {
    // Half of c_attn, its bias, c_fc and its bias; half of both c_proj, with whole biases and norms.
    const shared = 32 + 216 / 2 + (64 / 2 + 8) + 288 / 2 + (256 / 2 + 8);
    // 51 rows of 102.
    const vocabulary = 51 * 8;
    const first = vocabulary + 64 * 8 + shared;
    const last = 2 * shared + 16 + vocabulary;
    const stages = stagesOf({
      cluster: H100(8),
      tensorParallel: 2,
      pipelineParallel: 2,
      zero: 1,
      convention: 'megatron',
    });
    expect(stages).toMatchObject([
      { blocks: [0, 1], parameters: first, weights: 2 * first, gradients: 4 * first },
      { blocks: [1, 3], parameters: last, weights: 2 * last, gradients: 4 * last },
    ]);
    // 8 GPUs are 2 replicas, which share the optimizer.
    expect(stages.map(({ optimizer }) => optimizer)).toEqual([6 * first, 6 * last]);
    // 16 tokens · 2 bytes; per block 10 · 8 − 2 of masks, halves of 6 · 8 + 2 · 32, scores of 2 heads, in float32
    // nothing; two micro-batches on the first stage; norm, head, and 51 logits of 4 bytes on the last.
    const inBlock = 16 * 2 * (4 * 8 + (4 * 8 + 2 * 32) / 2) + 2 * 2 * 16 * 16;
    expect(stages.map(({ activations }) => activations)).toEqual([
      2 * inBlock,
      2 * inBlock + 16 * 2 * 2 * 8 + 4 * 16 * 51,
    ]);
  });
});

describe('a loss in chunks', () => {
  it('keeps no logits and changes nothing else', () => {
    const totalOf = (loss: 'full' | 'chunked') => {
      const [stage] = fitTrainingMemory(
        TINY,
        fitSetting({ context: 16, microBatch: 3, loss }),
      ).stages;
      return Number(stage?.activations.total.value);
    };
    // 3 · 16 tokens of 101 values in float32.
    expect(totalOf('full') - totalOf('chunked')).toBe(3 * 16 * 101 * 4);
  });

  it('keeps no tanh of the logits', async () => {
    const { build, schema } = await loadFamily('gemma2');
    const sizes = { vocab_size: 100, hidden_size: 8, intermediate_size: 16, num_hidden_layers: 2 };
    const heads = { num_attention_heads: 2, num_key_value_heads: 1, head_dim: 4 };
    const model = build(schema.parse({ model: { family: 'gemma2', ...sizes, ...heads } }));
    const totalOf = (loss: 'full' | 'chunked') =>
      Number(fitTrainingMemory(model, fitSetting({ context: 16, loss })).total.lower.value);
    // The log-softmax in float32, and the tanh before the cap in 16 bits.
    expect(totalOf('full') - totalOf('chunked')).toBe(16 * 100 * (4 + 2));
  });
});

const MODELS = await Promise.all(
  (
    [
      ['gpt2', { vocab_size: 1001, n_positions: 512, n_embd: 64, n_layer: 4, n_head: 8 }],
      [
        'hybrid',
        {
          vocab_size: 500,
          hidden_size: 64,
          num_layers: 4,
          num_heads: 8,
          global_heads: 2,
          window_size: 32,
          max_position_embeddings: 512,
        },
      ],
      ['qwen3_moe', SMALL_MIXTURE],
      [
        'deepseek_v3',
        {
          vocab_size: 500,
          hidden_size: 64,
          intermediate_size: 128,
          moe_intermediate_size: 32,
          num_hidden_layers: 4,
          num_attention_heads: 8,
          q_lora_rank: 24,
          kv_lora_rank: 16,
          qk_nope_head_dim: 16,
          qk_rope_head_dim: 8,
          v_head_dim: 16,
          n_routed_experts: 8,
          n_group: 2,
          topk_group: 1,
          num_experts_per_tok: 2,
          max_position_embeddings: 512,
        },
      ],
    ] as const
  ).map(async ([family, config]) => {
    const { build, schema } = await loadFamily(family);
    return build(schema.parse({ model: { family, ...config } }));
  }),
);

/** By index, to keep counterexamples readable. */
const models = fc.nat({ max: MODELS.length - 1 });
const modelOf = (index: number) => MODELS[index] as (typeof MODELS)[number];
const settingsOfAny = fc.record({
  microBatch: fc.integer({ min: 1, max: 8 }),
  context: fc.integer({ min: 1, max: 512 }),
  precision: fc.constantFrom('mixed' as const, 'float32' as const),
  optimizer: fc.constantFrom(...OPTIMIZER_NAMES),
  recompute: fc.constantFrom('none' as const, 'selective' as const, 'full' as const),
  attention: fc.constantFrom('plain' as const, 'fused' as const),
  loss: fc.constantFrom('full' as const, 'chunked' as const),
  dropout: fc.boolean(),
  zero: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
  convention: fc.constantFrom('zero' as const, 'megatron' as const),
  tensorParallel: fc.constantFrom(1, 2, 4),
  pipelineParallel: fc.constantFrom(1, 2, 4),
  sequenceParallel: fc.boolean(),
  replicas: fc.constantFrom(1, 2, 3, 8),
});

type Settings = Omit<TrainingFitSetting, 'cluster'> & { readonly replicas: number };

const settingOf = ({ replicas, ...settings }: Settings): TrainingFitSetting => ({
  ...settings,
  cluster: H100(settings.tensorParallel * settings.pipelineParallel * replicas),
});

const exactBytes = (model: (typeof MODELS)[number], setting: TrainingFitSetting) =>
  fitTrainingMemory(model, setting).stages.map((stage) => Number(stage.exactBytes.value));

describe('any training', () => {
  it('on one GPU equals the memory of one device', () => {
    fc.assert(
      fc.property(models, settingsOfAny, (index, settings) => {
        const model = modelOf(index);
        const setting = settingOf({
          ...settings,
          replicas: 1,
          tensorParallel: 1,
          pipelineParallel: 1,
          convention: 'zero',
          attention: 'plain',
          loss: 'full',
          dropout: false,
        });
        const [stage] = fitTrainingMemory(model, setting).stages;
        const { activations, total, ...state } = trainingMemoryOf(model, {
          ...setting,
          batch: setting.microBatch,
        });
        expect(stage?.exactBytes.value).toBe(total.value);
        expect(stage?.activations).toEqual(activations);
        for (const [part, bytes] of Object.entries(state)) {
          expect(stage?.parts.find((each) => each.part === part)?.bytes.value).toBe(bytes.value);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('never needs more exact bytes of a GPU with more replicas', () => {
    fc.assert(
      fc.property(models, settingsOfAny, (index, settings) => {
        const model = modelOf(index);
        const few = exactBytes(model, settingOf(settings));
        const many = exactBytes(model, settingOf({ ...settings, replicas: 2 * settings.replicas }));
        for (const [stage, bytes] of many.entries()) {
          expect(bytes).toBeLessThanOrEqual(few[stage] ?? 0);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('never needs less memory with more tokens', () => {
    fc.assert(
      fc.property(models, settingsOfAny, (index, settings) => {
        const model = modelOf(index);
        const fitOf = (more: Partial<Settings>) =>
          fitTrainingMemory(model, settingOf({ ...settings, ...more }));
        const base = fitOf({});
        for (const more of [
          fitOf({ microBatch: settings.microBatch + 1 }),
          fitOf({ context: Math.min(512, settings.context + 1) }),
        ]) {
          for (const bound of ['lower', 'expected', 'upper'] as const) {
            expect(more.total[bound].value).toBeGreaterThanOrEqual(base.total[bound].value);
            for (const [at, { total }] of base.stages.entries()) {
              expect(more.stages[at]?.total[bound].value).toBeGreaterThanOrEqual(
                total[bound].value,
              );
            }
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('holds the whole model on the GPUs that share it, and at least the average on the fullest', () => {
    fc.assert(
      fc.property(models, settingsOfAny, (index, settings) => {
        const model = modelOf(index);
        const setting = settingOf(settings);
        const { stages, fullest, total } = fitTrainingMemory(model, setting);
        const onStages = stages.reduce((sum, { parameters }) => sum + Number(parameters.value), 0);
        const stored = tensorsOf(model)
          .filter(({ role }) => role === 'parameter')
          .reduce((sum, { elements }) => sum + elements, 0);
        expect(onStages * setting.tensorParallel).toBeGreaterThanOrEqual(stored);
        const totals = stages.map((stage) => stage.total.expected.value);
        const average = totals.reduce((sum, bytes) => sum + bytes, 0) / totals.length;
        expect(total.expected.value).toBeGreaterThanOrEqual(average * (1 - 1e-9));
        expect(stages[fullest]?.total.expected).toEqual(total.expected);
        for (const bound of ['lower', 'expected', 'upper'] as const) {
          const most = Math.max(...stages.map((stage) => stage.total[bound].value));
          expect(total[bound].value).toBe(most);
        }
        expect(total.lower.value).toBeLessThanOrEqual(total.expected.value);
        expect(total.expected.value).toBeLessThanOrEqual(total.upper.value);
      }),
      { numRuns: 60 },
    );
  });

  it('has figures that equal their formulas', () => {
    fc.assert(
      fc.property(models, settingsOfAny, (index, settings) => {
        const model = modelOf(index);
        const { stages } = fitTrainingMemory(model, settingOf(settings));
        const figures = stages.flatMap(({ parts, activations, exactBytes, parameters }) => [
          ...parts.map(({ bytes }) => bytes),
          ...activations.parts.map(({ bytes }) => bytes),
          exactBytes,
          parameters,
        ]);
        for (const { formula, inputs, value, source } of figures) {
          expect(evaluateIndependently(formula, inputs)).toBe(BigInt(value));
          expect(source).not.toBe('');
        }
      }),
      { numRuns: 30 },
    );
  });
});

it('the fullest stage decides each bound of the memory', () => {
  // The first of two stages keeps two micro-batches; the last has temporary logits, which the lower bound omits.
  const model = gptLike({
    vocab_size: 20_000,
    n_positions: 2048,
    n_embd: 512,
    n_layer: 16,
    n_head: 8,
    activation_function: 'gelu_pytorch_tanh',
  });
  const settings = {
    context: 2048,
    microBatch: 4,
    pipelineParallel: 2,
    recompute: 'selective',
  } as const;
  const { usable: _, ...gpu } = H100(2).gpu;
  const fitOn = (memoryBytes: number) =>
    fitTrainingMemory(
      model,
      fitSetting({ ...settings, cluster: { ...H100(2), gpu: { ...gpu, memoryBytes } } }),
    );
  const { stages, fullest, total } = fitOn(80e9);
  const [first, last] = stages.map((stage) => stage.total);
  if (!first || !last) throw new Error('two stages');
  expect(fullest).toBe(1);
  expect(first.lower.value).toBeGreaterThan(last.lower.value);
  expect(total.lower).toEqual(first.lower);
  expect(total.upper).toEqual(last.upper);
  // Room for the minimum of the last stage, but not for that of the first.
  expect(fitOn((first.lower.value + last.lower.value) / 2).verdict).toBe('does not fit');
});

describe('impossible divisions', () => {
  const refused = (settings: Partial<TrainingFitSetting>) => () =>
    fitTrainingMemory(TINY, fitSetting({ context: 16, ...settings }));

  it('are refused with the reason', () => {
    expect(refused({ cluster: H100(6), tensorParallel: 3 })).toThrow(
      '--tensor-parallel: 3 GPUs cannot share the 4 heads of transformer.h.0.attn equally',
    );
    expect(refused({ cluster: H100(6), tensorParallel: 4 })).toThrow(
      '--tensor-parallel: 4 does not divide 6 GPUs',
    );
    expect(refused({ cluster: H100(8), pipelineParallel: 4 })).toThrow(
      '--pipeline-parallel: expected at most 3 stages, one for each block, found 4',
    );
    expect(refused({ context: 65 })).toThrow('65 tokens are more than the 64 positions');
  });

  it('are refused with the nearest divisible size', () => {
    try {
      refused({ cluster: H100(6), tensorParallel: 3 })();
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'usage', suggestion: 'write 2 or 4' });
    }
  });
});
