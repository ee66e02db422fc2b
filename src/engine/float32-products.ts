/** Matrix products of a library that computes in float32, with the interface of linalg/. */
import type { Matrix, MatrixProducts } from '../base/linalg/matrix.js';

/** Operations of a library. `Loaded` is a matrix that it holds. */
export interface Float32Library<Loaded> {
  /** Loads values of shape [rows, columns], row-major, which stay unchanged until `release`. */
  load(values: Float32Array, rows: number, columns: number): Promise<Loaded>;
  /** a · b, row-major. */
  times(a: Loaded, b: Loaded): Promise<Float32Array>;
  /** a · bᵀ, row-major. */
  timesTransposed(a: Loaded, b: Loaded): Promise<Float32Array>;
  release(loaded: Loaded): void;
  /** Frees the remaining resources. */
  close(): Promise<void>;
}

/** Products that can be closed. */
export interface ClosableProducts extends MatrixProducts {
  /** Frees all resources. */
  close(): Promise<void>;
}

/** A loaded matrix, scaled by `factor`, a power of two. */
interface LoadedOperand<Loaded> {
  readonly loaded: Loaded;
  readonly factor: number;
  readonly values: Float32Array;
}

/**
 * Matrix products that scale each matrix by a power of two, so that float32 can represent it and its products. Held
 * matrices are converted once.
 */
export function float32Products<Loaded>(library: Float32Library<Loaded>): ClosableProducts {
  /** Undefined until its first use. */
  const held = new Map<Matrix, LoadedOperand<Loaded> | undefined>();
  const spare: Float32Array[] = [];

  async function load({ values, rows, columns }: Matrix): Promise<LoadedOperand<Loaded>> {
    const size = rows * columns;
    const at = spare.findIndex(({ length }) => length === size);
    const [scaled = new Float32Array(size)] = at < 0 ? [] : spare.splice(at, 1);
    const factor = writeScaled(values, scaled);
    return { loaded: await library.load(scaled, rows, columns), factor, values: scaled };
  }

  function release(operand: LoadedOperand<Loaded>): void {
    library.release(operand.loaded);
    spare.push(operand.values);
    if (spare.length > MOST_SPARE) spare.shift();
  }

  function letGo(matrix: Matrix): void {
    const operand = held.get(matrix);
    held.delete(matrix);
    if (operand) release(operand);
  }

  async function multiply(
    kind: 'times' | 'timesTransposed',
    [a, b]: readonly [Matrix, Matrix],
    target: Float64Array,
  ): Promise<void> {
    const left = held.get(a) ?? (await load(a));
    if (held.has(a)) held.set(a, left);
    const right = held.get(b) ?? (await load(b));
    if (held.has(b)) held.set(b, right);
    try {
      const product = await library[kind](left.loaded, right.loaded);
      writeUnscaled(product, left.factor, right.factor, target);
    } finally {
      if (!held.has(a)) release(left);
      if (!held.has(b)) release(right);
    }
  }

  return {
    rounding: 2 ** -24,
    times: (a, b, target) => multiply('times', [a, b], target),
    timesTransposed: (a, b, target) => multiply('timesTransposed', [a, b], target),
    hold(matrix) {
      held.set(matrix, undefined);
      return () => letGo(matrix);
    },
    async close() {
      for (const matrix of [...held.keys()]) letGo(matrix);
      await library.close();
    },
  };
}

/** Maximum number of arrays kept for reuse. */
const MOST_SPARE = 4;

/** Values in this range need no scaling: products of two and long sums of them neither overflow nor vanish. */
const LEAST_LARGEST = 2 ** -24;
const MOST_LARGEST = 2 ** 24;

/** Writes the scaled values and returns the factor, a power of two. */
function writeScaled(values: Float64Array, target: Float32Array): number {
  let largest = 0;
  for (let k = 0; k < target.length; k++) {
    const value = values[k] ?? 0;
    target[k] = value;
    const size = Math.abs(value);
    if (size > largest) largest = size;
  }
  if (largest === 0 || (largest >= LEAST_LARGEST && largest <= MOST_LARGEST)) return 1;
  // A value that is not finite has no logarithm to scale by: leave it unchanged.
  const factor = Number.isFinite(largest) ? 2 ** -Math.floor(Math.log2(largest)) : 1;
  for (let k = 0; k < target.length; k++) target[k] = (values[k] ?? 0) * factor;
  return factor;
}

/** Multiplies by one factor after the other: their product may not fit in float64. */
function writeUnscaled(
  product: Float32Array,
  first: number,
  second: number,
  target: Float64Array,
): void {
  if (first === 1 && second === 1) {
    target.set(product);
    return;
  }
  for (let k = 0; k < product.length; k++) target[k] = (product[k] ?? 0) / first / second;
}
