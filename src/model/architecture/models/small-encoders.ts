/**
 * DistilBERT (arXiv 1910.01108), ALBERT (arXiv 1909.11942) and MPNet (arXiv 2004.09297). Described, not run. Source:
 * models/distilbert, albert and mpnet of transformers 5.18.
 */
import * as z from 'zod';
import {
  blockNames,
  embedding,
  layerNormLayer,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Layer, Linear } from '../layer.js';
import { checkLayers, param } from '../param.js';
import { harmless } from '../transformer/config-keys.js';
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
import { headsDivide } from '../transformer/rules.js';
import { count, tiedHead } from '../transformer/settings.js';
import {
  classifiers,
  headProduct,
  robertaVocabulary,
  transform,
  twoProducts,
  vocabularyHead,
} from './bert.js';

const EPS = 1e-12;

const held = (layers: readonly Layer[], width: number) => ({
  layers: [onceForInput('pooled', layers, width)],
});

// ── DistilBERT ───────────────────────────────────────────────────────────────────────────────────

interface DistilConfig extends EncoderSettings {
  readonly vocab_size: number;
  readonly dim: number;
  readonly n_layers: number;
  readonly n_heads: number;
  readonly hidden_dim: number;
  readonly max_position_embeddings: number;
  readonly tie_word_embeddings: boolean;
}

const DISTIL_BLOCK: BlockLeaves = {
  attention: ['attention.q_lin', 'attention.k_lin', 'attention.v_lin', 'attention.out_lin'],
  feedForward: ['ffn.lin1', 'ffn.lin2'],
  norms: ['sa_layer_norm', 'output_layer_norm'],
};

const DISTIL_CLASSES: EncoderClasses<DistilConfig> = {
  DistilBertModel: { prefix: '', of: () => ({ layers: [] }) },
  DistilBertForMaskedLM: {
    prefix: 'distilbert.',
    of: (config, tokens) =>
      vocabularyHead(
        { tokens, isTied: config.tie_word_embeddings },
        transform('vocab_transform', 'vocab_layer_norm', config.dim, config.dim),
        { product: 'vocab_projector' },
      ),
  },
  ...classifiers<DistilConfig>(
    'DistilBert',
    'distilbert.',
    ({ dim }) => dim,
    (labels, { dim }) => [
      headProduct('pre_classifier', dim, dim),
      headProduct('classifier', dim, labels),
    ],
  ),
  DistilBertForMultipleChoice: {
    prefix: 'distilbert.',
    of: ({ dim }) =>
      held([headProduct('pre_classifier', dim, dim), headProduct('classifier', dim, 1)], dim),
  },
};

export const distilbert = defineEncoder<DistilConfig>('distilbert', {
  title: 'DistilBERT',
  keys: {
    vocab_size: count(30_522, 'Rows of the embedding'),
    dim: count(768, 'Width of the residual stream'),
    n_layers: count(6, 'Number of blocks'),
    n_heads: count(12, 'Heads, a divisor of dim'),
    hidden_dim: count(3072, 'Width inside the feed-forward network'),
    max_position_embeddings: count(512, 'Rows of the table of positions'),
    tie_word_embeddings: tiedHead(true),
  },
  classes: DISTIL_CLASSES,
  tiedHeads: { DistilBertForMaskedLM: 'vocab_projector' },
  rules: headsDivide('n_heads', 'dim'),
  ignored: POSITION_IDS,
  body(prefix, config, aliases) {
    const { dim: hidden, max_position_embeddings: positions } = config;
    const at = `${prefix}embeddings`;
    return {
      embedding: embedding(`${at}.word_embeddings`, config.vocab_size, hidden, aliases),
      steps: [
        rowsAdded(`${at}.position_embeddings`, positions, hidden, 'positions'),
        layerNormLayer(`${at}.LayerNorm`, hidden, EPS),
      ],
      blocks: stack(
        blockNames(`${prefix}transformer.layer`, config.n_layers, 'model.n_layers'),
        'model.n_layers',
        (name) =>
          encoderBlock(name, DISTIL_BLOCK, {
            hidden,
            heads: config.n_heads,
            inner: config.hidden_dim,
          }),
      ),
      hidden,
      positions,
    };
  },
  huggingFace: {
    names: {
      dim: ['hidden_size'],
      n_heads: ['num_attention_heads'],
      n_layers: ['num_hidden_layers'],
    },
    harmless: {
      ...harmless('changes values only, which are described and not computed', [
        'sinusoidal_pos_embds',
        'tie_weights_',
      ]),
    },
  },
});

// ── ALBERT and MPNet ─────────────────────────────────────────────────────────────────────────────

interface Config extends EncoderSettings {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly intermediate_size: number;
  readonly max_position_embeddings: number;
  readonly tie_word_embeddings: boolean;
  readonly type_vocab_size: number;
  readonly embedding_size: number;
  readonly num_hidden_groups: number;
  readonly inner_group_num: number;
  readonly relative_attention_num_buckets: number;
}

const sizes = (hidden: number, heads: number, inner: number): z.ZodRawShape => ({
  hidden_size: count(hidden, 'Width of the residual stream'),
  num_hidden_layers: count(12, 'Number of blocks'),
  num_attention_heads: count(heads, 'Heads, a divisor of hidden_size'),
  intermediate_size: count(inner, 'Width inside the feed-forward network'),
  max_position_embeddings: count(512, 'Rows of the table of positions'),
  tie_word_embeddings: tiedHead(true),
});

const albertHidden = ({ hidden_size }: Config) => hidden_size;

const albertPooler = (prefix: string, { hidden_size }: Config): Linear =>
  headProduct(`${prefix}pooler`, hidden_size, hidden_size);

const albertVocabulary: EncoderClasses<Config>[string]['of'] = (config, tokens) =>
  vocabularyHead(
    { tokens, isTied: config.tie_word_embeddings },
    transform(
      'predictions.dense',
      'predictions.LayerNorm',
      config.hidden_size,
      config.embedding_size,
    ),
    { product: 'predictions.decoder', bias: 'predictions.bias' },
  );

const ALBERT_CLASSES: EncoderClasses<Config> = {
  AlbertModel: {
    prefix: '',
    of: (config) => held([albertPooler('', config)], config.hidden_size),
  },
  AlbertForMaskedLM: { prefix: 'albert.', of: albertVocabulary },
  AlbertForPreTraining: {
    prefix: 'albert.',
    of(config, tokens) {
      const { layers, ...rest } = albertVocabulary(config, tokens);
      const order = headProduct('sop_classifier.classifier', config.hidden_size, config.num_labels);
      const pooled = held([albertPooler('albert.', config), order], config.hidden_size);
      return { layers: [...pooled.layers, ...layers], ...rest };
    },
  },
  ...classifiers<Config>('Albert', 'albert.', albertHidden, (labels, config) => [
    albertPooler('albert.', config),
    headProduct('classifier', config.hidden_size, labels),
  ]),
  AlbertForMultipleChoice: {
    prefix: 'albert.',
    of: (config) =>
      held(
        [albertPooler('albert.', config), headProduct('classifier', config.hidden_size, 1)],
        config.hidden_size,
      ),
  },
};

const ALBERT_BLOCK: BlockLeaves = {
  attention: ['attention.query', 'attention.key', 'attention.value', 'attention.dense'],
  feedForward: ['ffn', 'ffn_output'],
  norms: ['full_layer_layer_norm', 'attention.LayerNorm'],
};

export const albert = defineEncoder<Config>('albert', {
  title: 'ALBERT: blocks that share their weights',
  keys: {
    vocab_size: count(30_000, 'Rows of the embedding'),
    embedding_size: count(128, 'Width of the embedding'),
    ...sizes(4096, 64, 16_384),
    num_hidden_groups: count(1, 'Groups of blocks with weights of their own'),
    inner_group_num: count(1, 'Blocks of a group'),
    type_vocab_size: z.int().min(0).default(2).describe('Kinds of segments'),
  },
  classes: ALBERT_CLASSES,
  tiedHeads: {
    AlbertForMaskedLM: 'predictions.decoder',
    AlbertForPreTraining: 'predictions.decoder',
  },
  rules: headsDivide('num_attention_heads', 'hidden_size'),
  ignored: POSITION_IDS,
  body(prefix, config, aliases) {
    const {
      hidden_size: hidden,
      embedding_size: width,
      max_position_embeddings: positions,
    } = config;
    const { num_hidden_layers: layers, num_hidden_groups: groups } = config;
    const at = `${prefix}embeddings`;
    const group = `${prefix}encoder.albert_layer_groups`;
    checkLayers('model.num_hidden_layers', layers * config.inner_group_num);
    const held = blockNames(group, groups, 'model.num_hidden_groups').map((name) =>
      stack(
        blockNames(`${name}.albert_layers`, config.inner_group_num, 'model.inner_group_num'),
        'model.inner_group_num',
        (block) =>
          encoderBlock(block, ALBERT_BLOCK, {
            hidden,
            heads: config.num_attention_heads,
            inner: config.intermediate_size,
          }),
      ),
    );
    const used = Array.from({ length: layers }, (_, index) =>
      Math.trunc(index / (layers / groups)),
    );
    const unused = held.filter((_, index) => !used.includes(index)).flat();
    return {
      embedding: embedding(`${at}.word_embeddings`, config.vocab_size, width, aliases),
      steps: [
        rowsAdded(`${at}.position_embeddings`, positions, width, 'positions'),
        rowsAdded(`${at}.token_type_embeddings`, config.type_vocab_size, width),
        layerNormLayer(`${at}.LayerNorm`, width, EPS),
        linear(`${prefix}encoder.embedding_hidden_mapping_in`, width, hidden, {
          component: 'embedding',
        }),
        ...(unused.length > 0 ? [onceForInput('unused_groups', unused, hidden, 'other')] : []),
      ],
      blocks: used.flatMap((index) => held[index] ?? []),
      hidden,
      positions,
    };
  },
  huggingFace: {
    harmless: harmless('of files before transformers 4, or of training', [
      'down_scale_factor',
      'gap_size',
      'net_structure_type',
      'num_memory_blocks',
      'attention_probs_dropout_prob',
    ]),
  },
});

const mpnetPooler = (prefix: string, { hidden_size }: Config): Linear =>
  headProduct(`${prefix}pooler.dense`, hidden_size, hidden_size);

const MPNET_BLOCK: BlockLeaves = {
  attention: ['attention.attn.q', 'attention.attn.k', 'attention.attn.v', 'attention.attn.o'],
  feedForward: ['intermediate.dense', 'output.dense'],
  norms: ['attention.LayerNorm', 'output.LayerNorm'],
};

const MPNET_CLASSES: EncoderClasses<Config> = {
  MPNetModel: { prefix: '', of: (config) => held([mpnetPooler('', config)], config.hidden_size) },
  MPNetForMaskedLM: { prefix: 'mpnet.', of: robertaVocabulary },
  ...classifiers<Config>('MPNet', 'mpnet.', albertHidden, twoProducts),
  MPNetForMultipleChoice: {
    prefix: 'mpnet.',
    of: (config) =>
      held(
        [mpnetPooler('mpnet.', config), headProduct('classifier', config.hidden_size, 1)],
        config.hidden_size,
      ),
  },
};

export const mpnet = defineEncoder<Config>('mpnet', {
  title: 'MPNet',
  keys: {
    vocab_size: count(30_527, 'Rows of the embedding'),
    ...sizes(768, 12, 3072),
    relative_attention_num_buckets: count(32, 'Rows of the table of distances'),
  },
  classes: MPNET_CLASSES,
  tiedHeads: { MPNetForMaskedLM: 'lm_head.decoder' },
  rules: headsDivide('num_attention_heads', 'hidden_size'),
  ignored: POSITION_IDS,
  body(prefix, config, aliases) {
    const {
      hidden_size: hidden,
      max_position_embeddings: rows,
      num_attention_heads: heads,
    } = config;
    const at = `${prefix}embeddings`;
    const distances = `${prefix}encoder.relative_attention_bias`;
    return {
      embedding: embedding(`${at}.word_embeddings`, config.vocab_size, hidden, aliases),
      steps: [
        rowsAdded(`${at}.position_embeddings`, rows, hidden, 'positions'),
        layerNormLayer(`${at}.LayerNorm`, hidden, EPS),
        described(distances, {
          title: 'biases of the distance',
          component: 'attention',
          held: [param(`${distances}.weight`, [config.relative_attention_num_buckets, heads])],
          output: hidden,
        }),
      ],
      blocks: stack(
        blockNames(`${prefix}encoder.layer`, config.num_hidden_layers, 'model.num_hidden_layers'),
        'model.num_hidden_layers',
        (name) =>
          encoderBlock(name, MPNET_BLOCK, { hidden, heads, inner: config.intermediate_size }),
      ),
      hidden,
      // The class counts positions from behind that of the padding.
      positions: Math.max(1, rows - 2),
    };
  },
});
