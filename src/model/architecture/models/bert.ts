/**
 * BERT (arXiv 1810.04805) and encoders with its blocks: RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA. Described, not run.
 * Source: models/bert, roberta, xlm_roberta, camembert and electra of transformers 5.18.
 */
import * as z from 'zod';
import {
  activation,
  blockNames,
  embedding,
  layerNormLayer,
  learnedPositions,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Family } from '../family.js';
import type { Embedding, Layer, Linear } from '../layer.js';
import { param } from '../param.js';
import { harmless } from '../transformer/config-keys.js';
import {
  defineEncoder,
  type EncoderClasses,
  type EncoderHead,
  type EncoderSettings,
  type HeadOf,
} from '../transformer/described/define-encoder.js';
import {
  type BlockLeaves,
  encoderBlock,
  onceForInput,
  rowsAdded,
} from '../transformer/described/encoder-parts.js';
import type { Special } from '../transformer/hugging-face.js';
import { POSITION_IDS } from '../transformer/ignored-tensors.js';
import { headsDivide } from '../transformer/rules.js';
import { count, tiedHead, toggle } from '../transformer/settings.js';

/** Epsilon of the norms; it changes no count. */
const EPS = 1e-12;

export const BERT_BLOCK: BlockLeaves = {
  attention: [
    'attention.self.query',
    'attention.self.key',
    'attention.self.value',
    'attention.output.dense',
  ],
  feedForward: ['intermediate.dense', 'output.dense'],
  norms: ['attention.output.LayerNorm', 'output.LayerNorm'],
};

/** A network before the product with the vocabulary: a product, an activation and a norm. */
export const transform = (product: string, norm: string, from: number, to: number): Layer[] => [
  linear(product, from, to, { component: 'head' }),
  activation(`${product}.activation`, 'gelu'),
  { ...layerNormLayer(norm, to, EPS), component: 'head' },
];

/**
 * The network and the product with the vocabulary behind an encoder. The bias of the product has two names, or is two
 * tensors where the product is not tied.
 */
export function vocabularyHead(
  { tokens, isTied }: { readonly tokens: Embedding; readonly isTied: boolean },
  layers: readonly Layer[],
  { product, bias }: { readonly product: string; readonly bias?: string },
): EncoderHead {
  const [rows = 0, width = 0] = tokens.weight.shape;
  const own = linear(product, width, rows, { component: 'head' });
  if (!isTied) {
    const loose = bias === undefined ? [] : [looseBias(bias, rows)];
    return { layers: [...layers, ...loose], head: own };
  }
  const tied = { ...own, weight: tokens.weight };
  return {
    layers,
    head: bias === undefined ? tied : { ...tied, bias: param(bias, [rows], [`${product}.bias`]) },
  };
}

const looseBias = (name: string, rows: number): Layer =>
  described(`${name}.alone`, {
    title: 'a bias that nothing adds',
    component: 'head',
    held: [param(name, [rows])],
    output: rows,
  });

export const headProduct = (name: string, from: number, to: number): Linear =>
  linear(name, from, to, { component: 'head' });

interface BertConfig extends EncoderSettings {
  readonly hidden_size: number;
  readonly tie_word_embeddings: boolean;
}

/** Classifiers of texts and tokens, which most kinds have. @param whole Layers of a classifier of whole texts. */
export const classifiers = <Config extends Pick<BertConfig, 'num_labels'>>(
  kind: string,
  prefix: string,
  hiddenOf: (config: Config) => number,
  whole: (labels: number, config: Config) => readonly Layer[],
): EncoderClasses<Config> => ({
  [`${kind}ForSequenceClassification`]: {
    prefix,
    of: (config) => ({
      layers: [
        onceForInput('classifier_of_texts', whole(config.num_labels, config), hiddenOf(config)),
      ],
    }),
  },
  [`${kind}ForTokenClassification`]: {
    prefix,
    of: (config) => ({
      layers: [],
      head: headProduct('classifier', hiddenOf(config), config.num_labels),
    }),
  },
  [`${kind}ForQuestionAnswering`]: {
    prefix,
    of: (config) => ({
      layers: [],
      head: headProduct('qa_outputs', hiddenOf(config), config.num_labels),
    }),
  },
});

const bertHidden = ({ hidden_size }: BertConfig) => hidden_size;

const pooler = (prefix: string, hidden: number): Linear =>
  headProduct(`${prefix}pooler.dense`, hidden, hidden);

/** Classes with the pooler alone. */
const pooledModel = (
  prefix: string,
  more: (config: BertConfig) => readonly Layer[] = () => [],
): EncoderClasses<BertConfig>[string] => ({
  prefix,
  of: (config) => ({
    layers: [
      onceForInput(
        'pooled',
        [pooler(prefix, config.hidden_size), ...more(config)],
        config.hidden_size,
      ),
    ],
  }),
});

const oneOfSome = (kind: string, prefix: string): EncoderClasses<BertConfig> => ({
  [`${kind}ForMultipleChoice`]: pooledModel(prefix, ({ hidden_size }) => [
    headProduct('classifier', hidden_size, 1),
  ]),
});

const bertVocabulary: HeadOf<BertConfig> = (config, tokens) =>
  vocabularyHead(
    { tokens, isTied: config.tie_word_embeddings },
    transform(
      'cls.predictions.transform.dense',
      'cls.predictions.transform.LayerNorm',
      config.hidden_size,
      config.hidden_size,
    ),
    { product: 'cls.predictions.decoder', bias: 'cls.predictions.bias' },
  );

const relation = ({ hidden_size }: BertConfig) => [
  headProduct('cls.seq_relationship', hidden_size, 2),
];

const BERT_CLASSES: EncoderClasses<BertConfig> = {
  BertModel: pooledModel(''),
  BertForMaskedLM: { prefix: 'bert.', of: bertVocabulary },
  BertForPreTraining: {
    prefix: 'bert.',
    of: (config, tokens) => {
      const { layers: pooled } = pooledModel('bert.', relation).of(config, tokens);
      const { layers, ...rest } = bertVocabulary(config, tokens);
      return { layers: [...pooled, ...layers], ...rest };
    },
  },
  BertForNextSentencePrediction: pooledModel('bert.', relation),
  ...classifiers<BertConfig>('Bert', 'bert.', bertHidden, (labels, { hidden_size }) => [
    pooler('bert.', hidden_size),
    headProduct('classifier', hidden_size, labels),
  ]),
  ...oneOfSome('Bert', 'bert.'),
};

/** Two products behind the first token, as in RoBERTa and ELECTRA. */
export const twoProducts = (
  labels: number,
  { hidden_size }: Pick<BertConfig, 'hidden_size'>,
): Linear[] => [
  headProduct('classifier.dense', hidden_size, hidden_size),
  headProduct('classifier.out_proj', hidden_size, labels),
];

/** The network of RoBERTa's classes before the vocabulary. */
export const robertaVocabulary: HeadOf<BertConfig> = (config, tokens) =>
  vocabularyHead(
    { tokens, isTied: config.tie_word_embeddings },
    transform('lm_head.dense', 'lm_head.layer_norm', config.hidden_size, config.hidden_size),
    { product: 'lm_head.decoder', bias: 'lm_head.bias' },
  );

const robertaClasses = (kind: string): EncoderClasses<BertConfig> => ({
  [`${kind}Model`]: pooledModel(''),
  [`${kind}ForMaskedLM`]: { prefix: 'roberta.', of: robertaVocabulary },
  ...classifiers<BertConfig>(kind, 'roberta.', bertHidden, twoProducts),
  ...oneOfSome(kind, 'roberta.'),
});

const electraClasses: EncoderClasses<ElectraConfig> = {
  ElectraModel: { prefix: '', of: () => ({ layers: [] }) },
  ElectraForPreTraining: {
    prefix: 'electra.',
    of: ({ hidden_size }) => ({
      layers: [
        headProduct('discriminator_predictions.dense', hidden_size, hidden_size),
        activation('discriminator_predictions.activation', 'gelu'),
      ],
      head: headProduct('discriminator_predictions.dense_prediction', hidden_size, 1),
    }),
  },
  ElectraForMaskedLM: {
    prefix: 'electra.',
    of: (config, tokens) =>
      vocabularyHead(
        { tokens, isTied: config.tie_word_embeddings },
        transform(
          'generator_predictions.dense',
          'generator_predictions.LayerNorm',
          config.hidden_size,
          config.embedding_size,
        ),
        { product: 'generator_lm_head' },
      ),
  },
  ...classifiers<ElectraConfig>('Electra', 'electra.', bertHidden, twoProducts),
  ElectraForMultipleChoice: {
    prefix: 'electra.',
    of: ({ hidden_size, num_labels, summary_use_proj, summary_proj_to_labels }) => ({
      layers: [
        onceForInput(
          'summary',
          [
            ...(summary_use_proj
              ? [
                  headProduct(
                    'sequence_summary.summary',
                    hidden_size,
                    summary_proj_to_labels ? num_labels : hidden_size,
                  ),
                ]
              : []),
            headProduct('classifier', hidden_size, 1),
          ],
          hidden_size,
        ),
      ],
    }),
  },
};

const sizes = {
  hidden_size: count(768, 'Width of the residual stream'),
  num_hidden_layers: count(12, 'Number of blocks'),
  num_attention_heads: count(12, 'Heads, a divisor of hidden_size'),
  intermediate_size: count(3072, 'Width inside the feed-forward network'),
  max_position_embeddings: count(512, 'Rows of the table of positions'),
  type_vocab_size: z.int().min(0).default(2).describe('Kinds of segments'),
  tie_word_embeddings: tiedHead(true),
};

interface Sizes extends BertConfig {
  readonly vocab_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly intermediate_size: number;
  readonly max_position_embeddings: number;
  readonly type_vocab_size: number;
  readonly embedding_size?: number;
}

type ElectraConfig = Sizes & {
  readonly embedding_size: number;
  readonly summary_use_proj: boolean;
  readonly summary_proj_to_labels: boolean;
};

interface BertKind<Config extends Sizes> {
  readonly title: string;
  readonly vocabulary: number;
  readonly classes: EncoderClasses<Config>;
  readonly own?: z.ZodRawShape;
  /** Rows of the table of positions before that of the first token. */
  readonly offset?: number;
  readonly tiedHeads: Readonly<Record<string, string>>;
  readonly huggingFace?: Special;
}

/** A kind with the blocks of BERT. */
const bertLike = <Config extends Sizes>(
  name: string,
  {
    title,
    vocabulary,
    classes,
    own = {},
    offset = 0,
    tiedHeads,
    huggingFace = {},
  }: BertKind<Config>,
): Family =>
  defineEncoder<Config>(name, {
    title,
    classes,
    tiedHeads,
    huggingFace,
    keys: { vocab_size: count(vocabulary, 'Rows of the embedding'), ...sizes, ...own },
    rules: headsDivide('num_attention_heads', 'hidden_size'),
    ignored: POSITION_IDS,
    body(prefix, config, aliases) {
      const { hidden_size: hidden, embedding_size: width = hidden } = config;
      const { max_position_embeddings: rows } = config;
      const positions = Math.max(1, rows - offset);
      const tables = `${prefix}embeddings`;
      return {
        embedding: embedding(`${tables}.word_embeddings`, config.vocab_size, width, aliases),
        steps: [
          learnedPositions(`${tables}.position_embeddings`, positions, width, rows - positions),
          rowsAdded(`${tables}.token_type_embeddings`, config.type_vocab_size, width),
          layerNormLayer(`${tables}.LayerNorm`, width, EPS),
          ...(width === hidden
            ? []
            : [linear(`${tables}_project`, width, hidden, { component: 'embedding' })]),
        ],
        blocks: stack(
          blockNames(`${prefix}encoder.layer`, config.num_hidden_layers, 'model.num_hidden_layers'),
          'model.num_hidden_layers',
          (block) =>
            encoderBlock(block, BERT_BLOCK, {
              hidden,
              heads: config.num_attention_heads,
              inner: config.intermediate_size,
            }),
        ),
        positions,
        hidden,
      };
    },
  });

export const bert = bertLike('bert', {
  title: 'BERT',
  vocabulary: 30_522,
  classes: BERT_CLASSES,
  tiedHeads: {
    BertForMaskedLM: 'cls.predictions.decoder',
    BertForPreTraining: 'cls.predictions.decoder',
  },
});

const robertaLike = (name: string, kind: string, title: string, vocabulary: number): Family =>
  bertLike(name, {
    title,
    vocabulary,
    classes: robertaClasses(kind),
    // The class counts positions from behind that of the padding.
    offset: 2,
    tiedHeads: { [`${kind}ForMaskedLM`]: 'lm_head.decoder' },
  });

export const roberta = robertaLike('roberta', 'Roberta', 'RoBERTa', 50_265);
export const xlmRoberta = robertaLike('xlm-roberta', 'XLMRoberta', 'XLM-RoBERTa', 30_522);
export const camembert = robertaLike('camembert', 'Camembert', 'CamemBERT', 30_522);

export const electra = bertLike<ElectraConfig>('electra', {
  title: 'ELECTRA',
  vocabulary: 30_522,
  classes: electraClasses,
  own: {
    embedding_size: count(128, 'Width of the embedding'),
    hidden_size: count(256, 'Width of the residual stream'),
    num_attention_heads: count(4, 'Heads, a divisor of hidden_size'),
    intermediate_size: count(1024, 'Width inside the feed-forward network'),
    summary_use_proj: toggle(true, 'A product in the head of ElectraForMultipleChoice'),
    summary_proj_to_labels: toggle(false, 'That product gives a value for each label'),
  },
  tiedHeads: { ElectraForMaskedLM: 'generator_lm_head' },
  huggingFace: {
    harmless: harmless('changes values only, which are described and not computed', [
      'summary_type',
      'summary_activation',
      'summary_last_dropout',
      'summary_first_dropout',
    ]),
  },
});
