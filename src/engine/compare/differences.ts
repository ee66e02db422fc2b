/** Differences between values. */

import { divergence, logSumExp } from '../../base/tensor/logits.js';
import type { Statistics } from '../../checkpoint/statistics.js';
import { StatisticsFold } from '../../checkpoint/statistics.js';
import type { EngineInfo, Values } from '../engine.js';

/**
 * The largest difference of two lists of the same length. Infinite when a value is not finite, even if both are equal.
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

/** Whether two lists hold the same values, including NaN. */
export const isSame = (a: Float32Array, b: Float32Array): boolean =>
  a.length === b.length && a.every((value, at) => Object.is(value, b[at]));

/** Number type and device of a computation. */
export type Arithmetic = Pick<EngineInfo, 'compute' | 'deviceKind' | 'weightForm'>;

/**
 * Limit of a difference, relative to the largest value: above the error of another order of computation, and below the
 * error of a lost state. Graphics cards have their own exponentials, with errors of several units in the last place.
 * Products of float16 differed by up to 2.4e-3 of the largest logit in our test models on the CPU. They differed by
 * 9e-3 with WebGPU on a software adapter, which also adds in float16: the limit is three times that. Products with
 * quantized weights round their input to 8 bits, so a difference in its last bit can become a difference of 1/127.
 */
export const relativeLimit = ({ compute, deviceKind, weightForm }: Arithmetic): number =>
  weightForm ? 5e-2 : compute === 'f16' ? 3e-2 : deviceKind === 'cpu' ? 5e-5 : 2e-4;

/** Allowed difference from these values for another order of computation. */
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

// Differences between the outputs of two models for the same tokens. All sums are of float64.

/**
 * Differences between logits [B, T, V]. A value that is not finite makes differences and divergence infinite, and the
 * position does not agree.
 */
export interface LogitDifference {
  /** Largest difference of a logit. @real */
  readonly largestDifference: number;
  /** Mean absolute difference over all logits. @real */
  readonly meanDifference: number;
  /** ‖own − other‖ / ‖own‖ in Frobenius norms. @real */
  readonly relativeDifference: number;
  /** KL(own ‖ other) of the next token's distribution, in nats, averaged over all positions. @real */
  readonly klDivergence: number;
  /** Share of the positions with the same most likely token. @minimum 0 @maximum 1 */
  readonly topAgreement: number;
}

/** @param own,other Logits of one shape, [B, T, V]. */
export function logitDifference(own: Values, other: Values): LogitDifference {
  const vocabulary = own.shape.at(-1) ?? 1;
  const positions = own.data.length / vocabulary;
  let divergence = 0;
  let agreed = 0;
  for (let at = 0; at < own.data.length; at += vocabulary) {
    const [a, b] = [own, other].map(({ data }) => data.subarray(at, at + vocabulary)) as [
      Float32Array,
      Float32Array,
    ];
    divergence += klDivergence(a, b);
    const top = topOf(a);
    if (top !== undefined && top === topOf(b)) agreed++;
  }
  return {
    largestDifference: largestDifference(own.data, other.data),
    meanDifference: meanDifference(own.data, other.data),
    relativeDifference: relativeDifference(own.data, other.data),
    klDivergence: divergence / positions,
    topAgreement: agreed / positions,
  };
}

/**
 * KL(p ‖ q) = Σ p · (ln p − ln q) in nats, of the distributions of two rows of logits. Infinite where a logit is not
 * finite. Never negative by rounding.
 */
export function klDivergence(p: Float32Array, q: Float32Array): number {
  const areFinite = topOf(p) !== undefined && topOf(q) !== undefined;
  return areFinite ? divergence(p, logSumExp(p), q, logSumExp(q)) : Number.POSITIVE_INFINITY;
}

/** Index of the first largest value; undefined when a value is not finite. */
function topOf(logits: Float32Array): number | undefined {
  let top = 0;
  for (const [at, logit] of logits.entries()) {
    if (!Number.isFinite(logit)) return undefined;
    if (logit > (logits[top] ?? 0)) top = at;
  }
  return top;
}

function meanDifference(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (const [at, value] of a.entries()) sum += Math.abs(value - (b[at] ?? Number.NaN));
  return finite(sum / a.length);
}

/** ‖a − b‖ / ‖a‖ in Frobenius norms; 0 for two zeros, and infinite when only `a` is zero. */
export function relativeDifference(a: Float32Array, b: Float32Array): number {
  let [squares, whole] = [0, 0];
  for (const [at, value] of a.entries()) {
    squares += (value - (b[at] ?? Number.NaN)) ** 2;
    whole += value ** 2;
  }
  return squares === 0 ? 0 : finite(Math.sqrt(squares / whole));
}

const finite = (value: number) => (Number.isNaN(value) ? Number.POSITIVE_INFINITY : value);

// Texts shared by several checks.

/** `0`, `2.4e-7`, `infinite`. */
export function differenceText(difference: number): string {
  if (difference === 0) return '0';
  return Number.isFinite(difference) ? difference.toExponential(1) : 'infinite';
}

/** Text of the measured rounding error; empty when it was not measured. */
export const roundingText = (rounding: number | undefined): string =>
  rounding === undefined
    ? ''
    : `, and rounding alone moves the logits by ${differenceText(rounding)}`;
