/** Shades of a heat map, the same in a terminal and in a picture. */
import type { HeatMapPicture } from './pictures.js';

/** Values with the lightest and the fullest shade. */
export interface HeatScale {
  readonly least: number;
  readonly most: number;
}

/** From zero to the largest value. Where all values are near the largest, from the smallest. */
export function heatScale({ rows }: HeatMapPicture): HeatScale {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const value of rows.flatMap((row) => row.values)) {
    if (value === null || !Number.isFinite(value)) continue;
    [least, most] = [Math.min(least, value), Math.max(most, value)];
  }
  return { least: least > most / 2 && least < most ? least : 0, most };
}

/** Shade of a value from 0 to 1. A value that is not finite has the fullest. */
export function heatShare(value: number, { least, most }: HeatScale): number {
  if (!Number.isFinite(value)) return 1;
  return most === 0 ? 0 : Math.max(0, value - least) / (most - least);
}
