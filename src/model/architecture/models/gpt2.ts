/** GPT-2 (Radford et al. 2019): learned positions, transposed weights. */
import * as z from 'zod';
import { type AttentionParts, attention } from '../constructors/attention-layers.js';
import {
  activation,
  fusedProjection,
  learnedPositions,
  sequence,
  transposedLinear,
} from '../constructors/basic-layers.js';
import type { Attention, Layer } from '../layer.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS, unreadBut } from '../transformer/config-keys.js';
import { defineGpt, gptDocument, LEARNED_LENGTH } from '../transformer/define-gpt.js';
import {
  type ActivationWord,
  activationOf,
  activationWord,
  flag,
  GPT_NAMES,
  isComposed,
  normEpsilon,
  toggle,
} from '../transformer/settings.js';

// Parts of transposed products

export const convAttention = (
  name: string,
  hidden: number,
  parts: Omit<AttentionParts, 'inputs' | 'out'>,
): Attention =>
  attention(name, {
    inputs: fusedProjection(transposedLinear(`${name}.c_attn`, hidden, 3 * hidden), [
      hidden,
      hidden,
      hidden,
    ]),
    out: transposedLinear(`${name}.c_proj`, hidden, hidden),
    ...parts,
  });

export const convMlp = (name: string, hidden: number, inner: number, word: ActivationWord): Layer =>
  sequence(
    name,
    [
      transposedLinear(`${name}.c_fc`, hidden, inner),
      activation(`${name}.act`, activationOf(word), isComposed(word)),
      transposedLinear(`${name}.c_proj`, inner, hidden),
    ],
    'feedForward',
  );

export const gpt2 = defineGpt({
  title: 'GPT-2',
  document: gptDocument(
    'gpt2',
    {
      prefix: 'transformer.',
      sizes: {
        vocabulary: ['vocab_size', 50_257],
        positions: ['n_positions', 1024, LEARNED_LENGTH],
        width: ['n_embd', 768],
        depth: ['n_layer', 12],
        heads: ['n_head', 12],
        feedForward: ['n_inner', null],
      },
    },
    {
      activation_function: activationWord
        .default('gelu_new')
        .describe('Activation between the two'),
      layer_norm_epsilon: normEpsilon(1e-5),
      scale_attn_weights: toggle(true, 'Scores are divided by the root of the width'),
      scale_attn_by_inverse_layer_idx: toggle(false, '… and by the number of the layer, from 1'),
      reorder_and_upcast_attn: flag.nullish().describe('The order of operations, not their result'),
      add_cross_attention: z
        .literal(false)
        .nullish()
        .describe('Cross-attention needs an encoder, which is not supported'),
    },
  ),
  huggingFace: {
    names: GPT_NAMES,
    harmless: {
      ...SUMMARY_KEYS,
      summary_last_dropout: 'of a head that classifies whole texts',
      ...harmless('of the first release', ['n_special', 'predict_special_tokens']),
    },
    limited: {
      ...NO_ROTARY_KEYS,
      n_ctx: unreadBut(
        (length, { n_positions = 1024, max_position_embeddings: positions = n_positions }) =>
          length === null || length === positions,
      ),
    },
  },
  names: { embedding: 'wte', blocks: 'h', norm: 'ln_f' },
  norms: ['ln_1', 'ln_2'],
  ignoredOnLoad: ['attn.bias', 'crossattention.bias'],
  buffers: ['attn.masked_bias'],
  attention: ({ name, index, config, layout, hidden, headDim }) =>
    convAttention(`${name}.attn`, hidden, {
      ...layout,
      ownTypeSoftmax: config.reorder_and_upcast_attn !== true,
      scale:
        (config.scale_attn_weights ? headDim ** -0.5 : 1) /
        (config.scale_attn_by_inverse_layer_idx ? index + 1 : 1),
    }),
  feedForward: ({ name, config, hidden, inner }) =>
    convMlp(`${name}.mlp`, hidden, inner, config.activation_function),
  parts: ({ prefix, positions, hidden }) => ({
    embeddingSteps: [learnedPositions(`${prefix}wpe`, positions, hidden)],
  }),
});
