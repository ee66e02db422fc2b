/** BLOOM (arXiv 2211.05100): ALiBi instead of position embeddings, a norm after the embedding. */
import { alibi, attention } from '../constructors/attention-layers.js';
import {
  activation,
  fusedProjection,
  layerNormLayer,
  linear,
  residual,
  sequence,
} from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import { alibiSlopes } from '../masks.js';
import { harmless, NO_ROTARY_KEYS, unreadBut } from '../transformer/config-keys.js';
import { causalModel, residualBlock } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { headsDivide, lengthRules } from '../transformer/rules.js';
import {
  epsilon,
  flag,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

/** Fixed in the original code. */
const MLP_EXPANSION = 4;

const schema = transformerDocument('bloom', {
  vocab_size: positiveInteger.default(250_880).describe('Rows of the embedding and of the head'),
  hidden_size: positiveInteger.default(64).describe('Width of the residual stream'),
  n_layer: positiveInteger.default(2).describe('Number of blocks'),
  n_head: positiveInteger.default(8).describe('Attention heads, a divisor of hidden_size'),
  seq_length: positiveInteger
    .default(2048)
    .describe('Length of the training; ALiBi itself sets no limit, so raise it as you like'),
  layer_norm_epsilon: epsilon.default(1e-5).describe('Epsilon of the norms'),
  apply_residual_connection_post_layernorm: flag
    .default(false)
    .describe('Branches are added to their normed input'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('transformer.'),
});

export const bloom = defineTransformer({
  title: 'BLOOM',
  schema,
  rules: [...headsDivide('n_head', 'hidden_size'), ...lengthRules('seq_length')],
  dimensions: {
    vocabulary: 'vocab_size',
    positions: 'seq_length',
    depth: 'n_layer',
    width: 'hidden_size',
    heads: 'n_head',
  },
  huggingFace: {
    names: {
      hidden_size: ['n_embed'],
      n_layer: ['num_hidden_layers'],
      n_head: ['num_attention_heads'],
    },
    harmless: harmless('of the program that trained it', [
      'attention_softmax_in_fp32',
      'bias_dropout_fusion',
      'masked_softmax_fusion',
      'offset_alibi',
      'skip_bias_add',
      'skip_bias_add_qkv',
    ]),
    limited: {
      ...NO_ROTARY_KEYS,
      max_position_embeddings: unreadBut([], 'ALiBi sets no limit'),
      n_inner: unreadBut([]),
      slow_but_exact: {
        allows: (slow, { pretraining_tp: slices = 1 }) => slow !== true || Number(slices) <= 1,
        why: 'products in pretraining_tp slices leave their biases out',
        severity: 'error',
      },
    },
  },
  storedSettings: (stored) => prefixStoredIn(stored, 'transformer.', 'word_embeddings.weight'),
  build({ model: config }) {
    const { hidden_size: hidden, n_head: heads, stored_prefix: prefix } = config;
    const inner = MLP_EXPANSION * hidden;
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_epsilon);
    const attend = (name: string): Layer =>
      attention(`${name}.self_attention`, {
        inputs: fusedProjection(
          linear(`${name}.self_attention.query_key_value`, hidden, 3 * hidden),
          [hidden, hidden, hidden],
          heads,
        ),
        out: linear(`${name}.self_attention.dense`, hidden, hidden),
        heads,
        headDim: hidden / heads,
        alibi: alibi(`${name}.self_attention.alibi`, alibiSlopes(heads)),
      });
    const feedForward = (name: string): Layer =>
      sequence(
        `${name}.mlp`,
        [
          linear(`${name}.mlp.dense_h_to_4h`, hidden, inner),
          activation(`${name}.mlp.gelu_impl`, 'geluTanh'),
          linear(`${name}.mlp.dense_4h_to_h`, inner, hidden),
        ],
        'feedForward',
      );
    return causalModel({
      paths: { embedding: `${prefix}word_embeddings`, blocks: `${prefix}h`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.seq_length,
      tied: config.tie_word_embeddings,
      blocks: config.n_layer,
      blocksKey: 'n_layer',
      embeddingSteps: [norm(`${prefix}word_embeddings_layernorm`)],
      norm: norm(`${prefix}ln_f`),
      block(name) {
        const [before, between] = [
          norm(`${name}.input_layernorm`),
          norm(`${name}.post_attention_layernorm`),
        ];
        return config.apply_residual_connection_post_layernorm
          ? sequence(name, [
              before,
              residual(`${name}.attention_residual`, attend(name)),
              between,
              residual(`${name}.mlp_residual`, feedForward(name)),
            ])
          : residualBlock(name, {
              attention: [before, attend(name)],
              mlp: [between, feedForward(name)],
            });
      },
    });
  },
});
