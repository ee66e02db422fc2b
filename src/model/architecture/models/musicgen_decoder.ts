/**
 * The decoders of MusicGen (arXiv 2306.05284; transformers 5.18, models/musicgen and musicgen_melody): a table and a head for
 * each codebook of a sound, whose tokens are read and predicted at once. Described, not run.
 */
import type * as z from 'zod';
import {
  blockNames,
  embedding,
  head,
  languageModel,
  layerNormLayer,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Layer } from '../layer.js';
import { param } from '../param.js';
import { harmless, NO_ROTARY_KEYS, unreadEach } from '../transformer/config-keys.js';
import { plainMlp } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { product, valueKeys } from '../transformer/described/parts.js';
import { headsDivide } from '../transformer/rules.js';
import {
  activationWord,
  count,
  positiveInteger,
  transformerDocument,
} from '../transformer/settings.js';

/** A row of each table for the token before a sound, which no head gives. */
const FIRST_TOKENS = 1;

/** Published models have 4, or 8 in stereo. */
const MOST_CODEBOOKS = 1024;

/** Fixed in the classes: PyTorch's default. */
const NORM_EPS = 1e-5;

const documentOf = <const Name extends string>(family: Name) =>
  transformerDocument(family, {
    vocab_size: count(2048, 'Values of a codebook: rows of each head'),
    hidden_size: count(1024, 'Width of the residual stream'),
    ffn_dim: count(4096, 'Width inside the feed-forward network'),
    num_hidden_layers: count(24, 'Number of blocks'),
    num_attention_heads: count(16, 'Heads, a divisor of hidden_size'),
    num_codebooks: positiveInteger
      .max(MOST_CODEBOOKS)
      .default(4)
      .describe('Codebooks, with a table and a head each'),
    max_position_embeddings: count(2048, 'Length of the training; positions are sines and cosines'),
    activation_function: activationWord.default('gelu').describe('Activation of the network'),
  });

type Config = z.output<ReturnType<typeof documentOf<'musicgen_decoder'>>>['model'];

type Sizes = Omit<Config, 'family'>;

function musicgenProducts(name: string, config: Sizes): Layer[] {
  const { hidden_size: hidden } = config;
  return ['k_proj', 'v_proj', 'q_proj', 'out_proj'].map((leaf) =>
    product(`${name}.${leaf}`, hidden, hidden, { component: 'attention' }),
  );
}

/** @param reads Whether the class attends to a text with an attention of its own. */
function musicgenBlock(name: string, config: Sizes, reads: boolean): Layer {
  const { hidden_size: hidden, num_attention_heads: heads } = config;
  const width = Math.floor(hidden / heads);
  const norm = (leaf: string) => layerNormLayer(`${name}.${leaf}`, hidden, NORM_EPS);
  const attention = described(`${name}.self_attn`, {
    title: 'attention',
    component: 'attention',
    parts: musicgenProducts(`${name}.self_attn`, config),
    works: [{ work: 'attention', heads, keyValueHeads: heads, headDim: width, valueDim: width }],
    output: hidden,
  });
  const network = plainMlp(name, {
    hidden,
    inner: config.ffn_dim,
    activation: config.activation_function,
    leaves: ['fc1', 'fc2'],
    bias: false,
  });
  return described(name, {
    title: 'block of MusicGen',
    parts: [
      reads
        ? {
            kind: 'sum',
            name: `${name}.attentions`,
            branches: [attention],
            unread: [
              ...musicgenProducts(`${name}.encoder_attn`, config),
              norm('encoder_attn_layer_norm'),
            ],
          }
        : attention,
      norm('self_attn_layer_norm'),
      { ...network, name: `${name}.network` },
      norm('final_layer_norm'),
    ],
    output: hidden,
  });
}

const familyOf = <const Name extends string>(family: Name, title: string, reads: boolean) =>
  defineTransformer({
    title: `${title}; described, not run`,
    schema: documentOf(family),
    rules: headsDivide('num_attention_heads', 'hidden_size'),
    huggingFace: {
      harmless: {
        ...valueKeys('scale_embedding', 'audio_channels'),
        ...harmless('used in training only', [
          'layerdrop',
          'dropout',
          'activation_dropout',
          'initializer_factor',
        ]),
        ...harmless('the class has this attention in any case, or in none', [
          'add_cross_attention',
          'cross_attention_hidden_size',
        ]),
      },
      limited: {
        ...NO_ROTARY_KEYS,
        ...unreadEach(['tie_word_embeddings'], [false], 'the class has heads of its own'),
      },
    },
    build({ model }) {
      const config = model as unknown as Sizes;
      const { hidden_size: hidden, vocab_size: rows, num_codebooks: books } = config;
      const path = 'model.decoder';
      const others = Array.from({ length: books - 1 }, (_, index) => index + 1);
      const table = rows + FIRST_TOKENS;
      return languageModel({
        embedding: embedding(`${path}.embed_tokens.0`, table, hidden),
        embeddingSteps: [
          described('codebooks', {
            title: 'tables of the other codebooks',
            component: 'embedding',
            held: others.map((index) =>
              param(`${path}.embed_tokens.${index}.weight`, [table, hidden]),
            ),
            output: hidden,
          }),
        ],
        blocks: stack(
          blockNames(`${path}.layers`, config.num_hidden_layers, 'model.num_hidden_layers'),
          'model.num_hidden_layers',
          (name) => musicgenBlock(name, config, reads),
        ),
        norm: layerNormLayer(`${path}.layer_norm`, hidden, NORM_EPS),
        head: head('lm_heads.0', hidden, rows),
        logitSteps: [
          described('lm_heads', {
            title: 'heads of the other codebooks',
            component: 'head',
            tensors: Object.fromEntries(others.map((index) => [`${index}.weight`, [rows, hidden]])),
            products: Object.fromEntries(
              others.map((index) => [`${index}.weight`, [hidden, rows] as const]),
            ),
            output: rows,
          }),
        ],
        positions: config.max_position_embeddings,
      });
    },
  });

export const musicgenDecoder = familyOf('musicgen_decoder', 'The decoder of MusicGen', true);

export const musicgenMelodyDecoder = familyOf(
  'musicgen_melody_decoder',
  'The decoder of MusicGen Melody',
  false,
);
