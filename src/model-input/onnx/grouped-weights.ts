/** Weights of 8 or 4 bits in groups, as ONNX Runtime's MatMulNBits and GatherBlockQuantized read them. */
import { computedTensor } from '../../checkpoint/computed-file.js';
import type { OnnxNodeUse } from '../../checkpoint/onnx/describe-onnx.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { encodedBytes } from '../../checkpoint/stored-tensor.js';
import { readRows } from '../../checkpoint/view.js';
import { decodeValues, fillLittleEndian, viewOf } from '../../tensor/decode-values.js';
import { sumOf } from '../../text/words.js';

export interface GroupedWeight {
  /** Name of the weight; undefined where the name of its codes does not contain it. */
  readonly name: string | undefined;
  readonly tensor: StoredTensor;
  /** Initializers that it consists of. */
  readonly parts: readonly string[];
}

/** Inputs of the nodes: codes, scales and zero points. */
const INPUTS: Readonly<
  Record<string, readonly [codes: number, scales: number, zeroPoints: number]>
> = { MatMulNBits: [1, 2, 3], GatherBlockQuantized: [0, 2, 3] };

const FLOAT_BYTES = 4;

/** Undefined for an initializer that is not the codes of such a weight. */
export function groupedWeight(
  initializer: string,
  use: OnnxNodeUse,
  own: ReadonlyMap<string, StoredTensor>,
): GroupedWeight | undefined {
  const places = INPUTS[use.op];
  if (places === undefined || use.input !== places[0]) return undefined;
  const parts = places.map((place) => use.inputs[place] ?? '');
  const [codes, scales, zeroPoints] = parts.map((part) => own.get(part));
  const layout = codes && layoutOf(codes, use);
  if (!codes || !scales || !layout) return undefined;
  if (scales.elements !== layout.rows * layout.groups) return undefined;
  const zeroBytes = Math.ceil((layout.groups * layout.bits) / 8);
  const packed = zeroPoints?.dtype === 'U8' ? zeroPoints : undefined;
  if (packed && packed.elements !== layout.rows * zeroBytes) return undefined;
  return {
    name: /^(.+):codes(?::rows)?$/.exec(initializer)?.[1],
    tensor: decoded({ ...layout, codes, scales, zeroPoints: packed }),
    parts: parts.filter((part) => own.has(part)),
  };
}

interface Layout {
  readonly rows: number;
  readonly columns: number;
  readonly groups: number;
  readonly group: number;
  readonly bits: number;
}

function layoutOf({ dtype, elements, shape }: StoredTensor, use: OnnxNodeUse): Layout | undefined {
  const { bits = 4, block_size: group = 128, N, K } = use.integers;
  if (dtype !== 'U8' || (bits !== 4 && bits !== 8) || group < 8) return undefined;
  const rows = N ?? shape[0] ?? 0;
  const width = rows > 0 ? (elements * 8) / bits / rows : 0;
  const columns = K ?? width;
  const groups = Math.ceil(columns / group);
  const isWhole = rows > 0 && columns > 0 && groups * group === width;
  return isWhole ? { rows, columns, groups, group, bits } : undefined;
}

interface Parts extends Layout {
  readonly codes: StoredTensor;
  readonly scales: StoredTensor;
  readonly zeroPoints: StoredTensor | undefined;
}

/** The weight as float32, (code − zero point) · scale, decoded where it is read. */
function decoded(parts: Parts): StoredTensor {
  const { rows, columns, bits, codes, scales, zeroPoints } = parts;
  const stored = [codes, scales, ...(zeroPoints ? [zeroPoints] : [])];
  const { file, position } = codes.storage;
  const elements = rows * columns;
  return computedTensor(file, {
    ...{ dtype: 'F32', shape: [rows, columns], elements, bytes: FLOAT_BYTES * elements },
    encoding: {
      ...{ type: `INT${bits}`, file, position },
      bytes: sumOf(stored, (part) => encodedBytes(part)),
    },
    fill(target, from) {
      const first = from / FLOAT_BYTES;
      const end = first + target.length / FLOAT_BYTES;
      const values = new Float32Array(end - first);
      for (let row = Math.floor(first / columns); row * columns < end; row++) {
        const decodedRow = rowOf(parts, row);
        const start = Math.max(first, row * columns);
        const stop = Math.min(end, (row + 1) * columns);
        values.set(decodedRow.subarray(start - row * columns, stop - row * columns), start - first);
      }
      fillLittleEndian(target, FLOAT_BYTES, (words) => viewOf(Float32Array, words).set(values));
    },
  });
}

function rowOf(parts: Parts, row: number): Float32Array {
  const { columns, groups, group, bits, codes, scales, zeroPoints } = parts;
  const packed = bytesOfRow(codes, row, (groups * group * bits) / 8);
  const zeros = zeroPoints && bytesOfRow(zeroPoints, row, Math.ceil((groups * bits) / 8));
  const factors = new Float64Array(groups);
  const scaleBytes = bytesOfRow(scales, row, (groups * scales.bytes) / scales.elements);
  decodeValues(scales.dtype, scaleBytes, factors);
  const middle = 2 ** (bits - 1);
  return Float32Array.from({ length: columns }, (_, column) => {
    const at = Math.floor(column / group);
    const zero = zeros ? codeAt(zeros, at, bits) : middle;
    return (codeAt(packed, column, bits) - zero) * (factors[at] ?? 0);
  });
}

/** Codes of 4 bits are packed in pairs, the first in the low bits. */
function codeAt(bytes: Uint8Array, index: number, bits: number): number {
  if (bits === 8) return bytes[index] ?? 0;
  return ((bytes[index >> 1] ?? 0) >> (index % 2 === 0 ? 0 : 4)) & 15;
}

/** Bytes of a row, whatever the shape of the tensor. */
function bytesOfRow(tensor: StoredTensor, row: number, bytes: number): Uint8Array {
  const target = new Uint8Array(bytes);
  const width = tensor.bytes / tensor.elements;
  const flat = { ...tensor, shape: [tensor.elements], strides: [1] };
  readRows(flat, (row * bytes) / width, bytes / width, target);
  return target;
}
