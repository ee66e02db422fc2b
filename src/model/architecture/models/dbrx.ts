/** DBRX (Databricks 2024): LayerNorms without biases, clipped attention, experts below each other in three tensors. */

import * as z from 'zod';
import { asNumber, asText, isRecord } from '../../../base/values.js';
import { rotary } from '../constructors/attention-layers.js';
import { layerNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router, stackedExperts } from '../constructors/feed-forward-layers.js';
import type { KeyRemark } from '../family.js';
import { harmless, type JsonObject, unreadBut, unreadEach } from '../transformer/config-keys.js';
import { fusedAttention, residualBlock } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { rotaryIn, rotaryReading, rotarySettings, scalingOf } from '../transformer/rotary.js';
import { expertRules, rotationRules, scalingRules } from '../transformer/rules.js';
import { activationOf, activationWord, clipSetting, count } from '../transformer/settings.js';

/** Fixed in the class. */
const NORM_EPS = 1e-5;

const ROTATED = {
  reads: ['model.d_model', 'model.n_heads'],
  of: ({
    d_model: hidden,
    n_heads: heads,
  }: {
    readonly d_model: number;
    readonly n_heads: number;
  }) => Math.floor(hidden / heads),
  suggestion: 'write another number of heads',
} as const;

const partIn = (config: JsonObject, key: string): JsonObject => {
  const { [key]: part } = config;
  return isRecord(part) ? part : {};
};

/** Settings of both parts of a file. */
function dbrxParts(config: JsonObject): JsonObject {
  const attention = partIn(config, 'attn_config');
  const network = partIn(config, 'ffn_config');
  const { name: activation = 'silu' } = partIn(network, 'ffn_act_fn');
  const { moe_normalize_expert_weights: normed = 1 } = network;
  return {
    kv_n_heads: attention.kv_n_heads ?? 1,
    clip_qkv: attention.clip_qkv ?? null,
    ffn_hidden_size: network.ffn_hidden_size ?? 3584,
    ffn_activation: activation,
    moe_num_experts: network.moe_num_experts ?? 4,
    moe_top_k: network.moe_top_k ?? 1,
    moe_normalize_expert_weights: normed,
  };
}

const usual = rotaryReading({});

export const dbrx = defineGpt({
  title: 'DBRX',
  architecture: 'mixture',
  document: gptDocument(
    'dbrx',
    {
      prefix: 'transformer.',
      tied: false,
      sizes: {
        vocabulary: ['vocab_size', 32_000],
        width: ['d_model', 2048],
        depth: ['n_layers', 24],
        heads: ['n_heads', 16],
        positions: ['max_seq_len', 2048],
      },
    },
    {
      ...rotarySettings(10_000),
      kv_n_heads: count(1, 'Key and value heads, a divisor of the query heads'),
      clip_qkv: clipSetting,
      ffn_hidden_size: count(3584, 'Width inside an expert'),
      ffn_activation: activationWord.default('silu').describe('Activation of the gate'),
      moe_num_experts: count(4, 'Experts to choose from'),
      moe_top_k: count(1, 'Experts that a token goes to'),
      moe_normalize_expert_weights: z
        .literal(1)
        .nullable()
        .default(1)
        .describe('1: weights of the chosen experts sum to one; null: they do not'),
    },
  ),
  rules: [
    ...rotationRules(ROTATED),
    ...scalingRules(ROTATED),
    ...expertRules('moe_num_experts', 'moe_top_k'),
    {
      severity: 'error',
      reads: ['model.kv_n_heads', 'model.n_heads'],
      check: ({ model: { kv_n_heads: keys, n_heads: heads } }) =>
        heads % keys === 0
          ? undefined
          : {
              message: `${keys} key-value heads do not divide ${heads} heads`,
              suggestion: 'write a divisor of n_heads as kv_n_heads',
            },
    },
  ],
  huggingFace: {
    names: {
      d_model: ['hidden_size'],
      n_heads: ['num_attention_heads'],
      n_layers: ['num_hidden_layers'],
      max_seq_len: ['max_position_embeddings'],
    },
    reads: ['attn_config', 'ffn_config'],
    more: dbrxParts,
    rotary: {
      ...usual,
      remarks(config) {
        const { rope_theta: unread } = partIn(config, 'attn_config');
        const read = rotaryIn(config).rope_theta ?? config.rope_theta ?? 10_000;
        const remark: KeyRemark = {
          path: ['attn_config', 'rope_theta'],
          severity: 'warning',
          why: `transformers rotates with the rope_theta of the whole file, ${asText(read)}`,
          ...(typeof unread === 'number' && {
            advice: `add "rope_theta": ${unread} to the file itself to rotate with it; transformers needs both`,
          }),
        };
        return [...usual.remarks(config), ...(unread == null || unread === read ? [] : [remark])];
      },
    },
    limited: {
      ...unreadEach(['kv_n_heads', 'clip_qkv'], [], 'transformers reads it in attn_config'),
      ...unreadEach(
        [
          'ffn_hidden_size',
          'ffn_act_fn',
          'ffn_activation',
          'moe_jitter_eps',
          'moe_num_experts',
          'moe_top_k',
          'moe_normalize_expert_weights',
        ],
        [],
        'transformers reads it in ffn_config',
      ),
      num_key_value_heads: unreadBut(
        (heads, config) =>
          heads === null || heads === (partIn(config, 'attn_config').kv_n_heads ?? 1),
        'transformers reads kv_n_heads of attn_config',
      ),
      hidden_size: {
        allows: (width, { d_model = 2048 }) => width === null || width === d_model,
        why: 'the class takes the width of its experts from d_model, and fails where the two differ',
        severity: 'error',
      },
      head_dim: {
        allows: (width, { d_model = 2048, hidden_size = d_model, n_heads = 16, ...more }) =>
          width === null ||
          width === asNumber(hidden_size) / asNumber(more.num_attention_heads ?? n_heads),
        why: 'it is taken for the number of dimensions that are rotated',
        severity: 'error',
      },
      tie_word_embeddings: {
        allows: (tied) => tied !== true,
        why: 'the class has no tied head',
        severity: 'error',
      },
    },
    harmless: harmless('used in training only', ['emb_pdrop']),
  },
  names: { embedding: 'wte', blocks: 'blocks', norm: 'norm_f' },
  norm: (name, width) => layerNormLayer(name, width, NORM_EPS, { holds: 'weight' }),
  attention: ({ name, config, positions, layout, headDim }) =>
    fusedAttention(`${name}.norm_attn_norm.attn`, {
      leaves: ['Wqkv', 'out_proj'],
      bias: false,
      ...layout,
      keyValueHeads: config.kv_n_heads,
      clip: config.clip_qkv ?? undefined,
      rotary: rotary(`${name}.rotary`, {
        base: config.rope_theta,
        headDim,
        scaling: scalingOf(config.rope_scaling, positions, headDim),
      }),
    }),
  feedForward({ name: block, config, hidden }) {
    const name = `${block}.ffn`;
    const { moe_num_experts: experts, ffn_hidden_size: inner } = config;
    return mixtureOfExperts(name, {
      router: router(`${name}.router.layer`, hidden, {
        experts,
        expertsPerToken: config.moe_top_k,
        scoring: 'softmax',
        renormalised: config.moe_normalize_expert_weights === null ? undefined : { eps: 0 },
      }),
      experts: stackedExperts(
        `${name}.experts.mlp`,
        { experts, hidden, inner },
        activationOf(config.ffn_activation),
        ['w1', 'v1', 'w2'],
      ),
    });
  },
  block: ({ name, norm }, { attention, feedForward }) =>
    residualBlock(name, {
      attention: [norm(`${name}.norm_attn_norm.norm_1`), attention],
      mlp: [norm(`${name}.norm_attn_norm.norm_2`), feedForward],
    }),
});
