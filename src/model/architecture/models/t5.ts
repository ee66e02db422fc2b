/**
 * T5 (arXiv 1910.10683), T5 1.1 and Flan-T5, mT5 and UMT5: an encoder and a decoder with biases of the distance.
 * Described, not run. Source: models/t5, mt5 and umt5 of transformers 5.18.
 */

import * as z from 'zod';
import { asText } from '../../../base/values.js';
import {
  blockNames,
  embedding,
  linear,
  rmsNormLayer,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Family } from '../family.js';
import { param } from '../param.js';
import { harmless, type JsonObject } from '../transformer/config-keys.js';
import { type DecoderLeaves, decoderBlock } from '../transformer/described/decoder-block.js';
import {
  defineEncoder,
  type EncoderClasses,
  type EncoderSettings,
} from '../transformer/described/define-encoder.js';
import {
  type BlockLeaves,
  type BlockSizes,
  biaslessLeaf,
  encoderBlock,
  onceForInput,
} from '../transformer/described/encoder-parts.js';
import { count, tiedHead } from '../transformer/settings.js';

/** Longest input of the published models' training; the class has no limit. */
const POSITIONS = 512;

interface T5Config extends EncoderSettings {
  readonly vocab_size: number;
  readonly d_model: number;
  readonly d_kv: number;
  readonly d_ff: number;
  readonly num_layers: number;
  readonly num_decoder_layers: number | null;
  readonly num_heads: number;
  readonly relative_attention_num_buckets: number;
  readonly feed_forward_proj: string;
  readonly n_positions: number;
  readonly tie_word_embeddings: boolean;
}

interface Defaults {
  readonly vocab_size: number;
  readonly d_ff: number;
  readonly num_layers: number;
  readonly num_heads: number;
  readonly feed_forward_proj: string;
}

const settings = (defaults: Defaults): z.ZodRawShape => ({
  vocab_size: count(defaults.vocab_size, 'Rows of the embedding and of the head'),
  d_model: count(512, 'Width of the residual stream'),
  d_kv: count(64, 'Width of a head'),
  d_ff: count(defaults.d_ff, 'Width inside the feed-forward network'),
  num_layers: count(defaults.num_layers, 'Blocks of the encoder'),
  num_decoder_layers: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Blocks of the decoder; null: as many as the encoder has'),
  num_heads: count(defaults.num_heads, 'Heads'),
  relative_attention_num_buckets: count(32, 'Rows of a table of distances'),
  feed_forward_proj: z
    .string()
    .regex(/^(?:gated-)?[a-z0-9_]+$/)
    .default(defaults.feed_forward_proj)
    .describe('Activation of the network, and whether it has a gate'),
  n_positions: count(POSITIONS, 'Longest input of its training; the class has no limit'),
  tie_word_embeddings: tiedHead(true),
});

const attentionLeaves = (place: string) =>
  ['q', 'k', 'v', 'o'].map((leaf) =>
    biaslessLeaf(`${place}.${leaf}`),
  ) as never as DecoderLeaves['cross'];

/** Names of the parts of a block; a block of the decoder has one layer more. */
const t5Leaves = (isGated: boolean, isDecoder: boolean): DecoderLeaves => {
  const last = isDecoder ? 'layer.2' : 'layer.1';
  const inputs = isGated ? ['wi_0', 'wi_1'] : ['wi'];
  return {
    attention: attentionLeaves('layer.0.SelfAttention'),
    cross: attentionLeaves('layer.1.EncDecAttention'),
    feedForward: [...inputs, 'wo'].map((leaf) =>
      biaslessLeaf(`${last}.DenseReluDense.${leaf}`),
    ) as never as BlockLeaves['feedForward'],
    norms: [
      'layer.0.layer_norm',
      ...(isDecoder ? ['layer.1.layer_norm'] : []),
      `${last}.layer_norm`,
    ],
  };
};

/** Table of the distances, of the first block alone or of each. */
const distances = (name: string, { relative_attention_num_buckets: rows, num_heads }: T5Config) =>
  described(`${name}.layer.0.SelfAttention.distances`, {
    title: 'biases of the distance',
    component: 'attention',
    held: [
      param(`${name}.layer.0.SelfAttention.relative_attention_bias.weight`, [rows, num_heads]),
    ],
    output: num_heads,
  });

function stackOf(part: 'encoder' | 'decoder', prefix: string, config: T5Config, inAll: boolean) {
  const isDecoder = part === 'decoder';
  const layers = isDecoder ? (config.num_decoder_layers ?? config.num_layers) : config.num_layers;
  const key = isDecoder ? 'model.num_decoder_layers' : 'model.num_layers';
  const leaves = t5Leaves(config.feed_forward_proj.startsWith('gated-'), isDecoder);
  const make = isDecoder ? decoderBlock : encoderBlock;
  const blocks = stack(blockNames(`${prefix}${part}.block`, layers, key), key, (name, index) => {
    const sizes: BlockSizes = {
      hidden: config.d_model,
      heads: config.num_heads,
      headDim: config.d_kv,
      inner: config.d_ff,
      norm: 'rms',
      more: () => (inAll || index === 0 ? [distances(name, config)] : []),
    };
    return make(name, leaves, sizes);
  });
  return {
    blocks,
    norm: rmsNormLayer(`${prefix}${part}.final_layer_norm`, config.d_model, 1e-6),
  };
}

/** Classes without a decoder. */
const isEncoderAlone = (name: string) => /EncoderModel$|ForTokenClassification$/.test(name);

const NO_HEAD: EncoderClasses<T5Config>[string] = { prefix: '', of: () => ({ layers: [] }) };

const classesOf = (kind: string): EncoderClasses<T5Config> => ({
  [`${kind}Model`]: NO_HEAD,
  [`${kind}ForConditionalGeneration`]: {
    prefix: '',
    of: ({ d_model, vocab_size, tie_word_embeddings }, tokens) => {
      const own = linear('lm_head', d_model, vocab_size, { bias: false, component: 'head' });
      return { layers: [], head: tie_word_embeddings ? { ...own, weight: tokens.weight } : own };
    },
  },
  [`${kind}EncoderModel`]: NO_HEAD,
  [`${kind}ForSequenceClassification`]: {
    prefix: 'transformer.',
    of: ({ d_model, num_labels }) => ({
      layers: [
        onceForInput(
          'classifier_of_texts',
          [
            linear('classification_head.dense', d_model, d_model),
            linear('classification_head.out_proj', d_model, num_labels),
          ],
          d_model,
        ),
      ],
    }),
  },
  [`${kind}ForTokenClassification`]: {
    prefix: 'transformer.',
    of: ({ d_model, num_labels }) => ({
      layers: [],
      head: linear('classifier', d_model, num_labels, { component: 'head' }),
    }),
  },
  [`${kind}ForQuestionAnswering`]: {
    prefix: '',
    of: ({ d_model, num_labels }) => ({
      layers: [],
      head: linear('qa_outputs', d_model, num_labels, { component: 'head' }),
    }),
  },
});

const t5Like = (
  name: string,
  {
    kind,
    title,
    defaults,
    inAll = false,
  }: {
    readonly kind: string;
    readonly title: string;
    readonly defaults: Defaults;
    /** Whether each block has a table of distances. */
    readonly inAll?: boolean;
  },
): Family =>
  defineEncoder<T5Config>(name, {
    title,
    keys: settings(defaults),
    classes: classesOf(kind),
    body(prefix, config, aliases) {
      const isAlone = isEncoderAlone(config.class);
      const { d_model: hidden } = config;
      const encoder = stackOf('encoder', prefix, config, inAll);
      const decoder = isAlone ? undefined : stackOf('decoder', prefix, config, inAll);
      const parts = decoder ? ['encoder', 'decoder'] : ['encoder'];
      return {
        embedding: {
          ...embedding(`${prefix}shared`, config.vocab_size, hidden, [
            ...parts.map((part) => `${prefix}${part}.embed_tokens.weight`),
            ...aliases,
          ]),
        },
        steps: [],
        blocks: [...encoder.blocks, ...(decoder?.blocks ?? [])],
        after: [encoder.norm, ...(decoder ? [decoder.norm] : [])],
        hidden,
        positions: config.n_positions,
      };
    },
    tiedHeads: { [`${kind}ForConditionalGeneration`]: 'lm_head' },
    huggingFace: {
      names: {
        d_model: ['hidden_size'],
        num_heads: ['num_attention_heads'],
        num_layers: ['num_hidden_layers'],
        d_kv: ['head_dim'],
      },
      reads: ['is_encoder_decoder'],
      remarks: ownHead,
      harmless: {
        ...harmless('follows from feed_forward_proj', ['is_gated_act', 'dense_act_fn']),
        ...harmless('changes values only, which are described and not computed', [
          'relative_attention_max_distance',
          'layer_norm_epsilon',
          'scale_decoder_outputs',
          'scalable_attention',
          'output_past',
        ]),
        ...harmless('used in training only', ['dropout_rate', 'classifier_dropout']),
      },
      limited: { is_encoder_decoder: { allows: () => true, why: '', severity: 'warning' } },
    },
  });

/** A file that unties its head, as those of T5 1.1, Flan-T5 and mT5 do. */
const ownHead = ({ tie_word_embeddings: tied, architectures }: JsonObject) =>
  tied === false && asText(architectures).includes('ForConditionalGeneration')
    ? [
        {
          path: ['tie_word_embeddings'],
          severity: 'warning' as const,
          why: 'transformers 5.18 ties the head of a new model in any case',
          advice: 'the head of a published file is its own, and is counted so',
        },
      ]
    : [];

export const t5 = t5Like('t5', {
  kind: 'T5',
  title: 'T5 and Flan-T5',
  defaults: {
    vocab_size: 32_128,
    d_ff: 2048,
    num_layers: 6,
    num_heads: 8,
    feed_forward_proj: 'relu',
  },
});

const MULTILINGUAL = {
  vocab_size: 250_112,
  d_ff: 1024,
  num_layers: 8,
  num_heads: 6,
  feed_forward_proj: 'gated-gelu',
};

export const mt5 = t5Like('mt5', { kind: 'MT5', title: 'mT5', defaults: MULTILINGUAL });

export const umt5 = t5Like('umt5', {
  kind: 'UMT5',
  title: 'UMT5',
  defaults: MULTILINGUAL,
  inAll: true,
});
