/** MPT: ALiBi, LayerNorms without biases, one product for queries, keys and values. */

import * as z from 'zod';
import { isRecord } from '../../../base/values.js';
import { alibi } from '../constructors/attention-layers.js';
import { layerNormLayer } from '../constructors/basic-layers.js';
import type { KeyRemark } from '../family.js';
import { alibiSlopesInOrder } from '../masks.js';
import {
  harmless,
  type JsonObject,
  NO_ROTARY_KEYS,
  unreadBut,
} from '../transformer/config-keys.js';
import { fusedAttention, plainMlp } from '../transformer/decoder-parts.js';
import { ALIBI_LENGTH, defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { NO_ROTARY } from '../transformer/rotary.js';
import { clipSetting, normEpsilon } from '../transformer/settings.js';

const attentionIn = ({ attn_config: config }: JsonObject): JsonObject =>
  isRecord(config) ? config : {};

/** Values of `attn_config` that transformers always uses, regardless of the file. */
const FIXED = {
  alibi: true,
  alibi_bias_max: 8,
  attn_type: 'multihead_attention',
  prefix_lm: false,
  qk_ln: false,
} as const;

const unreadAttention = (config: JsonObject): KeyRemark[] =>
  Object.entries(FIXED).flatMap(([key, value]) => {
    const given = attentionIn(config)[key];
    return given == null || given === value
      ? []
      : [{ path: ['attn_config', key], severity: 'warning', why: `transformers takes ${value}` }];
  });

export const mpt = defineGpt({
  title: 'MPT',
  document: gptDocument(
    'mpt',
    {
      prefix: 'transformer.',
      sizes: {
        vocabulary: ['vocab_size', 50_368],
        width: ['d_model', 2048],
        heads: ['n_heads', 16],
        depth: ['n_layers', 24],
        positions: ['max_seq_len', 2048, ALIBI_LENGTH],
      },
    },
    {
      layer_norm_epsilon: normEpsilon(1e-5),
      clip_qkv: clipSetting,
      softmax_scale: z
        .number()
        .nullable()
        .default(null)
        .describe('Factor of the scores; null: 1 / √head width'),
    },
  ),
  huggingFace: {
    names: {
      d_model: ['hidden_size'],
      n_heads: ['num_attention_heads'],
      n_layers: ['num_hidden_layers'],
    },
    reads: ['attn_config'],
    rotary: { ...NO_ROTARY, remarks: unreadAttention },
    more(config) {
      const { clip_qkv, softmax_scale } = attentionIn(config);
      // Python reads 0 as no clipping.
      return { clip_qkv: clip_qkv || undefined, softmax_scale };
    },
    harmless: {
      ...harmless('used in training only', ['emb_pdrop', 'embedding_fraction', 'init_config']),
      ...harmless('chooses how the same values are computed', [
        'init_device',
        'norm_type',
        'verbose',
      ]),
      tokenizer_name: 'names a tokenizer',
    },
    limited: {
      ...NO_ROTARY_KEYS,
      max_position_embeddings: unreadBut([], 'ALiBi sets no limit'),
      expansion_ratio: unreadBut([4]),
      no_bias: unreadBut([true]),
      logit_scale: unreadBut([]),
      learned_pos_emb: unreadBut([true, false], 'positions are never learned'),
    },
  },
  names: { embedding: 'wte', blocks: 'blocks', norm: 'norm_f' },
  norms: ['norm_1', 'norm_2'],
  norm: (name, width, config) =>
    layerNormLayer(name, width, config.layer_norm_epsilon, { holds: 'weight' }),
  attention: ({ name, config, layout, heads, headDim }) =>
    fusedAttention(`${name}.attn`, {
      leaves: ['Wqkv', 'out_proj'],
      bias: false,
      ...layout,
      scale: config.softmax_scale ?? headDim ** -0.5,
      clip: config.clip_qkv ?? undefined,
      alibi: alibi(`${name}.attn.alibi`, alibiSlopesInOrder(heads)),
    }),
  feedForward: ({ name, hidden, inner }) =>
    plainMlp(`${name}.ffn`, { hidden, inner, activation: 'gelu', bias: false }),
});
