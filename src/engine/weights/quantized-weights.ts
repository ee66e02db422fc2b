/** Weights that a run quantizes, and their values in pieces. Other tensors stay in float32. */

import { UserError, usageError } from '../../base/errors.js';
import type { QuantizedRows, WeightForm } from '../../base/tensor/group-quantization.js';
import {
  dequantizedRows,
  NotFiniteWeight,
  quantizeRows,
} from '../../base/tensor/group-quantization.js';
import { setting } from '../../base/text/setting.js';
import type { Layer } from '../../model/architecture/layer.js';
import type { WeightMatrix } from '../../model/architecture/weight-matrices.js';
import { quantizedMatrices } from '../../model/architecture/weight-matrices.js';
import type { Engine, EngineInfo } from '../engine.js';
import type { WeightSource } from './weights.js';

/** @throws UserError when an engine has no products with quantized weights. */
export function refuseWeightForm({ name, provider, compute }: EngineInfo): void {
  if (name !== 'onnx' || (provider === 'cpu' && compute === 'f32')) return;
  const isOnCpu = provider === 'cpu';
  const found = isOnCpu ? `products in ${compute}` : `the provider ${provider}`;
  throw usageError(
    `quantized weights run on the CPU in float32, found ${found}`,
    `write ${isOnCpu ? setting('compute', 'f32') : setting('device', 'cpu')}, or remove ${setting('weights')}`,
  );
}

/**
 * An engine whose programs all have quantized weights. It closes with the given one.
 * @throws UserError when it has no products with such weights.
 */
export function withWeightForm(engine: Engine, weightForm: WeightForm): Engine {
  refuseWeightForm(engine.info);
  return {
    ...engine,
    info: { ...engine.info, weightForm },
    load: (layer, weights, options) => engine.load(layer, weights, { ...options, weightForm }),
  };
}

/** Values read at a time. */
const PIECE_ELEMENTS = 2 ** 20;

/**
 * Quantized rows of a matrix from row `first` on, in pieces.
 * @throws UserError when a value is not finite.
 */
export function* quantizedPieces(
  source: WeightSource,
  matrix: WeightMatrix,
  form: WeightForm,
  first = 0,
  count = matrix.rows,
): Generator<QuantizedRows> {
  const atOnce = Math.max(1, Math.floor(PIECE_ELEMENTS / matrix.columns));
  for (let done = 0; done < count; done += atOnce) {
    const rows = Math.min(atOnce, count - done);
    yield quantized(matrix, readMatrix(source, matrix, first + done, rows), matrix.columns, form);
  }
}

function quantized(
  { tensor }: WeightMatrix,
  values: Float32Array,
  columns: number,
  form: WeightForm,
): QuantizedRows {
  try {
    return quantizeRows(values, columns, form);
  } catch (error) {
    if (!(error instanceof NotFiniteWeight)) throw error;
    throw new UserError(
      'refused-file',
      `cannot quantize ${tensor.name}: expected finite values, found ${error.value}`,
      {
        suggestion: `run without ${setting('weights')}; quick-test shows where values stop being finite`,
      },
    );
  }
}

/** Rows of a matrix in float32, [count, columns]. */
function readMatrix(
  source: WeightSource,
  { tensor, rows, columns, isTransposed }: WeightMatrix,
  first: number,
  count: number,
): Float32Array {
  const values = new Float32Array(count * columns);
  if (!isTransposed) {
    source.read(tensor, first * columns, values);
    return values;
  }
  const part = new Float32Array(count);
  for (let column = 0; column < columns; column++) {
    source.read(tensor, column * rows + first, part);
    for (let row = 0; row < count; row++) values[row * columns + column] = part[row] ?? 0;
  }
  return values;
}

/** The source of a layer's weights with the quantized values in place of its own, for engines that compute in float32. */
export function dequantizedSource(
  source: WeightSource,
  layer: Layer,
  form: WeightForm,
): WeightSource {
  const matrices = quantizedMatrices(layer);
  return {
    rangeOf: (tensor) => (matrices.has(tensor) ? undefined : source.rangeOf(tensor)),
    read(tensor, first, target) {
      const matrix = matrices.get(tensor);
      if (matrix === undefined) source.read(tensor, first, target);
      else if (matrix.isTransposed) readTransposed(source, matrix, form, first, target);
      else readDequantized(source, matrix, form, first, target);
    },
  };
}

function readDequantized(
  source: WeightSource,
  matrix: WeightMatrix,
  form: WeightForm,
  first: number,
  target: Float32Array,
): void {
  const { columns } = matrix;
  const firstRow = Math.floor(first / columns);
  const lastRow = Math.ceil((first + target.length) / columns);
  let at = firstRow * columns;
  for (const piece of quantizedPieces(source, matrix, form, firstRow, lastRow - firstRow)) {
    const values = dequantizedRows(piece, form);
    copyPart(values, at - first, target);
    at += values.length;
  }
}

/** Groups of a transposed matrix are columns of its tensor [columns, rows], `group` rows of the tensor at a time. */
function readTransposed(
  source: WeightSource,
  matrix: WeightMatrix,
  form: WeightForm,
  first: number,
  target: Float32Array,
): void {
  const { tensor, rows, columns } = matrix;
  const { group } = form;
  const end = Math.ceil((first + target.length) / rows);
  for (let from = Math.floor(first / rows / group) * group; from < end; from += group) {
    const length = Math.min(group, columns - from);
    const stored = new Float32Array(length * rows);
    source.read(tensor, from * rows, stored);
    const values = dequantizedRows(
      quantized(matrix, transposed(stored, length, rows), length, form),
      form,
    );
    copyPart(transposed(values, rows, length), from * rows - first, target);
  }
}

/** Edge of the square tiles that are transposed one by one, so that both sides stay in the cache. */
const TILE = 32;

/** [rows, columns] → [columns, rows] */
export function transposed(
  values: Float32Array | Float64Array,
  rows: number,
  columns: number,
): Float32Array {
  const result = new Float32Array(values.length);
  for (let top = 0; top < rows; top += TILE) {
    const bottom = Math.min(top + TILE, rows);
    for (let left = 0; left < columns; left += TILE) {
      const right = Math.min(left + TILE, columns);
      for (let column = left; column < right; column++) {
        for (let row = top; row < bottom; row++) {
          result[column * rows + row] = values[row * columns + column] as number;
        }
      }
    }
  }
  return result;
}

/** Copies the part of `values` within `target`, whose element 0 is element −`offset` of `values`. */
function copyPart(values: Float32Array | Float64Array, offset: number, target: Float32Array): void {
  const from = Math.max(0, -offset);
  const to = Math.min(values.length, target.length - offset);
  if (to > from) target.set(values.subarray(from, to), offset + from);
}
