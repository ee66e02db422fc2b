import type { StoredDtype } from '../../tensor/dtype.js';

/** Element type of a tensor in an ONNX file. */
export interface OnnxType {
  /** Name in ONNX's documentation, in lower case. */
  readonly name: string;
  readonly bits: number;
  /** Undefined where the values are not read. */
  readonly dtype: StoredDtype | undefined;
}

const type = (name: string, bits: number, dtype?: StoredDtype): OnnxType => ({ name, bits, dtype });

/** TensorProto.DataType of onnx.proto3, by number. A string has no fixed size. */
const TYPES: Readonly<Record<number, OnnxType>> = {
  1: type('float32', 32, 'F32'),
  2: type('uint8', 8, 'U8'),
  3: type('int8', 8, 'I8'),
  4: type('uint16', 16, 'U16'),
  5: type('int16', 16, 'I16'),
  6: type('int32', 32, 'I32'),
  7: type('int64', 64, 'I64'),
  8: type('string', 0),
  9: type('bool', 8, 'BOOL'),
  10: type('float16', 16, 'F16'),
  11: type('float64', 64, 'F64'),
  12: type('uint32', 32, 'U32'),
  13: type('uint64', 64, 'U64'),
  14: type('complex64', 64, 'C64'),
  15: type('complex128', 128, 'C128'),
  16: type('bfloat16', 16, 'BF16'),
  17: type('float8e4m3fn', 8, 'F8_E4M3'),
  18: type('float8e4m3fnuz', 8, 'F8_E4M3FNUZ'),
  19: type('float8e5m2', 8, 'F8_E5M2'),
  20: type('float8e5m2fnuz', 8, 'F8_E5M2FNUZ'),
  21: type('uint4', 4),
  22: type('int4', 4),
  23: type('float4e2m1', 4, 'F4'),
  24: type('float8e8m0', 8, 'F8_E8M0'),
  25: type('uint2', 2),
  26: type('int2', 2),
};

export const STRING_TYPE = 8;

export const onnxTypeOf = (number: number): OnnxType | undefined =>
  Object.hasOwn(TYPES, number) ? TYPES[number] : undefined;

/** Types whose values lie as in memory in a repeated field of TensorProto: its number, and the types in it. */
export const TYPED_FIELDS: Readonly<Record<number, readonly number[]>> = {
  4: [1, 14],
  10: [11, 15],
};

/** Types whose values are varints in a repeated field of TensorProto. */
export const VARINT_FIELDS: Readonly<Record<number, readonly number[]>> = {
  5: [2, 3, 4, 5, 6, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26],
  7: [7],
  11: [12, 13],
};
