/** How far the tables of an output are from those that they take the place of. */
import { addComparison, emptyComparison } from '../linalg/comparison.js';

/** Norms are Frobenius'. Null is what has no value: 0/0. */
export interface TableError {
  /** Numbers of the layers whose table it was. */
  readonly layers: readonly number[];
  /** The tensor of the input; of a pair, that of the rows. */
  readonly name: string;
  /** ‖had‖, over the rows that both have, as for all below; null when it was copied bit by bit, unread. */
  readonly norm: number | null;
  /** ‖had − gets‖. */
  readonly distance: number;
  /** distance / norm. */
  readonly relativeError: number | null;
  readonly largestError: number;
  readonly cosine: number | null;
}

/** Adds up, block by block, what is known of a table and the one in its place. */
export class TableComparison {
  readonly #sums = emptyComparison();
  #gets = 0;

  /** @param squaredNorm Of what it gets, which several tables may. */
  add(had: Float64Array, gets: Float64Array, squaredNorm: number): void {
    this.#gets += squaredNorm;
    addComparison(this.#sums, had, gets);
  }

  result(): Omit<TableError, 'layers' | 'name'> {
    const { squaredNorm, dot, squaredDistance, largestDifference } = this.#sums;
    const cosine = quotient(dot, Math.sqrt(squaredNorm) * Math.sqrt(this.#gets));
    return {
      norm: Math.sqrt(squaredNorm),
      distance: Math.sqrt(squaredDistance),
      relativeError: quotient(Math.sqrt(squaredDistance), Math.sqrt(squaredNorm)),
      largestError: largestDifference,
      // Rounding may carry it a little beyond; equal tables have none.
      cosine: squaredDistance === 0 && cosine !== null ? 1 : clamped(cosine),
    };
  }
}

const quotient = (part: number, whole: number): number | null =>
  whole === 0 ? (part === 0 ? null : Number.POSITIVE_INFINITY) : part / whole;

const clamped = (value: number | null) =>
  value === null ? null : Math.max(-1, Math.min(1, value));

/** ‖had − gets‖ / ‖had‖ of all tables together; a table that several layers had counts for each. */
export function overallError(errors: readonly TableError[]): number | null {
  let had = 0;
  let lost = 0;
  for (const { norm, distance, layers } of errors) {
    const times = Math.max(1, layers.length);
    had += times * (norm ?? 0) ** 2;
    lost += times * distance ** 2;
  }
  return lost === 0 && errors.length > 0 ? 0 : quotient(Math.sqrt(lost), Math.sqrt(had));
}
