/**
 * Weights in the layout `pack-quantized` of compressed-tensors, read as tensors of floats. A weight [rows, columns] is
 * stored as `weight_packed` [rows, words], `weight_scale` [rows, groups], `weight_shape` [2] and, with zero points,
 * `weight_zero_point`, which is packed along the rows. A code c of b bits is the integer c − 2^(b − 1).
 */

import { decodeValues } from '../base/tensor/decode-values.js';
import type { StoredDtype } from '../base/tensor/dtype.js';
import { isSameShape, STORED_DTYPES } from '../base/tensor/dtype.js';
import { encode } from '../base/tensor/encode.js';
import type { ScaleDtype, WeightForm } from '../base/tensor/group-quantization.js';
import { unpackCodes } from '../base/tensor/group-quantization.js';
import { ByteFile } from './byte-file.js';
import type { Checkpoint } from './checkpoint.js';
import { contiguousStrides, type StoredTensor } from './stored-tensor.js';
import { readRows, readTensor } from './view.js';

/** Names of the tensors of a weight, after that of its module. */
export const PACKED_SUFFIXES = {
  packed: 'weight_packed',
  scale: 'weight_scale',
  zeroPoint: 'weight_zero_point',
  shape: 'weight_shape',
} as const;

export type PackedPart = keyof typeof PACKED_SUFFIXES;

const SUFFIX = `.${PACKED_SUFFIXES.packed}`;
/** Bits of a word. */
const WORD = 32;

/** Words of `count` codes. */
export const packedWords = (count: number, bits: WeightForm['bits']): number =>
  Math.ceil((count * bits) / WORD);

interface PackedWeight {
  readonly bits: WeightForm['bits'];
  readonly rows: number;
  readonly columns: number;
  readonly group: number;
  readonly dtype: ScaleDtype;
  readonly shape: StoredTensor;
  readonly packed: StoredTensor;
  readonly scale: StoredTensor;
  readonly zeroPoint: StoredTensor | undefined;
}

/**
 * A checkpoint with a tensor of floats, of the type of its scales, for each packed weight. Its values are
 * (code − zero point) · scale, rounded once, as compressed-tensors computes them. The file's own tensors stay in
 * `packed`. Packed weights of other layouts stay as they are, with a warning.
 */
export function withUnpackedWeights(checkpoint: Checkpoint): Checkpoint {
  const { tensors } = checkpoint;
  const weights = new Map<string, PackedWeight>();
  const doubts = new Map<string, string>();
  for (const name of tensors.keys()) {
    if (!name.endsWith(SUFFIX)) continue;
    const module = name.slice(0, -SUFFIX.length);
    const found = weightOf(module, tensors);
    if (typeof found === 'string') doubts.set(found, name);
    else weights.set(module, found);
  }
  const warnings = [
    ...checkpoint.warnings,
    ...[...doubts].map(([doubt, name]) => `${name} is not read as floats: ${doubt}`),
  ];
  if (weights.size === 0) return doubts.size === 0 ? checkpoint : { ...checkpoint, warnings };
  const unpacked = new Map<string, StoredTensor>();
  for (const [name, tensor] of tensors) {
    const dot = name.lastIndexOf('.');
    const weight = isPackedPart(name.slice(dot + 1)) ? weights.get(name.slice(0, dot)) : undefined;
    if (weight === undefined) unpacked.set(name, tensor);
    else if (name.endsWith(SUFFIX)) {
      unpacked.set(`${name.slice(0, dot)}.weight`, asFloats(weight, checkpoint.path));
    }
  }
  const names = [...weights.keys()].map((module) => `${module}.weight`);
  return { ...checkpoint, warnings, tensors: unpacked, packed: { tensors, weights: names } };
}

const PARTS: ReadonlySet<string> = new Set(Object.values(PACKED_SUFFIXES));
const isPackedPart = (name: string): boolean => PARTS.has(name);

/** A packed weight, or the reason why it is not read. */
function weightOf(
  module: string,
  tensors: ReadonlyMap<string, StoredTensor>,
): PackedWeight | string {
  const part = (name: PackedPart) => tensors.get(`${module}.${PACKED_SUFFIXES[name]}`);
  const [packed, scale, shape] = [part('packed'), part('scale'), part('shape')];
  const zeroPoint = part('zeroPoint');
  if (tensors.has(`${module}.weight`)) return 'the weight is stored as floats too';
  if (tensors.has(`${module}.weight_g_idx`)) return 'its groups are reordered (weight_g_idx)';
  if (!packed || !scale || !shape) return 'expected weight_scale and weight_shape with it';
  const [rows = 0, columns = 0] = integersIn(shape);
  const bits = ([4, 8] as const).filter((each) =>
    isMatrix(packed, ['I32'], rows, packedWords(columns, each)),
  );
  const [found, ...others] = bits;
  if (found === undefined || others.length > 0 || rows * columns === 0) {
    return `expected int32 words of 4 or 8 bits for ${rows} × ${columns} values`;
  }
  const groups = scale.shape[1] ?? 0;
  const dtype = SCALE_DTYPES.find((each) => each === scale.dtype);
  if (
    dtype === undefined ||
    !isMatrix(scale, SCALE_DTYPES, rows, groups) ||
    columns % groups !== 0
  ) {
    return 'expected a scale in floats for each group of a row';
  }
  if (zeroPoint && !isMatrix(zeroPoint, ['I32'], packedWords(rows, found), groups)) {
    return 'expected zero points packed along the rows';
  }
  const group = columns / groups;
  return { bits: found, rows, columns, group, dtype, shape, packed, scale, zeroPoint };
}

const SCALE_DTYPES = ['F32', 'F16', 'BF16'] as const satisfies readonly StoredDtype[];

const isMatrix = (
  { dtype, shape }: StoredTensor,
  dtypes: readonly StoredDtype[],
  rows: number,
  columns: number,
): boolean => dtypes.includes(dtype) && isSameShape(shape, [rows, columns]);

/** The integers of `weight_shape`; empty when it is another kind of tensor. */
function integersIn(tensor: StoredTensor): Float64Array {
  if (tensor.elements !== 2 || !/^I(?:64|32)$/.test(tensor.dtype)) return new Float64Array();
  const integers = new Float64Array(2);
  decodeValues(tensor.dtype, readTensor(tensor), integers);
  return integers;
}

/** A tensor whose bytes are computed when they are read. */
function asFloats(weight: PackedWeight, path: string): StoredTensor {
  const { bits, rows, columns, dtype, packed, scale, zeroPoint } = weight;
  const file = new UnpackedFile(weight, path);
  const shape = [rows, columns];
  return {
    kind: 'tensor',
    dtype,
    shape,
    elements: rows * columns,
    strides: contiguousStrides(shape),
    offset: 0,
    storage: { file, position: 0, bytes: file.size, isBigEndian: false },
    bytes: file.size,
    packing: {
      type: `INT${bits}`,
      bytes: packed.bytes + scale.bytes + weight.shape.bytes + (zeroPoint?.bytes ?? 0),
    },
  };
}

const dtypeBytes = (dtype: StoredDtype): number => STORED_DTYPES[dtype].bits / 8;

/** Largest number of values computed at a time. */
const PIECE = 2 ** 18;

/** The values of a packed weight as bytes of a file that does not exist. */
class UnpackedFile extends ByteFile {
  readonly #weight: PackedWeight;

  constructor(weight: PackedWeight, path: string) {
    const { rows, columns, dtype, packed } = weight;
    super(path, {
      size: rows * columns * dtypeBytes(dtype),
      mtimeMs: packed.storage.file.changedAt,
    });
    this.#weight = weight;
  }

  override get isComputed(): boolean {
    return true;
  }

  override readInto(target: Uint8Array, position: number): void {
    const width = dtypeBytes(this.#weight.dtype);
    const first = Math.floor(position / width);
    const last = Math.ceil((position + target.length) / width);
    for (let from = first; from < last; from += PIECE) {
      const count = Math.min(PIECE, last - from);
      const bytes = new Uint8Array(count * width);
      encode(this.#weight.dtype, dequantizedValues(this.#weight, from, count), bytes);
      const offset = from * width - position;
      const start = Math.max(0, -offset);
      const end = Math.min(bytes.length, target.length - offset);
      target.set(bytes.subarray(start, end), offset + start);
    }
  }

  override async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    this.readInto(target, position);
  }

  override hasChanged(): boolean {
    return false;
  }
}

/** Values from value `first` on, in float64. */
function dequantizedValues(weight: PackedWeight, first: number, count: number): Float64Array {
  const { bits, columns, group, packed, scale, zeroPoint } = weight;
  const values = new Float64Array(count);
  if (count === 0) return values;
  const firstRow = Math.floor(first / columns);
  const rows = Math.ceil((first + count) / columns) - firstRow;
  const groups = columns / group;
  const rowCodes = (packedWords(columns, bits) * WORD) / bits;
  const codes = bytesIn(packed, firstRow, rows);
  const scales = new Float64Array(rows * groups);
  decodeValues(scale.dtype, bytesIn(scale, firstRow, rows), scales);
  const perWord = WORD / bits;
  const firstWord = Math.floor(firstRow / perWord);
  const words = Math.ceil((firstRow + rows) / perWord) - firstWord;
  const zeros = zeroPoint && bytesIn(zeroPoint, firstWord, words);
  const middle = 2 ** (bits - 1);
  /** Zero point of a group: the words of a column of groups hold those of its rows. */
  const zeroOf = (row: number, at: number): number => {
    if (zeros === undefined) return middle;
    const own = firstRow + row - firstWord * perWord;
    const word = (Math.floor(own / perWord) * groups + at) * perWord;
    return unpackCodes(zeros, word + (own % perWord), 1, bits)[0] ?? 0;
  };
  let index = first;
  while (index < first + count) {
    const row = Math.floor(index / columns) - firstRow;
    const column = index % columns;
    const at = Math.floor(column / group);
    const end = Math.min(first + count, index + group - (column % group));
    const own = unpackCodes(codes, row * rowCodes + column, end - index, bits);
    const factor = scales[row * groups + at] ?? 0;
    const zero = zeroOf(row, at);
    for (let i = 0; i < own.length; i++) {
      values[index - first + i] = ((own[i] ?? 0) - zero) * factor;
    }
    index = end;
  }
  return values;
}

function bytesIn(tensor: StoredTensor, first: number, rows: number): Uint8Array {
  const bytes = new Uint8Array((tensor.bytes / (tensor.shape[0] ?? 1)) * rows);
  readRows(tensor, first, rows, bytes);
  return bytes;
}
