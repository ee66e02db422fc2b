import type { Matrix } from './matrix.js';
import type { MatrixProduct } from './product.js';
export interface RowSource {
  readonly rows: number;
  readonly columns: number;
  read(firstRow: number, rows: number, target: Float64Array): void | Promise<void>;
}
export interface MatrixProducts { readonly timesTransposed: MatrixProduct; readonly times: MatrixProduct }
export interface LowRankOptions {
  readonly want: { readonly rank: number } | { readonly relativeError: number };
  readonly seed: number;
  readonly products: MatrixProducts;
  readonly blockRows: number;
  readonly onRows?: (rows: number) => void;
}
export interface LowRank {
  readonly rank: number;
  readonly singularValues: Float64Array;
  readonly squaredNorm: number;
  readonly projection: Matrix;
  left(rows: Matrix, target: Float64Array): Promise<void>;
}
export async function lowRank(_s: RowSource, _o: LowRankOptions): Promise<LowRank> { throw new Error('stub'); }
export function lowRankBytes(_r: number, _c: number, _k: number, _b: number): number { return 0; }
