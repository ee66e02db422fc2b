/** GPT-Neo: learned positions, a window in some layers, scores that are not scaled. */
import * as z from 'zod';
import { sumOf } from '../../text/words.js';
import { slidingWindow } from '../constructors/attention-layers.js';
import { layerNormLayer, learnedPositions } from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS } from '../transformer/config-keys.js';
import {
  causalModel,
  plainMlp,
  residualBlock,
  separateAttention,
} from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { headsDivide, lengthRules } from '../transformer/rules.js';
import { decoderProxy } from '../transformer/scaled-down-proxy.js';
import {
  activationWord,
  epsilon,
  FEED_FORWARD_PER_CHANNEL,
  flag,
  oldBuffers,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

const kinds = z.array(z.enum(['global', 'local']));

const schema = transformerDocument('gpt_neo', {
  vocab_size: positiveInteger.default(50_257).describe('Rows of the embedding and of the head'),
  max_position_embeddings: positiveInteger
    .default(2048)
    .describe('Rows of the positions: longest input'),
  hidden_size: positiveInteger.default(2048).describe('Width of the residual stream'),
  num_layers: positiveInteger.default(24).describe('Number of blocks'),
  num_heads: positiveInteger.default(16).describe('Attention heads, a divisor of hidden_size'),
  attention_types: z
    .array(z.tuple([kinds, z.int().min(0)]))
    .default([[['global', 'local'], 12]])
    .describe('Kinds of layers, and how many times they follow each other'),
  window_size: positiveInteger
    .default(256)
    .describe('How many keys a position of a local layer sees, its own included'),
  intermediate_size: positiveInteger
    .nullish()
    .describe('Width inside the feed-forward network [4 · hidden_size]'),
  activation_function: activationWord.default('gelu_new').describe('Activation'),
  layer_norm_epsilon: epsilon.default(1e-5).describe('Epsilon of the norms'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('transformer.'),
});

type Types = readonly (readonly [readonly string[], number])[];

const layersIn = (types: Types) => sumOf(types, ([listed, times]) => listed.length * times);

/** Kind of layer `index`, without a list of all layers, which a file can make very long. */
function kindAt(types: Types, index: number): string | undefined {
  let first = 0;
  for (const [listed, times] of types) {
    const end = first + listed.length * times;
    if (index < end) return listed[(index - first) % listed.length];
    first = end;
  }
  return undefined;
}

export const gptNeo = defineTransformer({
  title: 'GPT-Neo',
  schema,
  rules: [
    ...headsDivide('num_heads', 'hidden_size'),
    ...lengthRules('max_position_embeddings'),
    {
      severity: 'error',
      reads: ['model.attention_types', 'model.num_layers'],
      check: ({ model: { attention_types: types, num_layers: layers } }) =>
        layersIn(types) === layers
          ? undefined
          : {
              message: `attention_types has ${layersIn(types)} entries for ${layers} layers`,
              suggestion: `write attention_types: [[[global], ${layers}]], or another list of ${layers}`,
            },
    },
  ],
  dimensions: {
    vocabulary: 'vocab_size',
    positions: 'max_position_embeddings',
    depth: 'num_layers',
    width: 'hidden_size',
    heads: 'num_heads',
    feedForward: { key: 'intermediate_size', perChannel: FEED_FORWARD_PER_CHANNEL },
  },
  huggingFace: {
    names: { num_layers: ['num_hidden_layers'], num_heads: ['num_attention_heads'] },
    limited: NO_ROTARY_KEYS,
    harmless: {
      ...harmless('used in training only', ['resid_dropout', 'embed_dropout']),
      ...SUMMARY_KEYS,
      attention_layers: 'the class makes it from attention_types',
    },
  },
  scaledDownProxy(document, tokens, bounds) {
    const settings = decoderProxy(document, tokens, bounds);
    const layers = settings.find(({ path }) => path === 'model.num_layers')?.value;
    const { attention_types: types } = document.model;
    const listed = Array.from({ length: Number(layers) }, (_, index) => kindAt(types, index));
    return [
      ...settings,
      { path: 'model.attention_types', value: [[listed, 1]] },
      { path: 'model.window_size', value: Math.max(1, Math.floor(tokens / 2)) },
    ];
  },
  storedSettings: (stored) => prefixStoredIn(stored, 'transformer.', 'wte.weight'),
  ignored: ({ model: { stored_prefix: prefix } }) =>
    oldBuffers(['bias', 'masked_bias'].map((leaf) => `${prefix}h.*.attn.attention.${leaf}`)),
  build({ model: config }) {
    const { hidden_size: hidden, num_heads: heads, stored_prefix: prefix } = config;
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_epsilon);
    return causalModel({
      paths: { embedding: `${prefix}wte`, blocks: `${prefix}h`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.max_position_embeddings,
      tied: config.tie_word_embeddings,
      blocks: config.num_layers,
      blocksKey: 'num_layers',
      embeddingSteps: [learnedPositions(`${prefix}wpe`, config.max_position_embeddings, hidden)],
      norm: norm(`${prefix}ln_f`),
      block: (name, index) =>
        residualBlock(name, {
          attention: [
            norm(`${name}.ln_1`),
            separateAttention(`${name}.attn.attention`, {
              hidden,
              heads,
              keyValueHeads: heads,
              headDim: hidden / heads,
              outBias: true,
              outName: 'out_proj',
              scale: 1,
              keeps: 'keys outside the windows',
              window:
                kindAt(config.attention_types, index) === 'local'
                  ? slidingWindow(config.window_size)
                  : undefined,
            }),
          ],
          mlp: [
            norm(`${name}.ln_2`),
            plainMlp(`${name}.mlp`, {
              hidden,
              inner: config.intermediate_size ?? 4 * hidden,
              activation: config.activation_function,
              leaves: ['c_fc', 'c_proj'],
            }),
          ],
        }),
    });
  },
});
