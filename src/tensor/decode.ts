/** Stored bytes → numbers. */
import { type TabledDtype, valueTable } from './decode-tables.js';
import { STORED_DTYPES, type StoredDtype } from './stored-dtype.js';
import { littleEndianWords, viewOf } from './words.js';

/** Numbers of one element: a complex one has a real and an imaginary part. */
export const numbersPerElement = (dtype: StoredDtype): 1 | 2 =>
  STORED_DTYPES[dtype].kind === 'complex' ? 2 : 1;

/** Numbers that so many bytes of a dtype hold. @throws RangeError when they are no whole elements. */
export function numbersIn(dtype: StoredDtype, bytes: number): number {
  const { bits } = STORED_DTYPES[dtype];
  const elements = (bytes * 8) / bits;
  if (!Number.isSafeInteger(elements)) throw new RangeError(`${bytes} bytes of ${dtype}`);
  return elements * numbersPerElement(dtype);
}

/**
 * Decodes little-endian elements into the first numbers of `target`, and returns how many these are.
 * Every float is exact, and so is every integer but those of I64 and U64 beyond ±2^53, which are rounded
 * to the nearest float64. BOOL becomes 0 or 1 (any byte but 0); C64 and C128 become pairs of real and
 * imaginary part. Packed elements stand in the bytes from the low bits up: the first F4 in the low four
 * bits, the first F6 in the low six of a little-endian group of 24. (The safetensors format states the
 * size of packed types, not their order; this is PyTorch's for F4.)
 * @throws RangeError when the bytes are no whole elements, or the target is too short.
 */
export function decode(dtype: StoredDtype, bytes: Uint8Array, target: Float64Array): number {
  const count = numbersIn(dtype, bytes.length);
  if (count > target.length) throw new RangeError(`${count} numbers into ${target.length}`);
  DECODERS[dtype](littleEndianWords(bytes, STORED_DTYPES[dtype].wordBytes), target);
  return count;
}

type Decoder = (bytes: Uint8Array, target: Float64Array) => void;

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
} as const satisfies Record<StoredDtype, Decoder>;

/** A decoder of what the machine has a number type for. */
function viewed(Type: Parameters<typeof viewOf<ArrayLike<number>>>[0]): Decoder {
  return (bytes, target) => target.set(viewOf(Type, bytes));
}

function lookUp(dtype: TabledDtype, codes: Uint8Array | Uint16Array, target: Float64Array): void {
  const table = valueTable(dtype);
  for (let i = 0; i < codes.length; i++) target[i] = table[codes[i] ?? 0] ?? 0;
}

/** The high half times 2^32 is exact, so that the sum is rounded only once. */
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
