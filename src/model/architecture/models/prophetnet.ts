/**
 * The decoder of ProphetNet (arXiv 2001.04063; transformers 5.18, models/prophetnet), as `ProphetNetForCausalLM`: one stream
 * of hidden states for the text, and one for each token that it predicts ahead. Described, not run.
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
import type { DescribedWork, Layer } from '../layer.js';
import { param } from '../param.js';
import { harmless, NO_ROTARY_KEYS, unreadEach } from '../transformer/config-keys.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { encoderDecoderIn } from '../transformer/define-seq2seq-decoder.js';
import { valueKeys } from '../transformer/described/parts.js';
import { headsDivide } from '../transformer/rules.js';
import {
  activationWord,
  count,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

/** Fixed in the class: PyTorch's default. */
const NORM_EPS = 1e-5;

const schema = transformerDocument('prophetnet', {
  vocab_size: count(30_522, 'Rows of the embedding and of the head'),
  hidden_size: count(1024, 'Width of the residual stream'),
  decoder_ffn_dim: count(4096, 'Width inside the feed-forward network'),
  num_decoder_layers: count(12, 'Number of blocks'),
  num_decoder_attention_heads: count(16, 'Heads, a divisor of hidden_size'),
  max_position_embeddings: count(512, 'Rows of the positions: longest input'),
  ngram: count(2, 'Tokens that are predicted ahead, with a stream each'),
  num_buckets: count(32, 'Biases of distances for each head'),
  activation_function: activationWord.default('gelu').describe('Activation of the network'),
  add_cross_attention: toggle(true, 'Tensors of an attention to an encoder, which is not read'),
  tie_word_embeddings: tiedHead(true),
});

type Config = z.output<typeof schema>['model'];

/** A product of all streams: the text's, and one for each token ahead. */
function streamsProduct(name: string, from: number, to: number, streams: number): Layer {
  const weight = param(`${name}.weight`, [to, from]);
  const work: DescribedWork = { work: 'product', tensor: weight, input: from, output: to };
  return described(name, {
    title: 'product of all streams',
    held: [weight, param(`${name}.bias`, [to])],
    works: Array.from({ length: streams }, () => work),
    output: to,
  });
}

function prophetNetBlock(name: string, config: Config): Layer {
  const { hidden_size: hidden, num_decoder_attention_heads: heads } = config;
  const width = Math.floor(hidden / heads);
  const streams = 1 + config.ngram;
  const norm = (leaf: string) => layerNormLayer(`${name}.${leaf}`, hidden, NORM_EPS);
  const own = `${name}.self_attn`;
  const leaves = ['key_proj', 'value_proj', 'query_proj', 'out_proj'];
  // The cache holds keys and values of the text's stream.
  const works = Array.from(
    { length: streams },
    (_, index): DescribedWork => ({
      work: 'attention',
      heads,
      keyValueHeads: heads,
      headDim: width,
      valueDim: width,
      ...(index > 0 && { cached: 0, multiplied: 2 * width }),
    }),
  );
  const attention = described(own, {
    title: 'attention of all streams',
    component: 'attention',
    parts: [
      ...leaves.map((leaf) => streamsProduct(`${own}.${leaf}`, hidden, hidden, streams)),
      streamsProduct(`${own}.relative_pos_embeddings`, hidden, config.num_buckets * heads, streams),
    ],
    works,
    output: hidden,
  });
  const cross = `${name}.cross_attn`;
  return described(name, {
    title: 'block of ProphetNet',
    parts: [
      config.add_cross_attention
        ? {
            kind: 'sum',
            name: `${name}.attentions`,
            branches: [attention],
            unread: [
              ...leaves.map((leaf) =>
                linear(`${cross}.${leaf}`, hidden, hidden, { component: 'attention' }),
              ),
              norm('cross_attn_layer_norm'),
            ],
          }
        : attention,
      norm('self_attn_layer_norm'),
      sequence(
        `${name}.feed_forward`,
        [
          streamsProduct(
            `${name}.feed_forward.intermediate`,
            hidden,
            config.decoder_ffn_dim,
            streams,
          ),
          streamsProduct(`${name}.feed_forward.output`, config.decoder_ffn_dim, hidden, streams),
        ],
        'feedForward',
      ),
      norm('feed_forward_layer_norm'),
    ],
    output: hidden,
  });
}

export const prophetnet = defineTransformer({
  title: 'The decoder of ProphetNet; described, not run',
  schema,
  rules: headsDivide('num_decoder_attention_heads', 'hidden_size'),
  huggingFace: {
    largerModel: (config) => encoderDecoderIn(config, 'ProphetNetForCausalLM'),
    reads: ['is_encoder_decoder'],
    harmless: {
      ...valueKeys('relative_max_distance'),
      ...harmless('of the encoder, which is not part of this model', [
        'encoder_ffn_dim',
        'num_encoder_layers',
        'num_encoder_attention_heads',
        'num_attention_heads',
        'num_hidden_layers',
      ]),
      ...harmless('used in training only', [
        'activation_dropout',
        'dropout',
        'init_std',
        'disable_ngram_loss',
        'eps',
      ]),
    },
    limited: { ...NO_ROTARY_KEYS, ...unreadEach(['is_encoder_decoder'], [false, true]) },
  },
  build({ model: config }) {
    const { hidden_size: hidden, vocab_size: rows, tie_word_embeddings: tied } = config;
    const path = 'prophetnet.decoder';
    const ofDecoder = `${path}.word_embeddings.weight`;
    const tokens = embedding(
      'prophetnet.word_embeddings',
      rows,
      hidden,
      tied ? [ofDecoder, 'lm_head.weight'] : [],
    );
    return languageModel({
      embedding: tokens,
      embeddingSteps: [
        learnedPositions(`${path}.position_embeddings`, config.max_position_embeddings, hidden),
        described('streams', {
          title: 'embeddings of the streams',
          component: 'embedding',
          held: [
            param(`${path}.ngram_embeddings.weight`, [config.ngram, hidden]),
            ...(tied ? [] : [param(ofDecoder, [rows, hidden])]),
          ],
          output: hidden,
        }),
        layerNormLayer(`${path}.embeddings_layer_norm`, hidden, NORM_EPS),
      ],
      blocks: stack(
        blockNames(`${path}.layers`, config.num_decoder_layers, 'model.num_decoder_layers'),
        'model.num_decoder_layers',
        (name) => prophetNetBlock(name, config),
      ),
      norm: sequence('no_norm', []),
      head: head('lm_head', hidden, rows, { tiedTo: tied ? tokens : undefined }),
      positions: config.max_position_embeddings,
    });
  },
});
