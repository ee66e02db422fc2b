/** GPT-J: one norm for attention and feed-forward, rotated neighbours in a part of each head, a head with a bias. */
import { rotary } from '../constructors/attention-layers.js';
import { layerNormLayer } from '../constructors/basic-layers.js';
import { NO_ROTARY_KEYS, unreadBut } from '../transformer/config-keys.js';
import {
  causalModel,
  parallelBranches,
  plainMlp,
  separateAttention,
} from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { headsDivide, lengthRules, rotationRules } from '../transformer/rules.js';
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

/** Base of its frequencies, fixed in the original code. */
const BASE = 10_000;

const schema = transformerDocument('gptj', {
  vocab_size: positiveInteger.default(50_400).describe('Rows of the embedding and of the head'),
  n_positions: positiveInteger.default(2048).describe('Longest input, in tokens'),
  n_embd: positiveInteger.default(4096).describe('Width of the residual stream'),
  n_layer: positiveInteger.default(28).describe('Number of blocks'),
  n_head: positiveInteger.default(16).describe('Attention heads, a divisor of n_embd'),
  rotary_dim: positiveInteger.default(64).describe('Rotated dimensions of each head'),
  n_inner: positiveInteger.nullish().describe('Width inside the feed-forward network [4 · n_embd]'),
  activation_function: activationWord.default('gelu_new').describe('Activation'),
  layer_norm_epsilon: epsilon.default(1e-5).describe('Epsilon of the norms'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('transformer.'),
});

export const gptj = defineTransformer({
  title: 'GPT-J',
  schema,
  rules: [
    ...headsDivide('n_head', 'n_embd'),
    ...lengthRules('n_positions'),
    ...rotationRules({
      reads: ['model.rotary_dim'],
      of: ({ rotary_dim }: { readonly rotary_dim: number }) => rotary_dim,
      suggestion: 'write another rotary_dim',
    }),
    {
      severity: 'error',
      reads: ['model.rotary_dim', 'model.n_embd', 'model.n_head'],
      check: ({ model: { rotary_dim: rotated, n_embd: hidden, n_head: heads } }) =>
        rotated > hidden / heads
          ? {
              message: `rotary_dim ${rotated} is more than the head width ${hidden / heads}`,
              suggestion: `write at most ${hidden / heads}`,
            }
          : undefined,
    },
  ],
  dimensions: GPT_DIMENSIONS,
  huggingFace: {
    names: GPT_NAMES,
    limited: {
      ...NO_ROTARY_KEYS,
      rotary: unreadBut([true]),
      rotary_dim: {
        allows: (width) => width !== null && width !== 0,
        why: 'positions get tables as wide as the whole model',
        severity: 'error',
      },
      scale_attn_weights: unreadBut([true]),
    },
  },
  storedSettings: (stored) => prefixStoredIn(stored, 'transformer.', 'wte.weight'),
  ignored: ({ model: { stored_prefix: prefix } }) =>
    oldBuffers(['bias', 'masked_bias'].map((leaf) => `${prefix}h.*.attn.${leaf}`)),
  build({ model: config }) {
    const { n_embd: hidden, n_head: heads, stored_prefix: prefix } = config;
    const headDim = hidden / heads;
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_epsilon);
    return causalModel({
      paths: { embedding: `${prefix}wte`, blocks: `${prefix}h`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.n_positions,
      tied: config.tie_word_embeddings,
      headBias: true,
      blocks: config.n_layer,
      blocksKey: 'n_layer',
      norm: norm(`${prefix}ln_f`),
      block: (name) =>
        parallelBranches(
          name,
          norm(`${name}.ln_1`),
          separateAttention(`${name}.attn`, {
            hidden,
            heads,
            keyValueHeads: heads,
            headDim,
            outName: 'out_proj',
            rotary: rotary(`${name}.rotary`, {
              base: BASE,
              headDim,
              rotatedDim: config.rotary_dim,
              pairs: 'neighbours',
            }),
          }),
          plainMlp(`${name}.mlp`, {
            hidden,
            inner: config.n_inner ?? 4 * hidden,
            activation: config.activation_function,
            leaves: ['fc_in', 'fc_out'],
          }),
        ),
    });
  },
});
