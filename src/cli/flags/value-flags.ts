/** Flags by the kind of their value: counts, sizes, shares, times, types, ranges. */
import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import type { CacheDtype, Dtype } from '../../base/tensor/dtype.js';
import {
  CACHE_TYPES,
  DTYPE_NAMES,
  DTYPE_SPELLINGS,
  GROUP_SIZES,
  parseCacheDtype,
  parseDtype,
  QUANTIZED_BITS,
} from '../../base/tensor/dtype.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { dtypeWord, formatInteger, shortCount, shortNumber } from '../../base/text/units.js';
import { nearest, nearestWithDigits } from '../../config/nearest.js';
import { lacksUnit, parseCount, parseLimit } from '../../config/parse-number.js';
import { quote } from '../../config/quote.js';
import type { PublishedNumber } from '../../model/budget/published/published-number.js';
import { parsePublishedNumber } from '../../model/budget/published/published-number.js';
import { pasteable } from '../line/line-mistake.js';

/** Suggestions for an unknown type: the nearest, those that begin with it, or all. */
export function typeSuggestion<T extends string>(
  text: string,
  names: readonly T[],
  parse: (text: string) => T | undefined,
): string {
  const wanted = text.trim().toLowerCase().replaceAll('-', '_');
  const longer = names.filter((name) => name.startsWith(`${wanted}_`));
  if (longer.length > 1) return `write one of ${longer.map(dtypeWord).join(', ')}`;
  // Four bits of two kinds: fp4 is the end of both.
  const kinds = names.filter((name) => wanted.length > 2 && name.endsWith(wanted));
  if (kinds.length > 1) return `write one of ${kinds.map(dtypeWord).join(', ')}`;
  const spellings = [...names, ...DTYPE_SPELLINGS].filter((each) => parse(each) !== undefined);
  // int8 is not a misspelling of int3, nor f8 of fp4; nothing has 17 bits, so bf17 is one.
  const isWidth =
    /^(?:u?int|i|q)\d/.test(wanted) ||
    /^[a-z]{0,2}f(?:p|loat)?(?:[2-8]|16|32|64)(?!\d)/.test(wanted);
  const near = (isWidth ? nearestWithDigits : nearest)(wanted, new Set(spellings));
  const meant = near && parse(near);
  return meant
    ? `did you mean ${dtypeWord(meant)}?`
    : `write one of ${names.map(dtypeWord).join(', ')}`;
}

/** `--dtype bf16`, by any usual name of a type. */
export const dtype = Flags.custom<Dtype>({
  helpValue: 'TYPE',
  parse: async (text, context, { name }) => {
    const parsed = parseDtype(text);
    if (parsed) return parsed;
    if (name === 'dtype') await refuseServedType(text, context);
    const suggestion = typeSuggestion(text, DTYPE_NAMES, parseDtype);
    return unreadable(name, text, 'an element type', suggestion);
  },
});

/** `--cache-dtype q8_0`: an element type, or blocks of llama.cpp. */
export const cacheDtype = Flags.custom<CacheDtype>({
  helpValue: 'TYPE',
  parse: async (text, _context, { name }) => {
    const parsed = parseCacheDtype(text);
    if (parsed) return parsed;
    const names: readonly CacheDtype[] = [...new Set([...DTYPE_NAMES, ...CACHE_TYPES])];
    return unreadable(
      name,
      text,
      'a type of a cache',
      typeSuggestion(text, names, parseCacheDtype),
    );
  },
});

/** @throws UserError for a type of weights that only `fit` supports, such as q4_k_m. */
async function refuseServedType(text: string, context: object): Promise<void> {
  const { parseWeightDtype, WEIGHT_DTYPE_NAMES } = await import(
    '../../estimate/fit/serving/weight-types.js'
  );
  // The kinds of a type by its bits alone: fp4, q5.
  const wanted = text.trim().toLowerCase();
  const served =
    parseWeightDtype(text) ??
    WEIGHT_DTYPE_NAMES.find(
      (name) => wanted.length > 1 && (name.startsWith(`${wanted}_`) || name === `nv${wanted}`),
    );
  if (served === undefined) return;
  const argv = 'argv' in context && Array.isArray(context.argv) ? context.argv : [];
  const [model = ''] = argv.filter((word) => typeof word === 'string');
  const words = ['fit', ...(model.startsWith('-') ? [] : [model]), '--dtype', served];
  throw usageError(
    `--dtype: expected an element type, found ${quote(text)}, a type of quantized files`,
    `for its memory write ${pasteable(words)}`,
  );
}

/** Several values, separated by commas. */
export const LIST = { multiple: true, multipleNonGreedy: true, delimiter: ',' } as const;

/** Comma-separated names: `--columns parameters,weights`. */
export const names = Flags.custom<string>({
  ...LIST,
  helpValue: 'NAME,NAME',
});

/** Comma-separated positive integers: `--ranks 128,64`. */
export const counts = Flags.custom<number>({
  ...LIST,
  helpValue: 'N,N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context),
});

/** A positive integer: `128`, `32_768`, `1e4`, `32k`. */
export const count = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context),
});

/** A number of GPUs, or all that can have the part. */
export const countOrAll = Flags.custom<number | 'all'>({
  helpValue: 'N|all',
  parse: async (text, context, options) =>
    text.trim().toLowerCase() === 'all' ? 'all' : wholeNumber(text, options.name, context),
});

/** A number of layers, of which `all` and the -1 of llama.cpp are more than any model has. */
export const layerCount = Flags.custom<number>({
  helpValue: 'N|all',
  parse: async (text, context, { name }) => {
    const word = text.trim().toLowerCase();
    if (word === '0') return 0;
    return word === 'all' || word === '-1' ? MOST_LAYERS : wholeNumber(text, name, context);
  },
});

const MOST_LAYERS = 1_000_000;

/** A number of tokens in a sequence, where `32k` is 32,768. */
export const tokens = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context, 'tokens'),
});

/** Comma-separated numbers of tokens: `--max-positions 32k,16k`. */
export const tokenCounts = Flags.custom<number>({
  ...LIST,
  helpValue: 'N,N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context, 'tokens'),
});

/** A growth factor: `--factor 4`, `--factor 1.5`. */
export const times = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, { name }) => {
    const value = Number(text);
    if (/^\s*\d+(\.\d+)?\s*$/.test(text) && Number.isFinite(value) && value >= 1) return value;
    return unreadable(name, text, 'a factor of at least 1', `write it as in --${name} 4`);
  },
});

/** Comma-separated ratios: `--published 2,8,3.8`. */
export const ratios = Flags.custom<number>({
  ...LIST,
  helpValue: 'N,N',
  parse: async (text, _context, { name }) => {
    const value = Number(/^\s*(\d+(?:\.\d+)?)\s*[x×]?\s*$/i.exec(text)?.[1]);
    if (value > 0 && Number.isFinite(value)) return value;
    return unreadable(name, text, 'a ratio above 0', `write it as in --${name} 3.8`);
  },
});

/** Default group of a form without one. */
const USUAL_GROUP = 32;

/** `int8`, `q4`, `4bit`, `int4-64`, `int4-g128`. */
const WEIGHT_FORM =
  /^(?:u?int|i|q|w)?[-_ ]?(8|4)[-_ ]?(?:bits?)?(?:[-_:/ ]+(?:g|group)?[-_ ]?(\d+)|g(\d+))?$/;

/** `--weights int4-64`: form of the matrices of a run. */
export const weightForm = Flags.custom<WeightForm>({
  helpValue: 'FORM',
  description:
    'quantize matrices: int8 or int4, with the values of a group, as in int4-64; groups of 16, 32, 64 or 128 ' +
    '[default: float32; groups of 32]',
  parse: async (text, _context, { name }) => {
    const [, bitsFound, first, second] = WEIGHT_FORM.exec(text.trim().toLowerCase()) ?? [];
    const bits = QUANTIZED_BITS.find((each) => each === Number(bitsFound));
    const size = Number(first ?? second ?? USUAL_GROUP);
    const group = GROUP_SIZES.find((each) => each === size);
    if (bits !== undefined && group !== undefined) return { bits, group };
    const expected =
      bits === undefined ? 'int8 or int4, with or without a group' : 'a group of 16, 32, 64 or 128';
    const form = `--${name} int${bits ?? 8}-${USUAL_GROUP}`;
    return unreadable(
      name,
      text,
      expected,
      `write ${bits === undefined ? 'it as in ' : ''}${form}`,
    );
  },
});

/** `--seed 7`: a non-negative safe integer. */
export const seedOf = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, { name }) =>
    parseCount(text) ?? unreadable(name, text, 'a whole number', `write it as in --${name} 7`),
});

/** Maximum of a number: beyond any rate, price or scale, and products with it stay finite. */
const MOST_NUMBER = 1e12;

/** A number above 0, or also 0. @param example A value for error messages. */
const numberFlag = (example: string, canBeZero: boolean, largest = MOST_NUMBER) =>
  Flags.custom<number>({
    helpValue: 'NUMBER',
    parse: async (text, _context, { name }) => {
      const value = Number(text);
      const isNumber = /^\s*[\d.]+(e[+-]?\d+)?\s*$/i.test(text) && !Number.isNaN(value);
      if (isNumber && value > largest) {
        const most = `a number up to ${shortNumber(largest)}`;
        return unreadable(name, text, most, `write it as in --${name} ${example}`);
      }
      if (isNumber && (value > 0 || (canBeZero && value === 0))) return value;
      const expected = canBeZero ? 'a number of at least 0' : 'a number above 0';
      return unreadable(name, text, expected, `write it as in --${name} ${example}`);
    },
  });

/** A positive number: `0.4`, `2.5`, `1e3`. */
export const positive = numberFlag('0.5', false);

/** A positive number such as a learning rate: `3e-4`. */
export const learningRate = numberFlag('3e-4', false, 1e100);

/** A number that can be 0: `0.1`. */
export const notNegative = numberFlag('0.1', true);

/** `0.05` or `5%` as a share; NaN for another text. */
export function parseShare(text: string): number {
  const [, number, percent] = /^\s*(\d*\.?\d+(?:e[+-]?\d+)?)\s*(%?)\s*$/i.exec(text) ?? [];
  return Number(number) / (percent ? 100 : 1);
}

/** Minimum share: dividing by a smaller one exceeds any time or cost. */
const LEAST_SHARE = 1e-9;

/** A share: above 0, at most 1. */
export const share = Flags.custom<number>({
  helpValue: 'SHARE',
  parse: async (text, _context, { name }) => {
    const value = parseShare(text);
    if (value >= LEAST_SHARE && value <= 1) return value;
    const expected = 'a share above 0, at most 1';
    return unreadable(name, text, expected, `write it as in --${name} 0.4 or --${name} 40%`);
  },
});

const SECONDS = { us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 } as const;

/** A time, in seconds: `500ms`, `1.5s`, `2min`. */
export const duration = Flags.custom<number>({
  helpValue: 'TIME',
  parse: async (text, _context, { name }) => {
    const [, number, unit] = /^\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)\s*$/.exec(text) ?? [];
    const value = Number(number) * SECONDS[unit as keyof typeof SECONDS];
    if (value > 0) return value;
    return unreadable(name, text, 'a time with its unit', `write it as in --${name} 500ms`);
  },
});

/** A limit on a count: `14B`, `13.4M`, `2e9`. */
export const countLimit = Flags.custom<number | bigint>({
  helpValue: 'N',
  parse: async (text, _context, options) =>
    parseLimit(text, 'count') ??
    unreadable(options.name, text, 'a count', `write it as in --${options.name} 26M`),
});

/** Maximum tokens; counts are exact up to here. */
const MOST_TOKENS = Number.MAX_SAFE_INTEGER;

/** The tokens of a training, data or step, above 0: `10B`, `3e9`. */
export const tokenTotal = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, { name }) => {
    const [value, floor] = [parseCount(text), parseLimit(text, 'count')];
    if (value !== undefined && value > 0) return value;
    const example = `write it as in --${name} 10B`;
    if (floor === undefined) return unreadable(name, text, 'a count', example);
    const isTooMany = floor > MOST_TOKENS;
    const expected = isTooMany
      ? `at most ${shortCount(MOST_TOKENS)} tokens`
      : value === 0
        ? 'tokens above 0'
        : 'a whole number of tokens';
    const found = isTooMany ? shortNumber(Number(floor)) : text.trim();
    throw usageError(`--${name}: expected ${expected}, found ${found}`, example);
  },
});

/** A limit on a size: `24GB`, `512MiB`, `24G`. A small number without a unit is ambiguous. */
export const bytesLimit = Flags.custom<number | bigint>({
  helpValue: 'SIZE',
  parse: async (text, _context, { name }) => {
    if (lacksUnit(text, 'bytes')) {
      const number = text.trim();
      const suggestion = `write --${name} ${number}GB or ${number}GiB, or ${number}B for bytes`;
      return unreadable(name, text, 'a size with its unit', suggestion);
    }
    return (
      parseLimit(text, 'bytes') ?? unreadable(name, text, 'a size', `write it as in --${name} 24GB`)
    );
  },
});

/** A published number with its printed digits: `22,143,967,232`, `~13.8B`, `536MB`, `57x`, `50-70%`, `+96M`. */
export const publishedNumber = Flags.custom<PublishedNumber>({
  helpValue: 'N',
  parse: async (text, _context, { name }) => {
    const published = parsePublishedNumber(text);
    if (published) return published;
    const expected = 'a count, a size, FLOPs, a ratio or a percentage';
    const example = `--${name} 13.8B, ~25M, 536MB, 30.7GFLOP, 57x, 96.9% or 50-70%`;
    return unreadable(name, text, expected, `write it as in ${example}`);
  },
});

/** A range of positive integers: `--depth 4..40`, `4-40`, `4:40`, or a single one. */
export const range = Flags.custom<{ readonly least: number; readonly most: number }>({
  helpValue: 'N..M',
  parse: async (text, _context, { name }) => {
    const [first = '', last = first, ...more] = text.split(/\s*(?:\.{2,3}|[-:–…]|\bto\b)\s*/);
    const [least, most] = [first, last].map((each) => positiveCount(each));
    if (least !== undefined && most !== undefined && least <= most && more.length === 0) {
      return { least, most };
    }
    const isReversed = least !== undefined && most !== undefined && more.length === 0;
    const example = isReversed ? `${most}..${least}` : '4..40';
    return unreadable(name, text, 'a range from small to large', `write --${name} ${example}`);
  },
});

/** Maximum tokens of a sequence: beyond any that is computed, and few enough for exact counts of positions. */
const MOST_CONTEXT = 2 ** 40;

const positiveCount = (text: string, unit: 'count' | 'tokens' = 'count'): number | undefined =>
  parseCount(text, unit) || undefined;

/**
 * Parses a positive whole number. A unit is explained in a note, because k is 1,000 for some counts and 1,024 for tokens.
 * @param context The command, which prints its `notes`.
 */
export function wholeNumber(
  text: string,
  flag: string,
  context: object,
  unit: 'count' | 'tokens' = 'count',
): number {
  const value = positiveCount(text, unit);
  if (unit === 'tokens' && value !== undefined && value > MOST_CONTEXT) {
    const most = formatInteger(MOST_CONTEXT);
    return unreadable(flag, text, `at most ${most} tokens`, `write it as in --${flag} 32k`);
  }
  if (value === undefined) {
    const several = text.split(',').map((each) => each.trim());
    if (several.length > 1 && several.every((each) => positiveCount(each, unit) !== undefined)) {
      const lines = several.map((each) => `--${flag} ${each}`).join(', ');
      return unreadable(flag, text, 'one number', `write a line for each: ${lines}`);
    }
    const example = unit === 'tokens' ? '4096 or 32k' : '128';
    return unreadable(flag, text, 'a positive whole number', `write it as in --${flag} ${example}`);
  }
  if (/[a-z]\s*$/i.test(text) && 'notes' in context && Array.isArray(context.notes)) {
    const words = unit === 'tokens' ? ' tokens' : '';
    context.notes.push(`--${flag} ${text.trim()}: ${value.toLocaleString('en-US')}${words}`);
  }
  return value;
}

export function unreadable(
  flag: string,
  text: string,
  expected: string,
  suggestion: string,
): never {
  throw usageError(`--${flag}: expected ${expected}, found ${quote(text)}`, suggestion);
}

// Values of projectors of keys and values.

/** Maximum ratio; a larger one would not be a bottleneck. */
const LARGEST_RATIO = 1024;

const NUMBER = /^\d*\.?\d+$/;

/** A ratio of the teacher's width; undefined for other text. */
function ratioIn(text: string): number | undefined {
  const ratio = NUMBER.test(text) ? Number(text) : 0;
  return ratio > 0 && ratio <= LARGEST_RATIO ? ratio : undefined;
}

const noRatio = (expected: string, text: string, example: string): never =>
  unreadable(
    'ratio',
    text,
    expected,
    `write numbers up to ${LARGEST_RATIO} as in --ratio ${example}`,
  );

const numericRatio = async (text: string): Promise<number> =>
  ratioIn(text) ?? noRatio('a number', text, '0.5');

/** `--ratio 0.5`: width between the layers of an elastic adapter, as a ratio of the teacher's. */
export const widthRatio = Flags.custom<number>({ helpValue: 'RATIO', parse: numericRatio });

/** `--ratio 0.5,1`. */
export const widthRatios = Flags.custom<number>({
  ...LIST,
  helpValue: 'RATIO,RATIO',
  parse: numericRatio,
});

/** `--ratio 0.5,recommended`. */
export const ratioChoices = Flags.custom<number | 'recommended'>({
  ...LIST,
  helpValue: 'RATIO,RATIO',
  parse: async (text) =>
    text === 'recommended'
      ? text
      : (ratioIn(text) ?? noRatio('a number or recommended', text, '0.5,recommended')),
});

/** Probability of dropout: from 0 to below 1. */
const dropoutOf = async (text: string): Promise<number> => {
  if (NUMBER.test(text) && Number(text) < 1) return Number(text);
  const expected = 'a probability from 0 to below 1';
  return unreadable('dropout', text, expected, 'write it as in --dropout 0.1');
};

/** `--dropout 0.1`. */
export const dropout = Flags.custom<number>({ helpValue: 'P', parse: dropoutOf });

/** `--dropout 0,0.1`. */
export const dropouts = Flags.custom<number>({ ...LIST, helpValue: 'P,P', parse: dropoutOf });

/** `--teacher Qwen2-14B:5120x40`, repeatable. */
export const teachers = () =>
  Flags.string({
    required: true,
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'NAME:WIDTHxLAYERS',
    description:
      'teacher as NAME:WIDTHxLAYERS, as in Qwen2-14B:5120x40, as NAME:WIDTH, or a config (repeatable)',
  });
