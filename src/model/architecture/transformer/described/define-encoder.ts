/**
 * Defines encoders of texts: classes of one kind that share the encoder and differ in their heads. Shapes and names
 * follow transformers 5.18.
 */

import * as z from 'zod';
import type { DocumentRule } from '../../../../base/errors.js';
import { asText } from '../../../../base/values.js';
import { languageModel, noHead, sequence } from '../../constructors/basic-layers.js';
import type { Family, Ignored, NameOnLoad } from '../../family.js';
import type { Embedding, Layer, Linear } from '../../layer.js';
import {
  type HarmlessKeys,
  harmless,
  type JsonObject,
  type LimitedKey,
  type LimitedKeys,
} from '../config-keys.js';
import { defineTransformer, type TransformerSchema } from '../define-decoder.js';
import type { Special } from '../hugging-face.js';
import { count, transformerDocument } from '../settings.js';

/** Settings of every encoder. */
export interface EncoderSettings {
  readonly class: string;
  readonly num_labels: number;
}

/** Layers behind the encoder, and the product for each token; none by default. */
export interface EncoderHead {
  readonly layers: readonly Layer[];
  readonly head?: Linear;
}

/** Head that a class adds to the encoder. @param tokens The embedding, which a tied head reads. */
export type HeadOf<Config> = (config: Config, tokens: Embedding) => EncoderHead;

/** Keys of the classes of a kind. */
const classSettings = (classes: readonly string[], labels = 2) => ({
  class: z
    .enum(classes as [string, ...string[]])
    .default(classes[0] ?? '')
    .describe('Class in transformers'),
  num_labels: count(labels, 'Classes of a classifier'),
});

/** The class and the labels of a `config.json`. */
function classIn(
  { architectures, id2label, num_labels }: JsonObject,
  classes: readonly string[],
): JsonObject {
  const named = Array.isArray(architectures) ? architectures.map(asText) : [];
  const labels =
    typeof id2label === 'object' && id2label !== null
      ? Object.keys(id2label).length
      : (num_labels ?? undefined);
  return {
    class: named.find((each) => classes.includes(each)),
    num_labels: labels === 0 ? undefined : labels,
  };
}

/** `architectures` of kinds whose classes are described. */
const classesOnly = (classes: readonly string[]): LimitedKey => ({
  allows: (value) =>
    !Array.isArray(value) ||
    value.length === 0 ||
    value.some((name) => classes.includes(asText(name))),
  why: `the described classes are ${classes.join(', ')}`,
  severity: 'error',
});

const ENCODER_ONLY: LimitedKeys = {
  is_decoder: {
    allows: (value) => value == null || value === false,
    why: 'its attention is that of a decoder, which is not described for this kind',
    severity: 'error',
  },
  is_causal: { allows: () => true, why: 'the class does not read it', severity: 'warning' },
};

/** Keys that change values of encoders, and no sizes. */
export const ENCODER_VALUES: HarmlessKeys = {
  ...harmless('changes values only, which are described and not computed', [
    'layer_norm_eps',
    'hidden_act',
    'activation',
    'pooler_act',
    'projection_hidden_act',
    'position_embedding_type',
  ]),
  ...harmless('used in training only', [
    'dropout',
    'attention_dropout',
    'qa_dropout',
    'seq_classif_dropout',
    'initializer_factor',
    'initializer_cutoff_factor',
    'classifier_dropout_prob',
    'pooler_dropout',
    'embedding_dropout',
    'mlp_dropout',
    'hidden_dropout_prob',
    'drop_path_rate',
    'layerdrop',
  ]),
};

/** The `config.json` of a kind with several classes. */
const classReader = (classes: readonly string[], special: Special = {}): Special => ({
  ...special,
  more: (config) => ({ ...special.more?.(config), ...classIn(config, classes) }),
  reads: ['id2label', 'num_labels', 'label2id', ...(special.reads ?? [])],
  remarks: (config) => [...unnamedClass(config, classes), ...(special.remarks?.(config) ?? [])],
  harmless: { ...ENCODER_VALUES, ...special.harmless },
  limited: { ...ENCODER_ONLY, architectures: classesOnly(classes), ...special.limited },
});

const unnamedClass = ({ architectures }: JsonObject, [first = '']: readonly string[]) =>
  Array.isArray(architectures) && architectures.length > 0
    ? []
    : [
        {
          path: ['architectures'],
          severity: 'warning' as const,
          why: `the file names no class, so that ${first} is described`,
          advice: 'name the class: its head counts',
        },
      ];

/** Parts of an encoder, with names below a prefix. */
export interface EncoderBody {
  readonly embedding: Embedding;
  readonly steps: readonly Layer[];
  readonly blocks: readonly Layer[];
  /** Layers behind the blocks. */
  readonly after?: readonly Layer[];
  readonly hidden: number;
  readonly positions: number;
}

/** Classes of a kind by name, the base first: the prefix of the encoder's names, and the head. */
export type EncoderClasses<Config> = Readonly<
  Record<string, { readonly prefix: string; readonly of: HeadOf<Config> }>
>;

/** The encoder alone. */
const WITHOUT_HEAD: EncoderClasses<unknown>[string] = {
  prefix: '',
  of: () => ({ layers: [] }),
};

interface Encoder<Config> {
  readonly title: string;
  /** Settings in addition to the class and its labels, as `Config` has them. */
  readonly keys: z.ZodRawShape;
  readonly classes: EncoderClasses<Config>;
  /** Classes of a classifier by default: 2. */
  readonly labels?: number;
  /** @param aliases Further names of the embedding: the head's, where it is tied. */
  readonly body: (prefix: string, config: Config, aliases: readonly string[]) => EncoderBody;
  /** Name of a tied head in the state dict of a class. */
  readonly tiedHeads?: Readonly<Record<string, string>>;
  readonly rules?: readonly DocumentRule<never>[];
  readonly huggingFace?: Special;
  readonly ignored?: readonly Ignored[];
  readonly namesOnLoad?: readonly NameOnLoad[];
  /** Prefix of the encoder's names in files of other classes; that of the first class with one by default. */
  readonly basePrefix?: string;
}

/**
 * Names of files that were saved by a class with a head, or by an old version, when the base alone loads them: without
 * the prefix of the base (core_model_loading.py; conversion_mapping.py, `CLIPTextModel`).
 */
const withoutPrefix = ({
  classes,
  basePrefix = Object.values(classes).find(({ prefix }) => prefix !== '')?.prefix,
}: Pick<Encoder<never>, 'classes' | 'basePrefix'>): NameOnLoad[] =>
  basePrefix === undefined ? [] : [[new RegExp(`^${basePrefix.replaceAll('.', '\\.')}`), '']];

/** An encoder of texts, described and not run. */
export function defineEncoder<Config extends EncoderSettings>(
  name: string,
  encoder: Encoder<Config>,
): Family {
  const { title, keys, classes, rules = [], huggingFace, ignored = [] } = encoder;
  const names = Object.keys(classes);
  const { namesOnLoad = [] } = encoder;
  const ofBase = withoutPrefix(encoder);
  const schema = transformerDocument(name, { ...classSettings(names, encoder.labels), ...keys });
  return defineTransformer({
    title: `${title}; described, not run`,
    hasEncoder: true,
    namesOnLoad: ({ model }) => [
      ...namesOnLoad,
      ...(classes[(model as unknown as Config).class]?.prefix === '' ? ofBase : []),
    ],
    schema: schema as unknown as TransformerSchema,
    rules: rules as never,
    huggingFace: classReader(names, huggingFace),
    ignored: () => ignored,
    build({ model }) {
      const config = model as unknown as Config & { readonly tie_word_embeddings?: boolean };
      const { prefix, of } =
        classes[config.class] ?? (WITHOUT_HEAD as EncoderClasses<Config>[string]);
      const tied = config.tie_word_embeddings === true && encoder.tiedHeads?.[config.class];
      const body = encoder.body(prefix, config, tied ? [`${tied}.weight`] : []);
      const { layers, head = noHead(body.hidden) } = of(config, body.embedding);
      return languageModel({
        embedding: body.embedding,
        embeddingSteps: body.steps,
        blocks: body.blocks,
        norm: sequence('head_layers', [...(body.after ?? []), ...layers]),
        head,
        positions: body.positions,
        hidden: body.hidden,
      });
    },
  });
}
