import { describe, expect, it } from 'vitest';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { forwardFlopsOf, operationsIn } from '../../../src/model/budget/flops.js';
import { inPackage, readJson } from '../../fixtures.js';

/** FLOPs of a forward pass counted by FlopCounterMode of PyTorch. */
interface Counted {
  readonly batch: number;
  readonly tokens: number;
  readonly products?: number;
  readonly scores?: number;
  readonly convolutions?: number;
}

const { cases } = readJson<{ cases: Readonly<Record<string, Counted>> }>('fixtures/flops.json');

/** FLOPs of convolutions in PyTorch, which also computes the kernel − 1 positions of the padding. */
function withPadding(model: LanguageModel, { batch, tokens }: Counted): number {
  let flops = 0;
  for (const operation of operationsIn(model)) {
    if (operation.kind !== 'convolution') continue;
    const { channels, kernel } = operation;
    flops += 2 * batch * (tokens + kernel - 1) * channels * kernel;
  }
  return flops;
}

describe('FLOPs of a forward pass', () => {
  it.each(Object.entries(cases))('are those of FlopCounterMode: %s', async (name, counted) => {
    const { batch, tokens, products = 0, scores = 0, convolutions = 0 } = counted;
    const { model } = await loadModelFile(inPackage('fixtures/hf', name, 'config.json'));
    const { parts } = forwardFlopsOf(model, { batch, context: tokens, causal: false });
    const sum = (kind: string) =>
      parts.reduce((all, part) => all + (part.kind === kind ? Number(part.flops.value) : 0), 0);
    expect({
      products: sum('projection'),
      scores: sum('scores'),
      convolutions: withPadding(model, counted),
    }).toEqual({ products, scores, convolutions });
  });
});

/** Sizes of the recurrent layers of a config, by hand. */
interface Recurrence {
  readonly layers: number;
  /** Channels, and values of the state for each. */
  readonly inner: number;
  readonly state: number;
}

type Config = Readonly<Record<string, number>>;

const repeated = (types: unknown, kind: string) =>
  (types as readonly string[]).filter((type) => type === kind).length;

/** FLOPs per token outside matrix products, which FlopCounterMode does not count. */
const BY_HAND: Readonly<Record<string, readonly [(of: Config) => Recurrence, number, number]>> = {
  // h = exp(Δ·A)·h + (Δ·B)·x, y = C·h + D·x: Δ·A, exp, ·h, Δ·B, ·x, +, C·h, + and D·x, +
  mamba: [
    (of) => ({
      layers: of.num_hidden_layers ?? 0,
      inner: of.intermediate_size ?? 0,
      state: of.state_size ?? 0,
    }),
    8,
    2,
  ],
  // h = a·h + B·(Δ·x), y = C·h + D·x: a·h, B·, +, C·h, + and Δ·x, D·x, +
  mamba2: [
    (of) => ({
      layers: of.num_hidden_layers ?? 0,
      inner: (of.num_heads ?? 0) * (of.head_dim ?? 0),
      state: of.state_size ?? 0,
    }),
    5,
    3,
  ],
  // S = a·S, S = S + k·(β·(v − k·S)), y = q·S: a·S, k·S, +, k·, +, q·S, + and v −, β·
  'qwen3-next-7-12': [
    (of) => ({
      layers: repeated(of.layer_types, 'linear_attention'),
      inner: (of.linear_num_value_heads ?? 0) * (of.linear_value_head_dim ?? 0),
      state: of.linear_key_head_dim ?? 0,
    }),
    7,
    2,
  ],
};

describe('FLOPs of a recurrence', () => {
  it.each(Object.entries(BY_HAND))(
    'are those of its definition: %s',
    async (name, [sizesOf, perValue, perChannel]) => {
      const file = inPackage('fixtures/hf', name, 'config.json');
      const { layers, inner, state } = sizesOf(readJson('fixtures/hf', name, 'config.json'));
      expect(layers * inner * state).toBeGreaterThan(0);
      const { model } = await loadModelFile(file);
      const [batch, context] = [2, 13];
      const { parts } = forwardFlopsOf(model, { batch, context, causal: false });
      const scans = parts.filter(({ kind }) => kind === 'scan');
      const total = scans.reduce((all, { flops }) => all + Number(flops.value), 0);
      expect(total).toBe(batch * context * layers * inner * (perValue * state + perChannel));
    },
  );
});
