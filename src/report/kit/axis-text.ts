/** Values of one axis as text, all in one format: `0`, `500k`, `1000k`, not `500k` beside `1M`. */
import { formatBytes, formatFlops, shortNumber } from '../../base/text/units.js';
import type { PictureUnit } from './pictures.js';

/** Prefixes of thousands: of bytes and FLOPs, and of plain numbers. */
const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'] as const;
const SHORT = ['', 'k', 'M', 'B', 'T'] as const;

/** The smallest number that is written with the common prefix. An axis with a smaller one has several prefixes. */
const LEAST_IN_PREFIX = 0.01;

/** The smallest number that is written with decimals. */
const LEAST_DECIMAL = 0.001;

/**
 * The text of each value of an axis.
 * @param values All labelled values of the axis.
 * @param digits Digits of a number; default 3.
 */
export function axisText(
  values: readonly number[],
  unit?: PictureUnit,
  digits = 3,
): (value: number) => string {
  const sizes = values.map(Math.abs).filter((each) => each > 0 && Number.isFinite(each));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  if (sizes.length === 0) return (value) => axisNumber(value, digits);
  if (unit === 'share') {
    const text = axisText(
      values.map((value) => value * 100),
      undefined,
      digits,
    );
    return (value) => `${text(value * 100)}%`;
  }
  const hasOnePrefix = (power: number) => least / 1000 ** power >= LEAST_IN_PREFIX;
  if (unit === 'bytes' || unit === 'FLOPs') {
    const suffix = unit === 'bytes' ? 'B' : 'FLOPs';
    const whole = unit === 'bytes' ? formatBytes : formatFlops;
    const power = thousandsOf(most, PREFIXES.length);
    return (value) => {
      if (value === 0 || !Number.isFinite(value)) return String(value);
      if (!hasOnePrefix(power)) return whole(Math.round(value)).replace(/\.0(?=\s)/, '');
      return `${axisNumber(value / 1000 ** power, digits)} ${PREFIXES[power]}${suffix}`;
    };
  }
  // Powers of ten beside decimals would be two formats.
  if (least < LEAST_DECIMAL || most >= 1e15) return (value) => exponential(value, digits);
  // 4096 is better known than 4.1k.
  if (most < 1e4) return (value) => axisNumber(value, digits);
  const common = thousandsOf(most, SHORT.length);
  return (value) => {
    const power = hasOnePrefix(common) ? common : thousandsOf(Math.abs(value), SHORT.length);
    return value === 0 || !Number.isFinite(value)
      ? String(value)
      : `${axisNumber(value / 1000 ** power, digits)}${SHORT[power]}`;
  };
}

const thousandsOf = (value: number, count: number): number =>
  Math.max(0, Math.min(count - 1, Math.floor(Math.log10(value * (1 + 1e-9)) / 3)));

/** Digits without zeros at the end; integers below 10,000 have all of theirs. */
function axisNumber(value: number, digits: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value < 0) return `−${axisNumber(-value, digits)}`;
  if (Number.isInteger(value) && value < 1e4) return String(value);
  return value >= LEAST_DECIMAL && value < 1e4
    ? String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(value))))))
    : shortNumber(value, digits);
}

function exponential(value: number, digits: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const [number = '', power = ''] = Math.abs(value)
    .toExponential(digits - 1)
    .split('e');
  return `${value < 0 ? '−' : ''}${Number(number)}e${Number(power)}`;
}
