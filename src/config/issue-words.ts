/** Wording of schema errors, in one place to keep messages consistent. */
import type { ProblemText, PropertyPath, Severity } from '../base/errors.js';
import { commandText } from '../base/text/setting.js';
import { counted } from '../base/text/words.js';
import { isRecord } from '../base/values.js';
import { nearest, nearSynonymAmong, synonymAmong } from './nearest.js';
import { parseCount } from './parse-number.js';
import { describeValue, formatPath, quote } from './quote.js';
import {
  type Allowed,
  checksOf,
  type Definition,
  keyPaths,
  knownKeys,
  type Limit,
  type Literal,
  type Schema,
} from './schema-structure.js';

/** A key missing in its mapping's schema. */
export interface UnknownKey {
  readonly path: PropertyPath;
  readonly severity: Severity;
  /** Valid keys of the mapping. */
  readonly known: readonly string[];
  /** Most likely intended key. Comparing it with all known ones takes long for thousands of keys. */
  readonly meant: () => string | undefined;
}

/** Message and suggestion for each kind of mistake. */
export const EXPLANATIONS = {
  badKey: (key: string, own: string | undefined): ProblemText => ({
    message: `${quote(key)} cannot be a key here${own === undefined ? '' : `: ${own}`}`,
    suggestion: 'rename it or remove it',
  }),

  missing: (key: string, allowed: Allowed | undefined): ProblemText => ({
    message: `the key ${quote(key)} is missing`,
    suggestion:
      allowed === undefined ? `add ${key}` : `add ${key}: it must be ${describeAllowed(allowed)}`,
  }),

  wrong(path: PropertyPath, value: unknown, allowed: Allowed | undefined): ProblemText {
    if (allowed === undefined) return { message: `is not valid here: ${describeValue(value)}` };
    const isInfinite = typeof value === 'number' && !Number.isFinite(value);
    const words = describeAllowed(allowed).replace(
      /^a number/,
      isInfinite ? 'a finite number' : '$&',
    );
    const suggestion =
      suggestValue(path, allowed, value) ??
      suggestKeys(path, value, allowed) ??
      (value === null && allowed.isOptional ? 'leave the key out, or give it a value' : undefined);
    const message = `must be ${words}, but is ${describeValue(value)}`;
    return suggestion === undefined ? { message } : { message, suggestion };
  },

  /** @param root Schema of the whole document. */
  unknownKey({ path, known, meant }: UnknownKey, root: Schema): ProblemText {
    const key = String(path.at(-1));
    const paths = [...keyPaths(root)];
    const ofModel = path.length === 1 ? keysOfModel(paths) : [];
    const [name = ''] = key.split(':', 1);
    const inModel = ofModel.length > 0 ? `; keys of model: ${quotedKeys(ofModel)}` : '';
    const suggestion =
      didYouMean(synonymAmong(key, ofModel), 'model.') ??
      didYouMean(meant()) ??
      (known.includes(name) ? `put a space after the colon: "${name}: …"` : undefined) ??
      belongs(paths, key) ??
      didYouMean(nearestAnywhere(paths, key)) ??
      didYouMean(nearSynonymAmong(key, ofModel), 'model.') ??
      (known.length === 0 ? 'remove it' : `valid keys here: ${quotedKeys(known)}${inModel}`);
    return { message: `unknown key ${quote(key)}`, suggestion };
  },
};

// ── Allowed values ───────────────────────────────────────────────────────────────────────────────

/** Maximum number of listed enumeration values. */
const LISTED_VALUES = 12;

/** Description of each kind of schema, before its limits. */
const KIND_WORDS: Partial<Record<Definition['type'], string>> = {
  array: 'a list',
  boolean: 'true or false',
  never: 'left out',
  null: 'null',
  object: 'a mapping',
  record: 'a mapping',
  string: 'a text',
};

/** Description of each limit; undefined if the kind's description includes it. */
function limitWords(limit: Limit, unit: string): string | undefined {
  switch (limit.check) {
    case 'greater_than':
      return `${limit.inclusive ? '≥' : '>'} ${limit.value}`;
    case 'less_than':
      return `${limit.inclusive ? '≤' : '<'} ${limit.value}`;
    case 'length_equals':
      return `with ${counted(limit.length, unit)}`;
    case 'min_length':
      return `with at least ${counted(limit.minimum, unit)}`;
    case 'max_length':
      return `with at most ${counted(limit.maximum, unit)}`;
    case 'string_format':
      return limit.format === 'regex'
        ? `that matches ${limit.pattern}`
        : `in the form of: ${limit.format.replaceAll('_', ' ')}`;
    default:
      return undefined;
  }
}

/** Allowed values as text after "must be": `an integer ≥ 1`, `one of "a", "b"`. */
function describeAllowed({ literals, kinds, isNullable }: Allowed): string {
  const parts = [...new Set(kinds.map(describeKind))];
  if (literals.length > 0) parts.push(listLiterals(literals));
  if (isNullable && !parts.includes('null')) parts.push('null');
  return parts.join(' or ');
}

function listLiterals(literals: readonly Literal[]): string {
  const shown = literals.slice(0, LISTED_VALUES).map(describeValue);
  if (literals.length > LISTED_VALUES) shown.push(`… (${literals.length} total)`);
  return shown.length === 1 ? shown.join() : `one of ${shown.join(', ')}`;
}

function describeKind(definition: Definition): string {
  const limits = checksOf(definition);
  if (definition.type === 'tuple') return `a list of ${counted(definition.items.length, 'item')}`;
  const isNumber = definition.type === 'number';
  const name = isNumber ? numberName(definition, limits) : KIND_WORDS[definition.type];
  const unit = definition.type === 'string' ? 'character' : 'item';
  const words = limits.map((limit) => limitWords(limit, unit)).filter((each) => each !== undefined);
  return [name ?? 'a valid value', ...(words.length === 0 ? [] : [words.join(' and ')])].join(' ');
}

function numberName(definition: Definition, limits: readonly Limit[]): string {
  const multiple = limits.find((limit) => limit.check === 'multiple_of');
  if (multiple) return `a multiple of ${multiple.value}`;
  const isInteger = [definition, ...limits].some(
    (each) => 'format' in each && /int/.test(String(each.format)),
  );
  return isInteger ? 'an integer' : 'a number';
}

// ── Suggestions ──────────────────────────────────────────────────────────────────────────────────

/** Most likely intended value, if it can be guessed. */
function suggestValue(path: PropertyPath, allowed: Allowed, value: unknown): string | undefined {
  if (Array.isArray(value)) return suggestionForList(allowed, value);
  if (typeof value === 'string') return suggestionForText(path, allowed, value);
  if (typeof value !== 'number' && typeof value !== 'boolean') return undefined;
  if (allowed.literals.includes(String(value)) || takes(allowed, 'string')) {
    return `put it in quotes: "${value}"`;
  }
  if (takes(allowed, 'array')) return `write a list: [${value}]`;
  return typeof value === 'number' ? nearestMultiples(allowed, value) : undefined;
}

function suggestionForText(path: PropertyPath, allowed: Allowed, text: string): string | undefined {
  const near = nearest(text, allowed.literals.map(String));
  if (near !== undefined) {
    return `did you mean ${describeValue(allowed.literals.find((each) => String(each) === near))}?`;
  }
  return (
    (takes(allowed, 'number') ? numberInText(path, text) : undefined) ??
    (takes(allowed, 'boolean') ? booleanInText(text) : undefined) ??
    (allowed.isNullable && /^(none|nil|undefined)$/i.test(text) ? 'write null' : undefined) ??
    (takes(allowed, 'array') ? `write a list: [${quote(text)}]` : undefined)
  );
}

/** A list instead of a value: often the right value in brackets or after a dash. */
function suggestionForList(allowed: Allowed, list: readonly unknown[]): string | undefined {
  const isForOne = allowed.kinds.every(({ type }) => ONE_VALUE.has(type));
  if (!isForOne || list.length === 0) return undefined;
  const [only] = list;
  const isLiteral = allowed.literals.some((literal) => literal === only);
  const fits = isLiteral || allowed.kinds.some(({ type }) => type === typeof only);
  return list.length === 1 && fits
    ? `write ${describeValue(only)}, without a list around it`
    : 'write one value, not a list';
}

const ONE_VALUE: ReadonlySet<string> = new Set<Definition['type']>(['boolean', 'number', 'string']);

function takes({ kinds }: Allowed, type: Definition['type']): boolean {
  return kinds.some((definition) => definition.type === type);
}

/** Comma-separated numbers that are not thousands groups. */
const SEVERAL_NUMBERS = /^[\d.]+(?:, ?[\d.]+)+$/;
const THOUSANDS = /^\d{1,3}(?:, ?\d{3})+(?:\.\d+)?$/;

/** Keys of lengths in tokens, whose k is 1,024. */
const OF_TOKENS = /position|context|ctx|seq|window|chunk|block_size/;

function numberInText(path: PropertyPath, text: string): string | undefined {
  if (SEVERAL_NUMBERS.test(text.trim()) && !THOUSANDS.test(text.trim())) {
    return `write one value; ${commandText('compare')} takes several, and makes a model of each`;
  }
  const digits = text.trim().replaceAll(/[_, ]/g, '');
  if (digits === '' || digits.length > 40) return undefined;
  if (!Number.isFinite(Number(digits))) {
    const unit = OF_TOKENS.test(String(path.at(-1))) ? 'tokens' : 'count';
    const count = parseCount(digits, unit);
    return count === undefined ? undefined : `write ${count}`;
  }
  return digits === text ? `remove the quotes: ${digits}` : `write ${digits}`;
}

function booleanInText(text: string): string | undefined {
  if (/^(yes|on|true|1|y)$/i.test(text)) return 'write true';
  if (/^(no|off|false|0|n)$/i.test(text)) return 'write false';
  return undefined;
}

/** Nearest valid multiples on both sides of a number. */
function nearestMultiples({ kinds }: Allowed, value: number): string | undefined {
  const limit = kinds.flatMap(checksOf).find(({ check }) => check === 'multiple_of');
  if (limit?.check !== 'multiple_of' || !Number.isFinite(value)) return undefined;
  const step = Number(limit.value);
  if (value % step === 0) return undefined;
  const below = Math.floor(value / step) * step;
  return `the nearest are ${below} and ${below + step}`;
}

/** Suggestion for a value where keys are expected. */
function suggestKeys(path: PropertyPath, value: unknown, { kinds }: Allowed): string | undefined {
  const [mapping] = kinds;
  const isForKeys = kinds.every(({ type }) => type === 'object' || type === 'record');
  if (mapping === undefined || !isForKeys || isRecord(value)) return undefined;
  if (value === null) return 'write keys below it, or {}';
  const [key] = knownKeys(mapping) ?? [];
  // The value may be in a file or in an override; both accept a path with its value.
  return key === undefined
    ? 'write {key: value}'
    : `give its keys values instead, such as ${formatPath([...path, key])}`;
}

/** Maximum number of listed keys. */
const LISTED_KEYS = 8;

function quotedKeys(keys: readonly string[]): string {
  const rest = keys.length > LISTED_KEYS ? `, … (${keys.length} total)` : '';
  return `${keys.slice(0, LISTED_KEYS).join(', ')}${rest}`;
}

const didYouMean = (name: string | undefined, prefix = ''): string | undefined =>
  name === undefined ? undefined : `did you mean ${quote(`${prefix}${name}`)}?`;

/** Keys of the section `model`, if the document has one. */
const keysOfModel = (paths: readonly PropertyPath[]): readonly string[] =>
  paths.filter((path) => path.length === 2 && path[0] === 'model').map(([, key]) => String(key));

/** Advice for a key that the schema has elsewhere: the outermost place. */
function belongs(paths: readonly PropertyPath[], key: string): string | undefined {
  const [found] = paths
    .filter((path) => path.at(-1) === key)
    .toSorted((a, b) => a.length - b.length);
  if (found === undefined) return undefined;
  const parent = formatPath(found.slice(0, -1));
  return `it belongs ${parent === '' ? 'at the top of the document' : `under ${parent}`}`;
}

/** Path of the only key with a similar name. */
function nearestAnywhere(paths: readonly PropertyPath[], key: string): string | undefined {
  const near = nearest(key, new Set(paths.map((path) => String(path.at(-1)))));
  const [only, ...others] = paths.filter((path) => path.at(-1) === near);
  return only && others.length === 0 ? formatPath(only) : undefined;
}
