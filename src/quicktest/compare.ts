/** How far values are from each other. */
import { type Statistics, StatisticsFold } from '../checkpoint/statistics.js';
import type { EngineInfo, Values } from '../runtime/engine.js';

/**
 * The largest difference of two lists of equally many values. Infinite when there is none: what is not finite
 * is no distance from anything, not even from its like.
 */
export function largestDifference(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs((a[i] ?? 0) - (b[i] ?? 0));
    if (Number.isNaN(difference)) return Number.POSITIVE_INFINITY;
    if (difference > largest) largest = difference;
  }
  return largest;
}

/** Whether two lists hold the same values, also where these are no numbers. */
export const isSame = (a: Float32Array, b: Float32Array): boolean =>
  a.length === b.length && a.every((value, at) => Object.is(value, b[at]));

/** What values are computed in, and by what. */
export type Arithmetic = Pick<EngineInfo, 'compute' | 'deviceKind'>;

/**
 * Of the largest value: what is lost when the same is computed in another order stays well below it, and a state
 * that is not continued goes well beyond it. Graphics cards have exponentials of their own, which may be off by
 * several units in the last place. Products of float16 were off by up to 2.4e-3 of the largest logit in our test
 * models on the CPU, and by 9e-3 by WebGPU on a software adapter, which also adds them up in float16: three times
 * that is allowed.
 */
export const relativeLimit = ({ compute, deviceKind }: Arithmetic): number =>
  compute === 'f16' ? 3e-2 : deviceKind === 'cpu' ? 5e-5 : 2e-4;

/** How far values may be from these when the same is computed in another order. */
export function allowedDifference(values: Float32Array, arithmetic: Arithmetic): number {
  let largest = 0;
  for (const value of values) {
    const size = Math.abs(value);
    if (size > largest && size < Number.POSITIVE_INFINITY) largest = size;
  }
  return relativeLimit(arithmetic) * largest;
}

export function statisticsOf(values: Float32Array): Statistics {
  const fold = new StatisticsFold('F32');
  fold.take(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  return fold.result();
}

export const notFinite = ({ nan, positiveInfinity, negativeInfinity }: Statistics): number =>
  nan + positiveInfinity + negativeInfinity;

export const isAllFinite = ({ data }: Values): boolean =>
  data.every((value) => Number.isFinite(value));

/** Positions `from` to below `to` of every row of a value [B, T, …]. */
export function positions({ shape, data }: Values, from: number, to: number): Float32Array {
  const [batch = 1, tokens = 1] = shape;
  const size = data.length / (batch * tokens);
  const part = new Float32Array(batch * (to - from) * size);
  for (let row = 0; row < batch; row++) {
    const start = (row * tokens + from) * size;
    part.set(data.subarray(start, start + (to - from) * size), row * (to - from) * size);
  }
  return part;
}

/** One row of a value [B, …]. */
export function rowAt({ shape, data }: Values, row: number): Float32Array {
  const size = data.length / (shape[0] ?? 1);
  return data.subarray(row * size, (row + 1) * size);
}
