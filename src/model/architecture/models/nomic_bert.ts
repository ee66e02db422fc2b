/**
 * Nomic BERT (arXiv 2402.01613): BERT with rotary positions and gated networks. Described, not run. Source:
 * models/nomic_bert of transformers 5.18.
 */
import {
  blockNames,
  embedding,
  layerNormLayer,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { harmless, type LimitedKey, type LimitedKeys } from '../transformer/config-keys.js';
import {
  defineEncoder,
  type EncoderClasses,
  type EncoderSettings,
} from '../transformer/described/define-encoder.js';
import {
  type BlockLeaves,
  encoderBlock,
  onceForInput,
  rowsAdded,
} from '../transformer/described/encoder-parts.js';
import { POSITION_IDS } from '../transformer/ignored-tensors.js';
import { count, positiveInteger, tiedHead } from '../transformer/settings.js';
import { transform, vocabularyHead } from './bert.js';

interface Config extends EncoderSettings {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly head_dim?: number | null;
  readonly intermediate_size: number;
  readonly max_position_embeddings: number;
  readonly type_vocab_size: number;
  readonly tie_word_embeddings: boolean;
}

const EPS = 1e-12;

const BLOCK: BlockLeaves = {
  attention: [
    ['self_attn.q_proj', false],
    ['self_attn.k_proj', false],
    ['self_attn.v_proj', false],
    ['self_attn.o_proj', false],
  ],
  feedForward: [
    ['mlp.gate_proj', false],
    ['mlp.up_proj', false],
    ['mlp.down_proj', false],
  ],
  norms: ['post_attention_layernorm', 'post_mlp_layernorm'],
};

const CLASSES: EncoderClasses<Config> = {
  NomicBertModel: { prefix: '', of: () => ({ layers: [] }) },
  NomicBertForMaskedLM: {
    prefix: 'nomic_bert.',
    of: ({ hidden_size: hidden, tie_word_embeddings: isTied }, tokens) =>
      vocabularyHead(
        { tokens, isTied },
        transform(
          'cls.predictions.transform.dense',
          'cls.predictions.transform.layer_norm',
          hidden,
          hidden,
        ),
        { product: 'cls.predictions.decoder', bias: 'cls.predictions.bias' },
      ),
  },
  NomicBertForSequenceClassification: {
    prefix: 'nomic_bert.',
    of: ({ hidden_size: hidden, num_labels }) => ({
      layers: [
        onceForInput(
          'classifier_of_texts',
          [
            linear('nomic_bert.pooler.dense', hidden, hidden),
            linear('classifier', hidden, num_labels),
          ],
          hidden,
        ),
      ],
    }),
  },
  NomicBertForTokenClassification: {
    prefix: 'nomic_bert.',
    of: ({ hidden_size, num_labels }) => ({
      layers: [],
      head: linear('classifier', hidden_size, num_labels, { component: 'head' }),
    }),
  },
};

/** Sizes in files for the authors' own code, which the class does not read. */
const authorsKey = (key: string, usual: number): LimitedKey => ({
  allows: (value, { [key]: read = usual }) => value == null || value === read,
  why: `the class reads ${key}, and takes ${usual} without it`,
  severity: 'error',
});

const AUTHORS: LimitedKeys = {
  n_embd: authorsKey('hidden_size', 768),
  n_layer: authorsKey('num_hidden_layers', 12),
  n_head: authorsKey('num_attention_heads', 12),
  n_inner: authorsKey('intermediate_size', 3072),
  n_positions: authorsKey('max_position_embeddings', 2048),
};

export const nomicBert = defineEncoder<Config>('nomic_bert', {
  title: 'Nomic BERT',
  keys: {
    vocab_size: count(30_528, 'Rows of the embedding'),
    hidden_size: count(768, 'Width of the residual stream'),
    num_hidden_layers: count(12, 'Number of blocks'),
    num_attention_heads: count(12, 'Heads'),
    head_dim: positiveInteger.nullish().describe('Width of a head; null: hidden_size / heads'),
    intermediate_size: count(3072, 'Width inside the feed-forward network'),
    max_position_embeddings: count(2048, 'Longest input, in tokens'),
    type_vocab_size: count(2, 'Kinds of segments'),
    tie_word_embeddings: tiedHead(true),
  },
  classes: CLASSES,
  tiedHeads: { NomicBertForMaskedLM: 'cls.predictions.decoder' },
  ignored: POSITION_IDS,
  body(prefix, config, aliases) {
    const { hidden_size: hidden, num_attention_heads: heads } = config;
    const tables = `${prefix}embeddings`;
    return {
      embedding: embedding(`${tables}.word_embeddings`, config.vocab_size, hidden, aliases),
      steps: [
        rowsAdded(`${tables}.token_type_embeddings`, config.type_vocab_size, hidden),
        layerNormLayer(`${tables}.LayerNorm`, hidden, EPS),
      ],
      blocks: stack(
        blockNames(`${prefix}layers`, config.num_hidden_layers, 'model.num_hidden_layers'),
        'model.num_hidden_layers',
        (name) =>
          encoderBlock(name, BLOCK, {
            hidden,
            heads,
            headDim: config.head_dim ?? Math.floor(hidden / heads),
            inner: config.intermediate_size,
          }),
      ),
      hidden,
      positions: config.max_position_embeddings,
    };
  },
  huggingFace: {
    harmless: harmless('changes values only, which are described and not computed', [
      'rope_parameters',
      'rope_scaling',
      'rope_theta',
      'attention_probs_dropout_prob',
      'classifier_dropout',
    ]),
    limited: AUTHORS,
  },
});
