/**
 * Products and lookups with weights of 8 or 4 bits, by ONNX Runtime's own operators. `MatMulNBits` at accuracy level 4
 * rounds activations to 8 bits too; the other levels took 4 to 90 times as long on AVX2.
 */

import type { WeightMatrix } from '../../architecture/weight-matrices.js';
import type { QuantizedRows, WeightForm } from '../../tensor/group-quantization.js';
import { groupsIn, packCodes, packedBytes } from '../../tensor/group-quantization.js';
import { quantizedPieces } from '../quantized-weights.js';
import type { WeightSource } from '../weights.js';
import type { GraphContext, QuantizedWeight, Rows } from './context.js';
import { type GraphValue, LEFT_OUT } from './graph.js';
import type { ElementType, Initializer } from './proto.js';
import { MICROSOFT } from './proto.js';

/** Activations as integers of 8 bits. */
const ACCURACY_LEVEL = 4;

/** x [R, in] · weightᵀ [in, out] plus the bias [out]. */
export function quantizedProduct(
  { graph }: GraphContext,
  { form, rows, columns, ...stored }: QuantizedWeight,
  x: GraphValue,
  bias: GraphValue | undefined,
): GraphValue {
  const [codes, scales, zeroPoints] = [stored.codes, stored.scales, stored.zeroPoints].map((each) =>
    graph.initializer(each),
  ) as [GraphValue, GraphValue, GraphValue];
  const inputs = [x, codes, scales, zeroPoints, ...(bias ? [LEFT_OUT, bias] : [])];
  return graph.op('MatMulNBits', inputs, {
    domain: MICROSOFT,
    attributes: {
      K: columns,
      N: rows,
      bits: form.bits,
      block_size: form.group,
      accuracy_level: ACCURACY_LEVEL,
    },
  });
}

/** Name of the codes of a table as a matrix, which has the bytes of `codes`. */
export const lookupName = (codes: Initializer): string => `${codes.name}:rows`;

/** Rows of a table, [n, columns]. @param indices [n] */
export function quantizedLookup(
  { graph }: GraphContext,
  { form, rows, columns, codes, scales, zeroPoints }: QuantizedWeight,
  indices: GraphValue,
): GraphValue {
  const width = groupsIn(columns, form) * form.group;
  const flat: Initializer = {
    ...codes,
    name: lookupName(codes),
    shape: [rows, packedBytes(width, form.bits)],
  };
  const inputs = [flat, scales, zeroPoints].map((each) => graph.initializer(each)) as [
    GraphValue,
    GraphValue,
    GraphValue,
  ];
  const found = graph.op('GatherBlockQuantized', [inputs[0], indices, inputs[1], inputs[2]], {
    domain: MICROSOFT,
    attributes: { bits: form.bits, block_size: form.group, gather_axis: 0, quantize_axis: 1 },
  });
  if (width === columns) return found;
  const bounds = [graph.ints(0), graph.ints(columns), graph.ints(1)] as const;
  return graph.op('Slice', [found, ...bounds]);
}

// The three tensors of a quantized matrix.

export const QUANTIZED_PARTS = ['codes', 'scales', 'zeroPoints'] as const;

export type QuantizedPart = (typeof QUANTIZED_PARTS)[number];

/** One of the tensors: its type, its shape for `rows` rows, and its bytes of these. */
interface PartLayout {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly rowBytes: number;
}

export function partLayout(
  part: QuantizedPart,
  { columns }: Pick<WeightMatrix, 'columns'>,
  form: WeightForm,
  rows: number,
): PartLayout {
  const groups = groupsIn(columns, form);
  switch (part) {
    case 'codes': {
      const blob = packedBytes(form.group, form.bits);
      return { type: 'u8', shape: [rows, groups, blob], rowBytes: groups * blob };
    }
    case 'scales':
      return {
        type: 'f32',
        shape: [rows, groups],
        rowBytes: groups * Float32Array.BYTES_PER_ELEMENT,
      };
    case 'zeroPoints': {
      const rowBytes = packedBytes(groups, form.bits);
      return { type: 'u8', shape: [rows, rowBytes], rowBytes };
    }
  }
}

/** Bytes of one of the tensors, for quantized rows. */
export function partBytes(
  part: QuantizedPart,
  { columns, codes, scales, zeroPoints }: QuantizedRows,
  form: WeightForm,
): Uint8Array {
  const groups = groupsIn(columns, form);
  switch (part) {
    case 'codes':
      return packCodes(codes, groups * form.group, form.bits);
    case 'scales':
      return new Uint8Array(Float32Array.from(scales).buffer);
    case 'zeroPoints':
      return packCodes(zeroPoints, groups, form.bits);
  }
}

/** Bytes of one of the tensors of a matrix, in pieces. */
export function* partPieces(
  part: QuantizedPart,
  source: WeightSource,
  matrix: WeightMatrix,
  form: WeightForm,
  { first, count }: Rows = { first: 0, count: matrix.rows },
): Generator<Uint8Array> {
  for (const piece of quantizedPieces(source, matrix, form, first, count)) {
    yield partBytes(part, piece, form);
  }
}

/**
 * The initializers of a quantized matrix, or of some rows of it.
 * @param place Initializer of a part of all rows.
 */
export function quantizedWeight(
  matrix: WeightMatrix,
  form: WeightForm,
  rows: Rows | undefined,
  place: (part: QuantizedPart) => Initializer,
): QuantizedWeight {
  const { first, count } = rows ?? { first: 0, count: matrix.rows };
  const initializer = (part: QuantizedPart): Initializer => {
    const whole = place(part);
    if (rows === undefined) return whole;
    const { shape, rowBytes } = partLayout(part, matrix, form, count);
    const { bytes } = whole;
    const [from, length] = [first * rowBytes, count * rowBytes];
    return {
      ...whole,
      name: `${whole.name}:${first}+${count}`,
      shape,
      bytes:
        'raw' in bytes
          ? { raw: bytes.raw.subarray(from, from + length) }
          : { ...bytes, offset: bytes.offset + from, length },
    };
  };
  return {
    form,
    rows: count,
    columns: matrix.columns,
    codes: initializer('codes'),
    scales: initializer('scales'),
    zeroPoints: initializer('zeroPoints'),
  };
}
