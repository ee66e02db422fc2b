import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { readRows, rowBytes } from '../checkpoint/view.js';
import { type MatrixProduct, plainProduct } from '../linalg/product.js';
import { decode } from '../tensor/decode.js';
import type { SrteTable } from './srte-tables.js';

/** Where the values of a table are. */
export type SrteValues = Pick<SrteTable, 'rows' | 'projection'>;

/** Reads rows of tables as float64. Its memory is used again from one reading to the next. */
export class SrteRowReader {
  #bytes = new Uint8Array();
  #rows = new Float64Array();
  #projection = new Float64Array();

  readonly #product: MatrixProduct;

  /** @param product For tables that are stored as pairs. */
  constructor(product: MatrixProduct = plainProduct) {
    this.#product = product;
  }

  /**
   * Writes rows of a table, row-major, to `target`, which has room for just these.
   * @param firstRow A multiple of 4, like `rows` but for the last ones: fewer values need be no whole
   * number of bytes.
   * @throws UserError when reading fails.
   */
  async read(
    { rows: stored, projection }: SrteValues,
    firstRow: number,
    rows: number,
    target: Float64Array,
  ): Promise<void> {
    if (projection === null) {
      this.#decode(stored, firstRow, rows, target);
      return;
    }
    const [hidden = 0, rank = 0] = projection.shape;
    this.#rows = atLeast(this.#rows, rows * rank);
    this.#projection = atLeast(this.#projection, hidden * rank);
    this.#decode(stored, firstRow, rows, this.#rows);
    this.#decode(projection, 0, hidden, this.#projection);
    await this.#product(
      { values: this.#rows, rows, columns: rank },
      { values: this.#projection, rows: hidden, columns: rank },
      target,
    );
  }

  #decode(tensor: StoredTensor, firstRow: number, rows: number, target: Float64Array): void {
    const length = rows * rowBytes(tensor);
    if (this.#bytes.length < length) this.#bytes = new Uint8Array(length);
    const bytes = this.#bytes.subarray(0, length);
    readRows(tensor, firstRow, rows, bytes);
    decode(tensor.dtype, bytes, target);
  }
}

const atLeast = (numbers: Float64Array<ArrayBuffer>, length: number) =>
  numbers.length >= length ? numbers : new Float64Array(length);
