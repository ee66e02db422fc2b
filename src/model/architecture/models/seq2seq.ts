/**
 * Encoder-decoder models like BART (arXiv 1910.13461): BART, mBART, PEGASUS, Marian and Whisper, with both parts.
 * Described, not run; their decoders alone are families of their own. Source: their models in transformers 5.18.
 */
import type * as z from 'zod';
import {
  blockNames,
  embedding,
  layerNormLayer,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Family } from '../family.js';
import type { Layer } from '../layer.js';
import { buffer, checkLayers, param } from '../param.js';
import { harmless } from '../transformer/config-keys.js';
import { SEQ2SEQ_UNREAD } from '../transformer/define-seq2seq-decoder.js';
import { type DecoderLeaves, decoderBlock } from '../transformer/described/decoder-block.js';
import {
  defineEncoder,
  type EncoderClasses,
  type EncoderSettings,
} from '../transformer/described/define-encoder.js';
import {
  encoderBlock,
  type Leaf,
  onceForInput,
  rowsAdded,
} from '../transformer/described/encoder-parts.js';
import { soundEncoder } from '../transformer/described/sound.js';
import { headsDivide } from '../transformer/rules.js';
import { count, tiedHead } from '../transformer/settings.js';
import { tensorsOf } from '../walk.js';

interface Config extends EncoderSettings {
  readonly vocab_size: number;
  readonly d_model: number;
  readonly encoder_layers: number;
  readonly encoder_ffn_dim: number;
  readonly encoder_attention_heads: number;
  readonly decoder_layers: number;
  readonly decoder_ffn_dim: number;
  readonly decoder_attention_heads: number;
  readonly max_position_embeddings: number;
  readonly tie_word_embeddings: boolean;
  readonly num_mel_bins: number;
  readonly max_source_positions: number;
  readonly max_target_positions: number;
}

const EPS = 1e-5;

const decoderLeaves = (keyBias: boolean): DecoderLeaves => {
  const products = (name: string): readonly [Leaf, Leaf, Leaf, Leaf] => [
    `${name}.q_proj`,
    [`${name}.k_proj`, keyBias],
    `${name}.v_proj`,
    `${name}.out_proj`,
  ];
  return {
    attention: products('self_attn'),
    cross: products('encoder_attn'),
    feedForward: ['fc1', 'fc2'],
    norms: ['self_attn_layer_norm', 'final_layer_norm'],
  };
};

interface Kind {
  readonly title: string;
  readonly vocabulary: number;
  /** Start of the names of its classes; that of the generating class. */
  readonly classes: readonly [kind: string, generating: string];
  /** Rows of the table of positions before that of the first token. */
  readonly firstRow?: number;
  /** Norm of the embeddings, and norms behind the blocks. */
  readonly norms?: { readonly embedding?: boolean; readonly final?: boolean };
  /** Whether the encoder reads sound. */
  readonly hears?: boolean;
  readonly labels?: number;
}

const textSettings = (vocabulary: number): z.ZodRawShape => ({
  vocab_size: count(vocabulary, 'Rows of the embedding and of the head'),
  d_model: count(1024, 'Width of the residual stream'),
  encoder_layers: count(12, 'Blocks of the encoder'),
  encoder_ffn_dim: count(4096, "Width inside the encoder's networks"),
  encoder_attention_heads: count(16, 'Heads of the encoder'),
  decoder_layers: count(12, 'Blocks of the decoder'),
  decoder_ffn_dim: count(4096, "Width inside the decoder's networks"),
  decoder_attention_heads: count(16, 'Heads of the decoder'),
  max_position_embeddings: count(1024, 'Longest input, in tokens'),
  tie_word_embeddings: tiedHead(true),
});

const sound: z.ZodRawShape = {
  d_model: count(384, 'Width of the residual stream'),
  encoder_layers: count(4, 'Blocks of the encoder'),
  encoder_ffn_dim: count(1536, "Width inside the encoder's networks"),
  encoder_attention_heads: count(6, 'Heads of the encoder'),
  decoder_layers: count(4, 'Blocks of the decoder'),
  decoder_ffn_dim: count(1536, "Width inside the decoder's networks"),
  decoder_attention_heads: count(6, 'Heads of the decoder'),
  num_mel_bins: count(80, 'Bands of the spectrum that the encoder reads'),
  max_source_positions: count(1500, 'Positions of the encoder, always all of them'),
  max_target_positions: count(448, 'Longest output, in tokens'),
};

/** Classes of a kind. */
function classesOf({ classes: [kind, generating], hears = false }: Kind): EncoderClasses<Config> {
  return {
    [`${kind}Model`]: { prefix: '', of: () => ({ layers: [] }) },
    [`${kind}${generating}`]: {
      prefix: 'model.',
      of: ({ d_model, vocab_size, tie_word_embeddings }, tokens) => {
        const name = hears ? 'proj_out' : 'lm_head';
        const own = linear(name, d_model, vocab_size, { bias: false, component: 'head' });
        return {
          layers: hears ? [] : [logitsBias(vocab_size)],
          head: tie_word_embeddings ? { ...own, weight: tokens.weight } : own,
        };
      },
    },
    ...(['Bart', 'MBart'].includes(kind) && {
      [`${kind}ForSequenceClassification`]: {
        prefix: 'model.',
        of: ({ d_model, num_labels }: Config) => ({
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
      [`${kind}ForQuestionAnswering`]: {
        prefix: 'model.',
        of: ({ d_model }: Config) => ({
          layers: [],
          // The class sets two labels: the start and the end of an answer.
          head: linear('qa_outputs', d_model, 2, { component: 'head' }),
        }),
      },
    }),
  };
}

/** A bias of the logits, which the classes hold as a buffer of zeros. */
const logitsBias = (rows: number): Layer =>
  described('logits_bias', {
    title: 'bias of the logits',
    component: 'head',
    held: [buffer('final_logits_bias', [1, rows])],
    output: rows,
  });

/** Tables of the parts that do not share one. */
const apart = (name: string, rows: number, width: number): Layer =>
  described(`${name}.table`, {
    title: 'a further embedding',
    component: 'embedding',
    held: [param(`${name}.weight`, [rows, width])],
    output: width,
  });

function seq2seq(name: string, kind: Kind): Family {
  const { title, vocabulary, firstRow = 0, norms = {}, hears = false, classes } = kind;
  const [start, generating] = classes;
  const leaves = decoderLeaves(!hears);
  return defineEncoder<Config>(name, {
    title,
    keys: { ...textSettings(vocabulary), ...(hears && sound) },
    classes: classesOf(kind),
    ...(kind.labels && { labels: kind.labels }),
    tiedHeads: { [`${start}${generating}`]: hears ? 'proj_out' : 'lm_head' },
    rules: [
      ...headsDivide('encoder_attention_heads', 'd_model'),
      ...headsDivide('decoder_attention_heads', 'd_model'),
    ],
    body(prefix, config, aliases) {
      const { d_model: hidden, vocab_size: rows, tie_word_embeddings: isTied } = config;
      const [encoder, decoder] = [`${prefix}encoder`, `${prefix}decoder`];
      const norm = (at: string) => layerNormLayer(at, hidden, EPS);
      const positions = (at: string, length: number) =>
        rowsAdded(`${at}.embed_positions`, firstRow + length, hidden, 'positions');
      const inputs = (at: string, length: number): Layer[] => [
        positions(at, length),
        ...(norms.embedding ? [norm(`${at}.layernorm_embedding`)] : []),
      ];
      const blocks = <Block extends Layer>(
        part: string,
        key: string,
        layers: number,
        make: (name: string) => Block,
      ) => stack(blockNames(`${part}.layers`, layers, `model.${key}`), `model.${key}`, make);
      const decoderBlocks = blocks(decoder, 'decoder_layers', config.decoder_layers, (block) =>
        decoderBlock(
          block,
          { ...leaves, norms: [...leaves.norms, 'encoder_attn_layer_norm'] },
          {
            hidden,
            heads: config.decoder_attention_heads,
            inner: config.decoder_ffn_dim,
            ...(hears && { encoderPositions: config.max_source_positions }),
          },
        ),
      );
      if (hears) {
        checkLayers('model.encoder_layers', config.encoder_layers);
        return {
          embedding: embedding(`${decoder}.embed_tokens`, rows, hidden, aliases),
          steps: [
            described('audio_encoder', {
              title: 'encoder of sound, once for an input',
              component: 'audioTower',
              held: soundEncoder(`${encoder}.`, config).flatMap(tensorsOf),
              output: hidden,
            }),
            ...inputs(decoder, config.max_target_positions),
          ],
          blocks: decoderBlocks,
          after: norms.final ? [norm(`${decoder}.layer_norm`)] : [],
          hidden,
          positions: config.max_target_positions,
        };
      }
      const encoderBlocks = blocks(encoder, 'encoder_layers', config.encoder_layers, (block) =>
        encoderBlock(block, leaves, {
          hidden,
          heads: config.encoder_attention_heads,
          inner: config.encoder_ffn_dim,
        }),
      );
      const finals = norms.final ? [encoder, decoder].map((at) => norm(`${at}.layer_norm`)) : [];
      const { max_position_embeddings: length } = config;
      const tables = [encoder, decoder].map((part) => `${part}.embed_tokens`);
      return {
        embedding: embedding(
          `${prefix}shared`,
          rows,
          hidden,
          isTied ? [...tables.map((table) => `${table}.weight`), ...aliases] : [],
        ),
        steps: [
          ...(isTied ? [] : tables.map((table) => apart(table, rows, hidden))),
          ...inputs(encoder, length),
          ...inputs(decoder, length),
        ],
        blocks: [...encoderBlocks, ...decoderBlocks],
        after: finals,
        hidden,
        positions: length,
      };
    },
    huggingFace: {
      names: {
        d_model: ['hidden_size'],
        encoder_attention_heads: ['num_attention_heads'],
        encoder_layers: ['num_hidden_layers'],
      },
      harmless: {
        ...SEQ2SEQ_UNREAD,
        ...harmless('changes values only, which are described and not computed', [
          'scale_embedding',
          'activation_function',
        ]),
        ...harmless('used in training, or chooses what is read', [
          'encoder_layerdrop',
          'apply_spec_augment',
          'mask_time_prob',
          'mask_time_length',
          'mask_time_min_masks',
          'mask_feature_prob',
          'mask_feature_length',
          'mask_feature_min_masks',
          'median_filter_width',
        ]),
        ...harmless('of a class that is not described', [
          'classifier_proj_size',
          'use_weighted_layer_sum',
        ]),
      },
      limited: {
        is_encoder_decoder: {
          allows: (value) => value !== false,
          why: 'the class then has no encoder',
          severity: 'error',
        },
        decoder_vocab_size: {
          allows: (value, { vocab_size: rows = vocabulary }) => value == null || value === rows,
          why: 'its parts have vocabularies of their own, which are not described',
          severity: 'error',
        },
        share_encoder_decoder_embeddings: {
          allows: (value) => value !== false || name !== 'marian-seq2seq',
          why: 'its parts have vocabularies of their own, which are not described',
          severity: 'error',
        },
      },
    },
  });
}

export const bartSeq2seq = seq2seq('bart-seq2seq', {
  title: 'BART, encoder and decoder',
  vocabulary: 50_265,
  classes: ['Bart', 'ForConditionalGeneration'],
  labels: 3,
  firstRow: 2,
  norms: { embedding: true },
});

export const mbartSeq2seq = seq2seq('mbart-seq2seq', {
  title: 'mBART, encoder and decoder',
  vocabulary: 50_265,
  classes: ['MBart', 'ForConditionalGeneration'],
  firstRow: 2,
  norms: { embedding: true, final: true },
});

export const pegasusSeq2seq = seq2seq('pegasus-seq2seq', {
  title: 'PEGASUS, encoder and decoder',
  vocabulary: 50_265,
  classes: ['Pegasus', 'ForConditionalGeneration'],
  norms: { final: true },
});

export const marianSeq2seq = seq2seq('marian-seq2seq', {
  title: 'Marian, encoder and decoder',
  vocabulary: 58_101,
  classes: ['Marian', 'MTModel'],
});

export const whisperSeq2seq = seq2seq('whisper-seq2seq', {
  title: 'Whisper, encoder and decoder',
  vocabulary: 51_865,
  classes: ['Whisper', 'ForConditionalGeneration'],
  norms: { final: true },
  hears: true,
});
