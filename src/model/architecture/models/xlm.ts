/**
 * XLM (arXiv 1901.07291; transformers 5.18, models/xlm): an encoder with a head, whose attention sees what follows
 * unless the config says `causal`. Described, not run.
 */
import type * as z from 'zod';
import {
  blockNames,
  embedding,
  head,
  languageModel,
  layerNormLayer,
  learnedPositions,
  linear,
  sequence,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Layer } from '../layer.js';
import { param } from '../param.js';
import { harmless, SUMMARY_KEYS } from '../transformer/config-keys.js';
import { plainMlp } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { valueKeys } from '../transformer/described/parts.js';
import { headsDivide } from '../transformer/rules.js';
import {
  count,
  normEpsilon,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

/** Width of the network in widths of the model. */
const INNER = 4;

const schema = transformerDocument('xlm', {
  vocab_size: count(30_145, 'Rows of the embedding and of the head'),
  emb_dim: count(2048, 'Width of the residual stream'),
  n_layers: count(12, 'Number of blocks'),
  n_heads: count(16, 'Heads, a divisor of emb_dim'),
  n_langs: count(1, 'Languages'),
  use_lang_emb: toggle(true, 'With several languages: each has an embedding'),
  max_position_embeddings: count(512, 'Longest input, in tokens'),
  gelu_activation: toggle(true, 'GELU in the network; otherwise ReLU'),
  layer_norm_eps: normEpsilon(1e-12),
  tie_word_embeddings: tiedHead(true),
});

type Config = z.output<typeof schema>['model'];

const PATH = 'transformer';

function xlmAttention(name: string, { emb_dim: hidden, n_heads: heads }: Config): Layer {
  const width = Math.floor(hidden / heads);
  return described(name, {
    title: 'attention in both directions',
    component: 'attention',
    parts: ['q_lin', 'k_lin', 'v_lin', 'out_lin'].map((leaf) =>
      linear(`${name}.${leaf}`, hidden, hidden),
    ),
    works: [{ work: 'attention', heads, keyValueHeads: heads, headDim: width, valueDim: width }],
    output: hidden,
  });
}

export const xlm = defineTransformer({
  title: 'XLM; described, not run',
  schema,
  rules: headsDivide('n_heads', 'emb_dim'),
  huggingFace: {
    names: {
      vocab_size: ['n_words'],
      emb_dim: ['hidden_size'],
      n_heads: ['num_attention_heads'],
      n_layers: ['num_hidden_layers'],
    },
    harmless: {
      ...SUMMARY_KEYS,
      ...valueKeys('causal', 'sinusoidal_embeddings', 'lang_id'),
      ...harmless('names a token, or a language', [
        'bos_index',
        'eos_index',
        'pad_index',
        'unk_index',
        'mask_index',
        'lang2id',
        'id2lang',
      ]),
      ...harmless('of a head for questions, or used in training only', [
        'start_n_top',
        'end_n_top',
        'dropout',
        'embed_init_std',
        'init_std',
      ]),
    },
    limited: {
      is_encoder: {
        allows: (value) => value === true,
        why: 'the class is an encoder only',
        severity: 'error',
      },
      asm: {
        allows: (value) => !value,
        why: 'an adaptive softmax is not described',
        severity: 'error',
      },
    },
  },
  build({ model: config }) {
    const { emb_dim: hidden, layer_norm_eps: eps, vocab_size: rows } = config;
    const tokens = embedding(
      `${PATH}.embeddings`,
      rows,
      hidden,
      config.tie_word_embeddings ? ['pred_layer.proj.weight'] : [],
    );
    const hasLanguages = config.n_langs > 1 && config.use_lang_emb;
    return languageModel({
      embedding: tokens,
      embeddingSteps: [
        learnedPositions(`${PATH}.position_embeddings`, config.max_position_embeddings, hidden),
        ...(hasLanguages
          ? [
              described('language', {
                title: 'embedding of the language',
                component: 'embedding',
                held: [param(`${PATH}.lang_embeddings.weight`, [config.n_langs, hidden])],
                output: hidden,
              }),
            ]
          : []),
        layerNormLayer(`${PATH}.layer_norm_emb`, hidden, eps),
      ],
      blocks: stack(
        blockNames('block', config.n_layers, 'model.n_layers'),
        'model.n_layers',
        (name, index) =>
          described(name, {
            title: 'block of XLM',
            parts: [
              xlmAttention(`${PATH}.attentions.${index}`, config),
              layerNormLayer(`${PATH}.layer_norm1.${index}`, hidden, eps),
              plainMlp(`${PATH}.ffns.${index}`, {
                hidden,
                inner: INNER * hidden,
                activation: config.gelu_activation ? 'gelu' : 'relu',
                leaves: ['lin1', 'lin2'],
              }),
              layerNormLayer(`${PATH}.layer_norm2.${index}`, hidden, eps),
            ],
            output: hidden,
          }),
      ),
      norm: sequence('no_norm', []),
      head: head('pred_layer.proj', hidden, rows, {
        tiedTo: config.tie_word_embeddings ? tokens : undefined,
        bias: true,
      }),
      positions: config.max_position_embeddings,
    });
  },
});
