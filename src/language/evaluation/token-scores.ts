/** Scores of next-token distributions and their statistics. */
import { argmaxOf, logSumExp } from '../../base/tensor/logits.js';

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
  /** Mean over the tokens. @real */
  readonly mean: number;
  /** Standard error of the mean: √(variance / n). Null for one value. @real */
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

/** Means of runs of equal length, in order. */
export interface RunMeans {
  /** Scored tokens of each run; the last one can be shorter. @integer @minimum 1 */
  readonly tokens: number;
  /** Mean of each run, in nats. @real */
  readonly means: readonly number[];
}

/** Maximum runs: as many as a picture can show. */
const MOST_RUNS = 256;

/** Means of runs of the values so far. With many values, neighbouring runs become one. */
export class RunFold {
  #runs: { sum: number; count: number }[] = [];
  #length = 1;

  add(value: number): void {
    let last = this.#runs.at(-1);
    if (last === undefined || last.count === this.#length) {
      if (this.#runs.length === MOST_RUNS) this.#halve();
      last = this.#runs.at(-1);
      if (last === undefined || last.count === this.#length) {
        last = { sum: 0, count: 0 };
        this.#runs.push(last);
      }
    }
    last.sum += value;
    last.count += 1;
  }

  #halve(): void {
    this.#length *= 2;
    const pairs = this.#runs;
    this.#runs = [];
    for (let at = 0; at < pairs.length; at += 2) {
      const [a, b] = [pairs[at], pairs[at + 1]];
      this.#runs.push({
        sum: (a?.sum ?? 0) + (b?.sum ?? 0),
        count: (a?.count ?? 0) + (b?.count ?? 0),
      });
    }
  }

  result(): RunMeans {
    return { tokens: this.#length, means: this.#runs.map(({ sum, count }) => sum / count) };
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

// Mean scores of the lines of a text, to find the worst.

export interface LineScore {
  /** Number of the line, from 1. @integer @minimum 1 */
  readonly line: number;
  /** The line. */
  readonly text: string;
  /** Scored tokens of the line. @integer @minimum 1 */
  readonly tokens: number;
  /** Mean of their scores, in nats. @real */
  readonly mean: number;
}

const MOST_LINES = 5;

/** Minimum tokens of a reported line: the mean of fewer is not meaningful. */
const FEWEST_TOKENS = 4;

/** The lines of one text, whose tokens are scored in their order. Only the worst lines are kept. */
export class LineTracker {
  readonly #lines: readonly string[];
  /** Line of each token, from 0. */
  readonly #lineOf: Uint32Array;
  readonly #worst: LineScore[] = [];
  #line = 0;
  #tokens = 0;
  #sum = 0;

  private constructor(lines: readonly string[], lineOf: Uint32Array) {
    this.#lines = lines;
    this.#lineOf = lineOf;
  }

  /**
   * @param newlines Number of line feeds in the text of each token, by its id.
   * @returns Undefined when the tokens do not have the line feeds of the text, as after a normalizer that removes them.
   */
  static of(
    text: string,
    ids: readonly number[],
    newlines: ReadonlyMap<number, number>,
  ): LineTracker | undefined {
    const lines = text.split('\n');
    const lineOf = new Uint32Array(ids.length);
    let line = 0;
    for (const [at, id] of ids.entries()) {
      lineOf[at] = line;
      line += newlines.get(id) ?? 0;
    }
    return line === lines.length - 1 ? new LineTracker(lines, lineOf) : undefined;
  }

  /** Adds the score of a token. @param position Position of the token in the text; positions ascend. */
  add(position: number, score: number): void {
    const line = this.#lineOf[position] ?? 0;
    if (line !== this.#line) this.#close(line);
    this.#tokens++;
    this.#sum += score;
  }

  /** Lines with the highest means, highest first. */
  worst(): LineScore[] {
    this.#close(this.#line);
    return [...this.#worst];
  }

  #close(next: number): void {
    if (this.#tokens >= FEWEST_TOKENS) {
      const mean = this.#sum / this.#tokens;
      const text = this.#lines[this.#line] ?? '';
      this.#worst.push({ line: this.#line + 1, text, tokens: this.#tokens, mean });
      this.#worst.sort((a, b) => b.mean - a.mean);
      this.#worst.length = Math.min(this.#worst.length, MOST_LINES);
    }
    this.#line = next;
    this.#tokens = 0;
    this.#sum = 0;
  }
}
