/** ChatGLM 2 and 3, and GLM-4 of its first release (arXiv 2406.12793): half of each head is rotated, by neighbours. */
import * as z from 'zod';
import { fusedProjection, linear } from '../constructors/basic-layers.js';
import { gatedMlp } from '../constructors/feed-forward-layers.js';
import { harmless, unreadEach } from '../transformer/config-keys.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { remoteDecoder, remoteFusedAttention } from '../transformer/remote-decoder.js';
import { NO_ROTARY } from '../transformer/rotary.js';
import { keyHeadsDivide, lengthRules } from '../transformer/rules.js';
import {
  count,
  normEpsilon,
  oldBuffers,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

const BASE = 10_000;

const always = <Value extends boolean>(value: Value, meaning: string) =>
  z
    .literal(value)
    .default(value as never)
    .describe(meaning);

// Defaults are those of configuration_chatglm.py in the repositories of the models.
const schema = transformerDocument('chatglm', {
  padded_vocab_size: count(65_024, 'Rows of the embedding and of the head'),
  hidden_size: count(4096, 'Width of the residual stream'),
  ffn_hidden_size: count(13_696, 'Width inside the feed-forward network'),
  num_layers: count(28, 'Number of blocks'),
  num_attention_heads: count(32, 'Query heads'),
  kv_channels: count(128, 'Width of a head, a multiple of 4'),
  seq_length: count(2048, 'Longest input, in tokens'),
  multi_query_attention: toggle(false, 'Groups of heads share keys and values'),
  multi_query_group_num: count(1, 'Key and value heads, with multi_query_attention'),
  layernorm_epsilon: normEpsilon(1e-5),
  rope_ratio: z.number().positive().default(1).describe('Factor of the rotary base of 10,000'),
  add_qkv_bias: toggle(false, 'Biases on queries, keys and values'),
  add_bias_linear: always(false, 'The other products have no biases'),
  rmsnorm: always(true, 'Norms are RMSNorms'),
  post_layer_norm: always(true, 'A norm behind the last block'),
  apply_residual_connection_post_layernorm: always(false, 'Branches are added to their input'),
  tie_word_embeddings: always(false, 'The head has its own weight'),
});

type ChatGlm = z.output<typeof schema>['model'];

/** The same settings by the names of Llama. */
const asLlama = (config: ChatGlm) => ({
  vocab_size: config.padded_vocab_size,
  hidden_size: config.hidden_size,
  intermediate_size: config.ffn_hidden_size,
  num_hidden_layers: config.num_layers,
  num_attention_heads: config.num_attention_heads,
  num_key_value_heads: config.multi_query_attention
    ? config.multi_query_group_num
    : config.num_attention_heads,
  head_dim: config.kv_channels,
  max_position_embeddings: config.seq_length,
  rms_norm_eps: config.layernorm_epsilon,
  rope_theta: BASE * config.rope_ratio,
  hidden_act: 'silu' as const,
  tie_word_embeddings: false,
});

export const chatglm = defineTransformer({
  title: 'ChatGLM 2 and 3, GLM-4-9B',
  schema,
  rules: [
    ...lengthRules('seq_length'),
    ...keyHeadsDivide('multi_query_group_num').map((rule) => ({
      ...rule,
      check: (document: { readonly model: ChatGlm }) =>
        document.model.multi_query_attention ? rule.check(document) : undefined,
    })),
    {
      severity: 'error',
      reads: ['model.kv_channels'],
      check: ({ model: { kv_channels: width } }) =>
        width % 4 === 0
          ? undefined
          : {
              message: `half of a head of ${width} values has no pairs to rotate`,
              suggestion: 'write a kv_channels that 4 divides',
            },
    },
  ],
  ignored: () => oldBuffers(['transformer.rotary_pos_emb.inv_freq']),
  huggingFace: {
    rotary: NO_ROTARY,
    names: { num_layers: ['num_hidden_layers'] },
    harmless: {
      ...harmless('chooses how the same values are computed', [
        'attention_softmax_in_fp32',
        'apply_query_key_layer_scaling',
        'bias_dropout_fusion',
        'fp32_residual_connection',
        'original_rope',
        'interleaved_qkv',
      ]),
      vocab_size: 'the tokens that are in use; padded_vocab_size has the rows',
      classifier_dropout: 'of a head that classifies whole texts',
    },
    limited: {
      ...unreadEach(['rope_parameters', 'rope_scaling', 'rope_theta', 'head_dim']),
      ...unreadEach(['num_key_value_heads', 'hidden_act', 'attention_bias', 'mlp_bias']),
      ...Object.fromEntries(
        (['pre_seq_len', 'quantization_bit', 'prefix_projection'] as const).map((key) => [
          key,
          {
            allows: (value: unknown) => [null, 0, false].includes(value as null),
            why: 'prefixes and the quantization of this code are not described',
            severity: 'error' as const,
          },
        ]),
      ),
    },
  },
  build({ model }) {
    const config = asLlama(model);
    const { hidden_size: hidden, intermediate_size: inner } = config;
    return remoteDecoder(config, {
      names: {
        embedding: 'transformer.embedding.word_embeddings',
        blocks: 'transformer.encoder.layers',
        norm: 'transformer.encoder.final_layernorm',
        head: 'transformer.output_layer',
        attention: 'self_attention',
        norms: ['input_layernorm', 'post_attention_layernorm'],
        feedForward: 'mlp',
      },
      blocksKey: 'num_layers',
      rotation: { part: 0.5, pairs: 'neighbours' },
      attention: (name, rotary) =>
        remoteFusedAttention(name, config, rotary, {
          leaves: ['query_key_value', 'dense'],
          bias: model.add_qkv_bias,
          outBias: false,
          isGrouped: !model.multi_query_attention,
        }),
      feedForward: (name) =>
        gatedMlp(name, {
          inputs: fusedProjection(
            linear(`${name}.dense_h_to_4h`, hidden, 2 * inner, { bias: false }),
            [inner, inner],
          ),
          activation: 'silu',
          down: linear(`${name}.dense_4h_to_h`, inner, hidden, { bias: false }),
        }),
    });
  },
});
