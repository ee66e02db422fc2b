/** Overrides that give a key several values: `--set model.num_layers=12,24`. */
import { UserError } from '../errors.js';
import { splitOverride } from './override-path.js';
import { formatPath } from './path.js';
import { quote } from './quote.js';

/** One way of choosing among the values. */
export interface SweepPoint {
  /** All overrides, each with one value, in the order of the flags. */
  readonly set: readonly string[];
  /** The value of each swept key, as it was written. */
  readonly chosen: readonly string[];
}

export interface Sweep {
  /** The dotted paths that have several values, in the order of the flags. */
  readonly keys: readonly string[];
  /** How many points there are; they are not made before they are asked for. */
  readonly size: number;
  /** Every combination, the values of the first key changing slowest; or the lists in step. */
  points(): SweepPoint[];
}

interface Swept {
  readonly path: string;
  /** What stands before the value: `model.num_layers=`. */
  readonly prefix: string;
  readonly values: readonly string[];
}

/**
 * Reads the lists in overrides: values with commas between them. A comma within `[…]`, `{…}` or quotes
 * parts nothing, so that a list or a text can be one value. What is wrong with a path or a value is left
 * for `applyOverrides` to tell.
 *
 * @param inStep Whether the lists go together, the first values with the first, and not in every combination.
 * @throws UserError when a list has an empty item, when one key is swept and set again, or when lists that go
 * together are not of one length.
 */
export function sweepOf(sets: readonly string[], inStep = false): Sweep {
  const all = sets.map(sweptOf);
  const keys = all.filter(({ values }) => values.length > 1).map(({ path }) => path);
  const paths = all.map(({ path }) => path);
  const twice = keys.find((key) => paths.indexOf(key) !== paths.lastIndexOf(key));
  if (twice !== undefined) {
    throw new UserError('usage', `--set: ${twice} has several values, and is set again`, {
      suggestion: 'write all its values in one --set, with commas between them',
    });
  }
  if (inStep) return { keys, ...stepsOf(all) };
  return {
    keys,
    size: all.reduce((size, { values }) => size * values.length, 1),
    points: () => all.reduce(eachWith, [{ set: [], chosen: [] }]),
  };
}

/** The n-th values of all lists together; a single value goes with each. */
function stepsOf(all: readonly Swept[]): Omit<Sweep, 'keys'> {
  const lists = all.filter(({ values }) => values.length > 1);
  const size = lists[0]?.values.length ?? 1;
  const other = lists.find(({ values }) => values.length !== size);
  if (other) {
    throw new UserError(
      'usage',
      `--zip: ${lists[0]?.path} has ${size} values, and ${other.path} has ${other.values.length}`,
      { suggestion: 'give all lists of --set as many values' },
    );
  }
  const at = ({ values }: Swept, step: number) => values[step] ?? values[0] ?? '';
  const point = (step: number): SweepPoint => ({
    set: all.map((each) => each.prefix + at(each, step)),
    chosen: lists.map((each) => at(each, step)),
  });
  return { size, points: () => Array.from({ length: size }, (_, step) => point(step)) };
}

const eachWith = (points: SweepPoint[], { prefix, values }: Swept): SweepPoint[] =>
  points.flatMap(({ set, chosen }) =>
    values.map((value) => ({
      set: [...set, prefix + value],
      chosen: values.length > 1 ? [...chosen, value] : chosen,
    })),
  );

function sweptOf(text: string): Swept {
  const parts = splitOverride(text);
  if ('mistake' in parts) return { path: text, prefix: '', values: [text] };
  const { path, value } = parts;
  const values = splitList(value);
  if (values.length > 1 && values.includes('')) {
    throw new UserError('usage', `--set: ${quote(text)} has an empty value among others`, {
      suggestion: 'leave the comma out, or write null',
    });
  }
  return {
    path: formatPath(path),
    prefix: text.slice(0, text.length - value.length),
    values: values.length > 1 ? values : [value],
  };
}

const CLOSING: Readonly<Record<string, string>> = { '[': ']', '{': '}' };

/** The items of a list, trimmed. Brackets and quotes count where YAML sees them: at the start of a value. */
function splitList(text: string): string[] {
  const items: string[] = [];
  const open: string[] = [];
  let start = 0;
  let isValueStart = true;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (isValueStart && (character === '"' || character === "'")) {
      at = quoteEnd(text, at, character);
      isValueStart = false;
    } else if (character === ',' && open.length === 0) {
      items.push(text.slice(start, at).trim());
      start = at + 1;
      isValueStart = true;
    } else if (isValueStart && CLOSING[character] !== undefined) {
      open.push(CLOSING[character]);
    } else if (character === open.at(-1)) {
      open.pop();
      isValueStart = false;
    } else if (character !== ' ') {
      isValueStart = open.length > 0 && ',:'.includes(character);
    }
  }
  return [...items, text.slice(start).trim()];
}

/** Where the quotes that open at `start` close; the end of the text when they do not. */
function quoteEnd(text: string, start: number, quotes: string): number {
  for (let at = start + 1; at < text.length; at++) {
    const isDoubled = quotes === "'" && text.startsWith("''", at);
    if (isDoubled || (quotes === '"' && text[at] === '\\')) at++;
    else if (text[at] === quotes) return at;
  }
  return text.length;
}
