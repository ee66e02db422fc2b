/** MiniGPT: a small Llama-like decoder with grouped-query attention and its own names. */
import * as z from 'zod';
import { groupBy } from '../../../base/values.js';
import { rotary } from '../constructors/attention-layers.js';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import {
  causalModel,
  residualBlock,
  separateAttention,
  separateMlp,
} from '../transformer/decoder-parts.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { DECODER_RULES } from '../transformer/rules.js';
import {
  count,
  DECODER_DIMENSIONS,
  flag,
  headsOf,
  normEpsilon,
  positiveInteger,
  tiedHead,
  toggle,
  transformerDocument,
  tyingSettings,
} from '../transformer/settings.js';

/** Default width of the feed-forward network, as a multiple of the model's width. */
const MLP_EXPANSION = 4;

const schema = transformerDocument('minigpt', {
  vocab_size: count(10_000, 'Rows of the embedding and of the head'),
  hidden_size: positiveInteger.describe('Width of the residual stream'),
  num_hidden_layers: positiveInteger.describe('Number of blocks'),
  num_attention_heads: positiveInteger.describe('Query heads'),
  num_key_value_heads: positiveInteger
    .nullish()
    .describe('Key and value heads [default: a quarter of the query heads, with use_gqa]'),
  intermediate_size: positiveInteger
    .nullish()
    .describe('Width inside the feed-forward network [default: 4 · hidden_size]'),
  max_position_embeddings: count(512, 'Longest input, in tokens'),
  rms_norm_eps: normEpsilon(1e-6),
  rope_theta: z.number().positive().default(10_000).describe('Base of the rotary frequencies'),
  hidden_act: z.literal(['swiglu', 'silu']).default('swiglu').describe('SwiGLU, by either name'),
  use_rope: z.literal(true).default(true).describe('Positions are always rotary'),
  use_gqa: toggle(true, 'false: a key and value head for every query head'),
  tie_word_embeddings: tiedHead(true),
  flash_attn: flag.nullish(),
  dropout: z.number().nullish().describe('Training only'),
});

/** Keys in the project's course and in its first configs, and the settings that they name. */
const SETTING_NAMES = {
  num_layers: 'num_hidden_layers',
  n_layers: 'num_hidden_layers',
  n_heads: 'num_attention_heads',
  d_model: 'hidden_size',
  d_ff: 'intermediate_size',
  max_seq_len: 'max_position_embeddings',
  num_heads: 'num_attention_heads',
  num_kv_heads: 'num_key_value_heads',
} as const satisfies Record<string, keyof (typeof schema)['shape']['model']['shape']>;

const minigptNames = (settings: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    [...groupBy(Object.entries(settings), ([, setting]) => setting)].map(([setting, names]) => [
      setting,
      names.map(([name]) => name),
    ]),
  );

export const minigpt = defineFamily({
  name: 'minigpt',
  title: 'MiniGPT: small decoders with grouped-query attention',
  schema,
  rules: DECODER_RULES,
  confusions: [],
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    names: minigptNames(SETTING_NAMES),
  }),
  settingNames: SETTING_NAMES,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, rms_norm_eps: eps, num_attention_heads } = config;
    const heads = headsOf({
      ...config,
      // As in the original: src/model/config.py of cklxx/mini-llm.
      num_key_value_heads: config.use_gqa
        ? (config.num_key_value_heads ?? Math.max(1, Math.floor(num_attention_heads / 4)))
        : num_attention_heads,
    });
    return causalModel({
      paths: { embedding: 'token_embedding', blocks: 'transformer_blocks', head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.max_position_embeddings,
      tied: config.tie_word_embeddings,
      blocks: config.num_hidden_layers,
      blocksKey: 'num_hidden_layers',
      norm: rmsNormLayer('layer_norm', hidden, eps),
      block: (name) =>
        residualBlock(name, {
          attention: [
            rmsNormLayer(`${name}.norm1`, hidden, eps),
            separateAttention(`${name}.attention`, {
              ...heads,
              rotary: rotary(`${name}.attention.rotary`, {
                base: config.rope_theta,
                headDim: heads.headDim,
              }),
            }),
          ],
          mlp: [
            rmsNormLayer(`${name}.norm2`, hidden, eps),
            separateMlp(`${name}.feed_forward`, {
              hidden,
              inner: config.intermediate_size ?? MLP_EXPANSION * hidden,
              activation: 'silu',
              leaves: ['w_gate', 'w_up', 'w_down'],
            }),
          ],
        }),
    });
  },
});
