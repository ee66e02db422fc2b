/** GPT-NeoX and Pythia (arXiv 2204.06745, 2304.01373): parallel attention and feed-forward. */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { rotary } from '../constructors/attention-layers.js';
import { layerNormLayer, residual, sequence } from '../constructors/basic-layers.js';
import { type JsonObject, unreadBut } from '../transformer/config-keys.js';
import { fusedAttention, plainMlp, residualBlock } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { rotaryIn, rotarySettings, scalingOf } from '../transformer/rotary.js';
import { partOfEachHead, rotationRules, scalingRules } from '../transformer/rules.js';
import {
  activationWord,
  normEpsilon,
  partOfHead,
  prefixStoredIn,
  toggle,
} from '../transformer/settings.js';

const { rope_theta, rope_scaling } = rotarySettings(10_000);

/** Names of the head. */
const HEADS = ['embed_out', 'lm_head'] as const;

/** Whether a name is `own`, alone or inside a larger model. */
const isOf = (name: string, own: string) => name === own || name.endsWith(`.${own}`);

const ROTATED = partOfEachHead('rotary_pct');

export const NEOX_ROTARY_RULES = [...rotationRules(ROTATED), ...scalingRules(ROTATED)];

/** Rotary settings, which come before the keys of older files. */
export const neoxRotary = (config: JsonObject): JsonObject => ({
  rotary_emb_base: rotaryIn(config).rope_theta,
  rotary_pct: rotaryIn(config).partial_rotary_factor,
});

/** Keys with limits. @param defaults Sizes of a file without any. */
export const neoxKeys = (defaults: { readonly width: number; readonly heads: number }) => ({
  rope_theta: unreadBut([], 'this family reads rotary_emb_base'),
  partial_rotary_factor: unreadBut([], 'this family reads rotary_pct'),
  head_dim: {
    allows: (
      width: unknown,
      { hidden_size = defaults.width, num_attention_heads = defaults.heads }: JsonObject,
    ) => width === null || width === asNumber(hidden_size) / asNumber(num_attention_heads),
    why: 'another part of each head is rotated',
    severity: 'error',
  } as const,
});

export const gptNeox = defineGpt({
  title: 'GPT-NeoX and Pythia',
  document: gptDocument(
    'gpt_neox',
    {
      prefix: 'gpt_neox.',
      tied: false,
      sizes: {
        vocabulary: ['vocab_size', 50_432],
        width: ['hidden_size', 6144],
        depth: ['num_hidden_layers', 44],
        heads: ['num_attention_heads', 64],
        feedForward: ['intermediate_size', 24_576],
        positions: ['max_position_embeddings', 2048],
      },
    },
    {
      layer_norm_eps: normEpsilon(1e-5),
      hidden_act: activationWord.default('gelu').describe('Activation between the two products'),
      rotary_emb_base: rope_theta,
      rotary_pct: partOfHead(0.25),
      rope_scaling,
      attention_bias: toggle(true, 'Biases in both products of attention'),
      use_parallel_residual: toggle(
        true,
        'Attention and feed-forward read the same input, and are added to it at once',
      ),
      stored_head: z
        .enum(HEADS)
        .default('embed_out')
        .describe('Name of the head: on disk, or as transformers 5 holds it'),
    },
  ),
  rules: NEOX_ROTARY_RULES,
  huggingFace: {
    more: (config) => ({
      ...neoxRotary(config),
      stored_head: isHeldInMemory(config) ? 'lm_head' : 'embed_out',
    }),
    limited: neoxKeys({ width: 6144, heads: 64 }),
    harmless: { num_key_value_heads: 'every head has keys and values of its own' },
  },
  storedSettings: (stored) => {
    const names = [...stored.names()];
    const head = HEADS.find((name) => names.some((each) => isOf(each, `${name}.weight`)));
    return [
      ...(head === undefined ? [] : [{ path: 'model.stored_head', value: head }]),
      ...prefixStoredIn(stored, { own: 'gpt_neox.' }, 'embed_in.weight'),
    ];
  },
  names: { embedding: 'embed_in', blocks: 'layers', norm: 'final_layer_norm' },
  head: (config) => config.stored_head,
  ignoredOnLoad: ['attention.bias', 'attention.masked_bias', ROTARY_BUFFERS],
  norm: (name, width, config) => layerNormLayer(name, width, config.layer_norm_eps),
  attention({ name, config, positions, layout, heads, headDim }) {
    const rotatedDim = Math.trunc(headDim * config.rotary_pct);
    return fusedAttention(`${name}.attention`, {
      leaves: ['query_key_value', 'dense'],
      groups: heads,
      bias: config.attention_bias,
      ...layout,
      rotary: rotary(`${name}.rotary`, {
        base: config.rotary_emb_base,
        headDim,
        rotatedDim,
        scaling: scalingOf(config.rope_scaling, positions, rotatedDim),
      }),
    });
  },
  feedForward: ({ name, config, hidden, inner }) =>
    plainMlp(`${name}.mlp`, {
      hidden,
      inner,
      activation: config.hidden_act,
      leaves: ['dense_h_to_4h', 'dense_4h_to_h'],
    }),
  block({ name, norm, config }, { attention, feedForward }) {
    const branches = {
      attention: [norm(`${name}.input_layernorm`), attention],
      mlp: [norm(`${name}.post_attention_layernorm`), feedForward],
    };
    if (!config.use_parallel_residual) return residualBlock(name, branches);
    return residual(
      name,
      sequence(`${name}.attention_branch`, branches.attention),
      sequence(`${name}.mlp_branch`, branches.mlp),
    );
  },
});
