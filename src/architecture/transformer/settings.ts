/** What configs of transformers say, in the words of Hugging Face: the parts that families share. */
import * as z from 'zod';
import { defineRules } from '../family.js';
import type { ActivationName } from '../layer.js';
import { TRAINING_SECTIONS } from '../training.js';

export const count = z.int().min(1);
const tokenId = z.int().min(0);
export const epsilon = z.number().positive();
export const flag = z.boolean();

/** Names of activations as transformers spells them (`ACT2FN`). */
const ACTIVATION_NAMES = {
  silu: 'silu',
  swish: 'silu',
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'geluTanh',
  gelu_fast: 'geluTanh',
  gelu_pytorch_tanh: 'geluTanh',
  quick_gelu: 'quickGelu',
  relu: 'relu',
  relu2: 'reluSquared',
} as const satisfies Record<string, ActivationName>;

type ActivationWord = keyof typeof ACTIVATION_NAMES;

const ACTIVATION_WORDS = Object.keys(ACTIVATION_NAMES) as [ActivationWord, ...ActivationWord[]];

export const activationWord = z.enum(ACTIVATION_WORDS);

export const activationOf = (word: ActivationWord): ActivationName => ACTIVATION_NAMES[word];

/** Keys that say nothing of what a model is made of or computes. */
const BOOKKEEPING = {
  bos_token_id: z.union([tokenId, z.array(tokenId)]).nullish(),
  eos_token_id: z.union([tokenId, z.array(tokenId)]).nullish(),
  pad_token_id: tokenId.nullish(),
  use_cache: flag.nullish(),
  initializer_range: z.number().nullish().describe('Training only'),
  attention_dropout: z.number().nullish().describe('Training only'),
  torch_dtype: z.string().nullish().describe('Of the checkpoint that it came with'),
};

/** A document of a family: its model, and how it is trained. */
export function transformerDocument<Name extends string, Shape extends z.ZodRawShape>(
  family: Name,
  shape: Shape,
) {
  const model = z
    .strictObject({
      family: z.literal(family).describe('The kind of model'),
      ...shape,
      ...BOOKKEEPING,
    })
    .describe('The model itself, with the keys of its config.json');
  return z.looseObject({ model, ...TRAINING_SECTIONS });
}

/** Sizes that every Llama-like model states. */
export const decoderSizes = (defaults: {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly max_position_embeddings: number;
  readonly rms_norm_eps: number;
}) => ({
  vocab_size: count.default(defaults.vocab_size).describe('Rows of the embedding and of the head'),
  hidden_size: count.default(defaults.hidden_size).describe('Width of the residual stream'),
  intermediate_size: count
    .default(defaults.intermediate_size)
    .describe('Width inside the feed-forward network'),
  num_hidden_layers: count.default(defaults.num_hidden_layers).describe('Number of blocks'),
  num_attention_heads: count.default(defaults.num_attention_heads).describe('Query heads'),
  num_key_value_heads: count
    .nullish()
    .describe('Key and value heads, a divisor of the query heads [as many]'),
  head_dim: count.nullish().describe('Width of a head [hidden_size / num_attention_heads]'),
  max_position_embeddings: count
    .default(defaults.max_position_embeddings)
    .describe('Longest input, in tokens'),
  rms_norm_eps: epsilon.default(defaults.rms_norm_eps).describe('Epsilon of the norms'),
});

/** How heads are laid out, with what follows from other values filled in. */
export interface Heads {
  readonly hidden: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
}

export interface HeadSettings {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads?: number | null | undefined;
  readonly head_dim?: number | null | undefined;
}

export const headsOf = (config: HeadSettings): Heads => ({
  hidden: config.hidden_size,
  heads: config.num_attention_heads,
  keyValueHeads: config.num_key_value_heads ?? config.num_attention_heads,
  headDim: config.head_dim ?? config.hidden_size / config.num_attention_heads,
});

/** The number nearest to `wanted` that divides `whole`. */
export function nearestDivisor(wanted: number, whole: number): number {
  // One always divides, so the search ends; 4096 steps away nothing is near.
  for (let step = 0; step < 4096; step++) {
    if (wanted - step >= 1 && whole % (wanted - step) === 0) return wanted - step;
    if (whole % (wanted + step) === 0) return wanted + step;
  }
  return 1;
}

/** Heads that must divide the width unless a head's own is given; key-value heads that divide the heads. */
export const headRules = defineRules<{ readonly model: HeadSettings }>([
  {
    severity: 'error',
    reads: ['model.num_attention_heads', 'model.hidden_size', 'model.head_dim'],
    check: ({ model: { num_attention_heads: heads, hidden_size: hidden, head_dim } }) =>
      head_dim == null && hidden % heads !== 0
        ? {
            message: `${heads} heads do not divide hidden_size ${hidden}`,
            suggestion: `write num_attention_heads: ${nearestDivisor(heads, hidden)}, or give head_dim`,
          }
        : undefined,
  },
  {
    severity: 'error',
    reads: ['model.num_key_value_heads', 'model.num_attention_heads'],
    check: ({ model: { num_attention_heads: heads, num_key_value_heads: shared } }) =>
      shared != null && heads % shared !== 0
        ? {
            message: `${shared} key-value heads do not divide ${heads} heads`,
            suggestion: `write num_key_value_heads: ${nearestDivisor(shared, heads)}`,
          }
        : undefined,
  },
]);

/** A token id of a training that no row of the embedding is for, and a longer context than positions. */
export const contextRules = (
  positionsKey: string,
  positionsOf: (model: Record<string, unknown>) => unknown,
) =>
  defineRules<{
    readonly model: object;
    readonly training?: { readonly max_seq_length?: number | undefined } | null | undefined;
  }>([
    {
      severity: 'error',
      reads: ['training.max_seq_length', `model.${positionsKey}`],
      check: ({ model, training }) => {
        const positions = positionsOf(model as Record<string, unknown>);
        const length = training?.max_seq_length;
        return length !== undefined && typeof positions === 'number' && length > positions
          ? {
              message: `sequences of ${length} tokens are longer than ${positionsKey} ${positions}`,
              suggestion: `write at most ${positions}, or raise model.${positionsKey}`,
            }
          : undefined;
      },
    },
  ]);
