/** Scores of next-token distributions and their statistics. */
import { argmaxOf, logSumExp } from '../tensor/logits.js';

/** Score of one token by one model. */
export interface TokenScore {
  /** −ln p of the token, in nats. */
  readonly loss: number;
  /** ln Σ exp of the logits. */
  readonly logSum: number;
  /** First index of the largest logit. */
  readonly top: number;
}

/** @param logits Logits of the position before the token, [V]. */
export function tokenScore(logits: Float32Array, token: number): TokenScore {
  const logSum = logSumExp(logits);
  return { loss: logSum - (logits[token] ?? Number.NaN), logSum, top: argmaxOf(logits) };
}

/** A mean with its standard error. */
export interface Estimate {
  readonly mean: number;
  /** Standard error of the mean: √(variance / n). Null for one value. */
  readonly error: number | null;
}

/** Mean and variance of a stream of values (Welford 1962). */
export class MeanFold {
  #count = 0;
  #mean = 0;
  #squares = 0;

  add(value: number): void {
    this.#count++;
    const before = value - this.#mean;
    this.#mean += before / this.#count;
    this.#squares += before * (value - this.#mean);
  }

  get count(): number {
    return this.#count;
  }

  result(): Estimate {
    const count = this.#count;
    const variance = this.#squares / (count - 1);
    return { mean: this.#mean, error: count > 1 ? Math.sqrt(variance / count) : null };
  }
}

/** A growing list of float32 values: 4 bytes for each. */
export class ValueList {
  #values = new Float32Array(1024);
  #count = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float32Array(2 * this.#count);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count++] = value;
  }

  /** Values in ascending order. Sorts in place: add nothing afterwards. */
  sorted(): Float32Array {
    return this.#values.subarray(0, this.#count).sort();
  }
}

/**
 * Quantile of sorted values, interpolated between neighbours as numpy and torch do by default.
 * @param share From 0 to 1.
 */
export function quantile(sorted: Float32Array, share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const [a, b] = [sorted[low] ?? Number.NaN, sorted[Math.min(low + 1, sorted.length - 1)] ?? 0];
  return a + (b - a) * (at - low);
}
