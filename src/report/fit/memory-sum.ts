/** A sum of memory on one line. */
import { significant } from '../../base/text/units.js';
import type { Bounds } from '../../model/budget/figure.js';
import { bytesText } from './fit-bounds.js';

/** Sum from which each term has a unit of its own. */
const LARGEST_SUM = 1e13;

/** `weights 16.4 + cache 0.30 + workspace 0.86 = 17.5 of 25.3 GB`; small sums in MB: `= 17.5 MB of 25.3 GB`. */
export function memorySum(
  parts: readonly (readonly [name: string, bytes: number])[],
  { expected }: Bounds,
  capacity: number,
): string {
  const isHuge = expected.value >= LARGEST_SUM;
  const [unit, word] = expected.value >= 1e9 ? [1e9, 'GB'] : [1e6, 'MB'];
  const inUnit = (bytes: number) => {
    if (isHuge) return bytesText(bytes);
    const value = bytes / unit;
    return value < 0.1 ? significant(value) : value.toFixed(value < 1 ? 2 : 1);
  };
  const terms = parts
    .filter(([, bytes]) => bytes !== 0)
    .map(([name, bytes]) => `${name} ${inUnit(bytes)}`)
    .join(' + ');
  const sum = `${terms} = ${inUnit(expected.value)}`;
  if (isHuge) return `${sum} of ${bytesText(capacity)}`;
  return unit === 1e9 && capacity >= 1e9
    ? `${sum} of ${inUnit(capacity)} GB`
    : `${sum} ${word} of ${bytesText(capacity)}`;
}
