/** OPT (arXiv 2205.01068): learned positions from row 2, products around the blocks where embeddings are narrower. */
import {
  layerNormLayer,
  learnedPositions,
  linear,
  residual,
  sequence,
} from '../constructors/basic-layers.js';
import { harmless, NO_ROTARY_KEYS } from '../transformer/config-keys.js';
import { plainMlp, residualBlock, separateAttention } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { activationWord, positiveInteger, toggle } from '../transformer/settings.js';

/** Fixed in the original code. */
const NORM_EPS = 1e-5;
const FIRST_ROW = 2;

export const opt = defineGpt({
  title: 'OPT',
  document: gptDocument(
    'opt',
    {
      prefix: 'model.decoder.',
      barePrefix: 'decoder.',
      sizes: {
        vocabulary: ['vocab_size', 50_272],
        width: ['hidden_size', 768],
        depth: ['num_hidden_layers', 12],
        feedForward: ['ffn_dim', 3072],
        positions: [
          'max_position_embeddings',
          2048,
          'Longest input; the table of positions has two rows more',
        ],
        heads: ['num_attention_heads', 12],
      },
    },
    {
      word_embed_proj_dim: positiveInteger
        .nullable()
        .default(null)
        .describe('Width of the embedding and of what the head reads [hidden_size]'),
      activation_function: activationWord.default('relu').describe('Activation'),
      do_layer_norm_before: toggle(true, 'Norms before the branches, not behind them'),
      _remove_final_layer_norm: toggle(false, 'No norm behind the last block'),
      enable_bias: toggle(true, 'Biases in the products of the blocks'),
      layer_norm_elementwise_affine: toggle(true, 'Norms have weights and biases'),
    },
  ),
  huggingFace: {
    limited: NO_ROTARY_KEYS,
    harmless: harmless('used in training only', ['dropout', 'layerdrop', 'init_std']),
  },
  names: { embedding: 'embed_tokens', blocks: 'layers', norm: 'final_layer_norm' },
  norm: (name, width, config) =>
    layerNormLayer(name, width, NORM_EPS, {
      holds: config.layer_norm_elementwise_affine ? 'both' : 'none',
    }),
  attention: ({ name, config: { enable_bias: bias }, layout }) =>
    separateAttention(`${name}.self_attn`, {
      ...layout,
      bias,
      outBias: bias,
      outName: 'out_proj',
    }),
  feedForward({ name, config, hidden, inner }) {
    // The network's two products belong to the block itself.
    const network = plainMlp(name, {
      hidden,
      inner,
      activation: config.activation_function,
      bias: config.enable_bias,
      leaves: ['fc1', 'fc2'],
    });
    return { ...network, name: `${name}.network` };
  },
  block({ name, norm, config }, { attention, feedForward }) {
    const [first, second] = [
      norm(`${name}.self_attn_layer_norm`),
      norm(`${name}.final_layer_norm`),
    ];
    return config.do_layer_norm_before
      ? residualBlock(name, { attention: [first, attention], mlp: [second, feedForward] })
      : sequence(name, [
          residual(`${name}.attention_residual`, attention),
          first,
          residual(`${name}.mlp_residual`, feedForward),
          second,
        ]);
  },
  parts({ prefix, config, positions, hidden, norm }) {
    const outer = config.word_embed_proj_dim ?? hidden;
    const product = (leaf: string, from: number, to: number) =>
      outer === hidden ? [] : [linear(`${prefix}${leaf}`, from, to, { bias: false })];
    const hasNorm = config.do_layer_norm_before && !config._remove_final_layer_norm;
    const finalNorm = norm(`${prefix}final_layer_norm`);
    return {
      embeddingWidth: outer,
      embeddingSteps: [
        ...product('project_in', outer, hidden),
        learnedPositions(`${prefix}embed_positions`, positions, hidden, FIRST_ROW),
      ],
      norm:
        hasNorm && outer === hidden
          ? finalNorm
          : sequence(`${prefix}output`, [
              ...(hasNorm ? [finalNorm] : []),
              ...product('project_out', hidden, outer),
            ]),
    };
  },
});
