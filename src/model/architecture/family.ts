import * as z from 'zod';
import type { Confusion, DocumentRule, PropertyPath, Severity } from '../../base/errors.js';
import type { Shape } from '../../base/tensor/dtype.js';
import type { LanguageModel } from './layer.js';
import type { SrteLayout } from './srte-layout.js';
import type { KeyUse } from './transformer/config-keys.js';

/** Tensor names and shapes in the index of a checkpoint, without prefixes of wrappers. */
export interface StoredShapes {
  /** Number of tensor names. */
  readonly size: number;
  /** Names in file order. */
  names(): Iterable<string>;
  /** Undefined when the tensor does not exist. */
  shapeOf(name: string): Shape | undefined;
  /** Ascending numbers n of all names `prefix.n.…`. */
  numbersUnder(prefix: string): readonly number[];
  /** Whether all these tensors exist and hold the same values. */
  areOne(names: readonly string[]): boolean;
}

/** One document value read from a checkpoint. */
export interface ReadSetting {
  /** Dotted path in the document: `model.num_layers`. */
  readonly path: string;
  /** Value that is used. @real */
  readonly value: number | string | boolean;
  /** Evidence in the checkpoint: `the SRTE has 48 rows`. */
  readonly shows: string;
  /** Whether a conversion could change the value in the checkpoint instead. */
  readonly convertible: boolean;
}

/** A ready config. */
export interface Preset {
  /** Name without its family: `tiny`. */
  readonly name: string;
  /** One-line purpose. */
  readonly title: string;
  /** Document as in the file. */
  readonly document: FamilyDocument;
}

/** Training settings of a document; undefined where it has none. */
export interface TrainingHints {
  /** Sequences per step on one device. */
  readonly batch?: number | undefined;
  /** Tokens per sequence. */
  readonly context?: number | undefined;
  /** 16-bit weights with float32 copies, or float32 alone. */
  readonly precision?: 'mixed' | 'float32' | undefined;
  /** Whether activations are recomputed in the backward pass. */
  readonly recompute?: boolean | undefined;
  /** ZeRO stage, 0 to 3: the state that data-parallel replicas split. */
  readonly zeroStage?: number | undefined;
  /** Further settings that a one-device budget does not count: `system.zero_stage: 2`. */
  readonly beyondOneDevice?: readonly string[];
}

/** Change that a conversion makes to a model. */
export interface ModelChange {
  readonly srte?: SrteLayout | undefined;
  /** Whether the head is now tied to the embedding; undefined when unchanged. */
  readonly tied?: boolean | undefined;
}

/** A document value by its dotted path: `model.num_layers`. */
export interface Setting {
  readonly path: string;
  readonly value: number | string | boolean;
}

/** Upper bounds of a proxy's sizes. */
export interface ProxyBounds {
  readonly width?: number;
  readonly layers?: number;
  /** Experts; at least one more than a token chooses. */
  readonly experts?: number;
}

/** Value that a scaled-down model uses instead: a number, or a list with an entry per layer. */
export interface ProxySetting {
  /** `model.num_layers` */
  readonly path: string;
  readonly value: number | readonly unknown[];
}

/** Tensors that a checkpoint may hold but a model does not need. */
export interface Ignored {
  /**
   * In a text, `*` matches any layer number, and a final `**` matches the rest: `h.*.attn.bias`, `model.layers.61.**`.
   * A regular expression is one that transformers' class has for names that it ignores; it can match a part of a name.
   */
  readonly pattern: string | RegExp;
  /** Short description: `masks that follow from the config`. */
  readonly what: string;
  /** Whether the tensors are not parameters: the config gives their values, or no layer uses them. */
  readonly isBuffer?: boolean;
}

/** Whether transformers' class ignores them when it loads a checkpoint. */
export const isIgnoredOnLoad = ({ pattern }: Ignored): boolean => pattern instanceof RegExp;

/** Keys of the `model` section that set its size; searches for a fitting size use them. */
export interface Dimensions {
  readonly vocabulary: string;
  /** Longest input. */
  readonly positions: string;
  /** Number of blocks. */
  readonly depth: string;
  /** Width of the residual stream. */
  readonly width: string;
  readonly heads: string;
  /** Absent where every head has its own keys and values. */
  readonly keyValueHeads?: string;
  /** Keys with the width of a head; absent where it defaults to width / heads. */
  readonly headDim?: readonly string[];
  /** Absent where it follows from the width. */
  readonly feedForward?: {
    readonly key: string;
    /** Smallest and largest ratio to the model width worth trying. */
    readonly perChannel: readonly [least: number, most: number];
  };
  /** A rank and its values worth trying. */
  readonly rank?: { readonly key: string; readonly choices: readonly number[] };
  /** Further values that scale with the width by default. */
  follows?(width: number): Readonly<Record<string, number>>;
}

/** A key of a `config.json` that needs a remark. */
export interface KeyRemark {
  /** Position of the key; empty for the whole file. */
  readonly path: PropertyPath;
  readonly severity: Severity;
  /** Effect of the value; absent for an unknown key. */
  readonly why?: string;
  /** How to fix a value without effect; default: to remove it. */
  readonly advice?: string;
}

/** A model that a `config.json` describes, of which the family is a part. */
export interface LargerModel {
  /** Its class, or a description: `BartForConditionalGeneration`. */
  readonly name: string;
  /** Class of the part that the family describes. */
  readonly decoder: string;
  /** Family that describes it; undefined where none does. */
  readonly family?: string | undefined;
  /** Whether the file names no class, so that it can also be that of the part. */
  readonly isUnsaid?: boolean;
}

/** Reader of a family's Hugging Face `config.json`. */
export interface HuggingFaceReader {
  /** The `model` section for a file, without its family, and remarks on its keys. */
  read(config: Readonly<Record<string, unknown>>): {
    readonly settings: Record<string, unknown>;
    readonly remarks: readonly KeyRemark[];
  };
  readonly keys: readonly string[];
  useOf(key: string): KeyUse;
  /** The larger model of which a file with this kind is, if it is one. */
  largerModel?(config: Readonly<Record<string, unknown>>): LargerModel | undefined;
}

/** A part of a tensor's name in published files, and what the class reads in its place. */
export type NameOnLoad = readonly [pattern: RegExp, replacement: string];

/** Kind of a family's models: a mixture has experts, a hybrid has attention and recurrent layers or convolutions. */
export type Architecture = 'dense' | 'mixture' | 'hybrid' | 'recurrent';

/** Document of any family: sections by name, of which `model` is in every one. */
export interface FamilyDocument {
  readonly model: Readonly<Record<string, unknown>>;
  readonly [section: string]: unknown;
}

/** Schema of the documents of a family. */
export type FamilySchema = z.ZodType<FamilyDocument>;

/**
 * Definition of a kind of model. `Schema` describes the whole document that a user writes. The rest is derived
 * from its parsed value.
 */
export interface Family<Schema extends FamilySchema = FamilySchema> {
  /** Value of `model.family`. */
  readonly name: string;
  /** One-line description of these models. */
  readonly title: string;
  /** Default: dense. */
  readonly architecture?: Architecture;
  /** Whether its models have an encoder: the weights of one that cannot be described are counted from their headers. */
  readonly hasEncoder?: boolean;
  readonly schema: Schema;
  /** Checks beyond the schema. */
  readonly rules: readonly DocumentRule<z.output<Schema>>[];
  /** Known user mistakes, with explanations. */
  readonly confusions: readonly Confusion[];
  /**
   * Describes the model of a valid document.
   * @throws LimitError for a model that is too large to describe or count exactly.
   */
  build(document: z.output<Schema>): LanguageModel;
  /** Other names of keys in the `model` section, and the settings that they mean. */
  readonly settingNames?: Readonly<Record<string, string>>;
  /** Absent where Hugging Face has no `config.json` for the family. */
  readonly fromHuggingFace?: HuggingFaceReader;
  /**
   * Values of a small model of the same structure, used when the model is too large to run.
   * Families with the keys of `decoderProxy` need no method of their own.
   * @param tokens Required input length.
   * @param bounds Upper bounds, where the structure allows them; by default those of a proxy that runs.
   */
  scaledDownProxy?(
    document: z.output<Schema>,
    tokens: number,
    bounds?: ProxyBounds,
  ): readonly ProxySetting[];
  /** Absent where several widths exist without a rule that relates them. */
  readonly dimensions?: Dimensions;
  /** Layers after the last block that predict further tokens; not part of the model. */
  predictionLayers?(document: z.output<Schema>): number;
  trainingHints?(document: z.output<Schema>): TrainingHints;
  /** Document values that a checkpoint's tensors show; empty for another family. */
  readOff?(stored: StoredShapes): readonly ReadSetting[];
  /**
   * Document values that depend on the writer of the checkpoint, not on the model. They override the document
   * whenever a model is compared with that checkpoint.
   */
  storedSettings?(stored: StoredShapes): readonly Setting[];
  /** Changes by the class, in order, to names of published files when it loads them. */
  namesOnLoad?(document: z.output<Schema>): readonly NameOnLoad[];
  /** Tensors that other tools store with a model and that do not affect its output. */
  ignored?(document: z.output<Schema>): readonly Ignored[];
  /** Document values that describe a converted model. */
  settingsFor?(change: ModelChange): readonly Setting[];
}

/** Defines a family and type-checks its parts against its schema. */
export function defineFamily<Schema extends FamilySchema>(family: Family<Schema>): Family<Schema> {
  return family;
}

/** Defines rules for any document that has the parts they read. */
export function defineRules<Part>(
  rules: readonly DocumentRule<Part>[],
): readonly DocumentRule<Part>[] {
  return rules;
}

/** Parsed document of a family. */
export type DocumentOf<F extends Family> = z.output<F['schema']>;

/** JSON Schema (draft 2020-12) of the documents that users of the family write. */
export function jsonSchemaOf(family: Family): Record<string, unknown> {
  const schema = z.toJSONSchema(family.schema, { io: 'input' });
  // Editors would show the bound of 2^53 for every integer.
  const terse = JSON.parse(JSON.stringify(schema), (key, value) =>
    key === 'maximum' && value === Number.MAX_SAFE_INTEGER ? undefined : value,
  );
  const { $schema, ...others } = withOtherNames(terse, family);
  return {
    $schema,
    $id: `config-${family.name}.schema.json`,
    ...others,
    title: `minimind config, family ${family.name}`,
  };
}

interface ModelSchema {
  readonly properties: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
}

/** The schema with the other names of settings, which an editor cannot require. */
function withOtherNames(
  schema: { readonly properties: { readonly model: ModelSchema } },
  { settingNames }: Family,
): Record<string, unknown> {
  if (settingNames === undefined) return { ...schema };
  const { model } = schema.properties;
  const { properties, required = [] } = model;
  const names = Object.entries(settingNames).map(([name, setting]) => [
    name,
    { ...properties[setting], description: `Another name of ${setting}` },
  ]);
  const named = new Set(Object.values(settingNames));
  return {
    ...schema,
    properties: {
      ...schema.properties,
      model: {
        ...model,
        properties: { ...properties, ...Object.fromEntries(names) },
        // The keys can determine the family, and a setting can have another name.
        required: required.filter((key) => key !== 'family' && !named.has(key)),
      },
    },
  };
}
