/** CTRL (arXiv 1909.05858): sines and cosines of positions, and a head with a bias. */

import { attention } from '../constructors/attention-layers.js';
import {
  layerNormLayer,
  linear,
  scale,
  sinusoidalPositions,
} from '../constructors/basic-layers.js';
import { checkListed } from '../param.js';
import { harmless, NO_ROTARY_KEYS, SUMMARY_KEYS } from '../transformer/config-keys.js';
import { plainMlp, residualBlock } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { GPT_NAMES, normEpsilon } from '../transformer/settings.js';

/** Epsilon of the norms in the blocks, which no key sets. */
const NORM_EPS = 1e-6;
const BASE = 10_000;

/** Frequencies in float32, as the class computes them. */
function frequenciesOf(hidden: number): number[] {
  checkListed('model.n_embd', hidden, 'columns of positions');
  return Array.from({ length: Math.ceil(hidden / 2) }, (_, index) =>
    Math.fround(1 / Math.fround(BASE ** Math.fround((2 * index) / hidden))),
  );
}

export const ctrl = defineGpt({
  title: 'CTRL',
  document: gptDocument(
    'ctrl',
    {
      prefix: 'transformer.',
      sizes: {
        vocabulary: ['vocab_size', 246_534],
        positions: ['n_positions', 256],
        width: ['n_embd', 1280],
        feedForward: ['dff', 8192],
        depth: ['n_layer', 48],
        heads: ['n_head', 16],
      },
    },
    { layer_norm_epsilon: normEpsilon(1e-6).describe('Epsilon of the norm behind the last block') },
  ),
  huggingFace: {
    names: GPT_NAMES,
    limited: NO_ROTARY_KEYS,
    harmless: {
      ...SUMMARY_KEYS,
      ...harmless('of the code of the first release; transformers does not read it', ['n_ctx']),
    },
  },
  names: { embedding: 'w', blocks: 'h', norm: 'layernorm' },
  ignoredOnLoad: [],
  attention({ name: block, hidden, heads, headDim }) {
    const name = `${block}.multi_head_attention`;
    const product = (leaf: string) => linear(`${name}.${leaf}`, hidden, hidden);
    return attention(name, {
      inputs: [product('Wq'), product('Wk'), product('Wv')],
      out: product('dense'),
      heads,
      headDim,
      ownTypeSoftmax: true,
    });
  },
  feedForward: ({ name, hidden, inner }) =>
    plainMlp(`${name}.ffn`, { hidden, inner, activation: 'relu', leaves: ['0', '2'] }),
  block({ name, hidden }, { attention: mixer, feedForward }) {
    const norm = (leaf: string) => layerNormLayer(`${name}.${leaf}`, hidden, NORM_EPS);
    return residualBlock(name, {
      attention: [norm('layernorm1'), mixer],
      mlp: [norm('layernorm2'), feedForward],
    });
  },
  parts: ({ prefix, hidden }) => ({
    headBias: true,
    embeddingSteps: [
      scale(`${prefix}embed_scale`, Math.sqrt(hidden)),
      sinusoidalPositions(`${prefix}positions`, {
        frequencies: frequenciesOf(hidden),
        size: hidden,
        offset: 0,
      }),
    ],
  }),
});
