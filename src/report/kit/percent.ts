/** Shares that are no quotients of integers, and other real numbers. */
import type { Cell } from './report.js';

/** From such a share on, so many decimals of per cent: small shares must not look like none. */
const DECIMALS = [
  { from: 0.1, digits: 1 },
  { from: 0.001, digits: 2 },
  { from: 0, digits: 3 },
] as const;

/**
 * `8.60%` for 0.086, `–` for null. What is neither nothing nor all is not written `0.000%` or `100.0%` but
 * `<0.001%` and `>99.9%`.
 */
export function percentText(share: number | null): string {
  if (share === null) return '–';
  const { digits } = DECIMALS.find(({ from }) => share >= from) ?? DECIMALS[2];
  const text = `${(share * 100).toFixed(digits)}%`;
  if (text === '0.000%') return share === 0 ? '0%' : '<0.001%';
  return text === '100.0%' && share < 1 ? '>99.9%' : text;
}

export const percentCell = (share: number | null): Cell => ({
  text: percentText(share),
  value: share ?? '',
});

/** `2.5587`; `–` for null. */
export const realCell = (value: number | null): Cell =>
  value === null
    ? { text: '–', value: '' }
    : { text: value === 0 ? '0' : value.toPrecision(5), value };
