/** Constructor arguments of a projector: stored with the state dict in a PyTorch file, else in the metadata. */

import type { Problem } from '../../base/errors.js';
import { UserError } from '../../base/errors.js';
import { parseJson as parsedJson } from '../../base/text/json.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { quoted, tensorPlace } from '../../checkpoint/checkpoint-rules.js';
import type { Dict, List, PickleValue, Tuple } from '../../checkpoint/torch/pickle/values.js';
import { isKind } from '../../checkpoint/torch/pickle/values.js';

// Converts values of PyTorch files to JSON and back, keeping integers and floats apart as Python's json does.

/** Nesting limit, deeper than any real configuration. */
const MOST_DEPTH = 64;

/** Limit on the total JSON characters of a projector's arguments, far above any real configuration. */
const MOST_CHARACTERS = 2 ** 22;

/** @throws UserError when arguments exceed the limit of JSON characters. */
function checkLength(characters: number): void {
  if (characters <= MOST_CHARACTERS) return;
  throw new UserError(
    'refused-file',
    `the arguments of the projector have more than ${MOST_CHARACTERS} characters as JSON`,
    { suggestion: 'save only what the constructor was called with' },
  );
}

/**
 * Writes the arguments of a projector as JSON that `parseJson` restores: tuples become lists, and dict subclasses plain
 * dicts. A value can be referenced many times, so the total output is limited.
 */
export class JsonWriter {
  #characters = 0;

  /**
   * @param name Argument name for the error.
   * @throws UserError for a value that has no JSON form, or that goes beyond the limit with the earlier ones.
   */
  text(name: string, value: PickleValue, depth = 0): string {
    if (depth > MOST_DEPTH) throw cannotHold(name, 'lists and dicts that deep');
    if (!isKind(value, 'dict') && !isKind(value, 'list') && !isKind(value, 'tuple')) {
      return this.#counted(scalarText(name, value));
    }
    const isDict = value.kind === 'dict';
    const parts: string[] = [];
    for (const part of isDict ? value.entries : value.items.entries()) {
      const [key, item] = part;
      const label = isDict ? `${this.#key(name, key)}: ` : '';
      parts.push(label + this.text(name, item, depth + 1));
    }
    return this.#counted(isDict ? '{' : '[') + parts.join(', ') + (isDict ? '}' : ']');
  }

  #key(name: string, key: PickleValue): string {
    if (typeof key !== 'string') throw cannotHold(name, 'a key that is not a string');
    return this.#counted(JSON.stringify(key));
  }

  #counted(text: string): string {
    this.#characters += text.length;
    checkLength(this.#characters);
    return text;
  }
}

function scalarText(name: string, value: Exclude<PickleValue, Dict | List | Tuple>): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') return String(value);
  if (value instanceof Uint8Array) throw cannotHold(name, 'bytes');
  if (value.kind === 'float') return floatText(value.value);
  throw cannotHold(name, `a ${value.kind === 'opaque' ? value.type : value.kind}`);
}

/** Adds a point or exponent, which distinguishes a float from an integer. */
function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : `${value}`;
  const text = Object.is(value, -0) ? '-0' : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

const cannotHold = (name: string, what: string) =>
  new UserError(
    'refused-file',
    `the argument ${quoted(name)} has ${what}, which JSON cannot store`,
    {
      suggestion: 'write a PyTorch file, which can hold it',
    },
  );

/** Python json's spellings of floats that JSON cannot express. */
const ODD_FLOATS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

/** A string, a word or number, or a bracket. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"?|[^\s,:[\]{}"]+|[[\]{}]/gs;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** Marks of strings and of words in a text, for a parser that would not distinguish 1 from 1.0. */
const STRING_MARK = 's';
const WORD_MARK = 'w';

/** Numbers that JSON.parse changes or refuses: 1.0 becomes an integer, 2^64 is rounded, and NaN is an error. */
const INEXACT = /\d[.eE]|\d{16}|NaN|Infinity/;

/**
 * Parses a JSON text; undefined when it is invalid or nested too deeply. Integers beyond 2^53 − 1 become bigints.
 */
export function parseJson(text: string): PickleValue | undefined {
  const isMarked = INEXACT.test(text);
  try {
    return pickleValue(parsedJson(isMarked ? marked(text) : text), isMarked);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A text with a mark in each string, and each word as a string with another one. */
const marked = (text: string): string =>
  text.replace(TOKEN, (token) => {
    if (token.startsWith('"')) return `"${STRING_MARK}${token.slice(1)}`;
    return /^[[\]{}]/.test(token) ? token : JSON.stringify(WORD_MARK + token);
  });

/** @param isMarked Whether strings and keys have marks, and all words are strings. */
function pickleValue(parsed: unknown, isMarked: boolean, depth = 0): PickleValue {
  if (depth > MOST_DEPTH) throw new SyntaxError('too deep');
  if (typeof parsed === 'string') return isMarked ? unmarked(parsed) : parsed;
  // Python has no negative zero among its integers.
  if (typeof parsed === 'number') return parsed + 0;
  if (typeof parsed !== 'object' || parsed === null) return parsed as boolean | null;
  if (Array.isArray(parsed)) {
    return { kind: 'list', items: parsed.map((item) => pickleValue(item, isMarked, depth + 1)) };
  }
  const entries = new Map<PickleValue, PickleValue>();
  // A parsed object has no inherited keys, and a list of all pairs would double the memory.
  for (const key in parsed) {
    if (isMarked && !key.startsWith(STRING_MARK)) throw new SyntaxError('no string');
    const value = (parsed as Readonly<Record<string, unknown>>)[key];
    entries.set(isMarked ? key.slice(1) : key, pickleValue(value, isMarked, depth + 1));
  }
  return { kind: 'dict', type: 'dict', entries };
}

const unmarked = (text: string): PickleValue =>
  text.startsWith(WORD_MARK) ? scalarOf(text.slice(1)) : text.slice(1);

function scalarOf(word: string): PickleValue {
  if (word === 'null') return null;
  if (word === 'true' || word === 'false') return word === 'true';
  if (Object.hasOwn(ODD_FLOATS, word)) return { kind: 'float', value: ODD_FLOATS[word] ?? 0 };
  if (!NUMBER.test(word)) throw new SyntaxError('no number');
  if (!/^-?\d+$/.test(word)) return { kind: 'float', value: Number(word) };
  const whole = Number(word);
  return Number.isSafeInteger(whole) ? whole + 0 : BigInt(word);
}

export interface ConstructorArguments {
  /** All arguments by name, in file order. */
  readonly values: ReadonlyMap<string, PickleValue>;
  /** `student_d_model` */
  readonly studentWidth: number | undefined;
  /** `mlp_ratio` */
  readonly ratio: number | undefined;
  /** Names in `teacher_configs`, each with its `d_model`. */
  readonly teachers: ReadonlyMap<string, number | undefined>;
}

/** Key of the tensors in a PyTorch file. */
export const STATE_DICT = 'state_dict';
/** Metadata key for the library that wrote a safetensors file, a bare word such as `pt`; never an argument. */
export const CONTAINER_KEY = 'format';

export function constructorArguments(
  checkpoint: Checkpoint,
  complain: ErrorCollector,
): ConstructorArguments {
  const values =
    checkpoint.format === 'safetensors'
      ? fromMetadata(checkpoint.metadata, complain)
      : fromContent(checkpoint, complain);
  const configs = values.get('teacher_configs') ?? null;
  const teachers = new Map<string, number | undefined>();
  if (isKind(configs, 'dict')) {
    for (const [name, config] of configs.entries) {
      if (typeof name === 'string') teachers.set(name, numberIn(config, 'd_model'));
    }
  }
  const width = values.get('student_d_model');
  return {
    values,
    teachers,
    studentWidth: typeof width === 'number' ? width : undefined,
    ratio: ratioIn(values.get('mlp_ratio') ?? null),
  };
}

function ratioIn(value: PickleValue): number | undefined {
  if (isKind(value, 'float')) return value.value;
  return typeof value === 'number' ? value : undefined;
}

function numberIn(config: PickleValue, key: string): number | undefined {
  const value = isKind(config, 'dict') ? config.entries.get(key) : config;
  return typeof value === 'number' ? value : undefined;
}

/** A content key, with dots and backslashes escaped by a backslash. */
const KEY = /^(?:[^\\.]|\\[\\.])*$/s;

function fromContent(
  { content, stateDict }: Checkpoint,
  complain: ErrorCollector,
): Map<string, PickleValue> {
  const values = new Map<string, PickleValue>();
  if (stateDict.length > 1) {
    complain(
      undefined,
      `expected its tensors in one dict, found nested dicts ${quoted(stateDict.join('.'))}`,
      SAVED,
    );
    return values;
  }
  for (const [key, value] of content) {
    if (KEY.test(key) && key !== STATE_DICT) values.set(key.replace(/\\([\\.])/g, '$1'), value);
    else complain(undefined, `has ${quoted(key)} among its tensors, which is not a tensor`, SAVED);
  }
  return values;
}

const SAVED = 'save a dict of the constructor’s arguments and state_dict';

function fromMetadata(
  metadata: ReadonlyMap<string, string>,
  complain: ErrorCollector,
): Map<string, PickleValue> {
  const values = new Map<string, PickleValue>();
  let characters = 0;
  for (const [key, text] of metadata) {
    characters += text.length;
    checkLength(characters);
    const value = parseJson(text);
    if (key === CONTAINER_KEY && value === undefined) continue;
    if (key === STATE_DICT) {
      complain(undefined, `has metadata called ${STATE_DICT}, the name reserved for the tensors`);
    }
    // Other writers use plain strings instead of JSON; `None` is a value.
    values.set(key, value === undefined ? text : value);
  }
  return values;
}

/** Collects all errors of a file. */
export interface ErrorCollector {
  (name: string | undefined, message: string, suggestion?: string): void;
  error(): UserError;
  /** @throws UserError if any errors were collected. */
  end(): void;
}

export function errorCollector(file: string): ErrorCollector {
  const problems: Problem[] = [];
  const error = () => new UserError('refused-file', `${file} is refused`, { problems });
  return Object.assign(
    (name: string | undefined, message: string, suggestion?: string) => {
      const place = name === undefined ? {} : { path: tensorPlace(name) };
      const advice = suggestion === undefined ? {} : { suggestion };
      problems.push({ severity: 'error', file, ...place, message, ...advice });
    },
    {
      error,
      end: () => {
        if (problems.length > 0) throw error();
      },
    },
  );
}
