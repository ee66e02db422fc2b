/**
 * Falcon (arXiv 2311.16867): three layouts of queries, keys and values, attention parallel to the network or before it.
 * Its ALiBi is computed in bfloat16 in every type, and divided by the root of the head width with the scores. The eager
 * attention of transformers 5.18 adds it twice, which is left out here.
 */
import * as z from 'zod';
import { alibi } from '../constructors/attention-layers.js';
import { residual, sequence } from '../constructors/basic-layers.js';
import { alibiSlopes } from '../masks.js';
import { unreadBut } from '../transformer/config-keys.js';
import {
  fusedAttention,
  parallelBranches,
  plainMlp,
  residualBlock,
  rotaryOf,
} from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { rotarySettings } from '../transformer/rotary.js';
import { WHOLE_HEAD_RULES } from '../transformer/rules.js';
import { activationWord, normEpsilon, positiveInteger, toggle } from '../transformer/settings.js';

export const falcon = defineGpt({
  title: 'Falcon',
  document: gptDocument(
    'falcon',
    {
      prefix: 'transformer.',
      sizes: {
        vocabulary: ['vocab_size', 65_024],
        width: ['hidden_size', 4544],
        depth: ['num_hidden_layers', 32],
        heads: ['num_attention_heads', 71, 'Query heads, a divisor of hidden_size'],
        feedForward: ['ffn_hidden_size', null],
        positions: ['max_position_embeddings', 2048],
      },
    },
    {
      num_kv_heads: positiveInteger
        .nullable()
        .default(null)
        .describe('Key-value heads of the new architecture; null: as many as query heads'),
      new_decoder_architecture: toggle(
        false,
        'Groups of query heads with the key and value that they share (40B, 180B)',
      ),
      multi_query: toggle(true, 'One key-value head, in the old architecture'),
      parallel_attn: toggle(
        true,
        'Attention and network read the same input, and are added at once',
      ),
      num_ln_in_parallel_attn: z
        .literal([1, 2])
        .nullish()
        .describe('Norms before the two in the new architecture [2]'),
      bias: toggle(false, 'Biases in the products of the blocks'),
      alibi: toggle(false, 'ALiBi in place of rotated positions'),
      activation: activationWord.default('gelu').describe('Activation'),
      layer_norm_epsilon: normEpsilon(1e-5),
      ...rotarySettings(10_000),
    },
  ),
  headRules: WHOLE_HEAD_RULES,
  rules: [
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
  names: { embedding: 'word_embeddings', blocks: 'h', norm: 'ln_f' },
  attention({ name: block, config, layout, heads, headDim }) {
    const name = `${block}.self_attention`;
    const isNew = config.new_decoder_architecture;
    const keyValueHeads = isNew ? (config.num_kv_heads ?? heads) : config.multi_query ? 1 : heads;
    return fusedAttention(name, {
      leaves: ['query_key_value', 'dense'],
      groups: keyValueHeads,
      bias: config.bias,
      ...layout,
      keyValueHeads,
      ...(isNew && keyValueHeads < heads && { keeps: 'a key for each query head' }),
      ...(config.alibi
        ? { alibi: alibi(`${name}.alibi`, alibiSlopes(heads), 1 / Math.sqrt(headDim)) }
        : { rotary: rotaryOf(block, config, headDim) }),
    });
  },
  feedForward: ({ name, config, hidden, inner }) =>
    plainMlp(`${name}.mlp`, {
      hidden,
      inner,
      activation: config.activation,
      bias: config.bias,
      leaves: ['dense_h_to_4h', 'dense_4h_to_h'],
    }),
  block({ name, norm, config }, { attention, feedForward }) {
    if (config.new_decoder_architecture && (config.num_ln_in_parallel_attn ?? 2) === 2) {
      return residual(
        name,
        sequence(`${name}.attention_branch`, [norm(`${name}.ln_attn`), attention]),
        sequence(`${name}.mlp_branch`, [norm(`${name}.ln_mlp`), feedForward]),
      );
    }
    const first = norm(`${name}.input_layernorm`);
    return config.parallel_attn
      ? parallelBranches(name, first, attention, feedForward)
      : residualBlock(name, {
          attention: [first, attention],
          mlp: [norm(`${name}.post_attention_layernorm`), feedForward],
        });
  },
});
