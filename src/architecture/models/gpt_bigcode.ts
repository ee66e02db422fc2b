/** GPT-BigCode, of StarCoder 1 and SantaCoder (arXiv 2305.06161): GPT-2 with one key-value head for all. */
import { attention } from '../constructors/attention-layers.js';
import {
  fusedProjection,
  layerNormLayer,
  learnedPositions,
  linear,
} from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS } from '../transformer/config-keys.js';
import { causalModel, plainMlp, residualBlock } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { headsDivide, lengthRules } from '../transformer/rules.js';
import {
  activationWord,
  epsilon,
  flag,
  GPT_DIMENSIONS,
  GPT_NAMES,
  oldBuffers,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

const schema = transformerDocument('gpt_bigcode', {
  vocab_size: positiveInteger.default(50_257).describe('Rows of the embedding and of the head'),
  n_positions: positiveInteger.default(1024).describe('Rows of the positions: longest input'),
  n_embd: positiveInteger.default(768).describe('Width of the residual stream'),
  n_layer: positiveInteger.default(12).describe('Number of blocks'),
  n_head: positiveInteger.default(12).describe('Attention heads, a divisor of n_embd'),
  n_inner: positiveInteger.nullish().describe('Width inside the feed-forward network [4 · n_embd]'),
  activation_function: activationWord.default('gelu_pytorch_tanh').describe('Activation'),
  layer_norm_epsilon: epsilon.default(1e-5).describe('Epsilon of the norms'),
  multi_query: flag.default(true).describe('One key-value head for all query heads'),
  scale_attn_weights: flag.default(true).describe('Scores are divided by the root of the width'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('transformer.'),
});

export const gptBigcode = defineTransformer({
  title: 'GPT-BigCode: StarCoder 1 and SantaCoder',
  schema,
  rules: [...headsDivide('n_head', 'n_embd'), ...lengthRules('n_positions')],
  dimensions: GPT_DIMENSIONS,
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
  storedSettings: (stored) => prefixStoredIn(stored, 'transformer.', 'wte.weight'),
  ignored: ({ model: { stored_prefix: prefix } }) => oldBuffers([`${prefix}h.*.attn.bias`]),
  build({ model: config }) {
    const { n_embd: hidden, n_head: heads, stored_prefix: prefix } = config;
    const headDim = hidden / heads;
    const keyValueHeads = config.multi_query ? 1 : heads;
    const keys = keyValueHeads * headDim;
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_epsilon);
    return causalModel({
      paths: { embedding: `${prefix}wte`, blocks: `${prefix}h`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.n_positions,
      tied: config.tie_word_embeddings,
      blocks: config.n_layer,
      blocksKey: 'n_layer',
      embeddingSteps: [learnedPositions(`${prefix}wpe`, config.n_positions, hidden)],
      norm: norm(`${prefix}ln_f`),
      block: (name) =>
        residualBlock(name, {
          attention: [
            norm(`${name}.ln_1`),
            attention(`${name}.attn`, {
              inputs: fusedProjection(
                linear(`${name}.attn.c_attn`, hidden, hidden + 2 * keys),
                [hidden, keys, keys],
                config.multi_query ? 1 : heads,
              ),
              out: linear(`${name}.attn.c_proj`, hidden, hidden),
              heads,
              keyValueHeads,
              headDim,
              scale: config.scale_attn_weights ? headDim ** -0.5 : 1,
            }),
          ],
          mlp: [
            norm(`${name}.ln_2`),
            plainMlp(`${name}.mlp`, {
              hidden,
              inner: config.n_inner ?? 4 * hidden,
              activation: config.activation_function,
              leaves: ['c_fc', 'c_proj'],
            }),
          ],
        }),
    });
  },
});
