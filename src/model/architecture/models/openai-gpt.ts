/** The first GPT (Radford et al. 2018): norms behind the sums, none behind the last block. */
import * as z from 'zod';
import { learnedPositions, residual, sequence } from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS } from '../transformer/config-keys.js';
import { defineGpt, gptDocument, LEARNED_LENGTH } from '../transformer/define-gpt.js';
import { GPT_NAMES, normEpsilon } from '../transformer/settings.js';
import { convAttention, convMlp } from './gpt2.js';

/** Activations that the class has under these names. */
const ACTIVATIONS = { gelu: 'gelu_new', relu: 'relu', silu: 'silu', swish: 'silu' } as const;

const OLD_KEYS = harmless('of the code of the first release; transformers does not read it', [
  'n_ctx',
  'n_special',
  'predict_special_tokens',
]);

export const openaiGpt = defineGpt({
  title: 'GPT (2018)',
  document: gptDocument(
    'openai-gpt',
    {
      prefix: 'transformer.',
      sizes: {
        vocabulary: ['vocab_size', 40_478],
        positions: ['n_positions', 512, LEARNED_LENGTH],
        width: ['n_embd', 768],
        depth: ['n_layer', 12],
        heads: ['n_head', 12],
      },
    },
    {
      afn: z
        .enum(['gelu', 'relu', 'silu', 'swish'])
        .default('gelu')
        .describe('Activation; gelu means gelu_new, as in transformers'),
      layer_norm_epsilon: normEpsilon(1e-5),
    },
  ),
  huggingFace: {
    names: GPT_NAMES,
    limited: NO_ROTARY_KEYS,
    harmless: { ...SUMMARY_KEYS, ...OLD_KEYS },
  },
  names: { embedding: 'tokens_embed', blocks: 'h', norm: 'no_norm' },
  ignoredOnLoad: ['(^|\\.)position_ids$'],
  buffers: ['attn.bias'],
  attention: ({ name, layout, hidden, headDim }) =>
    convAttention(`${name}.attn`, hidden, {
      ...layout,
      ownTypeSoftmax: true,
      scale: headDim ** -0.5,
    }),
  feedForward: ({ name, config, hidden, inner }) =>
    convMlp(`${name}.mlp`, hidden, inner, ACTIVATIONS[config.afn]),
  block: ({ name, norm }, { attention, feedForward }) =>
    sequence(name, [
      residual(`${name}.attention_residual`, attention),
      norm(`${name}.ln_1`),
      residual(`${name}.mlp_residual`, feedForward),
      norm(`${name}.ln_2`),
    ]),
  parts: ({ prefix, positions, hidden }) => ({
    embeddingSteps: [learnedPositions(`${prefix}positions_embed`, positions, hidden)],
    norm: sequence(`${prefix}output`, []),
  }),
});
