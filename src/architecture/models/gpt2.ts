/** GPT-2 (Radford et al. 2019): learned positions, transposed weights. */
import * as z from 'zod';
import { attention } from '../constructors/attention-layers.js';
import {
  activation,
  fusedProjection,
  layerNormLayer,
  learnedPositions,
  sequence,
  transposedLinear,
} from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS, unreadBut } from '../transformer/config-keys.js';
import { causalModel, residualBlock } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { headsDivide, lengthRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  epsilon,
  flag,
  GPT_DIMENSIONS,
  GPT_NAMES,
  isComposed,
  oldBuffers,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

const schema = transformerDocument('gpt2', {
  vocab_size: positiveInteger.default(50_257).describe('Rows of the embedding and of the head'),
  n_positions: positiveInteger.default(1024).describe('Rows of the positions: longest input'),
  n_embd: positiveInteger.default(768).describe('Width of the residual stream'),
  n_layer: positiveInteger.default(12).describe('Number of blocks'),
  n_head: positiveInteger.default(12).describe('Attention heads, a divisor of n_embd'),
  n_inner: positiveInteger.nullish().describe('Width inside the feed-forward network [4 · n_embd]'),
  activation_function: activationWord.default('gelu_new').describe('Activation between the two'),
  layer_norm_epsilon: epsilon.default(1e-5).describe('Epsilon of the norms'),
  scale_attn_weights: flag.default(true).describe('Scores are divided by the root of the width'),
  scale_attn_by_inverse_layer_idx: flag
    .default(false)
    .describe('… and by the number of the layer, from 1'),
  reorder_and_upcast_attn: flag.nullish().describe('The order of operations, not their result'),
  add_cross_attention: z
    .literal(false)
    .nullish()
    .describe('Cross-attention needs an encoder, which is not supported'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('transformer.'),
});

export const gpt2 = defineTransformer({
  title: 'GPT-2',
  presets: {
    gpt2: {
      title: 'GPT-2: 124M',
      model: {
        vocab_size: 50257,
        n_positions: 1024,
        n_embd: 768,
        n_layer: 12,
        n_head: 12,
      },
    },
  },
  schema,
  rules: [...headsDivide('n_head', 'n_embd'), ...lengthRules('n_positions')],
  dimensions: GPT_DIMENSIONS,
  huggingFace: {
    names: GPT_NAMES,
    harmless: {
      ...SUMMARY_KEYS,
      summary_last_dropout: 'of a head that classifies whole texts',
      ...harmless('of the first release', ['n_special', 'predict_special_tokens']),
    },
    limited: {
      ...NO_ROTARY_KEYS,
      n_ctx: unreadBut(
        (length, { n_positions = 1024, max_position_embeddings: positions = n_positions }) =>
          length === null || length === positions,
      ),
    },
  },
  storedSettings: (stored) => prefixStoredIn(stored, 'transformer.', 'wte.weight'),
  ignored: ({ model: { stored_prefix: prefix } }) =>
    oldBuffers([`${prefix}h.*.attn.bias`, `${prefix}h.*.attn.masked_bias`]),
  build({ model: config }) {
    const { n_embd: hidden, n_head: heads, stored_prefix: prefix } = config;
    const inner = config.n_inner ?? 4 * hidden;
    const headDim = hidden / heads;
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_epsilon);
    return causalModel({
      paths: { embedding: `${prefix}wte`, blocks: `${prefix}h`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.n_positions,
      tied: config.tie_word_embeddings,
      blocks: config.n_layer,
      blocksKey: 'n_layer',
      embeddingSteps: [learnedPositions(`${prefix}wpe`, config.n_positions, hidden)],
      norm: norm(`${prefix}ln_f`),
      block: (name, index) =>
        residualBlock(name, {
          attention: [
            norm(`${name}.ln_1`),
            attention(`${name}.attn`, {
              inputs: fusedProjection(transposedLinear(`${name}.attn.c_attn`, hidden, 3 * hidden), [
                hidden,
                hidden,
                hidden,
              ]),
              out: transposedLinear(`${name}.attn.c_proj`, hidden, hidden),
              heads,
              headDim,
              ownTypeSoftmax: config.reorder_and_upcast_attn !== true,
              scale:
                (config.scale_attn_weights ? headDim ** -0.5 : 1) /
                (config.scale_attn_by_inverse_layer_idx ? index + 1 : 1),
            }),
          ],
          mlp: [
            norm(`${name}.ln_2`),
            sequence(
              `${name}.mlp`,
              [
                transposedLinear(`${name}.mlp.c_fc`, hidden, inner),
                activation(
                  `${name}.mlp.act`,
                  activationOf(config.activation_function),
                  isComposed(config.activation_function),
                ),
                transposedLinear(`${name}.mlp.c_proj`, inner, hidden),
              ],
              'feedForward',
            ),
          ],
        }),
    });
  },
});
