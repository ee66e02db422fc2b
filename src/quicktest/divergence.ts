/** How far apart two models are in what they compute of the same tokens. All sums are of float64. */
import type { Values } from '../runtime/engine.js';
import { largestDifference } from './compare.js';

/**
 * Of logits [B, T, V] from others. What is not finite is no distance from anything: differences and divergence
 * are infinite then, and the position does not agree.
 */
export interface LogitDifference {
  readonly largestDifference: number;
  /** Of the absolute differences of all logits. */
  readonly meanDifference: number;
  /** ‖own − other‖ / ‖own‖ in Frobenius norms. */
  readonly relativeDifference: number;
  /** KL(own ‖ other) of the next token's distribution, in nats: the mean over all positions. */
  readonly klDivergence: number;
  /** Share of the positions at which both hold the same token for the likeliest. */
  readonly topAgreement: number;
}

/** @param own,other Of one shape, [B, T, V]. */
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
 * KL(p ‖ q) = Σ p · (ln p − ln q) in nats, of the distributions that two rows of logits stand for. Infinite where
 * a logit is not finite. Rounding can not make it negative.
 */
export function klDivergence(p: Float32Array, q: Float32Array): number {
  const [ofP, ofQ] = [logOfSum(p), logOfSum(q)];
  let sum = 0;
  for (const [at, logit] of p.entries()) {
    const logP = logit - ofP;
    sum += Math.exp(logP) * (logP - ((q[at] ?? Number.NaN) - ofQ));
  }
  return finite(Math.max(0, sum));
}

/** ln Σ exp, of differences from the largest, so that none is too large. */
function logOfSum(logits: Float32Array): number {
  let largest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) largest = Math.max(largest, logit);
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - largest);
  return largest + Math.log(sum);
}

/** The first of the largest; undefined where one is not finite. */
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

/** ‖a − b‖ / ‖a‖ in Frobenius norms; 0 of two zeros, and infinite where only `a` is zero. */
export function relativeDifference(a: Float32Array, b: Float32Array): number {
  let [squares, whole] = [0, 0];
  for (const [at, value] of a.entries()) {
    squares += (value - (b[at] ?? Number.NaN)) ** 2;
    whole += value ** 2;
  }
  return squares === 0 ? 0 : finite(Math.sqrt(squares / whole));
}

const finite = (value: number) => (Number.isNaN(value) ? Number.POSITIVE_INFINITY : value);
