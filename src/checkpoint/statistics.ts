/** Statistics of the values of a tensor, in one pass. */

import { createHash, type Hash, hash as hashOf } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { decodeValues } from '../base/tensor/decode-values.js';
import type { StoredDtype } from '../base/tensor/dtype.js';
import { STORED_DTYPES } from '../base/tensor/dtype.js';
import type { NamedView } from './sharing.js';
import type { StoredTensor } from './stored-tensor.js';
import { streamTensor } from './view.js';

/**
 * Statistics of the finite values; the counts cover all values. Complex values count by modulus, booleans as 0
 * and 1. Integers beyond ±2^53 are rounded to the nearest float64.
 */
export interface Statistics {
  /** Null when no value is finite, as are the next two fields. @real */
  readonly min: number | null;
  /** Largest finite value. @real */
  readonly max: number | null;
  /** Mean of the finite values. @real */
  readonly mean: number | null;
  /** Population standard deviation: root of the mean squared distance to the mean. @real */
  readonly standardDeviation: number | null;
  /** Root of the sum of squares: the Frobenius norm. @real */
  readonly norm: number;
  /** Number of zeros. @count */
  readonly zeros: number;
  /** Number of NaN values. @count */
  readonly nan: number;
  /** Number of positive infinities. @count */
  readonly positiveInfinity: number;
  /** Number of negative infinities. @count */
  readonly negativeInfinity: number;
}

/** Values per block: they stay in the CPU cache between two passes. */
const BLOCK = 1 << 13;

const workspace = new Float64Array(2 * BLOCK);

/**
 * Accumulates statistics over the contiguous little-endian bytes of a tensor, in pieces of complete elements.
 * Scaling prevents overflow and underflow of squares, and a large mean does not hide a small deviation.
 */
export class StatisticsFold {
  readonly #dtype: StoredDtype;
  readonly #blockBytes: number;
  readonly #counts = { zeros: 0, nan: 0, positiveInfinity: 0, negativeInfinity: 0 };
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  /** Power of two that scales the values before they are added to the two sums. */
  #scale = 1;
  #finite = 0;
  #mean = 0;
  /** Sum of squared distances to the mean. */
  #spread = 0;

  constructor(dtype: StoredDtype) {
    this.#dtype = dtype;
    this.#blockBytes = (BLOCK * STORED_DTYPES[dtype].bits) / 8;
  }

  take(bytes: Uint8Array): void {
    for (let start = 0; start < bytes.length; start += this.#blockBytes) {
      this.#takeBlock(bytes.subarray(start, start + this.#blockBytes));
    }
  }

  result(): Statistics {
    const n = this.#finite;
    const some = (value: number) => (n === 0 ? null : value / this.#scale);
    return {
      min: n === 0 ? null : this.#min,
      max: n === 0 ? null : this.#max,
      mean: some(this.#mean),
      standardDeviation: some(Math.sqrt(this.#spread / n)),
      norm: Math.sqrt(this.#spread + n * this.#mean ** 2) / this.#scale,
      ...this.#counts,
    };
  }

  #takeBlock(bytes: Uint8Array): void {
    const count = decodeValues(this.#dtype, bytes, workspace);
    const isComplex = STORED_DTYPES[this.#dtype].kind === 'complex';
    let values = workspace.subarray(0, isComplex ? toModuli(workspace, count) : count);
    let range = rangeOf(values);
    // A sum of finite values may overflow too, which is harmless here.
    if (!Number.isFinite(range.sum)) {
      values = values.subarray(0, this.#setApart(values));
      range = rangeOf(values);
    }
    if (values.length === 0) return;
    this.#counts.zeros += range.zeros;
    this.#min = Math.min(this.#min, range.min);
    this.#max = Math.max(this.#max, range.max);
    this.#rescale();
    const mean = this.#scale === 1 ? range.sum / values.length : meanOf(values, this.#scale);
    this.#merge(values, mean);
  }

  /** Counts non-finite values, moves finite ones to the front, and returns their number. */
  #setApart(values: Float64Array): number {
    let kept = 0;
    for (let i = 0; i < values.length; i++) {
      const value = values[i] ?? 0;
      if (Number.isFinite(value)) values[kept++] = value;
      else if (Number.isNaN(value)) this.#counts.nan++;
      else if (value > 0) this.#counts.positiveInfinity++;
      else this.#counts.negativeInfinity++;
    }
    return kept;
  }

  #rescale(): void {
    const scale = scaleFor(Math.max(-this.#min, this.#max));
    if (scale === this.#scale) return;
    const change = scale / this.#scale;
    this.#mean *= change;
    // In two steps: the square of the change may overflow.
    this.#spread = this.#spread * change * change;
    this.#scale = scale;
  }

  /**
   * Merges the sums of two samples. Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, The
   * American Statistician 37(3), 1983.
   */
  #merge(values: Float64Array, mean: number): void {
    const spread = spreadOf(values, this.#scale, mean);
    const total = this.#finite + values.length;
    const distance = mean - this.#mean;
    this.#spread += spread + distance ** 2 * (this.#finite * (values.length / total));
    this.#mean += distance * (values.length / total);
    this.#finite = total;
  }
}

/** Power of two that makes the squares of values up to `largest` safe to add. */
function scaleFor(largest: number): number {
  if (largest > 2 ** 480) return 2 ** -600;
  return largest > 0 && largest < 2 ** -400 ? 2 ** 600 : 1;
}

/** Replaces pairs of real and imaginary part by their moduli, at the front. */
function toModuli(numbers: Float64Array, count: number): number {
  for (let i = 0; 2 * i < count; i++) {
    numbers[i] = Math.hypot(numbers[2 * i] ?? 0, numbers[2 * i + 1] ?? 0);
  }
  return count / 2;
}

function rangeOf(values: Float64Array) {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let zeros = 0;
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? 0;
    if (value < min) min = value;
    if (value > max) max = value;
    if (value === 0) zeros++;
    sum += value;
  }
  return { min, max, zeros, sum };
}

function meanOf(values: Float64Array, scale: number): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += (values[i] ?? 0) * scale;
  return sum / values.length;
}

/** Sum of squared distances to `mean` of the values times `scale`. */
function spreadOf(values: Float64Array, scale: number, mean: number): number {
  let spread = 0;
  for (let i = 0; i < values.length; i++) {
    const distance = (values[i] ?? 0) * scale - mean;
    spread += distance * distance;
  }
  return spread;
}

// Measurements that need the values of tensors, in one pass over their bytes.

export interface Measurement {
  /** SHA-256 of the contiguous little-endian bytes, in hexadecimal. @pattern ^[0-9a-f]{64}$ */
  readonly sha256?: string;
  readonly stats?: Statistics;
}

export interface StatisticsOptions {
  readonly hash: boolean;
  readonly stats: boolean;
  /** Receives the bytes processed since the last call. */
  readonly onBytes: (bytes: number) => void;
}

/**
 * Reads each tensor once, in file order. The result contains all names of each.
 * @throws UserError if reading fails.
 */
export async function measureTensors(
  views: readonly NamedView[],
  options: StatisticsOptions,
): Promise<Map<string, Measurement>> {
  const measured = new Map<string, Measurement>();
  let turn = performance.now();
  for (const { tensor, names } of inFileOrder(views)) {
    const measurement = await measureTensor(tensor, options);
    for (const name of names) measured.set(name, measurement);
    // Small tensors are read synchronously; a break lets Ctrl-C through.
    if (performance.now() - turn > MOST_WITHOUT_A_BREAK) {
      await setImmediate();
      turn = performance.now();
    }
  }
  return measured;
}

/** Maximum time without a break, milliseconds. */
const MOST_WITHOUT_A_BREAK = 50;

async function measureTensor(
  tensor: StoredTensor,
  { hash, stats, onBytes }: StatisticsOptions,
): Promise<Measurement> {
  const digest = hash ? new Sha256(tensor.bytes) : undefined;
  const fold = stats ? new StatisticsFold(tensor.dtype) : undefined;
  await streamTensor(tensor, (bytes) => {
    digest?.take(bytes);
    fold?.take(bytes);
    onBytes(bytes.length);
  });
  return {
    ...(digest && { sha256: digest.result() }),
    ...(fold && { stats: fold.result() }),
  };
}

/** SHA-256 of bytes in pieces. A single piece needs no state, which costs more than to hash a small tensor. */
class Sha256 {
  readonly #bytes: number;
  #state: Hash | undefined;
  #whole: string | undefined;

  /** @param bytes Bytes of all pieces. */
  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  take(bytes: Uint8Array): void {
    if (bytes.length === this.#bytes) this.#whole = hashOf('sha256', bytes);
    else this.#state = (this.#state ?? createHash('sha256')).update(bytes);
  }

  result(): string {
    return this.#whole ?? this.#state?.digest('hex') ?? hashOf('sha256', '');
  }
}

/** Sequential reads are the fastest on a disk. Files come in the order of their first tensor. */
function inFileOrder(views: readonly NamedView[]): NamedView[] {
  const files = [...new Set(views.map(({ tensor }) => tensor.storage.file))];
  const turns = new Map(files.map((file, index) => [file, index]));
  const turnOf = ({ storage }: StoredTensor) => turns.get(storage.file) ?? 0;
  return views.toSorted(
    ({ tensor: a }, { tensor: b }) =>
      turnOf(a) - turnOf(b) || a.storage.position - b.storage.position || a.offset - b.offset,
  );
}
