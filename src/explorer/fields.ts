/** Fields of a form, made from the JSON Schema of a family. */
import { isRecord } from '../base/values.js';

/** A setting of a config as an input. */
export interface Field {
  readonly key: string;
  readonly description: string;
  readonly input:
    | { readonly kind: 'number'; readonly isWhole: boolean; readonly least: number | undefined }
    | { readonly kind: 'switch' }
    | { readonly kind: 'choice'; readonly choices: readonly string[] }
    | { readonly kind: 'text' }
    /** A list or mapping, which is edited as text. */
    | { readonly kind: 'none' };
  /** Whether null is a value of its own. */
  readonly isNullable: boolean;
  /** Default of the schema; undefined where it follows from other settings. */
  readonly usual: unknown;
}

type JsonSchema = Readonly<Record<string, unknown>>;

/** Fields of a section of a document, in the order of the schema. */
export function fieldsOf(schema: JsonSchema, section: string): Field[] {
  const found = propertiesOf(schema)[section];
  const mapping = isRecord(found) ? withProperties(found) : undefined;
  if (mapping === undefined) return [];
  return Object.entries(propertiesOf(mapping)).flatMap(([key, property]) =>
    isRecord(property) && key !== 'family' ? [fieldOf(key, property)] : [],
  );
}

const propertiesOf = ({ properties }: JsonSchema): Readonly<Record<string, unknown>> =>
  isRecord(properties) ? properties : {};

/** The schema itself, or the option with properties of a section that can be missing. */
const withProperties = (schema: JsonSchema): JsonSchema | undefined =>
  [schema, ...optionsOf(schema)].find((each) => isRecord(each.properties));

const optionsOf = ({ anyOf }: JsonSchema): JsonSchema[] =>
  Array.isArray(anyOf) ? anyOf.filter(isRecord) : [];

function fieldOf(key: string, schema: JsonSchema): Field {
  const options = optionsOf(schema);
  const types = typesOf(schema);
  const isNull = (each: JsonSchema) => each.type === 'null';
  const values = options.filter((each) => !isNull(each));
  const [only] = values;
  const value = only && values.length === 1 ? only : schema;
  return {
    key,
    description: typeof schema.description === 'string' ? schema.description : '',
    input: inputOf(values.length > 1 ? {} : value),
    isNullable: options.some(isNull) || types.includes('null'),
    usual: schema.default,
  };
}

const typesOf = ({ type }: JsonSchema): string[] =>
  (Array.isArray(type) ? type : [type]).map(String);

function inputOf(schema: JsonSchema): Field['input'] {
  const { enum: choices, minimum } = schema;
  if (Array.isArray(choices) && choices.every((each) => typeof each === 'string')) {
    return { kind: 'choice', choices };
  }
  const types = typesOf(schema);
  if (types.includes('integer') || types.includes('number')) {
    const least = typeof minimum === 'number' ? minimum : undefined;
    return { kind: 'number', isWhole: types.includes('integer'), least };
  }
  if (types.includes('boolean')) return { kind: 'switch' };
  return { kind: types.includes('string') ? 'text' : 'none' };
}

/** A value of an input's text; undefined for a text that is not one. */
export function fieldValue({ input, isNullable }: Field, text: string): unknown {
  if (text === '') return isNullable ? null : undefined;
  if (input.kind === 'switch') return text === 'true';
  if (input.kind !== 'number') return text;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}
