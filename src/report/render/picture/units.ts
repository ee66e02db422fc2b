/** Values of pictures as text, and round values for their axes. */
import { formatBytes, formatFlops, percentText, shortNumber } from '../../../base/text/units.js';
import type { PictureUnit } from '../../kit/pictures.js';

/** A value as people read it: `1.5 GB`, `26M`, `3.1%`. */
export function valueText(value: number, unit?: PictureUnit): string {
  if (!Number.isFinite(value)) return String(value);
  switch (unit) {
    case 'bytes':
      return formatBytes(Math.round(value));
    case 'FLOPs':
      return formatFlops(Math.round(value));
    case 'share':
      return percentText(value);
    case 'count':
    case undefined:
      return shortNumber(value);
  }
}

/** A scale of an axis: the share of its length at a value, and its ticks. */
export interface Scale {
  shareOf(value: number): number;
  readonly ticks: readonly number[];
}

/** Ends at the values themselves, with round ticks between them. */
export function tightScale(values: readonly number[], most: number): Scale {
  const [low, high] = extent(values) ?? [0, 1];
  const isOne = low === high;
  return {
    shareOf: (value) => (isOne ? 0.5 : (value - low) / (high - low)),
    ticks: isOne
      ? [low]
      : linearScale(values, most).ticks.filter((tick) => tick >= low && tick <= high),
  };
}

/**
 * Ends at round values.
 * @param most Number of ticks that fit, roughly.
 */
export function linearScale(values: readonly number[], most: number): Scale {
  const [low, high] = extent(values) ?? [0, 1];
  const span = high - low || Math.abs(high) || 1;
  const step = roundStep(span / most);
  const from = Math.floor(low / step + ROUNDING) * step;
  const to = Math.max(Math.ceil(high / step - ROUNDING) * step, from + step);
  const count = Math.round((to - from) / step);
  return {
    shareOf: (value) => (value - from) / (to - from),
    // Without the errors of repeated additions.
    ticks: Array.from({ length: count + 1 }, (_, index) =>
      Number((from + index * step).toPrecision(12)),
    ),
  };
}

/** Relative error of a quotient of two doubles, generously. */
const ROUNDING = 1e-9;

/** The smallest of 1, 2, 5 times a power of ten that is at least `step`. */
function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  return ([1, 2, 5].find((digit) => digit * power >= step) ?? 10) * power;
}

/** Ends at the values themselves. Ticks are powers of ten, and where there are few, also their double and fivefold. */
export function logScale(values: readonly number[], most: number): Scale {
  const [low, high] = extent(values.filter((value) => value > 0)) ?? [1, 10];
  const [first, last] = [Math.log10(low), Math.log10(high)];
  const span = last - first || 1;
  const within = (digits: readonly number[], every: number) => {
    const ticks: number[] = [];
    for (let power = Math.floor(first); power <= Math.ceil(last); power++) {
      if (power % every !== 0) continue;
      for (const digit of digits) {
        const value = Number(`${digit}e${power}`);
        if (value >= low * (1 - ROUNDING) && value <= high * (1 + ROUNDING)) ticks.push(value);
      }
    }
    return ticks;
  };
  const powers = within([1], Math.max(1, Math.ceil((last - first) / most)));
  const fine = powers.length < 3 ? within([1, 2, 5], 1) : powers;
  return {
    shareOf: (value) => (Math.log10(value) - first) / span,
    ticks: fine.length < 2 ? [...new Set([low, high])] : fine,
  };
}

/** Least and largest finite value; undefined without any. */
function extent(values: readonly number[]): readonly [number, number] | undefined {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > high ? undefined : [low, high];
}
