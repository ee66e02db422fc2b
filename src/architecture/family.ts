import * as z from 'zod';
import type { Confusion, PropertyPath, Rule, Severity } from '../errors.js';
import type { Shape } from '../tensor/dtype.js';
import type { LanguageModel } from './layer.js';
import type { SrteLayout } from './srte-layout.js';
import type { KeyUse } from './transformer/config-keys.js';

// A configuration read back from what a checkpoint holds.

/** What the index of a checkpoint tells. Names are the model's own, without prefixes of wrappers. */
export interface StoredShapes {
  /** How many names there are. */
  readonly size: number;
  /** In the order of the file. */
  names(): Iterable<string>;
  /** Undefined when the checkpoint has no such tensor. */
  shapeOf(name: string): Shape | undefined;
  /** The numbers n of all names `prefix.n.…`, ascending. */
  numbersUnder(prefix: string): readonly number[];
  /** Whether tensors of these names are there, and all hold the same values. */
  areOne(names: readonly string[]): boolean;
}

/** One value of a document, as a checkpoint has it. */
export interface Reading {
  /** Dotted path in the document: `model.num_layers`. */
  readonly path: string;
  readonly value: number | string | boolean;
  /** What shows it, in words: `the SRTE has 48 rows`. */
  readonly shows: string;
  /** Whether a conversion could change it in the checkpoint instead. */
  readonly convertible: boolean;
}

/** A named, ready configuration. */
export interface Preset<Input> {
  /** One line: what it is for. */
  readonly title: string;
  /** The document that a user would write, without its comments. */
  readonly document: Input;
}

/** What a document says of how its model is trained; undefined where it says nothing. */
export interface TrainingHints {
  /** Sequences on one device at a time. */
  readonly batch?: number | undefined;
  /** Tokens of a sequence. */
  readonly context?: number | undefined;
  /** 16-bit weights beside float32 ones, or float32 alone. */
  readonly precision?: 'mixed' | 'float32' | undefined;
  /** Whether activations are recomputed in the backward pass. */
  readonly recompute?: boolean | undefined;
  /** Of ZeRO, 0 to 3: what data-parallel replicas split among them. */
  readonly zeroStage?: number | undefined;
  /** What it asks for besides, and which a budget of one device does not count: `system.zero_stage: 2`. */
  readonly beyondOneDevice?: readonly string[];
}

/** What a conversion changes in a model. */
export interface ModelChange {
  readonly srte?: SrteLayout | undefined;
  /** Whether the head is the embedding now; undefined when that stays as it is. */
  readonly tied?: boolean | undefined;
}

/** A value of a document, by its dotted path: `model.num_layers`. */
export interface Setting {
  readonly path: string;
  readonly value: number | string | boolean;
}

/** A value that the document of a smaller model has in place of its own: a number, or a list for its layers. */
export interface ProxySetting {
  /** `model.num_layers` */
  readonly path: string;
  readonly value: number | readonly unknown[];
}

/** Tensors that a checkpoint may hold, and a model does not need. */
export interface Ignored {
  /** `*` is any number of a layer, and `**` at the end all that follows: `h.*.attn.bias`, `model.layers.61.**`. */
  readonly pattern: string;
  /** What they are, in words: `masks that follow from the config`. */
  readonly what: string;
}

/** The keys of a document's `model` that make it larger or smaller, for whoever looks for a size that fits. */
export interface Dimensions {
  readonly vocabulary: string;
  /** The longest input. */
  readonly positions: string;
  /** How many blocks. */
  readonly depth: string;
  /** Of the residual stream. */
  readonly width: string;
  readonly heads: string;
  /** Absent where every head has keys and values of its own. */
  readonly keyValueHeads?: string;
  /** All that have the width of a head; absent where that is width / heads unless a document says otherwise. */
  readonly headDim?: readonly string[];
  /** Absent where it follows from the width. */
  readonly feedForward?: {
    readonly key: string;
    /** Its least and its most for each channel of the width that is worth trying. */
    readonly perChannel: readonly [least: number, most: number];
  };
  /** A rank, and the values of it that are worth trying. */
  readonly rank?: { readonly key: string; readonly choices: readonly number[] };
  /** What else goes by the width, unless a document says otherwise. */
  follows?(width: number): Readonly<Record<string, number>>;
}

/** A key of a `config.json` that is not described as written. */
export interface KeyRemark {
  /** Its place; empty for the whole file. */
  readonly path: PropertyPath;
  readonly severity: Severity;
  /** The effect of the value; absent for a key that is not known. */
  readonly why?: string;
}

/** How a family's `config.json` of Hugging Face is read. */
export interface HuggingFaceReader {
  /** The `model` section, but for its family, that a file comes to, and what is odd about its keys. */
  read(config: Readonly<Record<string, unknown>>): {
    readonly settings: Record<string, unknown>;
    readonly remarks: readonly KeyRemark[];
  };
  /** The keys that are read. */
  readonly keys: readonly string[];
  /** The use of a key. */
  useOf(key: string): KeyUse;
}

/**
 * Everything that minimind knows of a kind of model. `Schema` describes the whole document that a user
 * writes; the rest is derived from its parsed value.
 */
export interface Family<Schema extends z.ZodType = z.ZodType> {
  /** What `model.family` says. */
  readonly name: string;
  /** One line: what models these are. */
  readonly title: string;
  readonly schema: Schema;
  /** What the schema cannot state. */
  readonly rules: readonly Rule<z.output<Schema>>[];
  /** Mistakes that people are known to make, explained. */
  readonly confusions: readonly Confusion[];
  readonly presets: Readonly<Record<string, Preset<z.input<Schema>>>>;
  /**
   * Describes the model of a valid document.
   * @throws LimitError when it is beyond what can be described or counted exactly.
   */
  build(document: z.output<Schema>): LanguageModel;
  /** Absent where Hugging Face has no `config.json` of the family. */
  readonly fromHuggingFace?: HuggingFaceReader;
  /**
   * The values of a small model of the same structure, for when the model is too large to run.
   * Families whose documents have the keys of `decoderProxy` need none of their own.
   * @param tokens That it has to take.
   */
  scaledDownProxy?(document: z.output<Schema>, tokens: number): readonly ProxySetting[];
  /** Absent where widths are several, and nothing says how they go together. */
  readonly dimensions?: Dimensions;
  /** Layers that files keep behind the last block, to predict further tokens; no part of the model. */
  predictionLayers?(document: z.output<Schema>): number;
  trainingHints?(document: z.output<Schema>): TrainingHints;
  /** The values of a document that a checkpoint's tensors show; none for one of another family. */
  readOff?(stored: StoredShapes): readonly Reading[];
  /**
   * The values of a document that a checkpoint shows, and that are no choice of the model but of who wrote
   * the file. They hold whenever a model is held against that checkpoint, whatever the document says.
   */
  storedSettings?(stored: StoredShapes): readonly Setting[];
  /** Tensors that others keep beside those of a model, and that change nothing of what it computes. */
  ignored?(document: z.output<Schema>): readonly Ignored[];
  /** The values of a document that say what a conversion has changed. */
  settingsFor?(change: ModelChange): readonly Setting[];
}

/** States a family and checks its parts against its own schema. */
export function defineFamily<Schema extends z.ZodType>(family: Family<Schema>): Family<Schema> {
  return family;
}

/** States rules that judge any document with the parts that they read. */
export function defineRules<Part>(rules: readonly Rule<Part>[]): readonly Rule<Part>[] {
  return rules;
}

/** What a document of the family parses to. */
export type DocumentOf<F extends Family> = z.output<F['schema']>;

/** The JSON Schema (draft 2020-12) of the documents that users of the family write. */
export function jsonSchemaOf(family: Family): Record<string, unknown> {
  const schema = z.toJSONSchema(family.schema, { io: 'input' });
  // That an integer is below 2^53 goes without saying, and an editor would say it of every key.
  const terse = JSON.parse(JSON.stringify(schema), (key, value) =>
    key === 'maximum' && value === Number.MAX_SAFE_INTEGER ? undefined : value,
  );
  return { ...terse, title: `minimind config, family ${family.name}` };
}
