/** Parses numbers as publications print them: `13.8B`, `~25M`, `16.8 MB fp16`, `57×`, `96.9%`, `50–70%`, `约 8.7 倍`. */
import { parseRounded } from './parse-number.js';

/** A number as published, with the deviations that its digits cover. */
export interface PublishedCount {
  readonly unit?: undefined;
  readonly value: bigint;
  /** Largest deviation of a smaller true number: 50,000,000 for `13.8B`; 0 for a full number. */
  readonly tolerance: bigint;
  /** Largest deviation of a larger true number, where it differs. */
  readonly above?: bigint;
}

/** A signed count, which is a change: `+96M`. */
export interface PublishedChange extends Omit<PublishedCount, 'unit'> {
  readonly unit: 'change';
}

/** Operations: `30.7 GFLOP`, `15.4 GMACs`. */
export interface PublishedOperations extends Omit<PublishedCount, 'unit'> {
  readonly unit: 'flops';
  /** Multiply-accumulates, each of which is two FLOPs; `value` is in FLOPs. */
  readonly isMacs: boolean;
}

/** A size in memory. */
export interface PublishedBytes extends Omit<PublishedCount, 'unit'> {
  readonly unit: 'bytes';
  /** Power of the prefix: 2 for MB and MiB. */
  readonly power: number;
  /** Printed with a binary prefix, as MiB. */
  readonly isBinary: boolean;
  /** Name of an element type after the size, as written. */
  readonly type?: string;
}

/** A ratio (`57×`, `16:1`), or a share of a whole (`96.9%`, with the value 0.969). */
export interface PublishedRatio {
  readonly unit: 'ratio' | 'share';
  readonly value: number;
  readonly tolerance: number;
  readonly above?: number;
}

export type PublishedFigure =
  | PublishedCount
  | PublishedChange
  | PublishedOperations
  | PublishedBytes
  | PublishedRatio;

const ABOUT_BEFORE =
  /^\s*(?:~|≈|∼|about\b|approx\.?|approximately\b|around\b|circa\b|ca\.|c\.|大?约|大概|近)\s*/iu;
const ABOUT_AFTER = /\s*(?:左右|上下)\s*$/u;
const PUBLISHED_BYTES =
  /^(.*?\d)\s*(?:([kmgt])(i?)b|bytes?)(?:\s+(?:in\s+)?([^\s()]+)|\s*\(([^\s()]+)\))?$/i;
const PUBLISHED_RATIO = /^(\d[\d,_.]*)\s*(x|×|times|倍|%|percent|per cent)$/iu;
const PROPORTION = /^(\d+(?:\.\d+)?)\s*[:：]\s*(\d+(?:\.\d+)?)$/u;
const OPERATIONS = /^(.*?\d)\s*([kmgtp]?)\s*(flops?|macs?)$/i;
const SIGN = /^([+−-])\s*(?=\d)/u;
/** Both ends of `50–70%`, `25%~50%`, `3 to 5 x`. */
const RANGE = /^(\d[\d,_.]*)\s*([^\d\s.,~～–—-]*)\s*(?:-|–|—|~|～|∼|\bto\b|至|到)\s*(\d.*)$/iu;
/** Words for the meaning of a ratio or a percentage: `2.7x faster`, `39.7% ↓`, `57倍压缩`. */
const COMPARISON =
  /(?<=[x×倍%])\s*(?:[↓↑]|faster|slower|smaller|larger|speed-?up|more|less|fewer|saved|savings?|reduction|加速|压缩|提升|改进|增加|节省|节约|降低|减少|快|慢)$/iu;
/** Chinese units of a count. */
const MYRIADS: Readonly<Record<string, number>> = { 万: 4, 亿: 8 };
const IN_MYRIADS = /^(\d[\d,_]*(?:\.\d+)?)\s*([万亿])$/u;
/** Words for parameters after such a number. */
const COUNTED = /\s*(?:parameters|params|个?参数)$/iu;

/** Approximate numbers are truncated as often as rounded, and cover a twentieth of their value. */
const APPROXIMATE_PART = 20;

/** Undefined if it cannot be read. */
export function parsePublished(text: string): PublishedFigure | undefined {
  const given = text
    .replaceAll('％', '%')
    .trim()
    .replace(/^\((.*)\)$/u, '$1')
    .replace(COMPARISON, '');
  const plain = given.replace(ABOUT_BEFORE, '').replace(ABOUT_AFTER, '').trim();
  const range = parseRange(plain);
  if (range) return range;
  const figure = parseFigure(plain);
  return figure && plain !== given ? approximate(figure) : figure;
}

const parseFigure = (text: string): PublishedFigure | undefined =>
  parseRatio(text) ?? parseOperations(text) ?? parseBytes(text) ?? parseCount(text);

function parseCount(text: string): PublishedCount | PublishedChange | undefined {
  const [sign = '', mark] = SIGN.exec(text) ?? [];
  const unsigned = text.slice(sign.length).replace(COUNTED, '');
  const [, digits, unit = ''] = IN_MYRIADS.exec(unsigned) ?? [];
  const count = parseRounded(digits === undefined ? unsigned : `${digits}e${MYRIADS[unit]}`);
  if (mark === undefined || count === undefined) return count;
  return { unit: 'change', ...count, value: mark === '+' ? count.value : -count.value };
}

function approximate(figure: PublishedFigure): PublishedFigure {
  if (isRatio(figure)) {
    const within = figure.value / APPROXIMATE_PART;
    const tolerance = Math.max(figure.tolerance, within);
    return { ...figure, tolerance, above: Math.max(2 * figure.tolerance, within) };
  }
  const size = figure.value < 0n ? -figure.value : figure.value;
  const within = size / BigInt(APPROXIMATE_PART);
  const most = (tolerance: bigint) => (tolerance > within ? tolerance : within);
  return { ...figure, tolerance: most(figure.tolerance), above: most(2n * figure.tolerance) };
}

/** The lower end, with the unit of the upper one; `above` reaches the upper end. */
function parseRange(text: string): PublishedFigure | undefined {
  const [, low = '', lowUnit = '', high = ''] = RANGE.exec(text) ?? [];
  const unit = /^[\d,_.]+(.*)$/u.exec(high)?.[1] ?? '';
  const [from, to] = [parseFigure(low + (lowUnit || unit)), parseFigure(high)];
  if (from === undefined || to === undefined || from.unit !== to.unit) return undefined;
  if (isRatio(from) && isRatio(to)) {
    if (from.value > to.value) return undefined;
    return { ...from, above: to.value - from.value + to.tolerance };
  }
  if (isRatio(from) || isRatio(to) || from.value > to.value) return undefined;
  return { ...from, above: to.value - from.value + to.tolerance };
}

export const isRatio = <Figure extends PublishedFigure>(
  figure: Figure,
): figure is Extract<Figure, PublishedRatio> => figure.unit === 'ratio' || figure.unit === 'share';

function parseRatio(text: string): PublishedRatio | undefined {
  const [, a = '', b = ''] = PROPORTION.exec(text) ?? [];
  if (Number(b) > 0) {
    const tolerance = 10 ** -(a.split('.')[1]?.length ?? 0) / 2 / Number(b);
    return { unit: 'ratio', value: Number(a) / Number(b), tolerance };
  }
  const [, number, sign = ''] = PUBLISHED_RATIO.exec(text) ?? [];
  const plain = number?.replaceAll(/(?<=\d)[,_](?=\d)/g, '');
  if (plain === undefined || !/^\d+(?:\.\d+)?$/.test(plain)) return undefined;
  const scale = sign.startsWith('%') || /^per/i.test(sign) ? 100 : 1;
  const decimals = plain.split('.')[1]?.length ?? 0;
  return {
    unit: scale === 100 ? 'share' : 'ratio',
    value: Number(plain) / scale,
    tolerance: 10 ** -decimals / 2 / scale,
  };
}

const OPERATION_PREFIXES = ' kmgtp';

function parseOperations(text: string): PublishedOperations | undefined {
  const [, number, prefix = '', kind = ''] = OPERATIONS.exec(text) ?? [];
  if (number === undefined) return undefined;
  const power = prefix === '' ? 0 : 3 * OPERATION_PREFIXES.indexOf(prefix.toLowerCase());
  const scaled = parseRounded(`${number}e${power}`);
  if (scaled === undefined) return undefined;
  const isMacs = /^mac/i.test(kind);
  const each = isMacs ? 2n : 1n;
  const { value, tolerance } = scaled;
  return { unit: 'flops', value: each * value, tolerance: each * tolerance, isMacs };
}

/** A bare B is billions, as in `7B`. */
function parseBytes(text: string): PublishedBytes | undefined {
  const [, number, prefix = ' ', binary = '', bare, bracketed] = PUBLISHED_BYTES.exec(text) ?? [];
  const type = bare ?? bracketed;
  // Read with nine more digits, so that the scale of a binary prefix stays exact.
  const scaled = number === undefined ? undefined : parseRounded(`${number}b`);
  if (scaled === undefined) return undefined;
  const power = ' kmgt'.indexOf(prefix.toLowerCase());
  const scale = (binary ? 1024n : 1000n) ** BigInt(power);
  const bytes = (value: bigint) => (value * scale) / 10n ** 9n;
  return {
    unit: 'bytes',
    value: bytes(scaled.value),
    tolerance: power === 0 ? 0n : bytes(scaled.tolerance),
    // Sizes are truncated as often as rounded.
    above: power === 0 ? 0n : bytes(2n * scaled.tolerance),
    power,
    isBinary: binary !== '',
    ...(type !== undefined && { type }),
  };
}
