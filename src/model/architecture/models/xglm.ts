/** XGLM (arXiv 2112.10668): OPT with sines and cosines in place of learned positions. */

import * as z from 'zod';
import { layerNormLayer, scale, sinusoidalPositions } from '../constructors/basic-layers.js';
import { defineRules } from '../family.js';
import { checkListed } from '../param.js';
import { harmless, NO_ROTARY_KEYS, unreadBut } from '../transformer/config-keys.js';
import { plainMlp, residualBlock, separateAttention } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { activationWord, toggle } from '../transformer/settings.js';

/** Fixed in the class. */
const NORM_EPS = 1e-5;
const FIRST_POSITION = 2;
const BASE = 10_000;

/** Row of zeros in the table of positions, by the class's default. */
const USUAL_PADDING = 1;

interface Padded {
  readonly pad_token_id?: number | null | undefined;
  readonly d_model: number;
  readonly max_position_embeddings: number;
}

const zeroRow = ({ pad_token_id: id }: Padded): number | undefined =>
  id === undefined ? USUAL_PADDING : (id ?? undefined);

/** Frequencies in float32, as the class computes them. */
function frequenciesOf(hidden: number): number[] {
  checkListed('model.d_model', hidden, 'columns of positions');
  const half = Math.floor(hidden / 2);
  const step = Math.fround(-Math.log(BASE) / (half - 1));
  return Array.from({ length: half }, (_, index) => Math.exp(Math.fround(index * step)));
}

const rules = defineRules<{ readonly model: Padded }>([
  {
    severity: 'error',
    reads: ['model.d_model'],
    check: ({ model: { d_model: hidden } }) =>
      hidden < 4
        ? {
            message: `${hidden} values have no two frequencies of positions`,
            suggestion: 'write d_model: 4 or more',
          }
        : undefined,
  },
  {
    severity: 'error',
    reads: ['model.pad_token_id', 'model.max_position_embeddings'],
    check({ model }) {
      const [row, rows] = [zeroRow(model), model.max_position_embeddings + FIRST_POSITION];
      return row !== undefined && (row < 0 || row >= rows)
        ? {
            message: `pad_token_id ${row} names no row in the table of ${rows} positions, which the class sets to 0`,
            suggestion: `write a pad_token_id below ${rows}, or null`,
          }
        : undefined;
    },
  },
]);

export const xglm = defineGpt({
  title: 'XGLM',
  document: gptDocument(
    'xglm',
    {
      prefix: 'model.',
      sizes: {
        vocabulary: ['vocab_size', 256_008],
        width: ['d_model', 1024],
        depth: ['num_layers', 24],
        feedForward: ['ffn_dim', 4096],
        positions: ['max_position_embeddings', 2048],
        heads: ['attention_heads', 16],
      },
    },
    {
      activation_function: activationWord.default('gelu').describe('Activation'),
      scale_embedding: toggle(true, 'Embeddings are multiplied by the root of the width'),
      add_cross_attention: z
        .literal(false)
        .nullish()
        .describe('Cross-attention needs an encoder, which is not supported'),
    },
  ),
  rules,
  huggingFace: {
    names: {
      d_model: ['hidden_size'],
      num_layers: ['num_hidden_layers'],
      attention_heads: ['num_attention_heads'],
    },
    limited: { ...NO_ROTARY_KEYS, layer_norm_eps: unreadBut([NORM_EPS]) },
    harmless: {
      decoder_start_token_id: 'names a token',
      ...harmless('used in training only', [
        'dropout',
        'layerdrop',
        'activation_dropout',
        'init_std',
      ]),
    },
  },
  names: { embedding: 'embed_tokens', blocks: 'layers', norm: 'layer_norm' },
  ignoredOnLoad: [],
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
    const network = plainMlp(name, {
      hidden,
      inner,
      activation: config.activation_function,
      leaves,
    });
    return { ...network, name: `${name}.network` };
  },
  block: ({ name, norm }, { attention, feedForward }) =>
    residualBlock(name, {
      attention: [norm(`${name}.self_attn_layer_norm`), attention],
      mlp: [norm(`${name}.final_layer_norm`), feedForward],
    }),
  parts: ({ prefix, config, hidden }) => ({
    embeddingSteps: [
      ...(config.scale_embedding ? [scale(`${prefix}embed_scale`, Math.sqrt(hidden))] : []),
      sinusoidalPositions(`${prefix}embed_positions`, {
        frequencies: frequenciesOf(hidden),
        size: hidden,
        offset: FIRST_POSITION,
        zeroAt: zeroRow(config),
      }),
    ],
  }),
});
