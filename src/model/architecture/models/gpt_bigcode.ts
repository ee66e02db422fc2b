/** GPT-BigCode, of StarCoder 1 and SantaCoder (arXiv 2305.06161): GPT-2 with one key-value head for all. */
import { learnedPositions } from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS } from '../transformer/config-keys.js';
import { fusedAttention } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument, gptMlp, LEARNED_LENGTH } from '../transformer/define-gpt.js';
import { activationWord, GPT_NAMES, normEpsilon, toggle } from '../transformer/settings.js';

export const gptBigcode = defineGpt({
  title: 'GPT-BigCode: StarCoder 1 and SantaCoder',
  document: gptDocument(
    'gpt_bigcode',
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
      activation_function: activationWord.default('gelu_pytorch_tanh').describe('Activation'),
      layer_norm_epsilon: normEpsilon(1e-5),
      multi_query: toggle(true, 'One key-value head for all query heads'),
      scale_attn_weights: toggle(true, 'Scores are divided by the root of the width'),
    },
  ),
  huggingFace: {
    names: GPT_NAMES,
    limited: NO_ROTARY_KEYS,
    harmless: {
      ...harmless('chooses how the same values are computed', [
        'attention_softmax_in_fp32',
        'scale_attention_softmax_in_fp32',
        'inference_runner',
        'max_batch_size',
        'max_sequence_length',
        'pad_key_length',
        'pre_allocate_kv_cache',
        'validate_runner_input',
      ]),
      ...SUMMARY_KEYS,
      num_key_value_heads: 'the class makes it from multi_query',
    },
  },
  names: { embedding: 'wte', blocks: 'h', norm: 'ln_f' },
  norms: ['ln_1', 'ln_2'],
  buffers: ['attn.bias'],
  attention: ({ name, config, layout, heads, headDim }) =>
    fusedAttention(`${name}.attn`, {
      leaves: ['c_attn', 'c_proj'],
      groups: config.multi_query ? 1 : heads,
      ...layout,
      keyValueHeads: config.multi_query ? 1 : heads,
      scale: config.scale_attn_weights ? headDim ** -0.5 : 1,
    }),
  feedForward: gptMlp('c_fc', 'c_proj'),
  parts: ({ prefix, positions, hidden }) => ({
    embeddingSteps: [learnedPositions(`${prefix}wpe`, positions, hidden)],
  }),
});
