/** Qwen of 2023 (arXiv 2309.16609): Llama with biases on queries, keys and values, which are one product. */
import * as z from 'zod';
import { harmless, unreadEach } from '../transformer/config-keys.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { remoteDecoder, remoteFusedAttention } from '../transformer/remote-decoder.js';
import { NO_ROTARY } from '../transformer/rotary.js';
import { headsDivide, lengthRules } from '../transformer/rules.js';
import {
  count,
  normEpsilon,
  positiveInteger,
  transformerDocument,
} from '../transformer/settings.js';

const fixed = <Value extends string | number | boolean | null>(value: Value, meaning: string) =>
  z
    .literal(value)
    .default(value as never)
    .describe(meaning);

// Defaults are those of configuration_qwen.py in the repositories of the models.
const schema = transformerDocument('qwen', {
  vocab_size: count(151_936, 'Rows of the embedding and of the head'),
  hidden_size: count(4096, 'Width of the residual stream'),
  num_hidden_layers: count(32, 'Number of blocks'),
  num_attention_heads: count(32, 'Heads, a divisor of hidden_size'),
  kv_channels: positiveInteger.default(128).describe('Width of a head: hidden_size / heads'),
  intermediate_size: count(22_016, 'Twice the width inside the feed-forward network'),
  seq_length: count(
    2048,
    'Length of the training. Beyond it, the code scales positions and queries, which is not supported',
  ),
  layer_norm_epsilon: normEpsilon(1e-6),
  rotary_emb_base: z.number().positive().default(10_000).describe('Base of the rotary frequencies'),
  rotary_pct: fixed(1, 'The part of a head that is rotated'),
  no_bias: fixed(true, 'The other products have no biases'),
  tie_word_embeddings: fixed(false, 'The head has its own weight'),
});

type Qwen = z.output<typeof schema>['model'];

/** The same settings by the names of Llama. */
const asLlama = (config: Qwen) => ({
  vocab_size: config.vocab_size,
  hidden_size: config.hidden_size,
  intermediate_size: Math.floor(config.intermediate_size / 2),
  num_hidden_layers: config.num_hidden_layers,
  num_attention_heads: config.num_attention_heads,
  max_position_embeddings: config.seq_length,
  rms_norm_eps: config.layer_norm_epsilon,
  rope_theta: config.rotary_emb_base,
  hidden_act: 'silu' as const,
  tie_word_embeddings: false,
});

export const qwen = defineTransformer({
  title: 'Qwen (2023)',
  schema,
  rules: [
    ...headsDivide('num_attention_heads', 'hidden_size'),
    ...lengthRules('seq_length'),
    {
      severity: 'error',
      reads: ['model.kv_channels', 'model.num_attention_heads', 'model.hidden_size'],
      check: ({
        model: { kv_channels: width, num_attention_heads: heads, hidden_size: hidden },
      }) =>
        width * heads === hidden
          ? undefined
          : {
              message: `${heads} heads of ${width} values are not the ${hidden} of the model`,
              suggestion: 'write kv_channels: hidden_size / num_attention_heads, which is even',
            },
    },
  ],
  huggingFace: {
    rotary: NO_ROTARY,
    harmless: {
      ...harmless('used in training only', ['attn_dropout_prob', 'emb_dropout_prob']),
      ...harmless('chooses how the same values are computed', [
        'use_flash_attn',
        'use_cache_kernel',
        'softmax_in_fp32',
        'fp32',
        'fp16',
        'bf16',
        'onnx_safe',
      ]),
      ...harmless('changes nothing up to seq_length tokens', ['use_dynamic_ntk', 'use_logn_attn']),
      max_position_embeddings: 'not read',
      tokenizer_type: 'names a tokenizer',
    },
    limited: {
      scale_attn_weights: {
        allows: (isScaled) => isScaled !== false,
        why: 'scores without a scale are not described',
        severity: 'error',
      },
      use_cache_quantization: {
        allows: (quantized) => quantized !== true,
        why: 'keys and values in 8 bits are not described',
        severity: 'error',
      },
      ...unreadEach(['rope_parameters', 'rope_scaling', 'rope_theta', 'head_dim']),
      ...unreadEach(['num_key_value_heads', 'hidden_act', 'attention_bias', 'mlp_bias']),
    },
  },
  build: ({ model: config }) =>
    remoteDecoder(asLlama(config), {
      names: {
        embedding: 'transformer.wte',
        blocks: 'transformer.h',
        norm: 'transformer.ln_f',
        head: 'lm_head',
        attention: 'attn',
        norms: ['ln_1', 'ln_2'],
        feedForward: 'mlp',
        network: ['w2', 'w1', 'c_proj'],
      },
      attention: (name, rotary) =>
        remoteFusedAttention(name, asLlama(config), rotary, {
          leaves: ['c_attn', 'c_proj'],
          bias: true,
          outBias: false,
          isGrouped: false,
        }),
    }),
});
