/** GPT-Neo: learned positions, a window in some layers, scores that are not scaled. */
import * as z from 'zod';
import { asNumber, sumOf } from '../../../base/values.js';
import { slidingWindow } from '../constructors/attention-layers.js';
import { learnedPositions } from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS } from '../transformer/config-keys.js';
import { separateAttention } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument, gptMlp, LEARNED_LENGTH } from '../transformer/define-gpt.js';
import { decoderProxy } from '../transformer/scaled-down-proxy.js';
import { activationWord, count, normEpsilon } from '../transformer/settings.js';

const kinds = z.array(z.enum(['global', 'local']));

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

export const gptNeo = defineGpt({
  title: 'GPT-Neo',
  document: gptDocument(
    'gpt_neo',
    {
      prefix: 'transformer.',
      sizes: {
        vocabulary: ['vocab_size', 50_257],
        positions: ['max_position_embeddings', 2048, LEARNED_LENGTH],
        width: ['hidden_size', 2048],
        depth: ['num_layers', 24],
        heads: ['num_heads', 16],
        feedForward: ['intermediate_size', null],
      },
    },
    {
      attention_types: z
        .array(z.tuple([kinds, z.int().min(0)]))
        .default([[['global', 'local'], 12]])
        .describe('Kinds of layers, and how many times they follow each other'),
      window_size: count(256, 'How many keys a position of a local layer sees, its own included'),
      activation_function: activationWord.default('gelu_new').describe('Activation'),
      layer_norm_epsilon: normEpsilon(1e-5),
    },
  ),
  rules: [
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
    const listed = Array.from({ length: asNumber(layers) }, (_, index) => kindAt(types, index));
    return [
      ...settings,
      { path: 'model.attention_types', value: [[listed, 1]] },
      { path: 'model.window_size', value: Math.max(1, Math.floor(tokens / 2)) },
    ];
  },
  names: { embedding: 'wte', blocks: 'h', norm: 'ln_f' },
  norms: ['ln_1', 'ln_2'],
  buffers: ['attn.attention.bias', 'attn.attention.masked_bias'],
  attention: ({ name, index, config, layout }) =>
    separateAttention(`${name}.attn.attention`, {
      ...layout,
      outBias: true,
      outName: 'out_proj',
      scale: 1,
      keeps: 'keys outside the windows',
      window:
        kindAt(config.attention_types, index) === 'local'
          ? slidingWindow(config.window_size)
          : undefined,
    }),
  feedForward: gptMlp('c_fc', 'c_proj'),
  parts: ({ prefix, positions, hidden }) => ({
    embeddingSteps: [learnedPositions(`${prefix}wpe`, positions, hidden)],
  }),
});
