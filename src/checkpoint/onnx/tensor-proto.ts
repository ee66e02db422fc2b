/** A tensor of an ONNX file: its name, type and shape, and where its values are. */
import { type StoredDtype, shapeText } from '../../base/tensor/dtype.js';
import { exactBytesText, quoted, tensorPlace } from '../checkpoint-rules.js';
import { type ByteSpan, type ProtoField, type ProtoScanner, WIRE } from './proto-scanner.js';

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

const STRING_TYPE = 8;

export const onnxTypeOf = (number: number): OnnxType | undefined =>
  Object.hasOwn(TYPES, number) ? TYPES[number] : undefined;

/** Types whose values lie as in memory in a repeated field of TensorProto: its number, and the types in it. */
const TYPED_FIELDS: Readonly<Record<number, readonly number[]>> = {
  4: [1, 14],
  10: [11, 15],
};

/** Types whose values are varints in a repeated field of TensorProto. */
const VARINT_FIELDS: Readonly<Record<number, readonly number[]>> = {
  5: [2, 3, 4, 5, 6, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26],
  7: [7],
  11: [12, 13],
};

/** `data` lie in the message as in memory; `varints` are spans of integers, `packed` or one by one. */
export type OnnxData =
  | { readonly kind: 'data'; readonly span: ByteSpan }
  | { readonly kind: 'varints'; readonly spans: readonly ByteSpan[] }
  | {
      readonly kind: 'external';
      readonly location: string;
      readonly offset: number;
      readonly bytes: number;
    }
  | { readonly kind: 'none' };

export interface OnnxTensor {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly number[];
  readonly elements: number;
  /** Bytes of the values in memory; those of strings are unknown. */
  readonly bytes: number;
  readonly data: OnnxData;
}

const MAX_RANK = 64;
/** Elements of a tensor whose values are varints, which are read at once. */
const MAX_VARINTS = 2 ** 24;

/** Field numbers of TensorProto. */
const DIMS = 1;
const DATA_TYPE = 2;
const SEGMENT = 3;
const STRINGS = 6;
const NAME = 8;
const RAW = 9;
const EXTERNAL = 13;
const LOCATION = 14;

interface Parts {
  name: string;
  number: number;
  readonly sizes: bigint[];
  /** Fields with values, by number. */
  readonly fields: Map<number, ProtoField[]>;
  readonly external: Map<string, string>;
  isExternal: boolean;
}

/** @throws UserError that names the violated rule. */
export function readTensorProto(scanner: ProtoScanner, span: ByteSpan): OnnxTensor {
  const outer = scanner.place;
  const parts = tensorFields(scanner, span);
  const type = onnxTypeOf(parts.number);
  if (type === undefined) {
    throw scanner.refusal('onnx-type', `the element type is ${parts.number}, which is unknown`);
  }
  const { shape, elements } = shapeOf(scanner, parts.sizes);
  const bytes = Math.ceil((elements * type.bits) / 8);
  const tensor = { name: parts.name, type, shape, elements, bytes };
  const data = dataOf(scanner, parts, tensor);
  scanner.place = outer;
  return { ...tensor, data };
}

function tensorFields(scanner: ProtoScanner, span: ByteSpan): Parts {
  const parts: Parts = {
    name: '',
    number: 0,
    sizes: [],
    fields: new Map(),
    external: new Map(),
    isExternal: false,
  };
  scanner.fields(span, (field) => {
    const { number } = field;
    if (number === NAME) {
      parts.name = scanner.name(field, 'the name of a tensor');
      scanner.place = tensorPlace(parts.name);
    } else if (number === DATA_TYPE) parts.number = scanner.integer(field, 'data_type');
    else if (number === DIMS) addSizes(scanner, field, parts.sizes);
    else if (number === LOCATION) parts.isExternal = scanner.integer(field, 'data_location') === 1;
    else if (number === EXTERNAL) {
      const [key, value] = readEntry(scanner, scanner.expect(field, WIRE.bytes, 'external_data'));
      parts.external.set(key, value);
    } else if (isOfValues(number)) {
      const known = parts.fields.get(number);
      if (known) known.push(field);
      else parts.fields.set(number, [field]);
    }
  });
  return parts;
}

const isOfValues = (number: number): boolean =>
  number === RAW || number === STRINGS || number === SEGMENT || isTyped(number);

const isTyped = (number: number): boolean => number in TYPED_FIELDS || number in VARINT_FIELDS;

/** A StringStringEntryProto. */
export function readEntry(scanner: ProtoScanner, span: ByteSpan): readonly [string, string] {
  let [key, value] = ['', ''];
  scanner.fields(span, (field) => {
    if (field.number === 1) key = scanner.name(field, 'the key of an entry');
    else if (field.number === 2) value = scanner.text(field, 'the value of an entry');
  });
  return [key, value];
}

function addSizes(scanner: ProtoScanner, field: ProtoField, sizes: bigint[]): void {
  scanner.integers(field, 'dims', (size) => {
    if (sizes.length === MAX_RANK) {
      throw scanner.refusal('onnx-rank', `has more than ${MAX_RANK} dimensions`);
    }
    sizes.push(BigInt(size));
  });
}

function shapeOf(scanner: ProtoScanner, sizes: readonly bigint[]) {
  const extent = sizes.reduce((product, size) => product * (size || 1n), 1n);
  if (sizes.some((size) => size < 0n) || extent > Number.MAX_SAFE_INTEGER) {
    throw scanner.refusal(
      'onnx-elements',
      `the sizes are [${sizes.join(', ')}], expected integers from 0 on whose product is at most 2^53 − 1`,
    );
  }
  const shape = sizes.map(Number);
  return { shape, elements: shape.includes(0) ? 0 : Number(extent) };
}

function dataOf(scanner: ProtoScanner, parts: Parts, tensor: Omit<OnnxTensor, 'data'>): OnnxData {
  const { fields, isExternal } = parts;
  const places = [...fields.keys(), ...(isExternal ? [EXTERNAL] : [])];
  if (places.length > 1 || places.includes(SEGMENT)) {
    throw scanner.refusal(
      'onnx-data-place',
      `has values in the fields ${places.join(', ')}, expected one of raw_data, typed values and external data`,
    );
  }
  if (isExternal) return externalData(scanner, parts.external, tensor);
  const [number] = places;
  if (parts.number === STRING_TYPE) return { kind: 'none' };
  const found = number === undefined ? [] : (fields.get(number) ?? []);
  const isVarints = number !== undefined && number in VARINT_FIELDS;
  const spans = isVarints ? varintSpans(scanner, found) : bytesSpans(scanner, found, number);
  const elements = elementsIn(scanner, spans, isVarints, tensor);
  const isOfType = number === RAW || fieldTypes(number).includes(parts.number);
  if (elements !== tensor.elements || (number !== undefined && !isOfType)) {
    throw scanner.refusal(
      'onnx-data-size',
      `${tensor.type.name} ${shapeText(tensor.shape)} has ${exactBytesText(tensor.bytes)}, found ${fieldSizeText(spans, number, isVarints)}`,
    );
  }
  const [span] = spans;
  if (span === undefined) return { kind: 'none' };
  return isVarints ? { kind: 'varints', spans } : { kind: 'data', span };
}

const fieldTypes = (number = 0): readonly number[] =>
  TYPED_FIELDS[number] ?? VARINT_FIELDS[number] ?? [];

const fieldSizeText = (
  spans: readonly ByteSpan[],
  number: number | undefined,
  isVarints: boolean,
) =>
  number === undefined
    ? 'none'
    : `${exactBytesText(spans.reduce((sum, { from, to }) => sum + to - from, 0))}${isVarints ? ' of integers' : ''} in field ${number}`;

/** Values as bytes: one field of them. Written one by one or in pieces, their bytes are not adjacent. */
function bytesSpans(scanner: ProtoScanner, found: readonly ProtoField[], number = RAW): ByteSpan[] {
  return found
    .slice(0, 2)
    .map((field) => scanner.expect(field, WIRE.bytes, `the values in field ${number}`));
}

/** Packed integers, or single ones. */
const varintSpans = (scanner: ProtoScanner, found: readonly ProtoField[]): ByteSpan[] =>
  found.map((field) =>
    field.wire === WIRE.varint ? field : scanner.expect(field, WIRE.bytes, 'integer values'),
  );

/** Elements in the spans; NaN where their bytes fit no number of elements. */
function elementsIn(
  scanner: ProtoScanner,
  spans: readonly ByteSpan[],
  isVarints: boolean,
  { type, elements, bytes }: Omit<OnnxTensor, 'data'>,
): number {
  if (!isVarints) {
    const length = spans.reduce((sum, { from, to }) => sum + to - from, 0);
    return spans.length <= 1 && length === bytes ? elements : Number.NaN;
  }
  // Values of less than a byte are packed two or four to an integer.
  const perInteger = type.bits < 8 ? 8 / type.bits : 1;
  if (elements > MAX_VARINTS) {
    throw scanner.refusal(
      'onnx-integers',
      `has ${elements} values as integers of variable length, expected at most ${MAX_VARINTS}`,
    );
  }
  let count = 0;
  for (const span of spans) {
    scanner.varints(span, () => {
      count++;
    });
  }
  return count === Math.ceil(elements / perInteger) ? elements : Number.NaN;
}

/** docs/ExternalData.md of onnx: location, and optionally offset and length as decimal text. */
function externalData(
  scanner: ProtoScanner,
  entries: ReadonlyMap<string, string>,
  { bytes }: Omit<OnnxTensor, 'data'>,
): OnnxData {
  const number = (key: string, otherwise: number): number => {
    const text = entries.get(key);
    if (text === undefined) return otherwise;
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value)) return value;
    throw scanner.refusal(
      'onnx-external-number',
      `the ${key} of the external data is ${quoted(text)}, expected a number of bytes`,
    );
  };
  const length = number('length', bytes);
  if (length !== bytes) {
    throw scanner.refusal(
      'onnx-external-length',
      `the external data have ${exactBytesText(length)}, expected ${bytes}`,
    );
  }
  const location = entries.get('location') ?? '';
  return { kind: 'external', location, offset: number('offset', 0), bytes };
}
