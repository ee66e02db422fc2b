/** OPT (arXiv 2205.01068): learned positions from row 2, products around the blocks where embeddings are narrower. */
import {
  layerNormLayer,
  learnedPositions,
  linear,
  residual,
  sequence,
} from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import { harmless, NO_ROTARY_KEYS } from '../transformer/config-keys.js';
import {
  causalModel,
  plainMlp,
  residualBlock,
  separateAttention,
} from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { headsDivide, lengthRules } from '../transformer/rules.js';
import {
  activationWord,
  FEED_FORWARD_PER_CHANNEL,
  flag,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

/** Fixed in the original code. */
const NORM_EPS = 1e-5;
const FIRST_ROW = 2;

const DECODER = 'model.decoder.';

const schema = transformerDocument('opt', {
  vocab_size: positiveInteger.default(50_272).describe('Rows of the embedding and of the head'),
  hidden_size: positiveInteger.default(768).describe('Width of the residual stream'),
  num_hidden_layers: positiveInteger.default(12).describe('Number of blocks'),
  ffn_dim: positiveInteger.default(3072).describe('Width inside the feed-forward network'),
  max_position_embeddings: positiveInteger
    .default(2048)
    .describe('Longest input; the table of positions has two rows more'),
  num_attention_heads: positiveInteger
    .default(12)
    .describe('Attention heads, a divisor of hidden_size'),
  word_embed_proj_dim: positiveInteger
    .nullable()
    .default(null)
    .describe('Width of the embedding and of what the head reads [hidden_size]'),
  activation_function: activationWord.default('relu').describe('Activation'),
  do_layer_norm_before: flag.default(true).describe('Norms before the branches, not behind them'),
  _remove_final_layer_norm: flag.default(false).describe('No norm behind the last block'),
  enable_bias: flag.default(true).describe('Biases in the products of the blocks'),
  layer_norm_elementwise_affine: flag.default(true).describe('Norms have weights and biases'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
  stored_prefix: storedPrefix(DECODER),
});

export const opt = defineTransformer({
  title: 'OPT',
  schema,
  presets: {
    'opt-125m': {
      title: 'OPT-125M',
      model: {
        vocab_size: 50272,
        hidden_size: 768,
        ffn_dim: 3072,
        num_hidden_layers: 12,
        num_attention_heads: 12,
        max_position_embeddings: 2048,
      },
    },
  },
  rules: [
    ...headsDivide('num_attention_heads', 'hidden_size'),
    ...lengthRules('max_position_embeddings'),
  ],
  dimensions: {
    vocabulary: 'vocab_size',
    positions: 'max_position_embeddings',
    depth: 'num_hidden_layers',
    width: 'hidden_size',
    heads: 'num_attention_heads',
    feedForward: { key: 'ffn_dim', perChannel: FEED_FORWARD_PER_CHANNEL },
  },
  huggingFace: {
    limited: NO_ROTARY_KEYS,
    harmless: harmless('used in training only', ['dropout', 'layerdrop', 'init_std']),
  },
  storedSettings: (stored) => prefixStoredIn(stored, DECODER, 'embed_tokens.weight'),
  build({ model: config }) {
    const { hidden_size: hidden, num_attention_heads: heads, enable_bias: bias } = config;
    const { stored_prefix: prefix, do_layer_norm_before: isBefore } = config;
    const outer = config.word_embed_proj_dim ?? hidden;
    const norm = (name: string) =>
      layerNormLayer(name, hidden, NORM_EPS, {
        holds: config.layer_norm_elementwise_affine ? 'both' : 'none',
      });
    const product = (leaf: string, from: number, to: number) =>
      outer === hidden ? [] : [linear(`${prefix}${leaf}`, from, to, { bias: false })];
    const finalNorm =
      isBefore && !config._remove_final_layer_norm ? [norm(`${prefix}final_layer_norm`)] : [];
    const ends = [...finalNorm, ...product('project_out', hidden, outer)];
    const [only, ...others] = ends;
    return causalModel({
      paths: { embedding: `${prefix}embed_tokens`, blocks: `${prefix}layers`, head: 'lm_head' },
      vocabulary: config.vocab_size,
      hidden,
      embeddingWidth: outer,
      positions: config.max_position_embeddings,
      tied: config.tie_word_embeddings,
      blocks: config.num_hidden_layers,
      blocksKey: 'num_hidden_layers',
      embeddingSteps: [
        ...product('project_in', outer, hidden),
        learnedPositions(
          `${prefix}embed_positions`,
          config.max_position_embeddings,
          hidden,
          FIRST_ROW,
        ),
      ],
      norm:
        only?.kind === 'layerNorm' && others.length === 0
          ? only
          : sequence(`${prefix}output`, ends),
      block(name) {
        const attention: Layer = separateAttention(`${name}.self_attn`, {
          hidden,
          heads,
          keyValueHeads: heads,
          headDim: hidden / heads,
          bias,
          outBias: bias,
          outName: 'out_proj',
        });
        // The network's two products belong to the block itself.
        const feedForward = plainMlp(name, {
          hidden,
          inner: config.ffn_dim,
          activation: config.activation_function,
          bias,
          leaves: ['fc1', 'fc2'],
        });
        const [first, second] = [
          norm(`${name}.self_attn_layer_norm`),
          norm(`${name}.final_layer_norm`),
        ];
        const network = { ...feedForward, name: `${name}.network` };
        return isBefore
          ? residualBlock(name, { attention: [first, attention], mlp: [second, network] })
          : sequence(name, [
              residual(`${name}.attention_residual`, attention),
              first,
              residual(`${name}.mlp_residual`, network),
              second,
            ]);
      },
    });
  },
});
