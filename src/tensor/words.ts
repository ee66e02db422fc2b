/** Bytes as the machine's numbers, whatever its byte order and wherever they stand. */

interface ViewType<View> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): View;
}

/** The same memory as other numbers. */
export function viewOf<View>(Type: ViewType<View>, bytes: Uint8Array): View {
  return new Type(bytes.buffer, bytes.byteOffset, bytes.length / Type.BYTES_PER_ELEMENT);
}

const IS_LITTLE_ENDIAN_MACHINE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Whether the machine can use little-endian words of this size where they stand. */
const isInPlace = (bytes: Uint8Array, wordBytes: number) =>
  bytes.byteOffset % wordBytes === 0 && IS_LITTLE_ENDIAN_MACHINE;

function swapOnBigEndian(bytes: Uint8Array, wordBytes: number): void {
  if (IS_LITTLE_ENDIAN_MACHINE) return;
  for (let i = 0; i < bytes.length; i += wordBytes) bytes.subarray(i, i + wordBytes).reverse();
}

/** The bytes themselves, or a copy where the machine cannot read them as words in their place. */
export function littleEndianWords(bytes: Uint8Array, wordBytes: number): Uint8Array {
  if (isInPlace(bytes, wordBytes)) return bytes;
  // Not bytes.slice(): of a Buffer, that is a view of the same memory.
  const copy = new Uint8Array(bytes);
  swapOnBigEndian(copy, wordBytes);
  return copy;
}

/**
 * Has `fill` write words of the machine, which become the little-endian bytes of `target`: in their place
 * where the machine can, else by way of a copy.
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
