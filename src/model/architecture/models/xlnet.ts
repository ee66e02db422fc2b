/**
 * XLNet (arXiv 1906.08237; transformers 5.18, models/xlnet): attention to distances, in both directions. Described, not
 * run: its class gives no next token without a mask of its own.
 */
import type * as z from 'zod';
import {
  blockNames,
  embedding,
  head,
  languageModel,
  layerNormLayer,
  sequence,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Layer } from '../layer.js';
import { param } from '../param.js';
import { harmless, SUMMARY_KEYS, unreadEach } from '../transformer/config-keys.js';
import { plainMlp } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { valueKeys } from '../transformer/described/parts.js';
import { headsDivide } from '../transformer/rules.js';
import {
  activationWord,
  count,
  normEpsilon,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';

/** The class has no limit; this is that of the state-space models. */
const POSITIONS = 1_048_576;

const schema = transformerDocument('xlnet', {
  vocab_size: count(32_000, 'Rows of the embedding and of the head'),
  d_model: count(1024, 'Width of the residual stream'),
  n_layer: count(24, 'Number of blocks'),
  n_head: count(16, 'Heads, a divisor of d_model'),
  d_inner: count(4096, 'Width inside the feed-forward network'),
  ff_activation: activationWord.default('gelu').describe('Activation of the network'),
  layer_norm_eps: normEpsilon(1e-12),
  tie_word_embeddings: tiedHead(true),
});

type Config = z.output<typeof schema>['model'];

function xlnetAttention(name: string, config: Config): Layer {
  const { d_model: hidden, n_head: heads } = config;
  const width = Math.floor(hidden / heads);
  const matrix = [hidden, heads, width];
  const perHead = [heads, width];
  const inner = heads * width;
  return described(name, {
    title: 'attention to distances',
    component: 'attention',
    tensors: {
      q: matrix,
      k: matrix,
      v: matrix,
      o: matrix,
      r: matrix,
      r_r_bias: perHead,
      r_s_bias: perHead,
      r_w_bias: perHead,
      seg_embed: [2, heads, width],
    },
    products: Object.fromEntries(
      ['q', 'k', 'v', 'o', 'r'].map((leaf) => [leaf, [hidden, inner] as const]),
    ),
    parts: [layerNormLayer(`${name}.layer_norm`, hidden, config.layer_norm_eps)],
    works: [{ work: 'attention', heads, keyValueHeads: heads, headDim: width, valueDim: width }],
    output: hidden,
  });
}

export const xlnet = defineTransformer({
  title: 'XLNet; described, not run',
  schema,
  rules: headsDivide('n_head', 'd_model'),
  huggingFace: {
    names: {
      vocab_size: ['n_token'],
      d_model: ['hidden_size'],
      n_head: ['num_attention_heads'],
      n_layer: ['num_hidden_layers'],
    },
    harmless: {
      ...SUMMARY_KEYS,
      ...valueKeys('mem_len', 'reuse_len', 'attn_type', 'bi_data', 'clamp_len', 'same_length'),
      ...harmless('of a head for questions, or used in training only', [
        'start_n_top',
        'end_n_top',
        'dropout',
        'use_mems_eval',
        'use_mems_train',
        'untie_r',
      ]),
    },
    limited: unreadEach(['d_head'], () => true, 'it is d_model / n_head'),
  },
  build({ model: config }) {
    const { d_model: hidden, vocab_size: rows } = config;
    const tokens = embedding(
      'transformer.word_embedding',
      rows,
      hidden,
      config.tie_word_embeddings ? ['lm_loss.weight'] : [],
    );
    return languageModel({
      embedding: tokens,
      embeddingSteps: [
        described('mask', {
          title: 'embedding of a masked token',
          held: [param('transformer.mask_emb', [1, 1, hidden])],
          output: hidden,
        }),
      ],
      blocks: stack(
        blockNames('transformer.layer', config.n_layer, 'model.n_layer'),
        'model.n_layer',
        (name) =>
          described(name, {
            title: 'block of XLNet',
            parts: [
              xlnetAttention(`${name}.rel_attn`, config),
              layerNormLayer(`${name}.ff.layer_norm`, hidden, config.layer_norm_eps),
              plainMlp(`${name}.ff`, {
                hidden,
                inner: config.d_inner,
                activation: config.ff_activation,
                leaves: ['layer_1', 'layer_2'],
              }),
            ],
            output: hidden,
          }),
      ),
      norm: sequence('no_norm', []),
      head: head('lm_loss', hidden, rows, {
        tiedTo: config.tie_word_embeddings ? tokens : undefined,
        bias: true,
      }),
      positions: POSITIONS,
    });
  },
});
