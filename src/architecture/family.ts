import * as z from 'zod';
import type { Confusion, Rule } from '../errors.js';
import type { LanguageModel } from './layer.js';

/** A named, ready configuration. */
export interface Preset<Input> {
  /** One line: what it is for. */
  readonly title: string;
  /** The document that a user would write, without its comments. */
  readonly document: Input;
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
}

/** States a family and checks its parts against its own schema. */
export function defineFamily<Schema extends z.ZodType>(family: Family<Schema>): Family<Schema> {
  return family;
}

/** What a document of the family parses to. */
export type DocumentOf<F extends Family> = z.output<F['schema']>;

/** The JSON Schema (draft 2020-12) of the documents that users of the family write. */
export function jsonSchemaOf(family: Family): Record<string, unknown> {
  return {
    ...z.toJSONSchema(family.schema, { io: 'input' }),
    title: `minimind config, family ${family.name}`,
  };
}
