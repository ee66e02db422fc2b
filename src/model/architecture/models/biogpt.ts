/** BioGPT (arXiv 2210.10341): OPT with scaled embeddings and fixed norms. */
import { layerNormLayer, learnedPositions, scale } from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS } from '../transformer/config-keys.js';
import { plainMlp, residualBlock, separateAttention } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { activationWord, toggle } from '../transformer/settings.js';

/** Fixed in the class. */
const NORM_EPS = 1e-5;
const FIRST_ROW = 2;

export const biogpt = defineGpt({
  title: 'BioGPT',
  document: gptDocument(
    'biogpt',
    {
      prefix: 'biogpt.',
      sizes: {
        vocabulary: ['vocab_size', 42_384],
        width: ['hidden_size', 1024],
        depth: ['num_hidden_layers', 24],
        feedForward: ['intermediate_size', 4096],
        positions: [
          'max_position_embeddings',
          1024,
          'Longest input; the table of positions has two rows more',
        ],
        heads: ['num_attention_heads', 16],
      },
    },
    {
      hidden_act: activationWord.default('gelu').describe('Activation'),
      scale_embedding: toggle(true, 'Embeddings are multiplied by the root of the width'),
    },
  ),
  huggingFace: {
    limited: NO_ROTARY_KEYS,
    harmless: {
      ...harmless('used in training only', ['layerdrop', 'activation_dropout']),
      layer_norm_eps: 'the class does not read it: norms have an epsilon of 1e-5',
    },
  },
  names: { embedding: 'embed_tokens', blocks: 'layers', norm: 'layer_norm' },
  head: () => 'output_projection',
  norm: (name, width) => layerNormLayer(name, width, NORM_EPS),
  attention: ({ name, layout }) =>
    separateAttention(`${name}.self_attn`, {
      ...layout,
      bias: true,
      outBias: true,
      outName: 'out_proj',
      ownTypeSoftmax: true,
    }),
  feedForward({ name, config, hidden, inner }) {
    // The network's two products belong to the block itself.
    const leaves = ['fc1', 'fc2'] as const;
    const network = plainMlp(name, { hidden, inner, activation: config.hidden_act, leaves });
    return { ...network, name: `${name}.network` };
  },
  block: ({ name, norm }, { attention, feedForward }) =>
    residualBlock(name, {
      attention: [norm(`${name}.self_attn_layer_norm`), attention],
      mlp: [norm(`${name}.final_layer_norm`), feedForward],
    }),
  parts: ({ prefix, config, positions, hidden }) => ({
    embeddingSteps: [
      ...(config.scale_embedding ? [scale(`${prefix}embed_scale`, Math.sqrt(hidden))] : []),
      learnedPositions(`${prefix}embed_positions`, positions, hidden, FIRST_ROW),
    ],
  }),
});
