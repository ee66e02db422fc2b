/** Decodes stored bytes to numbers. */
import type { StoredDtype } from './dtype.js';
import { STORED_DTYPES } from './dtype.js';

// Bytes as native numbers, for any byte order and alignment

interface ViewType<View> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): View;
}

/** The same memory as another number type. */
export function viewOf<View>(Type: ViewType<View>, bytes: Uint8Array): View {
  return new Type(bytes.buffer, bytes.byteOffset, bytes.length / Type.BYTES_PER_ELEMENT);
}

const IS_LITTLE_ENDIAN_MACHINE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Whether the machine can use little-endian words of this size in place. */
const isInPlace = (bytes: Uint8Array, wordBytes: number) =>
  bytes.byteOffset % wordBytes === 0 && IS_LITTLE_ENDIAN_MACHINE;

function swapOnBigEndian(bytes: Uint8Array, wordBytes: number): void {
  if (IS_LITTLE_ENDIAN_MACHINE) return;
  for (let i = 0; i < bytes.length; i += wordBytes) bytes.subarray(i, i + wordBytes).reverse();
}

/** The bytes themselves, or a copy if the machine cannot read them in place as words. */
export function littleEndianWords(bytes: Uint8Array, wordBytes: number): Uint8Array {
  if (isInPlace(bytes, wordBytes)) return bytes;
  // Not bytes.slice(), which for a Buffer is a view of the same memory.
  const copy = new Uint8Array(bytes);
  swapOnBigEndian(copy, wordBytes);
  return copy;
}

/**
 * Calls `fill` to write native words, which become the little-endian bytes of `target`: in place if possible, else
 * through a copy.
 */
export function fillLittleEndian<Result>(
  target: Uint8Array,
  wordBytes: number,
  fill: (words: Uint8Array) => Result,
): Result {
  if (isInPlace(target, wordBytes)) return fill(target);
  const words = new Uint8Array(target.length);
  const result = fill(words);
  swapOnBigEndian(words, wordBytes);
  target.set(words);
  return result;
}

// Floating-point formats of at most 16 bits, decoded by tables of all values. Every value is exact, because each
// is also a float32.
//
// Sources: IEEE 754-2019 (binary16); Intel, BFLOAT16 Hardware Numerics Definition, 2018; OCP 8-bit Floating Point
// Specification (OFP8) 1.0, 2023, after Micikevicius et al., FP8 Formats for Deep Learning, arXiv:2209.05433
// (E4M3, E5M2); Noune et al., 8-bit Numerical Formats for Deep Neural Networks, arXiv:2206.02915 (the FNUZ
// formats); OCP Microscaling Formats (MX) 1.0, 2023 (E8M0 and those of 6 and 4 bits).

/** Bit layout from the highest bit down: a sign, an exponent, a fraction. */
interface FloatFormat {
  readonly exponentBits: number;
  readonly fractionBits: number;
  readonly bias: number;
  readonly special: keyof typeof SPECIAL_VALUES;
}

/** Value of a special bit pattern; undefined for an ordinary number. */
type SpecialValue = (
  negative: boolean,
  exponent: number,
  fraction: number,
  format: FloatFormat,
) => number | undefined;

const SPECIAL_VALUES = {
  /** The highest exponent means infinity and NaN. */
  ieee: (_negative, exponent, fraction, { exponentBits }) => {
    if (exponent !== 2 ** exponentBits - 1) return undefined;
    return fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
  },
  /** No infinity; NaN is all ones. */
  allOnes: (_negative, exponent, fraction, { exponentBits, fractionBits }) =>
    exponent === 2 ** exponentBits - 1 && fraction === 2 ** fractionBits - 1
      ? Number.NaN
      : undefined,
  /** No infinity and no negative zero, whose pattern means NaN. */
  negativeZero: (negative, exponent, fraction) =>
    negative && exponent === 0 && fraction === 0 ? Number.NaN : undefined,
  none: () => undefined,
} as const satisfies Record<string, SpecialValue>;

export const FLOAT_FORMATS = {
  F16: { exponentBits: 5, fractionBits: 10, bias: 15, special: 'ieee' },
  BF16: { exponentBits: 8, fractionBits: 7, bias: 127, special: 'ieee' },
  F8_E5M2: { exponentBits: 5, fractionBits: 2, bias: 15, special: 'ieee' },
  F8_E4M3: { exponentBits: 4, fractionBits: 3, bias: 7, special: 'allOnes' },
  F8_E5M2FNUZ: { exponentBits: 5, fractionBits: 2, bias: 16, special: 'negativeZero' },
  F8_E4M3FNUZ: { exponentBits: 4, fractionBits: 3, bias: 8, special: 'negativeZero' },
  F6_E3M2: { exponentBits: 3, fractionBits: 2, bias: 3, special: 'none' },
  F6_E2M3: { exponentBits: 2, fractionBits: 3, bias: 1, special: 'none' },
  F4: { exponentBits: 2, fractionBits: 1, bias: 1, special: 'none' },
} as const satisfies Record<string, FloatFormat>;

function floatOf(bits: number, format: FloatFormat): number {
  const { exponentBits, fractionBits, bias, special } = format;
  const negative = bits >>> (exponentBits + fractionBits) === 1;
  const exponent = (bits >>> fractionBits) & (2 ** exponentBits - 1);
  const fraction = bits & (2 ** fractionBits - 1);
  const size =
    SPECIAL_VALUES[special](negative, exponent, fraction, format) ??
    (exponent === 0
      ? fraction * 2 ** (1 - bias - fractionBits)
      : (fraction + 2 ** fractionBits) * 2 ** (exponent - bias - fractionBits));
  return negative ? -size : size;
}

const decodingTable = (format: FloatFormat) =>
  Float32Array.from({ length: 2 ** (1 + format.exponentBits + format.fractionBits) }, (_, bits) =>
    floatOf(bits, format),
  );

/** Powers of two without sign or zero, the scales of blocks of other values. */
const scaleTable = () =>
  Float32Array.from({ length: 256 }, (_, bits) => (bits === 255 ? Number.NaN : 2 ** (bits - 127)));

/** Dtypes decoded by a table. */
export type TabledDtype = keyof typeof FLOAT_FORMATS | 'F8_E8M0';

const tables = new Map<TabledDtype, Float32Array>();

/** Values of a dtype by bit pattern, created on first use. */
export function valueTable(dtype: TabledDtype): Float32Array {
  let table = tables.get(dtype);
  if (table === undefined) {
    table = dtype === 'F8_E8M0' ? scaleTable() : decodingTable(FLOAT_FORMATS[dtype]);
    tables.set(dtype, table);
  }
  return table;
}

/** Numbers per element: a complex one has a real and an imaginary part. */
export const numbersPerElement = (dtype: StoredDtype): 1 | 2 =>
  STORED_DTYPES[dtype].kind === 'complex' ? 2 : 1;

/** Numbers in a byte count of a dtype. @throws RangeError for a partial element. */
export function numbersIn(dtype: StoredDtype, bytes: number): number {
  const { bits } = STORED_DTYPES[dtype];
  const elements = (bytes * 8) / bits;
  if (!Number.isSafeInteger(elements)) throw new RangeError(`${bytes} bytes of ${dtype}`);
  return elements * numbersPerElement(dtype);
}

/**
 * Decodes little-endian elements into the first numbers of `target`, and returns their count. Floats and integers
 * are exact, except I64 and U64 beyond ±2^53, which are rounded to the nearest float64. BOOL becomes 0 or 1 (any
 * nonzero byte). C64 and C128 become pairs of real and imaginary part. Packed elements start at the low bits: the
 * first F4 in the low four bits, the first F6 in the low six of a little-endian group of 24. (The safetensors
 * format defines the size of packed types, not their order; this is PyTorch's for F4.)
 * @throws RangeError for a partial element or a target that is too short.
 */
export function decodeValues(dtype: StoredDtype, bytes: Uint8Array, target: Float64Array): number {
  const count = numbersIn(dtype, bytes.length);
  if (count > target.length) throw new RangeError(`${count} numbers into ${target.length}`);
  DECODERS[dtype](littleEndianWords(bytes, STORED_DTYPES[dtype].wordBytes), target);
  return count;
}

type ValueDecoder = (bytes: Uint8Array, target: Float64Array) => void;

const DECODERS = {
  BOOL: (bytes, target) => {
    for (let i = 0; i < bytes.length; i++) target[i] = bytes[i] === 0 ? 0 : 1;
  },
  U8: (bytes, target) => target.set(bytes),
  I8: viewed(Int8Array),
  U16: viewed(Uint16Array),
  I16: viewed(Int16Array),
  U32: viewed(Uint32Array),
  I32: viewed(Int32Array),
  U64: (bytes, target) =>
    joinHalves(viewOf(Uint32Array, bytes), viewOf(Uint32Array, bytes), target),
  I64: (bytes, target) => joinHalves(viewOf(Uint32Array, bytes), viewOf(Int32Array, bytes), target),
  F4: decodeF4,
  F6_E2M3: (bytes, target) => decodeF6('F6_E2M3', bytes, target),
  F6_E3M2: (bytes, target) => decodeF6('F6_E3M2', bytes, target),
  F8_E4M3: (bytes, target) => lookUp('F8_E4M3', bytes, target),
  F8_E5M2: (bytes, target) => lookUp('F8_E5M2', bytes, target),
  F8_E8M0: (bytes, target) => lookUp('F8_E8M0', bytes, target),
  F8_E4M3FNUZ: (bytes, target) => lookUp('F8_E4M3FNUZ', bytes, target),
  F8_E5M2FNUZ: (bytes, target) => lookUp('F8_E5M2FNUZ', bytes, target),
  F16: (bytes, target) => lookUp('F16', viewOf(Uint16Array, bytes), target),
  BF16: (bytes, target) => lookUp('BF16', viewOf(Uint16Array, bytes), target),
  F32: viewed(Float32Array),
  F64: viewed(Float64Array),
  C64: viewed(Float32Array),
  C128: viewed(Float64Array),
} as const satisfies Record<StoredDtype, ValueDecoder>;

/** Decoder for dtypes with a native number type. */
function viewed(Type: Parameters<typeof viewOf<ArrayLike<number>>>[0]): ValueDecoder {
  return (bytes, target) => target.set(viewOf(Type, bytes));
}

function lookUp(dtype: TabledDtype, codes: Uint8Array | Uint16Array, target: Float64Array): void {
  const table = valueTable(dtype);
  for (let i = 0; i < codes.length; i++) target[i] = table[codes[i] ?? 0] ?? 0;
}

/** The high half times 2^32 is exact, so the sum is rounded only once. */
function joinHalves(low: Uint32Array, high: Uint32Array | Int32Array, target: Float64Array): void {
  for (let i = 0; 2 * i < low.length; i++) {
    target[i] = (high[2 * i + 1] ?? 0) * 2 ** 32 + (low[2 * i] ?? 0);
  }
}

function decodeF4(bytes: Uint8Array, target: Float64Array): void {
  const table = valueTable('F4');
  for (let i = 0; i < bytes.length; i++) {
    const pair = bytes[i] ?? 0;
    target[2 * i] = table[pair & 15] ?? 0;
    target[2 * i + 1] = table[pair >>> 4] ?? 0;
  }
}

/** Four values in three bytes. */
function decodeF6(dtype: 'F6_E2M3' | 'F6_E3M2', bytes: Uint8Array, target: Float64Array): void {
  const table = valueTable(dtype);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    const group =
      (bytes[from] ?? 0) | ((bytes[from + 1] ?? 0) << 8) | ((bytes[from + 2] ?? 0) << 16);
    for (let i = 0; i < 4; i++) target[to + i] = table[(group >>> (6 * i)) & 63] ?? 0;
  }
}
