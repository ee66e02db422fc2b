/** Checks of what a program gives to the library: JavaScript has no types that refuse it. */
import { usageError } from '../base/errors.js';
import { asNumber, asText, isRecord } from '../base/values.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import type { Model } from './answer.js';

/** Values that no other kind describes, and what an error says was expected. */
export interface ValueKind {
  readonly expected: string;
  readonly is: (value: unknown) => boolean;
}

/**
 * Values of an option: a number of things (an integer from 1), a number from 0, or one of some values. An `other` option
 * is checked by the function that reads it.
 */
export type OptionKind =
  | 'count'
  | 'amount'
  | 'text'
  | 'flag'
  | 'list'
  | 'other'
  | ValueKind
  | readonly (string | number)[];

/** The kind of each option of a function. */
export type OptionKinds<Options> = { readonly [Name in keyof Required<Options>]: OptionKind };

/** @throws UserError for anything but a loaded model, such as its name, with the line to write. */
export function requireModel(model: unknown, call: string): asserts model is Model {
  if (isRecord(model) && isRecord(model.model) && isRecord(model.family)) return;
  const name = typeof model === 'string' ? `'${model}'` : "'minimind2-small'";
  throw usageError(
    `${call}: expected a model of loadModel or describeModel, found ${argumentText(model)}`,
    model instanceof Promise ? 'await the model' : `write ${call}(await loadModel(${name}))`,
  );
}

/** @throws UserError for anything but the path or name of a model. */
export function requireReference(reference: unknown, call: string): asserts reference is string {
  if (typeof reference === 'string') return;
  throw usageError(
    `${call}: expected the path or name of a model, found ${argumentText(reference)}`,
    `write ${call}('model.safetensors')`,
  );
}

/** @throws UserError for an option that a function does not have, and for a value of another kind. */
export function checkOptions<Options extends object>(
  call: string,
  options: Options,
  kinds: OptionKinds<Options>,
): void {
  const known = new Map<string, OptionKind>(Object.entries(kinds));
  if (!isRecord(options)) {
    throw usageError(
      `${call}: expected an object of options, found ${argumentText(options)}`,
      `write them as in { ${[...known.keys()].slice(0, 2).join(', ')} }`,
    );
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const kind = known.get(name);
    if (kind === undefined) {
      const near = nearest(name, known.keys()) ?? beginningWith(name, known.keys());
      throw usageError(
        `${call}: unknown option ${quote(name)}`,
        near === undefined
          ? `its options are ${[...known.keys()].join(', ')}`
          : `did you mean ${near}?`,
      );
    }
    const expected = expectedText(kind, value);
    if (expected === undefined) continue;
    const near = isList(kind) ? nearest(asText(value), kind.map(String)) : undefined;
    throw usageError(
      `${call}: ${name}: expected ${expected}, found ${argumentText(value)}`,
      near === undefined ? `write ${call} with another value` : `did you mean ${quote(near)}?`,
    );
  }
}

/** The option that a word is the beginning of: `maxParams` of `maxParameters`. */
const beginningWith = (word: string, names: Iterable<string>): string | undefined =>
  [...names].find((name) => name.startsWith(word.replace(/s$/, '')));

/** Expected type of a value, for messages; undefined if the value has it. */
function expectedText(kind: OptionKind, value: unknown): string | undefined {
  const isNumber = typeof value === 'bigint' || Number.isFinite(value);
  const is = {
    count: isNumber && asNumber(value) >= 1 && Number.isInteger(asNumber(value)),
    amount: isNumber && asNumber(value) >= 0,
    text: typeof value === 'string',
    flag: typeof value === 'boolean',
    list: Array.isArray(value),
    other: true,
  };
  if (isList(kind)) return kind.includes(value as string) ? undefined : `one of ${kind.join(', ')}`;
  if (typeof kind !== 'string') return kind.is(value) ? undefined : kind.expected;
  return is[kind] ? undefined : NOUNS[kind];
}

const isList = (kind: OptionKind): kind is readonly (string | number)[] => Array.isArray(kind);

const NOUNS = {
  count: 'an integer from 1',
  amount: 'a number from 0',
  text: 'a text',
  flag: 'true or false',
  list: 'a list',
  other: 'another value',
} as const;

function argumentText(value: unknown): string {
  if (typeof value === 'string') return `the text ${quote(value)}`;
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Promise) return 'a promise';
  return typeof value === 'object' && value !== null ? 'another object' : asText(value);
}
