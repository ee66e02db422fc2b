/** The values of the tensors of an output, read, cast and assembled piece by piece. */

import { UserError } from '../../../base/errors.js';
import { meanOfRows } from '../../../base/linalg/matrix.js';
import {
  decodeValues,
  littleEndianWords,
  numbersIn,
  viewOf,
} from '../../../base/tensor/decode-values.js';
import { STORED_DTYPES, type StoredDtype } from '../../../base/tensor/dtype.js';
import {
  convertDtype,
  type EncodableDtype,
  encode,
  isEncodable,
} from '../../../base/tensor/encode.js';
import {
  groupsIn,
  NotFiniteWeight,
  packCodes,
  type QuantizedRows,
  quantizeRows,
  type ScaleDtype,
  type WeightForm,
} from '../../../base/tensor/group-quantization.js';
import { setting } from '../../../base/text/setting.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import {
  encodeBlocks,
  type WritableBlocks,
} from '../../../checkpoint/gguf/blocks/encode-blocks.js';
import { ggmlType } from '../../../checkpoint/gguf/ggml-types.js';
import { type PackedPart, packedWords } from '../../../checkpoint/packed-weights.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { narrow, readInChunks, readTensor, tensorPieces } from '../../../checkpoint/view.js';
import type { Formula } from '../../../model/architecture/rotary-scaling.js';
import type { Extension } from '../conversion-choices.js';
import { type ConversionPlan, type PlannedTensor, tensorNamed } from '../plan/conversion-plan.js';
import type { SrtePart } from '../srte/srte-tables.js';
import { runsOf } from './table-rows.js';

/** The tensors of a computed table: [1, rows, …] of the rows that the input has; [H, r] of a projection. */
export type TableParts = ReadonlyMap<SrtePart, StoredTensor>;

export interface ValueSources {
  readonly checkpoint: Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>;
  /** Tables by the number of the planned table; undefined where none was computed. */
  readonly made: readonly ({ readonly parts: TableParts } | undefined)[];
  readonly plan: Pick<ConversionPlan, 'formulas' | 'srte' | 'gguf'>;
  /** Whether to clamp values beyond the dtype's range. */
  readonly saturate: boolean;
}

/** Numbers processed at a time. */
const BLOCK_NUMBERS = 2 ** 17;

/**
 * The bytes of a planned tensor, in order, little-endian. A piece may reuse the memory of the previous one.
 * @throws UserError when reading fails, or a value does not fit the dtype.
 */
export function outputValuesOf(
  planned: PlannedTensor,
  sources: ValueSources,
): AsyncGenerator<Uint8Array, undefined> {
  const { action } = planned;
  const stored = (name: string) => requireStoredTensor(name, sources.checkpoint);
  const written = (tensor: StoredTensor) => castTo(planned, readInChunks(tensor), tensor, sources);
  switch (action.do) {
    case 'copy': {
      const values = written(stored(action.from));
      return planned.blocks ? inBlocks(planned, planned.blocks, values, sources) : values;
    }
    case 'fit':
      return fitted(planned, stored(action.from), action.rows, action.extension, sources);
    case 'unpair':
      return written(unpaired(stored(action.from), action.heads));
    case 'average':
      return averaged(planned, action.from.map(stored), sources);
    case 'table': {
      const made = sources.made[action.table]?.parts.get(action.part);
      if (made === undefined) throw new Error(`${planned.name} has not been made`);
      const [, rows = 0] = planned.shape;
      return action.part === 'proj.weight'
        ? written(made)
        : fitted(planned, made, rows, sources.plan.srte?.extension ?? null, sources);
    }
    case 'quantize': {
      const { weight, part, form } = action;
      const values = () => outputValuesOf(weight, sources);
      return packedValues({ part, form, weight, values, file: sources.checkpoint.path });
    }
    case 'compute': {
      const formula = sources.plan.formulas.get(planned.name);
      if (formula === undefined) throw new Error(`no formula for ${planned.name}`);
      return computed(planned, formula);
    }
  }
}

/** A tensor that must exist. */
export function requireStoredTensor(
  name: string,
  checkpoint: ValueSources['checkpoint'],
): StoredTensor {
  const tensor = tensorNamed(name, checkpoint);
  if (tensor === undefined) throw new Error(`no tensor ${name}`);
  return tensor;
}

/** A view with the rows of each head reordered: 0, 2, 4, … and then 1, 3, 5, …. @param tensor [heads · d, …] */
function unpaired(tensor: StoredTensor, heads: number): StoredTensor {
  const [rows = 0, ...rest] = tensor.shape;
  const [step = 0, ...steps] = tensor.strides;
  const headDim = rows / heads;
  return {
    ...tensor,
    shape: [heads, 2, headDim / 2, ...rest],
    strides: [headDim * step, step, 2 * step, ...steps],
  };
}

/** @param tensor [1, stored rows, …] */
async function* fitted(
  planned: PlannedTensor,
  tensor: StoredTensor,
  rows: number,
  extension: Extension | null,
  sources: ValueSources,
): AsyncGenerator<Uint8Array, undefined> {
  const [, stored = 0] = tensor.shape;
  for (const { from, length } of runsOf(stored, 0, rows, extension)) {
    if (from === null) yield* zeroChunks((planned.bytes / rows) * length);
    else {
      const run = narrow(tensor, 1, from, length);
      yield* castTo(planned, readInChunks(run), tensor, sources);
    }
  }
}

function* zeroChunks(bytes: number): Generator<Uint8Array, undefined> {
  const piece = new Uint8Array(Math.min(bytes, BLOCK_NUMBERS * 8));
  for (let left = bytes; left > 0; left -= piece.length) {
    yield piece.subarray(0, Math.min(left, piece.length));
  }
}

async function* castTo(
  { name, dtype }: PlannedTensor,
  chunks: AsyncIterable<Uint8Array>,
  { dtype: from }: StoredTensor,
  { checkpoint: { path }, saturate }: ValueSources,
): AsyncGenerator<Uint8Array, undefined> {
  if (from === dtype) {
    yield* chunks;
    return;
  }
  if (!isEncodable(dtype)) throw new Error(`${from} cannot be written as ${dtype}`);
  let target = new Uint8Array();
  let done = 0;
  for await (const chunk of chunks) {
    const numbers = numbersIn(from, chunk.length);
    const bytes = storedBytes(numbers, dtype);
    if (target.length < bytes) target = new Uint8Array(bytes);
    const overflow = convertDtype(from, dtype, chunk, target, { saturate });
    if (overflow >= 0 && !saturate) {
      const values = new Float64Array(numbers);
      decodeValues(from, chunk, values);
      throw overflowError(
        path,
        name,
        dtype,
        values[overflow] ?? Number.NaN,
        `value ${done + overflow}`,
      );
    }
    done += numbers;
    yield target.subarray(0, bytes);
  }
}

/** @param values Float32 numbers, in pieces of any length. */
async function* inBlocks(
  { name, shape }: PlannedTensor,
  type: WritableBlocks,
  values: AsyncIterable<Uint8Array>,
  { checkpoint: { path }, plan }: ValueSources,
): AsyncGenerator<Uint8Array, undefined> {
  const { values: perBlock, bytes: blockBytes } = ggmlType(type);
  const columns = shape.at(-1) ?? perBlock;
  const matrix = columns * (shape.at(-2) ?? 1);
  const importances = plan.gguf?.importances?.get(name);
  // Importances are those of whole rows.
  const step = importances ? columns : perBlock;
  const atOnce = Math.max(1, Math.floor(BLOCK_NUMBERS / step)) * step;
  const target = new Uint8Array((atOnce / perBlock) * blockBytes);
  let done = 0;
  for await (const piece of byteBlocks(values, 4 * atOnce)) {
    const numbers = viewOf(Float32Array, littleEndianWords(piece, 4));
    const bytes = (numbers.length / perBlock) * blockBytes;
    // The rows of one expert after the other.
    for (let from = 0; from < numbers.length; ) {
      const toMatrixEnd = matrix - ((done + from) % matrix);
      const length = importances ? Math.min(numbers.length - from, toMatrixEnd) : numbers.length;
      const expert = Math.floor((done + from) / matrix);
      const wrong = encodeBlocks(
        type,
        numbers.subarray(from, from + length),
        target.subarray((from / perBlock) * blockBytes),
        importances && {
          columns,
          importance: importances.subarray(expert * columns, (expert + 1) * columns),
        },
      );
      if (wrong >= 0) throw unblockable(path, name, type, done + from + wrong);
      from += length;
    }
    done += numbers.length;
    yield target.subarray(0, bytes);
  }
}

const unblockable = (file: string, name: string, type: WritableBlocks, value: number) =>
  new UserError('refused-file', `${file} has values that ${type} cannot hold`, {
    problems: [
      {
        severity: 'error',
        file,
        path: `tensor ${JSON.stringify(name)}`,
        message: `the block from value ${value} on has a value that is infinite, NaN or too large for a float16 scale`,
        suggestion: `choose ${setting('dtype', 'f32')} or bf16`,
      },
    ],
  });

const storedBytes = (numbers: number, dtype: StoredDtype) =>
  (numbers * STORED_DTYPES[dtype].bits) / 8;

/** The mean of tensors, value by value. @param tensors Tensors of one shape. */
async function* averaged(
  { name, dtype }: PlannedTensor,
  tensors: readonly StoredTensor[],
  { checkpoint: { path }, saturate }: ValueSources,
): AsyncGenerator<Uint8Array, undefined> {
  if (!isEncodable(dtype)) throw new Error(`a mean cannot be written as ${dtype}`);
  // All tensors are split at the same positions, even with different types.
  const wide = tensors.map((tensor) => [
    ...tensorPieces(tensor, storedBytes(BLOCK_NUMBERS, tensor.dtype)),
  ]);
  let done = 0;
  for (const [index, piece] of wide[0]?.entries() ?? []) {
    const values = new Float64Array(tensors.length * piece.elements);
    for (const [place, pieces] of wide.entries()) {
      const part = pieces[index] ?? piece;
      decodeValues(part.dtype, readTensor(part), values.subarray(place * piece.elements));
    }
    const mean = new Float64Array(piece.elements);
    meanOfRows({ values, rows: tensors.length, columns: piece.elements }, mean);
    const target = new Uint8Array(storedBytes(piece.elements, dtype));
    const overflow = encode(dtype, mean, target, { saturate });
    if (overflow >= 0 && !saturate) {
      throw overflowError(
        path,
        name,
        dtype,
        mean[overflow] ?? Number.NaN,
        `value ${done + overflow}`,
      );
    }
    done += piece.elements;
    yield target;
  }
}

async function* computed(
  { shape, dtype }: PlannedTensor,
  formula: Formula,
): AsyncGenerator<Uint8Array, undefined> {
  if (!isEncodable(dtype)) throw new Error(`a buffer cannot be written as ${dtype}`);
  const elements = shape.reduce((product, size) => product * size, 1);
  for (let first = 0; first < elements; first += BLOCK_NUMBERS) {
    const numbers = new Float64Array(Math.min(BLOCK_NUMBERS, elements - first));
    for (let index = 0; index < numbers.length; index++) numbers[index] = formula(first + index);
    const target = new Uint8Array(storedBytes(numbers.length, dtype));
    encode(dtype, numbers, target);
    yield target;
  }
}

/** Error for a value beyond the range of its output type. */
export function overflowError(
  file: string,
  name: string,
  dtype: EncodableDtype,
  value: number,
  place: string,
): UserError {
  return new UserError('refused-file', `${file} has values that ${dtype} cannot hold`, {
    problems: [
      {
        severity: 'error',
        file,
        path: `tensor ${JSON.stringify(name)}`,
        message: `has ${value} in ${place}, beyond the range of ${dtype}: it would become infinite`,
        suggestion: `choose a wider ${setting('dtype')}, or clamp such values with ${setting('saturate')}`,
      },
    ],
  });
}

// Bytes of the tensors of a packed weight, computed from the bytes of the weight in whole rows.

/** Values quantized at a time, in whole rows. */
const ROWS_NUMBERS = 2 ** 18;

/** Rows are processed in multiples of this: their zero points then share whole words, for any number of bits. */
const ROW_STEP = 8;

interface PackedValues {
  readonly part: PackedPart;
  readonly form: WeightForm;
  /** The weight that is quantized, and its bytes. */
  readonly weight: PlannedTensor;
  readonly values: () => AsyncIterable<Uint8Array>;
  /** The file of the input, for messages. */
  readonly file: string;
}

/**
 * The bytes of one of the tensors, in order.
 * @throws UserError for a weight with a value that is not finite.
 */
async function* packedValues(values: PackedValues): AsyncGenerator<Uint8Array, undefined> {
  const { part, form, weight, file } = values;
  const [rows = 0, columns = 0] = weight.shape;
  if (part === 'shape') {
    yield new Uint8Array(BigInt64Array.of(BigInt(rows), BigInt(columns)).buffer);
    return;
  }
  const rowBytes = weight.bytes / rows;
  const atOnce = Math.max(1, Math.floor(ROWS_NUMBERS / columns / ROW_STEP)) * ROW_STEP;
  for await (const block of byteBlocks(values.values(), atOnce * rowBytes)) {
    const numbers = new Float64Array(block.length / (STORED_DTYPES[weight.dtype].bits / 8));
    decodeValues(weight.dtype, block, numbers);
    yield packedPartBytes(
      part,
      quantized(numbers, columns, form, weight, file),
      form,
      weight.dtype as ScaleDtype,
    );
  }
}

function quantized(
  numbers: Float64Array,
  columns: number,
  form: WeightForm,
  { name, dtype }: PlannedTensor,
  file: string,
): QuantizedRows {
  try {
    return quantizeRows(numbers, columns, form, dtype as ScaleDtype);
  } catch (error) {
    if (!(error instanceof NotFiniteWeight)) throw error;
    throw new UserError('refused-file', `${file} has values that cannot be quantized`, {
      problems: [
        {
          severity: 'error',
          file,
          path: `tensor ${JSON.stringify(name)}`,
          message: `expected finite values, found ${error.value}`,
          suggestion: `convert without ${setting('quantize')}, or repair the weights first`,
        },
      ],
    });
  }
}

function packedPartBytes(
  part: Exclude<PackedPart, 'shape'>,
  rows: QuantizedRows,
  form: WeightForm,
  dtype: ScaleDtype,
): Uint8Array {
  switch (part) {
    case 'packed':
      // Rows are whole groups, and groups are whole words.
      return packCodes(rows.codes, rows.columns, form.bits);
    case 'scale': {
      const bytes = new Uint8Array((rows.scales.length * STORED_DTYPES[dtype].bits) / 8);
      encode(dtype, rows.scales, bytes);
      return bytes;
    }
    case 'zeroPoint':
      return packedZeroPoints(rows, form);
  }
}

/** Words [rows of words, groups], in which the zero points of consecutive rows follow each other. */
function packedZeroPoints({ rows, columns, zeroPoints }: QuantizedRows, form: WeightForm) {
  const { bits } = form;
  const groups = groupsIn(columns, form);
  const perWord = 32 / bits;
  const words = packedWords(rows, bits);
  const turned = new Uint8Array(words * groups * perWord);
  for (let row = 0; row < rows; row++) {
    const word = Math.floor(row / perWord) * groups;
    for (let group = 0; group < groups; group++) {
      turned[(word + group) * perWord + (row % perWord)] = zeroPoints[row * groups + group] ?? 0;
    }
  }
  return packCodes(turned, turned.length, bits);
}

/** Splits a stream of bytes into blocks of one size; the last may be shorter. */
async function* byteBlocks(
  chunks: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array, undefined> {
  const block = new Uint8Array(size);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const length = Math.min(size - filled, chunk.length - at);
      block.set(chunk.subarray(at, at + length), filled);
      filled += length;
      at += length;
      if (filled < size) continue;
      yield block;
      filled = 0;
    }
  }
  if (filled > 0) yield block.subarray(0, filled);
}
