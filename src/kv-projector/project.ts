/** Keys and values through an adapter, rows at a time. */
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { breathe, readRowsAsync, readTensor } from '../checkpoint/view.js';
import { UserError } from '../errors.js';
import type { Matrix } from '../linalg/matrix.js';
import type { MatrixProducts } from '../linalg/product.js';
import { layerNorm } from '../modules/norms.js';
import { decode, numbersIn } from '../tensor/decode.js';
import { STORED_DTYPES } from '../tensor/dtype.js';
import { type EncodableDtype, encode } from '../tensor/encode.js';
import type { ProjectedTensor } from './inputs.js';
import { NORM_EPSILON, partName } from './projector.js';
import type { SavedAdapter } from './saved.js';

/** Numbers of the widest row of a block times its rows, at most about: 32 MB in float64. */
const BLOCK_NUMBERS = 2 ** 22;

/** Values of a result that are NaN or infinite. */
export interface NonFinite {
  /** That were so in what was given. */
  given: number;
  made: number;
}

export interface ProjectOptions {
  readonly products: MatrixProducts;
  readonly dtype: EncodableDtype;
  /** Counts them. */
  readonly nonFinite: NonFinite;
  /** Told of each block, in bytes of the input. */
  readonly done: (bytes: number) => void;
}

/**
 * The bytes of a projected tensor, in blocks of rows. Computed in float32 or better and rounded once.
 * @throws UserError when a file cannot be read, or the adapter holds values that are not finite.
 */
export async function* projectedChunks(
  { tensor, adapter }: ProjectedTensor,
  { products, dtype, nonFinite, done }: ProjectOptions,
): AsyncGenerator<Uint8Array, undefined> {
  if (tensor.elements === 0) return;
  const { teacherWidth, studentWidth, hidden = 0 } = adapter;
  const run = loadAdapter(adapter, products);
  const rows = tensor.elements / teacherWidth;
  const atOnce = Math.max(
    1,
    Math.floor(BLOCK_NUMBERS / Math.max(teacherWidth, studentWidth, hidden)),
  );
  const flat = asRows(tensor, rows, teacherWidth);
  try {
    for (let row = 0; row < rows; row += atOnce) {
      const count = Math.min(atOnce, rows - row);
      const bytes = new Uint8Array((count * tensor.bytes) / rows);
      await readRowsAsync(flat, row, count, bytes);
      const input = new Float64Array(count * teacherWidth);
      decode(tensor.dtype, bytes, input);
      nonFinite.given += countNonFinite(input);
      const output = await run.apply({ values: input, rows: count, columns: teacherWidth });
      const encoded = new Uint8Array((output.length * STORED_DTYPES[dtype].bits) / 8);
      const overflow = encode(dtype, output, encoded);
      nonFinite.made += overflow < 0 ? countNonFinite(output) : countEncoded(dtype, encoded);
      yield encoded;
      done(bytes.length);
      await breathe();
    }
  } finally {
    run.close();
  }
}

function countNonFinite(values: Float64Array): number {
  let count = 0;
  for (const value of values) if (!Number.isFinite(value)) count++;
  return count;
}

/** The same, when some are beyond the type. */
function countEncoded(dtype: EncodableDtype, encoded: Uint8Array): number {
  const values = new Float64Array(numbersIn(dtype, encoded.length));
  decode(dtype, encoded, values);
  return countNonFinite(values);
}

/** [..., d] as [rows, d]: a safetensors file has no strides. */
const asRows = (tensor: StoredTensor, rows: number, width: number): StoredTensor => ({
  ...tensor,
  shape: [rows, width],
  strides: [width, 1],
});

interface Runnable {
  /** [n, d_t] → [n, d_s] */
  apply(input: Matrix): Promise<Float64Array>;
  close(): void;
}

function loadAdapter(adapter: SavedAdapter, products: MatrixProducts): Runnable {
  switch (adapter.kind) {
    case 'linear': {
      const linear = loadLinear(adapter, 'weight', 'bias', products);
      return { apply: (input) => linear.apply(input), close: linear.close };
    }
    case 'elastic': {
      const norm = loadNorm(adapter);
      const down = loadLinear(adapter, '1.weight', '1.bias', products);
      const up = loadLinear(adapter, '4.weight', '4.bias', products);
      return {
        apply: async (input) => {
          const values = silu(await down.apply({ ...input, values: norm(input) }));
          return up.apply({ values, rows: input.rows, columns: down.width });
        },
        close: () => {
          down.close();
          up.close();
        },
      };
    }
  }
}

function silu(values: Float64Array): Float64Array {
  for (const [at, value] of values.entries()) values[at] = value / (1 + Math.exp(-value));
  return values;
}

function loadNorm(adapter: SavedAdapter): (input: Matrix) => Float64Array {
  const shape = [adapter.teacherWidth];
  const scales = Float32Array.from(valuesOf(adapter, '0.weight'));
  const shifts = Float32Array.from(valuesOf(adapter, '0.bias'));
  const [gamma, beta] = [scales, shifts].map((data) => ({ dtype: 'f32', shape, data }) as const);
  return ({ values, rows, columns }) => {
    const x = { dtype: 'f32', shape: [rows, columns], data: Float32Array.from(values) } as const;
    if (gamma === undefined) throw new Error('a norm without scales');
    return Float64Array.from(layerNorm(x, gamma, beta, NORM_EPSILON).data);
  };
}

interface LoadedLinear extends Runnable {
  /** Of what comes out. */
  readonly width: number;
}

/** x · weightᵀ + bias */
function loadLinear(
  adapter: SavedAdapter,
  weightPart: string,
  biasPart: string,
  products: MatrixProducts,
): LoadedLinear {
  const [width = 0, columns = 0] = adapter.parts.get(weightPart)?.shape ?? [];
  const weight = { values: valuesOf(adapter, weightPart), rows: width, columns };
  const bias = adapter.parts.has(biasPart) ? valuesOf(adapter, biasPart) : undefined;
  const release = products.hold(weight);
  return {
    width,
    close: release,
    apply: async (input) => {
      const target = new Float64Array(input.rows * width);
      await products.timesTransposed(input, weight, target);
      if (bias)
        for (const [at, value] of target.entries()) target[at] = value + (bias[at % width] ?? 0);
      return target;
    },
  };
}

function valuesOf({ module, branch, parts }: SavedAdapter, part: string): Float64Array {
  const tensor = parts.get(part);
  if (tensor === undefined) throw new Error(`an adapter without ${part}`);
  const values = new Float64Array(tensor.elements);
  decode(tensor.dtype, readTensor(tensor), values);
  if (countNonFinite(values) > 0) {
    const { path } = tensor.storage.file;
    throw new UserError('refused-file', `${path} is refused`, {
      problems: [
        {
          severity: 'error',
          file: path,
          path: `tensor ${JSON.stringify(partName(module, branch, part))}`,
          message: 'holds NaN or infinities, of which all results would be NaN',
          suggestion: 'train the projector again from a state that is finite',
        },
      ],
    });
  }
  return values;
}

/** Multiplications that a plan takes. */
export const multiplicationsOf = (tensors: readonly ProjectedTensor[]): number =>
  tensors.reduce((sum, { tensor, adapter }) => {
    const { teacherWidth, studentWidth, hidden } = adapter;
    const each =
      hidden === undefined ? teacherWidth * studentWidth : hidden * (teacherWidth + studentWidth);
    return sum + (tensor.elements / teacherWidth) * each;
  }, 0);
