/** BLOOM (arXiv 2211.05100): ALiBi instead of position embeddings, a norm after the embedding. */
import { asNumber } from '../../../base/values.js';
import { alibi } from '../constructors/attention-layers.js';
import { activation, linear, residual, sequence } from '../constructors/basic-layers.js';
import { alibiSlopes } from '../masks.js';
import { harmless, NO_ROTARY_KEYS, unreadBut } from '../transformer/config-keys.js';
import { fusedAttention, residualBlock } from '../transformer/decoder-parts.js';
import { ALIBI_LENGTH, defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { normEpsilon, toggle } from '../transformer/settings.js';

export const bloom = defineGpt({
  title: 'BLOOM',
  document: gptDocument(
    'bloom',
    {
      prefix: 'transformer.',
      sizes: {
        vocabulary: ['vocab_size', 250_880],
        width: ['hidden_size', 64],
        depth: ['n_layer', 2],
        heads: ['n_head', 8],
        positions: ['seq_length', 2048, ALIBI_LENGTH],
      },
    },
    {
      layer_norm_epsilon: normEpsilon(1e-5),
      apply_residual_connection_post_layernorm: toggle(
        false,
        'Branches are added to their normed input',
      ),
    },
  ),
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
        allows: (slow, { pretraining_tp: slices = 1 }) => slow !== true || asNumber(slices) <= 1,
        why: 'products in pretraining_tp slices leave their biases out',
        severity: 'error',
      },
    },
  },
  names: { embedding: 'word_embeddings', blocks: 'h', norm: 'ln_f' },
  attention: ({ name: block, layout, heads }) => {
    const name = `${block}.self_attention`;
    return fusedAttention(name, {
      leaves: ['query_key_value', 'dense'],
      groups: heads,
      ...layout,
      alibi: alibi(`${name}.alibi`, alibiSlopes(heads)),
    });
  },
  feedForward: ({ name, hidden, inner }) =>
    sequence(
      `${name}.mlp`,
      [
        linear(`${name}.mlp.dense_h_to_4h`, hidden, inner),
        activation(`${name}.mlp.gelu_impl`, 'geluTanh'),
        linear(`${name}.mlp.dense_4h_to_h`, inner, hidden),
      ],
      'feedForward',
    ),
  block({ name, norm, config }, { attention, feedForward }) {
    const [before, between] = [
      norm(`${name}.input_layernorm`),
      norm(`${name}.post_attention_layernorm`),
    ];
    return config.apply_residual_connection_post_layernorm
      ? sequence(name, [
          before,
          residual(`${name}.attention_residual`, attention),
          between,
          residual(`${name}.mlp_residual`, feedForward),
        ])
      : residualBlock(name, { attention: [before, attention], mlp: [between, feedForward] });
  },
  parts: ({ prefix, norm }) => ({ embeddingSteps: [norm(`${prefix}word_embeddings_layernorm`)] }),
});
