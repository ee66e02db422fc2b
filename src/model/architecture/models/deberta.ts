/**
 * DeBERTa (arXiv 2006.03654), and versions 2 and 3 of it (arXiv 2111.09543): attention to contents and to distances.
 * Described, not run. Source: models/deberta and deberta_v2 of transformers 5.18.
 */
import * as z from 'zod';
import { present } from '../../../base/values.js';
import {
  blockNames,
  embedding,
  layerNormLayer,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { defineRules, type Family } from '../family.js';
import type { DescribedWork, Layer } from '../layer.js';
import { EVERYWHERE } from '../masks.js';
import { type Param, param } from '../param.js';
import { harmless, unreadEach } from '../transformer/config-keys.js';
import {
  defineEncoder,
  type EncoderClasses,
  type EncoderSettings,
} from '../transformer/described/define-encoder.js';
import {
  network,
  onceForInput,
  patchProduct,
  rowsAdded,
} from '../transformer/described/encoder-parts.js';
import { ignoredOnLoad, POSITION_IDS } from '../transformer/ignored-tensors.js';
import { headsDivide } from '../transformer/rules.js';
import { count, positiveInteger, tiedHead, toggle } from '../transformer/settings.js';
import { tensorsOf } from '../walk.js';
import { classifiers, headProduct, transform, vocabularyHead } from './bert.js';

interface Config extends EncoderSettings {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly embedding_size?: number | null;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly intermediate_size: number;
  readonly max_position_embeddings: number;
  readonly type_vocab_size: number;
  readonly tie_word_embeddings: boolean;
  readonly relative_attention: boolean;
  readonly max_relative_positions: number;
  readonly pos_att_type: readonly string[];
  readonly position_biased_input: boolean;
  readonly legacy: boolean;
  /** Only in the first version. */
  readonly talking_head?: boolean;
  /** Only in later versions. */
  readonly position_buckets?: number;
  readonly share_att_key?: boolean;
  readonly norm_rel_ebd?: string;
  readonly conv_kernel_size?: number;
  readonly conv_groups?: number;
}

const EPS = 1e-7;

/** Distances to one side that have a row of their own. */
const spanOf = (config: Config): number => {
  const { position_buckets: buckets = -1, max_relative_positions: most } = config;
  if (buckets > 0) return buckets;
  return most < 1 ? config.max_position_embeddings : most;
};

/** Whether contents are compared with distances (`c2p`), or distances with contents (`p2c`). */
const compares = ({ relative_attention, pos_att_type }: Config, how: 'c2p' | 'p2c'): boolean =>
  relative_attention && pos_att_type.includes(how);

/** Products of the attention of a version, and their work with distances. */
interface Products {
  readonly parts: readonly Layer[];
  readonly held: readonly Param[];
  readonly works: readonly DescribedWork[];
}

/** @param distances The table of the encoder, which each block multiplies. */
type ProductsOf = (name: string, config: Config, distances: Param | undefined) => Products;

const tensorsOfAll = (layers: readonly Layer[]): Param[] => layers.flatMap(tensorsOf);

const firstProducts: ProductsOf = (name, config) => {
  const { hidden_size: hidden, num_attention_heads: heads, talking_head: talks = false } = config;
  const used = [
    ...(compares(config, 'c2p')
      ? [linear(`${name}.pos_proj`, hidden, hidden, { bias: false })]
      : []),
    ...(compares(config, 'p2c') ? [linear(`${name}.pos_q_proj`, hidden, hidden)] : []),
  ];
  const mixes = talks
    ? ['head_logits_proj', 'head_weights_proj'].map((leaf) =>
        param(`${name}.${leaf}.weight`, [heads, heads]),
      )
    : [];
  return {
    parts: [linear(`${name}.in_proj`, hidden, 3 * hidden, { bias: false })],
    held: [
      param(`${name}.q_bias`, [hidden]),
      param(`${name}.v_bias`, [hidden]),
      ...mixes,
      ...tensorsOfAll(used),
    ],
    works: [
      // Each mixes the scores of a pair with a matrix [heads, heads].
      ...mixes.map(() => pairsOf(heads, heads, 0)),
      // The class reads two rows of the table for each position of the input, and compares each token with all of them.
      ...used.flatMap(({ weight }): DescribedWork[] => {
        const rows: DescribedWork = { work: 'rows', tensor: weight, rows: 'positions' };
        return [rows, rows, pairsOf(heads, (2 * hidden) / heads, 0)];
      }),
    ],
  };
};

/** Work for each pair of positions. */
const pairsOf = (heads: number, headDim: number, valueDim: number): DescribedWork => ({
  work: 'attention',
  heads,
  keyValueHeads: heads,
  headDim,
  valueDim,
  window: EVERYWHERE,
  isUncached: true,
});

const laterProducts: ProductsOf = (name, config, distances) => {
  const { hidden_size: hidden, num_attention_heads: heads, share_att_key: isShared } = config;
  const product = (leaf: string) => linear(`${name}.${leaf}`, hidden, hidden);
  const [queries, keys] = [product('query_proj'), product('key_proj')];
  const used = [
    ...(compares(config, 'c2p') ? [product('pos_key_proj')] : []),
    ...(compares(config, 'p2c') ? [product('pos_query_proj')] : []),
  ];
  const [rows = 0] = distances?.shape ?? [];
  return {
    parts: [queries, keys, product('value_proj')],
    held: isShared ? [] : tensorsOfAll(used),
    works: distances
      ? [
          // A class with shared products computes both.
          ...(isShared ? [queries, keys] : used).map(
            ({ weight }): DescribedWork => ({ work: 'rows', tensor: weight, rows }),
          ),
          // A query or a key of each token is multiplied with each row.
          ...used.map(
            (): DescribedWork => ({
              work: 'product',
              tensor: distances,
              input: hidden,
              output: rows * heads,
            }),
          ),
        ]
      : [],
  };
};

/** A block; `distances` is the table of the encoder, which each block multiplies. */
function debertaBlock(
  name: string,
  config: Config,
  distances: Param | undefined,
  productsOf: ProductsOf,
): Layer {
  const { hidden_size: hidden, num_attention_heads: heads } = config;
  const at = `${name}.attention`;
  const { parts, held, works } = productsOf(`${at}.self`, config, distances);
  return described(name, {
    title: 'encoder block',
    parts: [
      described(`${at}.attention_to_distances`, {
        title: 'attention to contents and distances',
        component: 'attention',
        parts: [...parts, linear(`${at}.output.dense`, hidden, hidden)],
        held,
        works: [pairsOf(heads, hidden / heads, hidden / heads), ...works],
        output: hidden,
      }),
      network(name, ['intermediate.dense', 'output.dense'], {
        hidden,
        inner: config.intermediate_size,
      }),
      layerNormLayer(`${at}.output.LayerNorm`, hidden, EPS),
      layerNormLayer(`${name}.output.LayerNorm`, hidden, EPS),
    ],
    output: hidden,
  });
}

// ── Classes ──────────────────────────────────────────────────────────────────────────────────────

const onePooled = (width: number, outputs: number): Layer[] => [
  headProduct('pooler.dense', width, width),
  headProduct('classifier', width, outputs),
];

/** Name of the head that multiplies the embedding itself. */
const NEW_HEAD = 'lm_predictions.lm_head';

/** The head of the class that predicts tokens: an own product in old files, the embedding itself in others. */
const vocabulary: EncoderClasses<Config>[string]['of'] = (config, tokens) => {
  const { hidden_size: hidden, embedding_size, tie_word_embeddings: isTied } = config;
  if (config.legacy) {
    const layers = transform(
      'cls.predictions.transform.dense',
      'cls.predictions.transform.LayerNorm',
      hidden,
      embedding_size ?? hidden,
    );
    return vocabularyHead({ tokens, isTied }, layers, {
      product: 'cls.predictions.decoder',
      bias: 'cls.predictions.bias',
    });
  }
  return {
    layers: transform(`${NEW_HEAD}.dense`, `${NEW_HEAD}.LayerNorm`, hidden, hidden),
    head: { ...headProduct(NEW_HEAD, hidden, config.vocab_size), weight: tokens.weight },
  };
};

const classesOf = (kind: string): EncoderClasses<Config> => ({
  [`${kind}Model`]: { prefix: '', of: () => ({ layers: [] }) },
  [`${kind}ForMaskedLM`]: { prefix: 'deberta.', of: vocabulary },
  ...classifiers<Config>(
    kind,
    'deberta.',
    ({ hidden_size }) => hidden_size,
    (labels, { hidden_size }) => onePooled(hidden_size, labels),
  ),
});

// ── Versions ─────────────────────────────────────────────────────────────────────────────────────

interface Sizes {
  readonly vocabulary: number;
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly inner: number;
}

const debertaSettings = (sizes: Sizes): z.ZodRawShape => ({
  vocab_size: count(sizes.vocabulary, 'Rows of the embedding'),
  hidden_size: count(sizes.hidden, 'Width of the residual stream'),
  embedding_size: positiveInteger.nullish().describe('Width of the embedding; null: hidden_size'),
  num_hidden_layers: count(sizes.layers, 'Number of blocks'),
  num_attention_heads: count(sizes.heads, 'Heads, a divisor of hidden_size'),
  intermediate_size: count(sizes.inner, 'Width inside the feed-forward network'),
  max_position_embeddings: count(512, 'Longest input, in tokens'),
  type_vocab_size: z.int().min(0).default(0).describe('Kinds of segments'),
  tie_word_embeddings: tiedHead(true),
  relative_attention: toggle(false, 'Attention to distances'),
  max_relative_positions: z
    .int()
    .min(-1)
    .default(-1)
    .describe('Largest distance; below 1: max_position_embeddings'),
  pos_att_type: z
    .array(z.string())
    .default([])
    .describe('c2p: contents are compared with distances; p2c: distances with contents'),
  position_biased_input: toggle(true, 'A table of positions'),
  legacy: toggle(true, 'The head of old files in the class that predicts tokens'),
});

interface Version {
  readonly title: string;
  readonly sizes: Sizes;
  /** Further settings. */
  readonly own: z.ZodRawShape;
  readonly classes: EncoderClasses<Config>;
  readonly productsOf: ProductsOf;
  /** Keys of the other version. */
  readonly unread?: readonly string[];
}

/** The table of distances, and its norm. */
function distancesOf(encoder: string, config: Config, table: Param | undefined): Layer[] {
  const { hidden_size: hidden, norm_rel_ebd: norms = 'none' } = config;
  const norm = () => [layerNormLayer(`${encoder}.LayerNorm`, hidden, EPS)];
  return present([
    table &&
      described(`${encoder}.rel_embeddings`, {
        title: 'table of distances',
        component: 'positions',
        held: [table],
        output: hidden,
      }),
    positionTypes(norms).includes('layer_norm') &&
      onceForInput('norm_of_distances', norm(), hidden, 'positions'),
  ]);
}

/** The convolution behind the first block. */
function convolution(encoder: string, config: Config): Layer[] {
  const { hidden_size: hidden, conv_kernel_size: kernel = 0, conv_groups: groups = 1 } = config;
  if (kernel < 1) return [];
  const name = `${encoder}.conv`;
  return [
    described(`${name}.block`, {
      title: 'convolution behind the first block',
      component: 'other',
      parts: [
        patchProduct(`${name}.conv`, [hidden, hidden / groups, kernel], { bias: true }),
        layerNormLayer(`${name}.LayerNorm`, hidden, EPS),
      ],
      output: hidden,
    }),
  ];
}

/** Names of a setting in one text: `c2p|p2c`. */
const positionTypes = (text: string): string[] =>
  text
    .toLowerCase()
    .split('|')
    .map((each) => each.trim());

/** Heads of the pre-training, which files of the encoder hold, too. */
const OTHER_HEADS = ignoredOnLoad(['^mask_predictions', '^lm_predictions', 'position_embeddings']);

const RULES = defineRules<{ readonly model: Config }>([
  {
    severity: 'error',
    reads: ['model.legacy', 'model.embedding_size', 'model.hidden_size', 'model.class'],
    check: ({ model: { legacy, embedding_size: width, hidden_size: hidden, class: kind } }) =>
      legacy || !kind.endsWith('ForMaskedLM') || (width ?? hidden) === hidden
        ? undefined
        : {
            message: `the head without legacy multiplies ${hidden} values with an embedding of width ${width}`,
            suggestion: 'write legacy: true, or remove embedding_size',
          },
  },
  {
    severity: 'error',
    reads: ['model.conv_groups', 'model.hidden_size'],
    check: ({ model: { conv_groups: groups = 1, hidden_size: hidden } }) =>
      hidden % groups === 0
        ? undefined
        : {
            message: `${groups} groups do not divide ${hidden} channels`,
            suggestion: 'write a divisor of hidden_size as conv_groups',
          },
  },
]);

const SAME_WIDTH = 'the class then fails in its forward pass';

const deberta = (name: string, kind: string, version: Version): Family =>
  defineEncoder<Config>(name, {
    title: version.title,
    keys: { ...debertaSettings(version.sizes), ...version.own },
    classes: version.classes,
    tiedHeads: { [`${kind}ForMaskedLM`]: 'cls.predictions.decoder' },
    rules: [...headsDivide('num_attention_heads', 'hidden_size'), ...RULES] as never,
    ignored: [...POSITION_IDS, ...OTHER_HEADS],
    body(prefix, config, aliases) {
      const { hidden_size: hidden, max_position_embeddings: positions } = config;
      const width = config.embedding_size ?? hidden;
      const [tables, encoder] = [`${prefix}embeddings`, `${prefix}encoder`];
      const rows = 2 * spanOf(config);
      const distances = config.relative_attention
        ? param(`${encoder}.rel_embeddings.weight`, [rows, hidden])
        : undefined;
      const blocks = stack(
        blockNames(`${encoder}.layer`, config.num_hidden_layers, 'model.num_hidden_layers'),
        'model.num_hidden_layers',
        (block) => debertaBlock(block, config, distances, version.productsOf),
      );
      const [first, ...others] = blocks;
      return {
        embedding: embedding(
          `${tables}.word_embeddings`,
          config.vocab_size,
          width,
          config.legacy ? aliases : aliases.map(() => `${NEW_HEAD}.weight`),
        ),
        steps: [
          ...(config.position_biased_input
            ? [rowsAdded(`${tables}.position_embeddings`, positions, width, 'positions')]
            : []),
          rowsAdded(`${tables}.token_type_embeddings`, config.type_vocab_size, width),
          ...(width === hidden
            ? []
            : [linear(`${tables}.embed_proj`, width, hidden, { bias: false })]),
          layerNormLayer(`${tables}.LayerNorm`, hidden, EPS),
          ...distancesOf(encoder, config, distances),
        ],
        blocks: first ? [first, ...convolution(encoder, config), ...others] : [],
        hidden,
        positions,
      };
    },
    huggingFace: {
      more: ({ pos_att_type: named }) => ({
        pos_att_type: typeof named === 'string' ? positionTypes(named) : (named ?? []),
      }),
      reads: ['pos_att_type'],
      harmless: harmless('changes values only, which are described and not computed', [
        'pooler_hidden_act',
        'conv_act',
        'padding_idx',
        'cls_dropout',
      ]),
      limited: {
        ...unreadEach(version.unread ?? []),
        pooler_hidden_size: {
          allows: (value, { hidden_size = version.sizes.hidden }) =>
            value == null || value === hidden_size,
          why: SAME_WIDTH,
          severity: 'error',
        },
      },
    },
  });

/** Keys of later versions, which the first class does not read. */
const LATER = [
  'position_buckets',
  'share_att_key',
  'norm_rel_ebd',
  'conv_kernel_size',
  'conv_groups',
];

export const debertaV1 = deberta('deberta', 'Deberta', {
  title: 'DeBERTa',
  sizes: { vocabulary: 50_265, hidden: 768, layers: 12, heads: 12, inner: 3072 },
  own: { talking_head: toggle(false, 'Products of the heads before and behind the softmax') },
  classes: classesOf('Deberta'),
  productsOf: firstProducts,
  unread: LATER,
});

export const debertaV2 = deberta('deberta-v2', 'DebertaV2', {
  title: 'DeBERTa, versions 2 and 3',
  sizes: { vocabulary: 128_100, hidden: 1536, layers: 24, heads: 24, inner: 6144 },
  own: {
    position_buckets: z
      .int()
      .min(-1)
      .default(-1)
      .describe('Distances to one side with a row of their own; below 1: max_relative_positions'),
    share_att_key: toggle(false, 'Distances share the products of contents'),
    norm_rel_ebd: z
      .string()
      .default('none')
      .describe('layer_norm: the table of distances has a norm'),
    conv_kernel_size: z.int().min(0).default(0).describe('Width of a convolution; 0: none'),
    conv_groups: count(1, 'Groups of channels of the convolution'),
  },
  classes: {
    ...classesOf('DebertaV2'),
    DebertaV2ForMultipleChoice: {
      prefix: 'deberta.',
      of: ({ hidden_size }) => ({
        layers: [onceForInput('pooled', onePooled(hidden_size, 1), hidden_size)],
      }),
    },
  },
  productsOf: laterProducts,
  unread: ['talking_head'],
});
