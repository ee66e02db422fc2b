/** One pass over tables, block by block: everything that their survey adds up. */
import {
  addComparison,
  type Comparison,
  emptyComparison,
  meanOfRows,
  squaredNorm,
} from '../linalg/comparison.js';
import { addRowProducts, type GramAccumulator } from '../linalg/gram.js';
import { type Matrix, rowsOf, type SymmetricMatrix, symmetricMatrix } from '../linalg/matrix.js';

/** The values of a table that are not finite. */
export interface NonFinite {
  readonly count: number;
  /** Where the first of them stands. */
  readonly row: number;
  readonly column: number;
  readonly value: 'NaN' | 'Infinity' | '-Infinity';
}

export class SrtePass {
  /** The products of all tables with each other, [n, n]. */
  readonly dots: SymmetricMatrix;
  /** Each table and the mean. */
  readonly comparisons: readonly Comparison[];
  /** Null for a table whose values are all finite. */
  readonly nonFinite: (NonFinite | null)[];
  /** Squared norm of the mean. */
  squaredMean = 0;
  readonly #columns: number;
  readonly #gram: GramAccumulator | null;
  readonly #mean: Float64Array;

  /**
   * @param tables Their number, n.
   * @param columns Of each of them.
   * @param blockRows The most rows of a block.
   * @param gram Takes the rows of the mean as long as they are finite.
   */
  constructor(tables: number, columns: number, blockRows: number, gram: GramAccumulator | null) {
    this.dots = symmetricMatrix(tables);
    this.comparisons = Array.from({ length: tables }, emptyComparison);
    this.nonFinite = new Array<null>(tables).fill(null);
    this.#columns = columns;
    this.#gram = gram;
    this.#mean = new Float64Array(blockRows * columns);
  }

  /**
   * Takes the next rows of all tables.
   * @param block [n, rows · columns]: the rows of a table one after the other.
   * @param firstRow Where in their table they stand.
   */
  async add(block: Matrix, firstRow: number): Promise<void> {
    const mean = this.#mean.subarray(0, block.columns);
    meanOfRows(block, mean);
    const squares = squaredNorm(mean);
    this.squaredMean += squares;
    for (const [table, comparison] of this.comparisons.entries()) {
      const { values } = rowsOf(block, table, table + 1);
      addComparison(comparison, values, mean);
      if (!Number.isFinite(squares)) this.#findNonFinite(table, values, firstRow);
    }
    await addRowProducts(this.dots, block);
    if (Number.isFinite(this.squaredMean)) await this.#gram?.add(mean);
  }

  #findNonFinite(table: number, values: Float64Array, firstRow: number): void {
    for (const [index, value] of values.entries()) {
      if (Number.isFinite(value)) continue;
      const known = this.nonFinite[table];
      this.nonFinite[table] = known
        ? { ...known, count: known.count + 1 }
        : {
            count: 1,
            row: firstRow + Math.floor(index / this.#columns),
            column: index % this.#columns,
            value: String(value) as NonFinite['value'],
          };
    }
  }
}
