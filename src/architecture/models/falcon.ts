/**
 * Falcon (arXiv 2311.16867): three layouts of queries, keys and values, attention beside or before the network.
 * Its ALiBi is divided by the root of the head width with the scores. transformers rounds it to bfloat16, and its eager
 * attention of version 5.18 adds it twice; both are left out here.
 */
import * as z from 'zod';
import { alibi, attention } from '../constructors/attention-layers.js';
import {
  fusedProjection,
  layerNormLayer,
  linear,
  residual,
  sequence,
} from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import { alibiSlopes } from '../masks.js';
import { unreadBut } from '../transformer/config-keys.js';
import {
  causalModel,
  parallelBranches,
  plainMlp,
  residualBlock,
  rotaryOf,
} from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { longestInput, rotarySettings } from '../transformer/rotary.js';
import { WHOLE_HEAD_RULES } from '../transformer/rules.js';
import {
  activationWord,
  epsilon,
  FEED_FORWARD_PER_CHANNEL,
  flag,
  oldBuffers,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

const schema = transformerDocument('falcon', {
  vocab_size: positiveInteger.default(65_024).describe('Rows of the embedding and of the head'),
  hidden_size: positiveInteger.default(4544).describe('Width of the residual stream'),
  num_hidden_layers: positiveInteger.default(32).describe('Number of blocks'),
  num_attention_heads: positiveInteger
    .default(71)
    .describe('Query heads, a divisor of hidden_size'),
  num_kv_heads: positiveInteger
    .nullable()
    .default(null)
    .describe('Key-value heads of the new architecture; null: as many as query heads'),
  new_decoder_architecture: flag
    .default(false)
    .describe('Groups of query heads with the key and value that they share (40B, 180B)'),
  multi_query: flag.default(true).describe('One key-value head, in the old architecture'),
  parallel_attn: flag
    .default(true)
    .describe('Attention and network read the same input, and are added at once'),
  num_ln_in_parallel_attn: z
    .literal([1, 2])
    .nullish()
    .describe('Norms before the two in the new architecture [2]'),
  bias: flag.default(false).describe('Biases in the products of the blocks'),
  alibi: flag.default(false).describe('ALiBi in place of rotated positions'),
  ffn_hidden_size: positiveInteger
    .nullish()
    .describe('Width inside the feed-forward network [4 · hidden_size]'),
  activation: activationWord.default('gelu').describe('Activation'),
  max_position_embeddings: positiveInteger.default(2048).describe('Longest input, in tokens'),
  layer_norm_epsilon: epsilon.default(1e-5).describe('Epsilon of the norms'),
  ...rotarySettings(10_000),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('transformer.'),
});

export const falcon = defineTransformer({
  title: 'Falcon',
  schema,
  rules: [
    ...WHOLE_HEAD_RULES,
    {
      severity: 'error',
      reads: ['model.num_kv_heads', 'model.num_attention_heads'],
      check: ({ model }) => {
        const { num_kv_heads: shared, num_attention_heads: heads } = model;
        return model.new_decoder_architecture && shared !== null && heads % shared !== 0
          ? {
              message: `${shared} key-value heads do not divide ${heads} heads`,
              suggestion: 'write a divisor of num_attention_heads',
            }
          : undefined;
      },
    },
    {
      severity: 'error',
      reads: ['model.parallel_attn', 'model.new_decoder_architecture'],
      check: ({ model }) =>
        model.new_decoder_architecture && !model.parallel_attn
          ? {
              message: 'new_decoder_architecture requires parallel_attn',
              suggestion: 'write parallel_attn: true',
            }
          : undefined,
    },
    {
      severity: 'error',
      reads: ['model.num_ln_in_parallel_attn', 'model.new_decoder_architecture'],
      check: ({ model }) =>
        !model.new_decoder_architecture && model.num_ln_in_parallel_attn === 2
          ? {
              message: 'num_ln_in_parallel_attn: 2 requires new_decoder_architecture',
              suggestion: 'leave num_ln_in_parallel_attn out',
            }
          : undefined,
    },
  ],
  dimensions: {
    vocabulary: 'vocab_size',
    positions: 'max_position_embeddings',
    depth: 'num_hidden_layers',
    width: 'hidden_size',
    heads: 'num_attention_heads',
    feedForward: { key: 'ffn_hidden_size', perChannel: FEED_FORWARD_PER_CHANNEL },
  },
  huggingFace: {
    names: {
      hidden_size: ['n_embed'],
      num_hidden_layers: ['n_layer'],
      num_attention_heads: ['n_head'],
      num_kv_heads: ['n_head_kv'],
    },
    limited: {
      head_dim: unreadBut([]),
      num_key_value_heads: unreadBut([], 'this family reads num_kv_heads'),
    },
    harmless: { apply_residual_connection_post_layernorm: 'the class does not read it' },
  },
  storedSettings: (stored) => prefixStoredIn(stored, 'transformer.', 'word_embeddings.weight'),
  ignored: ({ model: { stored_prefix: prefix } }) =>
    oldBuffers([`${prefix}h.*.self_attention.rotary_emb.inv_freq`]),
  build({ model: config }) {
    const { hidden_size: hidden, num_attention_heads: heads, bias } = config;
    const { stored_prefix: prefix, new_decoder_architecture: isNew } = config;
    const headDim = hidden / heads;
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_epsilon);
    const keyValueHeads = isNew ? (config.num_kv_heads ?? heads) : config.multi_query ? 1 : heads;
    const keys = keyValueHeads * headDim;
    const attend = (block: string): Layer => {
      const name = `${block}.self_attention`;
      return attention(name, {
        inputs: fusedProjection(
          linear(`${name}.query_key_value`, hidden, hidden + 2 * keys, { bias }),
          [hidden, keys, keys],
          keyValueHeads,
        ),
        out: linear(`${name}.dense`, hidden, hidden, { bias }),
        heads,
        keyValueHeads,
        headDim,
        ...(isNew && keyValueHeads < heads && { keeps: 'a key for each query head' }),
        ...(config.alibi
          ? {
              alibi: alibi(
                `${name}.alibi`,
                alibiSlopes(heads).map((slope) => slope / Math.sqrt(headDim)),
              ),
            }
          : { rotary: rotaryOf(block, config, headDim) }),
      });
    };
    const network = (block: string): Layer =>
      plainMlp(`${block}.mlp`, {
        hidden,
        inner: config.ffn_hidden_size ?? 4 * hidden,
        activation: config.activation,
        bias,
        leaves: ['dense_h_to_4h', 'dense_4h_to_h'],
      });
    return causalModel({
      paths: { embedding: `${prefix}word_embeddings`, blocks: `${prefix}h`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: longestInput(config.max_position_embeddings, config.rope_scaling),
      tied: config.tie_word_embeddings,
      blocks: config.num_hidden_layers,
      blocksKey: 'num_hidden_layers',
      norm: norm(`${prefix}ln_f`),
      block(name) {
        if (isNew && (config.num_ln_in_parallel_attn ?? 2) === 2) {
          return residual(
            name,
            sequence(`${name}.attention_branch`, [norm(`${name}.ln_attn`), attend(name)]),
            sequence(`${name}.mlp_branch`, [norm(`${name}.ln_mlp`), network(name)]),
          );
        }
        const first = norm(`${name}.input_layernorm`);
        return config.parallel_attn
          ? parallelBranches(name, first, attend(name), network(name))
          : residualBlock(name, {
              attention: [first, attend(name)],
              mlp: [norm(`${name}.post_attention_layernorm`), network(name)],
            });
      },
    });
  },
});
