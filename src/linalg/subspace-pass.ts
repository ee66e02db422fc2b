/** One pass over a matrix A that is read in blocks of rows: what it makes of a few directions. */
import { addRowProducts } from './gram.js';
import { type Matrix, rowsOf, type SymmetricMatrix, symmetricMatrix } from './matrix.js';
import { type MatrixProducts, plainProduct } from './product.js';

/** A matrix that is read in blocks of rows, as often as needed. */
export interface RowSource {
  readonly rows: number;
  readonly columns: number;
  /** Writes `rows` rows from `firstRow` on to `target`, [rows, columns], row-major. */
  read(firstRow: number, rows: number, target: Float64Array): void | Promise<void>;
}

/** How a source is read and multiplied. */
export interface Reading {
  readonly products: MatrixProducts;
  /** Rows read at a time. */
  readonly blockRows: number;
  /** Called after each block, with its rows. */
  readonly onRows?: (rows: number) => void;
}

export interface Pass {
  /** XAᵀAXᵀ, for X's rows: what the directions catch of A. */
  readonly gram: SymmetricMatrix;
  /** XAᵀA, of X's shape. */
  readonly image: Matrix;
}

/** A pass with the rows of `x`, [k, columns]. @param see Called with each block that was read. */
export async function passOver(
  source: RowSource,
  x: Matrix,
  reading: Reading,
  see: (values: Float64Array) => void,
): Promise<Pass> {
  const { products, blockRows, onRows } = reading;
  const { rows, columns } = source;
  const most = Math.min(rows, blockRows);
  const block = { values: new Float64Array(most * columns), rows: most, columns };
  const caught = { values: new Float64Array(x.rows * most), rows: x.rows, columns: most };
  const image = { ...x, values: new Float64Array(x.values.length) };
  const part = new Float64Array(x.values.length);
  const gram = symmetricMatrix(x.rows);
  const letGo = products.hold(x);
  try {
    for (let row = 0; row < rows; row += most) {
      const count = Math.min(most, rows - row);
      const a = rowsOf(block, 0, count);
      await source.read(row, count, a.values);
      see(a.values);
      await addBlock(a, x, { gram, image, part, caught: caught.values }, products);
      onRows?.(count);
    }
  } finally {
    letGo();
  }
  return { gram, image };
}

interface Sums {
  readonly gram: SymmetricMatrix;
  readonly image: Matrix;
  /** Memory for what a block adds to the image. */
  readonly part: Float64Array;
  /** Memory for X · blockᵀ. */
  readonly caught: Float64Array;
}

async function addBlock(a: Matrix, x: Matrix, sums: Sums, products: MatrixProducts): Promise<void> {
  const values = sums.caught.subarray(0, x.rows * a.rows);
  const caught = { values, rows: x.rows, columns: a.rows };
  const letGo = products.hold(a);
  try {
    await products.timesTransposed(x, a, values);
    await products.times(caught, a, sums.part);
  } finally {
    letGo();
  }
  const { values: image } = sums.image;
  for (let k = 0; k < image.length; k++) image[k] = (image[k] ?? 0) + (sums.part[k] ?? 0);
  // In float64 whoever multiplies: this decides which directions count, and how much.
  await addRowProducts(sums.gram, caught, plainProduct);
}
