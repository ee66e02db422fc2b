import fc from 'fast-check';
import type { ByteSink } from '../../../src/base/files/write-whole.js';
import { STORED_DTYPES, type StoredDtype } from '../../../src/base/tensor/dtype.js';
import type { TensorToWrite } from '../../../src/checkpoint/safetensors/write-safetensors.js';

export type SafetensorsDtype = Exclude<StoredDtype, 'C128'>;

export const DTYPES = (Object.keys(STORED_DTYPES) as StoredDtype[]).filter(
  (dtype): dtype is SafetensorsDtype => dtype !== 'C128',
);

/** Tensor with all its bytes. */
export interface WholeTensor {
  readonly name: string;
  readonly dtype: StoredDtype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Any text, including odd names. */
export const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('__proto__', '0', '1', 'constructor', '', '"', '\\', '\0', '\uffff', '😀', 'a.b'),
);

/** Tensors with distinct names. For packed dtypes, the last size makes whole bytes. */
export const anyTensors: fc.Arbitrary<WholeTensor[]> = fc.uniqueArray(
  fc
    .record({
      name: anyText.filter((name) => name !== '__metadata__'),
      dtype: fc.constantFrom(...DTYPES),
      sizes: fc.array(fc.nat({ max: 3 }), { maxLength: 3 }),
      seed: fc.nat({ max: 255 }),
    })
    .map(({ name, dtype, sizes, seed }) => {
      const { bits } = STORED_DTYPES[dtype];
      const shape = bits < 8 ? [...sizes, 4] : sizes;
      const length = (shape.reduce((product, size) => product * size, 1) * bits) / 8;
      return { name, dtype, shape, bytes: Uint8Array.from({ length }, (_, i) => seed + i * 7) };
    }),
  { selector: ({ name }) => name, maxLength: 12 },
);

/** Tensor in pieces of `size` bytes that all use the same memory, synchronous or not. */
export function inPieces(tensor: WholeTensor, size: number, isAsync = false): TensorToWrite {
  const { bytes } = tensor;
  function* pieces() {
    const memory = new Uint8Array(size);
    for (let start = 0; start < bytes.length; start += size) {
      const piece = memory.subarray(0, Math.min(size, bytes.length - start));
      piece.set(bytes.subarray(start, start + size));
      yield piece;
      memory.fill(0xee);
    }
  }
  async function* laterPieces() {
    yield* pieces();
  }
  return { ...tensor, chunks: isAsync ? laterPieces : pieces };
}

/** Keeps all written bytes. */
export class MemorySink implements ByteSink {
  readonly #parts: Uint8Array[] = [];
  position = 0;

  async write(bytes: Uint8Array): Promise<void> {
    this.#parts.push(bytes.slice());
    this.position += bytes.length;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}
