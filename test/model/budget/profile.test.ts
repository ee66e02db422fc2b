import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import type { Figure } from '../../../src/model/budget/figure.js';
import { forwardFlopsOf, trainingFlopsOf } from '../../../src/model/budget/flops.js';
import { OPTIMIZER_NAMES } from '../../../src/model/budget/optimizers.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { blockBudgets, profileModel } from '../../../src/model/budget/profile-model.js';
import { stateOf } from '../../../src/model/budget/state.js';
import { trainingMemoryOf } from '../../../src/model/budget/training-budget.js';
import { hybridCases } from '../../fixtures.js';
import { evaluateIndependently } from './independent.js';

const build = (config: Record<string, unknown>) =>
  hybrid.build(hybrid.schema.parse({ model: config }));
const TINY = build(presetDocument('hybrid', 'tiny').model);
const ORIGINAL = build({ srte_share_across_layers: false });

/**
 * configs/hybrid/tiny.yaml by hand: V 256, H 64, 2 layers, gate rank 16, SRTE of rank 8, tied head. Of 4 heads of 16,
 * 3 are local with window 32 and 1 is global. So D = 128, R = 4, S = 64, K = 4.
 */
describe('the profile of tiny.yaml at 1 × 64 tokens, computed by hand,', () => {
  const full = { batch: 1, context: 64, causal: false } as const;
  const { parts, total, macs } = forwardFlopsOf(TINY, full);
  const part = (component: string, kind: string) =>
    parts.find((each) => each.component === component && each.kind === kind)?.flops.value;

  it('has these forward FLOPs', () => {
    // Projections: 2 FLOP × 64 tokens × 2 layers = 256 for each weight of a layer.
    // in_proj 256·64 + x_proj (4 + 128)·128 + dt_proj 128·4 + out_proj 64·128 = 41,984
    expect(part('mamba', 'projection')).toBe(256 * 41_984);
    // q, k, v, out: 4 · 64·64
    expect(part('attention', 'projection')).toBe(256 * 16_384);
    // net.0 64·128 + net.2 64·64 + residual 64·128
    expect(part('alignment', 'projection')).toBe(256 * 20_480);
    // u 16·64 + d 64·16
    expect(part('gate', 'projection')).toBe(256 * 2_048);
    expect(part('fusion', 'projection')).toBe(256 * 64 * 64);
    // up 256·64 + down 64·256
    expect(part('mlp', 'projection')).toBe(256 * 32_768);
    // 64 low-rank rows times proj 64·8, once per layer
    expect(part('srte', 'projection')).toBe(256 * 512);
    // the tied head also multiplies: 2 · 64 · 256·64
    expect(part('head', 'projection')).toBe(2_097_152);
    // q·kᵀ and weights·v: 2 products × 2 FLOP × 64² pairs × 64 channels × 2 layers
    expect(part('attention', 'scores')).toBe(2 * 2 * 4_096 * 64 * 2);
    // 4 MACs for each of 128 channels
    expect(part('mamba', 'convolution')).toBe(256 * 512);
    // 8 operations for each of 128 · 64 state values, 2 for each of 128 channels, 64 tokens, 2 layers
    expect(part('mamba', 'scan')).toBe(64 * 2 * (8 * 8_192 + 2 * 128));
    // Per layer 15,073,280 + 65,536 (SRTE) + 65,536 + 4,210,688 + 1,048,576 = 20,463,616; and the head.
    expect(total.value).toBe(2 * 20_463_616 + 2_097_152);
    // Without scan and convolution, halved: (43,024,384 − 8,421,376 − 131,072) / 2
    expect(macs.value).toBe(17_235_968);
  });

  it('has these forward FLOPs for the pairs inside the mask', () => {
    // Window 32 < 64: 16 positions see 1…16 keys, 48 see 17: 136 + 816 = 952 pairs; global 64·65/2 = 2080.
    const { parts } = forwardFlopsOf(TINY, { ...full, causal: true });
    const scores = parts.find(({ kind }) => kind === 'scores')?.flops.value;
    // 4 FLOP × 2 layers × (3 heads · 16 · 952 + 16 · 2080)
    expect(scores).toBe(8 * (48 * 952 + 16 * 2_080));
  });

  it('has these training FLOPs', () => {
    const step = (recompute: 'none' | 'selective' | 'full') =>
      trainingFlopsOf(TINY, { ...full, recompute }).total.value;
    const again = 2 * 2 * 4_096 * 64 * 2 + 64 * 2 * (8 * 8_192 + 2 * 128); // scores and scan
    expect(step('none')).toBe(3 * 43_024_384);
    expect(step('selective')).toBe(3 * 43_024_384 + again);
    expect(step('full')).toBe(4 * 43_024_384);
  });

  it('has this state', () => {
    const state = stateOf(TINY, { batch: 1, context: 64, dtype: 'bf16' });
    // Local: 3 heads · 16 · 17 keys = 816; global: 16 · 64 = 1024. × 2 (k, v) × 2 bytes × 2 layers
    expect(state.keyValueCache.value).toBe((816 + 1_024) * 8);
    expect(state.keyValuePerToken.value).toBe(64 * 8);
    expect(state.keyValuePerTokenPastWindows.value).toBe(16 * 8);
    // 128 · 64 values and 128 · 3 inputs, × 2 bytes × 2 layers
    expect(state.mambaState.value).toBe(8_192 * 4);
    expect(state.convolutionState.value).toBe(384 * 4);
    expect(state.total.value).toBe(14_720 + 32_768 + 1_536);
  });

  it('has these activations', () => {
    const setting = { batch: 1, context: 64, precision: 'mixed', optimizer: 'adamw' } as const;
    const bytes = (recompute: 'none' | 'selective' | 'full') => {
      const { parts, total } = trainingMemoryOf(TINY, { ...setting, recompute }).activations;
      const byPart = Object.fromEntries(parts.map(({ part, bytes }) => [part, bytes.value]));
      return { ...byPart, total: total.value };
    };
    // Per layer, in 64 tokens × 2 bytes = 128 for each value of a token:
    const both = (values: number) => 2 * 128 * values;
    const kept = {
      norm: 5 * 128 * 64, // two in each layer and the last
      mamba: both(64 + 9 * 128 + 4 + 2 * 64),
      attention: both(64 + 4 * 64),
      alignment: both(4 * 64),
      gate: both(5 * 64 + 16),
      fusion: both(64),
      mlp: both(2 * 256),
      head: 128 * 64,
      logits: 4 * 64 * 256,
    };
    const sum = (parts: Record<string, number>) =>
      Object.values(parts).reduce((total, value) => total + value, 0);
    expect(bytes('selective')).toEqual({ ...kept, total: sum(kept) });
    // The softmax of 4 heads over 64 × 64, and 3 values for each of 128 · 64 states; 2 bytes, 2 layers.
    const dropped = { scores: 4 * 64 * 64 * 4, scanStates: both(3 * 128 * 64) };
    const none = { ...kept, ...dropped };
    expect(bytes('none')).toEqual({ ...none, total: sum(none) });
    // The inputs of both blocks; all of one but its input (one of its two norms); and the top.
    const { head, logits, norm, ...inBlocks } = none;
    const oneBlock = sum(inBlocks) / 2 + 128 * 64;
    const whole = { blockInputs: 2 * 128 * 64, oneBlock, norm: 128 * 64, head, logits };
    expect(bytes('full')).toEqual({ ...whole, total: sum(whole) });
  });

  it('has these bytes for each optimizer', () => {
    const n = 275_200;
    expect(countParameters(TINY).parameters).toBe(n);
    const optimizer = (name: (typeof OPTIMIZER_NAMES)[number], precision: 'mixed' | 'float32') =>
      trainingMemoryOf(TINY, {
        batch: 1,
        context: 8,
        precision,
        optimizer: name,
        recompute: 'none',
      }).optimizer.value;
    // A float32 master copy in mixed precision, then two moments, none, or one velocity.
    expect(optimizer('adamw', 'mixed')).toBe(12 * n);
    expect(optimizer('adamw', 'float32')).toBe(8 * n);
    expect(optimizer('sgd', 'mixed')).toBe(4 * n);
    expect(optimizer('sgd', 'float32')).toBe(0);
    expect(optimizer('sgd-momentum', 'mixed')).toBe(8 * n);
    // Tensors below 4096 values and embeddings keep float32 moments; all others here fill blocks of 256 exactly.
    const small = tensorsOf(TINY)
      .filter(
        (tensor) =>
          tensor.role === 'parameter' &&
          (tensor.elements < 4_096 || tensor === TINY.embedding.weight),
      )
      .reduce((total, { elements }) => total + elements, 0);
    const large = n - small;
    expect(optimizer('adamw-8bit', 'float32')).toBe(2 * large + (8 * large) / 256 + 8 * small);
  });
});

describe('FLOPs computed from the shapes of the state dict', () => {
  /** Weights of matrix products, by the names and shapes of the state dict. */
  const productsBelow = (model: ReturnType<typeof build>, prefix: string) =>
    tensorsOf(model)
      .filter(({ name, shape, role }) => {
        const isMatrix = shape.length === 2 && role === 'parameter' && name.endsWith('.weight');
        return isMatrix && name.startsWith(prefix);
      })
      .reduce((total, { shape: [rows = 0, columns = 0] }) => total + rows * columns, 0);

  it.each(hybridCases())('match the budget of each layer: $name', ({ config }) => {
    const model = build(config);
    const { hidden_size: hidden } = hybrid.schema.parse({ model: config }).model;
    const [batch, context] = [3, 5];
    const tokens = batch * context;
    const budgets = blockBudgets(model, {
      inference: { batch, context, dtype: 'f32', causal: false },
    });
    let expected = 2 * tokens * model.head.weight.elements;
    for (const [index, block] of model.blocks.entries()) {
      // A factorised SRTE multiplies once for each position, wherever its weight is stored.
      const srte =
        productsBelow(model, 'shared_srte.') + productsBelow(model, `${block.name}.srte.`);
      const own =
        productsBelow(model, `${block.name}.`) - productsBelow(model, `${block.name}.srte.`);
      const channels = 2 * hidden;
      const flops =
        2 * tokens * own +
        2 * context * srte +
        4 * batch * context * context * hidden + // scores, and their sums over v
        2 * tokens * channels * 4 + // the convolution's kernel
        tokens * channels * (8 * 64 + 2); // the scan over 64 states a channel
      expect(budgets[index]?.forwardFlops.value).toBe(flops);
      expected += flops;
    }
    const { total } = forwardFlopsOf(model, { batch, context, causal: false });
    expect(total.value).toBe(expected);
  });
});

describe('the original at 2,048 tokens', () => {
  it('keeps 319,258,624 bytes of keys and values in bf16', () => {
    // 32 layers × (30 heads · 513 keys + 2 heads · 2048) × 128 × 2 × 2 bytes
    const { keyValueCache } = stateOf(ORIGINAL, { batch: 1, context: 2048, dtype: 'bf16' });
    expect(keyValueCache.value).toBe(319_258_624);
  });

  it('trains in 16 bytes per parameter, plus buffers and activations', () => {
    const setting = { batch: 1, context: 2048, precision: 'mixed', recompute: 'none' } as const;
    const memory = trainingMemoryOf(ORIGINAL, { ...setting, optimizer: 'adamw' });
    const { weights, gradients, optimizer } = memory;
    const bytes = Number(weights.value) + Number(gradients.value) + Number(optimizer.value);
    expect(bytes).toBe(16 * 22_143_967_232);
  });
});

describe('every figure', () => {
  function* figuresOf(value: unknown): Generator<Figure> {
    if (typeof value !== 'object' || value === null) return;
    if ('formula' in value) yield value as Figure;
    else for (const inner of Object.values(value)) yield* figuresOf(inner);
  }

  const configs = fc.record({
    vocab_size: fc.integer({ min: 3, max: 200_000 }),
    num_layers: fc.integer({ min: 1, max: 5 }),
    head_pairs: fc.integer({ min: 1, max: 64 }),
    num_heads: fc.integer({ min: 1, max: 16 }),
    window_size: fc.integer({ min: 1, max: 4096 }),
    global_heads: fc.integer({ min: 0, max: 20 }),
    gate_rank: fc.integer({ min: 1, max: 500 }),
    max_position_embeddings: fc.constant(100_000),
    attention_type: fc.constantFrom('local_global', 'pyramidal'),
    srte_encoding: fc.constantFrom('learnable', 'sincos'),
    srte_share_across_layers: fc.boolean(),
    srte_factorized_rank: fc.integer({ min: 0, max: 100 }),
    use_alignment: fc.boolean(),
    tie_word_embeddings: fc.boolean(),
  });

  it('is the value of its formula, and the parts sum up to the total', () => {
    fc.assert(
      fc.property(
        configs,
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.boolean(),
        fc.constantFrom('none', 'selective', 'full'),
        fc.constantFrom(...OPTIMIZER_NAMES),
        fc.constantFrom('mixed', 'float32'),
        fc.constantFrom('i4', 'bf16', 'f32'),
        (
          { head_pairs, ...config },
          batch,
          context,
          causal,
          recompute,
          optimizer,
          precision,
          dtype,
        ) => {
          const model = build({ ...config, hidden_size: 2 * head_pairs * config.num_heads });
          const profile = profileModel(model, {
            inference: { batch, context, dtype, causal },
            training: { batch, context, precision, optimizer, recompute },
          });
          const figures = [...figuresOf(profile)];
          expect(figures.length).toBeGreaterThan(40);
          for (const { formula, inputs, value, source } of figures) {
            expect(evaluateIndependently(formula, inputs)).toBe(BigInt(value));
            expect(source).not.toBe('');
          }
          const counted = countParameters(model);
          expect(profile.parameters.total.value).toBe(counted.parameters);
          expect(profile.parameters.buffers.value).toBe(counted.buffers);
        },
      ),
      { numRuns: 60 },
    );
  });
});
