/** Parses numbers as publications print them: `13.8B`, `~25M`, `16.8 MB fp16`, `57×`, `96.9%`. */
import { parseRounded } from './parse-limit.js';

/** A number as published, with the deviations that its digits cover. */
export interface PublishedCount {
  readonly unit?: undefined;
  readonly value: bigint;
  /** Largest deviation of a smaller true number: 50,000,000 for `13.8B`; 0 for a full number. */
  readonly tolerance: bigint;
  /** Largest deviation of a larger true number, where it differs. */
  readonly above?: bigint;
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

/** A ratio (`57×`), or a share of a whole (`96.9%`, with the value 0.969). */
export interface PublishedRatio {
  readonly unit: 'ratio' | 'share';
  readonly value: number;
  readonly tolerance: number;
  readonly above?: number;
}

export type PublishedFigure = PublishedCount | PublishedBytes | PublishedRatio;

const APPROXIMATE =
  /^\s*(?:~|≈|∼|about\b|approx\.?|approximately\b|around\b|circa\b|ca\.|c\.)\s*/iu;
const BYTES = /^(.*?\d)\s*(?:([kmgt])(i?)b|bytes?)(?:\s+(?:in\s+)?(\S+))?$/i;
const RATIO = /^(\d[\d,_.]*)\s*(x|×|times|%|percent|per cent)$/i;

/** Approximate numbers are cut off as often as rounded, and cover a twentieth of their value. */
const APPROXIMATE_PART = 20;

/** Undefined if it cannot be read. */
export function parsePublished(text: string): PublishedFigure | undefined {
  const plain = text.replace(APPROXIMATE, '').trim();
  const isApproximate = plain !== text.trim();
  const ratio = parseRatio(plain);
  if (ratio) return isApproximate ? approximateRatio(ratio) : ratio;
  const count = parseBytes(plain) ?? parseRounded(plain);
  return count && isApproximate ? approximateCount(count) : count;
}

function approximateRatio(ratio: PublishedRatio): PublishedRatio {
  const within = ratio.value / APPROXIMATE_PART;
  const tolerance = Math.max(ratio.tolerance, within);
  return { ...ratio, tolerance, above: Math.max(2 * ratio.tolerance, within) };
}

function approximateCount<Count extends PublishedCount | PublishedBytes>(count: Count): Count {
  const within = count.value / BigInt(APPROXIMATE_PART);
  const most = (tolerance: bigint) => (tolerance > within ? tolerance : within);
  return { ...count, tolerance: most(count.tolerance), above: most(2n * count.tolerance) };
}

function parseRatio(text: string): PublishedRatio | undefined {
  const [, number, sign = ''] = RATIO.exec(text) ?? [];
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

/** A bare B is billions, as in `7B`. */
function parseBytes(text: string): PublishedBytes | undefined {
  const [, number, prefix = ' ', binary = '', type] = BYTES.exec(text) ?? [];
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
    // Sizes are cut off as often as rounded.
    above: power === 0 ? 0n : bytes(2n * scaled.tolerance),
    power,
    isBinary: binary !== '',
    ...(type !== undefined && { type }),
  };
}
