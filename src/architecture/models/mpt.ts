/** MPT: ALiBi, LayerNorms without biases, one product for queries, keys and values. */
import * as z from 'zod';
import { alibi, attention } from '../constructors/attention-layers.js';
import { fusedProjection, layerNormLayer, linear } from '../constructors/basic-layers.js';
import type { KeyRemark } from '../family.js';
import { alibiSlopesInOrder } from '../masks.js';
import {
  harmless,
  type JsonObject,
  NO_ROTARY_KEYS,
  unreadBut,
} from '../transformer/config-keys.js';
import { causalModel, plainMlp, residualBlock } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { isObject, NO_ROTARY } from '../transformer/rotary.js';
import { headsDivide, lengthRules } from '../transformer/rules.js';
import {
  clipSetting,
  epsilon,
  flag,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

/** Fixed in the code of transformers. */
const MLP_EXPANSION = 4;

const schema = transformerDocument('mpt', {
  vocab_size: positiveInteger.default(50_368).describe('Rows of the embedding and of the head'),
  d_model: positiveInteger.default(2048).describe('Width of the residual stream'),
  n_heads: positiveInteger.default(16).describe('Attention heads, a divisor of d_model'),
  n_layers: positiveInteger.default(24).describe('Number of blocks'),
  max_seq_len: positiveInteger
    .default(2048)
    .describe('Length of the training; ALiBi itself sets no limit, so raise it as you like'),
  layer_norm_epsilon: epsilon.default(1e-5).describe('Epsilon of the norms'),
  clip_qkv: clipSetting,
  softmax_scale: z
    .number()
    .nullable()
    .default(null)
    .describe('Factor of the scores; null: 1 / √head width'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('transformer.'),
});

const attentionIn = ({ attn_config: config }: JsonObject): JsonObject =>
  isObject(config) ? config : {};

/** Values of `attn_config` that transformers computes with, whatever the file says. */
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

export const mpt = defineTransformer({
  title: 'MPT',
  schema,
  rules: [...headsDivide('n_heads', 'd_model'), ...lengthRules('max_seq_len')],
  dimensions: {
    vocabulary: 'vocab_size',
    positions: 'max_seq_len',
    depth: 'n_layers',
    width: 'd_model',
    heads: 'n_heads',
  },
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
      expansion_ratio: unreadBut([MLP_EXPANSION]),
      no_bias: unreadBut([true]),
      logit_scale: unreadBut([]),
      learned_pos_emb: unreadBut([true, false], 'positions are never learned'),
    },
  },
  storedSettings: (stored) => prefixStoredIn(stored, 'transformer.', 'wte.weight'),
  build({ model: config }) {
    const { d_model: hidden, n_heads: heads, stored_prefix: prefix } = config;
    const headDim = hidden / heads;
    const norm = (name: string) =>
      layerNormLayer(name, hidden, config.layer_norm_epsilon, { holds: 'weight' });
    return causalModel({
      paths: { embedding: `${prefix}wte`, blocks: `${prefix}blocks`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.max_seq_len,
      tied: config.tie_word_embeddings,
      blocks: config.n_layers,
      blocksKey: 'n_layers',
      norm: norm(`${prefix}norm_f`),
      block: (name) =>
        residualBlock(name, {
          attention: [
            norm(`${name}.norm_1`),
            attention(`${name}.attn`, {
              inputs: fusedProjection(
                linear(`${name}.attn.Wqkv`, hidden, 3 * hidden, { bias: false }),
                [hidden, hidden, hidden],
              ),
              out: linear(`${name}.attn.out_proj`, hidden, hidden, { bias: false }),
              heads,
              headDim,
              scale: config.softmax_scale ?? headDim ** -0.5,
              clip: config.clip_qkv ?? undefined,
              alibi: alibi(`${name}.attn.alibi`, alibiSlopesInOrder(heads)),
            }),
          ],
          mlp: [
            norm(`${name}.norm_2`),
            plainMlp(`${name}.ffn`, {
              hidden,
              inner: MLP_EXPANSION * hidden,
              activation: 'gelu',
              bias: false,
            }),
          ],
        }),
    });
  },
});
