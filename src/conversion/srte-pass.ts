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
import { NonFiniteValues } from './non-finite.js';

export class SrtePass {
  /** The products of all tables with each other, [n, n]. */
  readonly dots: SymmetricMatrix;
  /** Each table and the mean. */
  readonly comparisons: readonly Comparison[];
  readonly nonFinite: NonFiniteValues;
  /** Squared norm of the mean. */
  squaredMean = 0;
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
    this.nonFinite = new NonFiniteValues(tables, columns);
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
      if (!Number.isFinite(squares)) this.nonFinite.add(table, values, firstRow);
    }
    await addRowProducts(this.dots, block);
    if (Number.isFinite(this.squaredMean)) await this.#gram?.add(mean);
  }
}
