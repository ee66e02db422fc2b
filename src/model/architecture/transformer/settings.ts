/** Settings that transformer families share, with Hugging Face's keys. */
import * as z from 'zod';
import { slidingWindow } from '../constructors/attention-layers.js';
import type { Dimensions, Ignored, ModelChange, Setting, StoredShapes } from '../family.js';
import type { ActivationName, Window } from '../layer.js';
import { TRAINING_SECTIONS } from '../training-section.js';

/** Values of a document's keys. */
export type SettingsOf<Settings extends z.ZodRawShape> = z.output<z.ZodObject<Settings>>;

// Settings that depend on the writer of a checkpoint, not on the model

/** Prefix of the head's name, by the prefix of a language model inside a multimodal one. */
const INNER: Readonly<Record<string, string>> = {
  'model.language_model.': '',
  'language_model.model.': 'language_model.',
  // transformers 5 saves audio models with a prefix that it adds once too often, and loads these files.
  'language_model.model.model.': 'language_model.',
  'language_model.': '',
  'model.text_model.': '',
  'text_model.model.': 'text_model.',
  'text_model.': '',
  'thinker.model.': 'thinker.',
};

/** Prefixes of a family's names. */
export interface Prefixes {
  /** In files of the whole model: `transformer.` */
  readonly own: string;
  /** In files of the bare model, if a part of it remains there. */
  readonly bare?: string | undefined;
  /** In memory, if it differs. */
  readonly held?: string;
}

/** Prefix of the head by that of the blocks, for a model inside another one, with its head (BLIP-2) or without. */
const innerPrefixes = ({ own, bare = '' }: Prefixes): ReadonlyMap<string, string> =>
  new Map([
    [`language_model.${own}`, 'language_model.'],
    ...Object.entries(INNER).map(([inner, place]) => [`${inner}${bare}`, place] as const),
  ]);

const allOf = (prefixes: Prefixes): string[] => {
  const { own, bare = '', held = own } = prefixes;
  return [...new Set([own, '', bare, held, ...innerPrefixes(prefixes).keys()])];
};

/** Prefix of the bare model's names in a checkpoint of the whole model, which can be a part of a larger one. */
export const storedPrefix = (prefixes: Prefixes) =>
  z
    .literal(allOf(prefixes))
    .default(prefixes.own)
    .describe(
      `Names begin with ${prefixes.own}, with the path in a larger model, or, in bare files, ${prefixes.bare ? `with ${prefixes.bare} or ` : ''}without`,
    );

const USUAL: Prefixes = { own: 'model.' };

/** Path of the head for blocks with a prefix. @param head Its name in the model alone. */
export const headPath = (prefix: string, prefixes = USUAL, head = 'lm_head'): string =>
  `${innerPrefixes(prefixes).get(prefix) ?? ''}${head}`;

/**
 * `model.stored_prefix` of a checkpoint.
 * @param name Unprefixed tensor name that every model has.
 */
export function prefixStoredIn(
  stored: StoredShapes,
  prefixes: Prefixes,
  name: string,
): readonly Setting[] {
  const value = allOf(prefixes).find((each) => stored.shapeOf(`${each}${name}`) !== undefined);
  return value === undefined ? [] : [{ path: 'model.stored_prefix', value }];
}

/** Settings of a decoder with the usual names. */
export const decoderStored = (stored: StoredShapes): readonly Setting[] =>
  prefixStoredIn(stored, USUAL, 'embed_tokens.weight');

/** Settings of a decoder with experts in some layers. */
export const mixtureStored = (stored: StoredShapes): readonly Setting[] => [
  ...decoderStored(stored),
  ...expertsStoredIn(stored),
];

const PACKED = /\.experts\.gate_up_proj$/;
const SEPARATE = /\.experts\.(?:0|[1-9]\d*)\./;

/** `model.experts_stored` of a checkpoint: all experts in two tensors, or separate tensors for each. */
function expertsStoredIn(stored: StoredShapes): readonly Setting[] {
  for (const name of stored.names()) {
    const value = PACKED.test(name) ? 'packed' : SEPARATE.test(name) ? 'separate' : undefined;
    if (value !== undefined) return [{ path: 'model.experts_stored', value }];
  }
  return [];
}

/** Buffers of old files that follow from the config; `**` and `*` work as in `Ignored`. */
export const oldBuffers = (patterns: readonly string[]): readonly Ignored[] =>
  patterns.map((pattern) => ({
    pattern,
    what: 'old files keep them, and they follow from the config',
    isBuffer: true,
  }));

/** Settings that tie the head to the embedding. */
export const tyingSettings = ({ tied }: ModelChange): readonly Setting[] =>
  tied === undefined ? [] : [{ path: 'model.tie_word_embeddings', value: tied }];

export const positiveInteger = z.int().min(1);
// Files on the Hub use −1 for none.
const tokenId = z.int();
export const epsilon = z.number().min(0);
export const flag = z.boolean();

/** A number from 1 with its default and meaning. */
export const count = (byDefault: number, meaning: string) =>
  positiveInteger.default(byDefault).describe(meaning);

/** A flag with its default and meaning. */
export const toggle = (byDefault: boolean, meaning: string) =>
  flag.default(byDefault).describe(meaning);

export const normEpsilon = (byDefault: number) =>
  epsilon.default(byDefault).describe('Epsilon of the norms');

export const tiedHead = (byDefault: boolean) => toggle(byDefault, 'The head reads the embedding');

/** Activation names in transformers (`ACT2FN`). */
const ACTIVATION_NAMES = {
  silu: 'silu',
  swish: 'silu',
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'geluTanh',
  gelu_fast: 'geluTanh',
  gelu_pytorch_tanh: 'geluTanh',
  gelu_python_tanh: 'geluTanh',
  gelu_accurate: 'geluTanh',
  gelu_10: 'geluClipped',
  quick_gelu: 'quickGelu',
  relu: 'relu',
  relu2: 'reluSquared',
  relu6: 'relu6',
  leaky_relu: 'leakyRelu',
  hardswish: 'hardSwish',
  mish: 'mish',
  tanh: 'tanh',
  sigmoid: 'sigmoid',
  laplace: 'laplace',
  linear: 'identity',
  sqrtsoftplus: 'sqrtSoftplus',
} as const satisfies Record<string, ActivationName>;

export type ActivationWord = keyof typeof ACTIVATION_NAMES;

const ACTIVATION_WORDS = Object.keys(ACTIVATION_NAMES) as [ActivationWord, ...ActivationWord[]];

export const activationWord = z.enum(ACTIVATION_WORDS);

export const activationOf = (word: ActivationWord): ActivationName => ACTIVATION_NAMES[word];

/** GELUs that transformers computes from products, powers and a tanh or erf. */
const COMPOSED: readonly string[] = [
  'gelu_new',
  'gelu_fast',
  'gelu_python',
] satisfies ActivationWord[];

export const isComposed = (word: ActivationWord): boolean => COMPOSED.includes(word);

/** Keys without an effect on structure or output. */
const BOOKKEEPING = {
  bos_token_id: z.union([tokenId, z.array(tokenId)]).nullish(),
  eos_token_id: z.union([tokenId, z.array(tokenId)]).nullish(),
  pad_token_id: tokenId.nullish(),
  use_cache: flag.nullish(),
  initializer_range: z.number().nullish().describe('Training only'),
  attention_dropout: z.number().nullish().describe('Training only'),
  torch_dtype: z.string().nullish().describe('Of the checkpoint that it came with'),
};

export const BOOKKEEPING_KEYS: ReadonlySet<string> = new Set(Object.keys(BOOKKEEPING));

/** Document of a family: its model and its training. */
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

/** Bias and activation settings with their usual descriptions. */
export const attentionBias = toggle(false, 'Biases in all four products of attention');
export const mlpBias = toggle(false, 'Biases in the feed-forward network');
export const clipSetting = z
  .number()
  .positive()
  .nullable()
  .default(null)
  .describe('Queries, keys and values are cut to this size; null: they are not');
export const gateActivation = activationWord.default('silu').describe('Activation of the gate');

export interface SizeDefaults {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads?: number;
  readonly head_dim?: number;
  readonly max_position_embeddings: number;
}

/** Default sizes of Llama, and of families that keep most of them. */
export const LLAMA_SIZES = {
  vocab_size: 32_000,
  hidden_size: 4096,
  intermediate_size: 11_008,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  max_position_embeddings: 2048,
} as const satisfies SizeDefaults;

/** Sizes of every Llama-like model, with the defaults of its class in transformers. */
export const decoderSizes = (defaults: SizeDefaults) => ({
  vocab_size: count(defaults.vocab_size, 'Rows of the embedding and of the head'),
  hidden_size: count(defaults.hidden_size, 'Width of the residual stream'),
  intermediate_size: count(defaults.intermediate_size, 'Width inside the feed-forward network'),
  num_hidden_layers: count(defaults.num_hidden_layers, 'Number of blocks'),
  num_attention_heads: count(defaults.num_attention_heads, 'Query heads'),
  num_key_value_heads: positiveInteger
    .nullable()
    .default(defaults.num_key_value_heads ?? null)
    .describe('Key and value heads, a divisor of the query heads; null: the same number'),
  head_dim: positiveInteger
    .nullable()
    .default(defaults.head_dim ?? null)
    .describe('Width of a head; null: hidden_size / num_attention_heads'),
  max_position_embeddings: count(defaults.max_position_embeddings, 'Longest input, in tokens'),
  stored_prefix: storedPrefix(USUAL),
});

/**
 * Range from 2, as in later small models, to 4. At 8/3, a gated network is as large as an ungated one of 4 (arXiv
 * 2002.05202).
 */
export const FEED_FORWARD_PER_CHANNEL = [2, 4] as const;

/** Sizes of a model with the keys of `decoderSizes`. */
export const DECODER_DIMENSIONS = {
  vocabulary: 'vocab_size',
  positions: 'max_position_embeddings',
  depth: 'num_hidden_layers',
  width: 'hidden_size',
  heads: 'num_attention_heads',
  keyValueHeads: 'num_key_value_heads',
  feedForward: { key: 'intermediate_size', perChannel: FEED_FORWARD_PER_CHANNEL },
} as const satisfies Dimensions;

/** Other names of GPT-2's keys in a `config.json`. */
export const GPT_NAMES = {
  n_positions: ['max_position_embeddings'],
  n_embd: ['hidden_size'],
  n_layer: ['num_hidden_layers'],
  n_head: ['num_attention_heads'],
} as const;

/** Flag for attention to later tokens; no supported model has it. */
export const causalOnly = z.literal(false).nullish().describe('Attention is causal');

/** Keys of models without positions in some of their layers. */
export const unrotatedLayers = {
  no_rope_layers: z
    .array(z.literal([0, 1]))
    .nullish()
    .describe('For each layer 1 where positions are rotated, 0 where there are none'),
  no_rope_layer_interval: count(
    4,
    'Without no_rope_layers: one layer in this many has no positions',
  ),
};

/** Keys of models with sliding windows in some of their layers. */
export const windowSettings = (tokens: number | null = null) => ({
  sliding_window: z
    .int()
    .min(0)
    .nullable()
    .default(tokens)
    .describe('How many keys a position sees, its own included; null: all before it'),
  layer_types: z
    .array(z.enum(['sliding_attention', 'full_attention']))
    .nullish()
    .describe('Which layers have the window'),
});

/** Key of models with experts in the layers that it lists. */
export const mlpLayerTypes = z
  .array(z.enum(['dense', 'sparse']))
  .nullish()
  .describe('Which layers have experts: sparse, or none: dense');

interface WindowSettings {
  readonly sliding_window: number | null;
  readonly layer_types?: readonly string[] | null | undefined;
}

/** Whether layer `index` has a window: from `layer_types`, or the family's rule if the config has no list. */
export const slidesAt = (
  { layer_types: types }: Pick<WindowSettings, 'layer_types'>,
  index: number,
  slidesByRule: boolean,
): boolean => (types ? types[index] === 'sliding_attention' : slidesByRule);

/** Window of layer `index`, if `slidesAt` it. */
export function windowAt(
  config: WindowSettings,
  index: number,
  slidesByRule: boolean,
): Window | undefined {
  const { sliding_window: tokens } = config;
  return slidesAt(config, index, slidesByRule) && tokens ? slidingWindow(tokens) : undefined;
}

/** Keys of models with an optional window in the upper layers. */
export const upperWindowSettings = {
  ...windowSettings(4096),
  use_sliding_window: toggle(false, 'Whether any layer has the window'),
  max_window_layers: z
    .int()
    .min(0)
    .default(28)
    .describe('The first layer that has the window, if any does'),
};

export const upperWindows = (
  config: WindowSettings & {
    readonly use_sliding_window: boolean;
    readonly max_window_layers: number;
  },
  index: number,
): Window | undefined =>
  config.use_sliding_window
    ? windowAt(config, index, index >= config.max_window_layers)
    : undefined;

/** Layout of heads, with defaults filled in. */
export interface FilledHeads {
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

export const headsOf = (config: HeadSettings): FilledHeads => ({
  hidden: config.hidden_size,
  heads: config.num_attention_heads,
  keyValueHeads: config.num_key_value_heads ?? config.num_attention_heads,
  headDim: config.head_dim ?? Math.floor(config.hidden_size / config.num_attention_heads),
});

/** Storage of the experts' tensors; it depends on the writer of the file, and a checkpoint shows it. */
export const expertsStored = z
  .enum(['separate', 'packed'])
  .default('separate')
  .describe('Names of the experts: apart, or packed into two tensors as transformers 5 holds them');

interface SparseDefaults {
  readonly experts: number;
  readonly expertsPerToken: number;
  readonly inner: number;
}

/** Keys of Qwen's mixtures; some layers can have none. */
export const sparseSettings = ({ experts, expertsPerToken, inner }: SparseDefaults) => ({
  num_experts: z.int().min(0).default(experts).describe('Experts to choose from'),
  num_experts_per_tok: count(expertsPerToken, 'Experts that a token goes to'),
  moe_intermediate_size: count(inner, 'Width inside an expert'),
  norm_topk_prob: toggle(false, 'Weights of the chosen experts sum to one'),
  decoder_sparse_step: count(1, 'Period of the layers with experts'),
  mlp_only_layers: z.array(z.int().min(0)).default([]).describe('Layers without experts'),
  experts_stored: expertsStored,
});

export const hasExperts = (
  config: Pick<
    SettingsOf<ReturnType<typeof sparseSettings>>,
    'num_experts' | 'decoder_sparse_step' | 'mlp_only_layers'
  >,
  index: number,
): boolean =>
  !config.mlp_only_layers.includes(index) &&
  config.num_experts > 0 &&
  (index + 1) % config.decoder_sparse_step === 0;

/** Rotated part of a head. */
export const partOfHead = (part: number) =>
  z.number().positive().max(1).default(part).describe('The part of a head that is rotated');
