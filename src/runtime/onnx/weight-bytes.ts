/** Weights as the bytes of a file that ONNX Runtime reads: float32, little-endian. */
import type { Param } from '../../architecture/param.js';
import type { WeightSource } from '../weights.js';

/** Tensors begin at multiples of this, so that they can be mapped by pages. */
const ALIGNMENT = 4096;
/** Read and written at a time. */
const PIECE_ELEMENTS = 2 ** 20;

/** Where the next tensor begins, when what is before it ends at `position`. */
export const aligned = (position: number): number => Math.ceil(position / ALIGNMENT) * ALIGNMENT;

/** `count` elements of a tensor from `first` on, in pieces that reuse their memory. */
export function* weightBytes(
  source: WeightSource,
  tensor: Param,
  first: number,
  count: number,
): Generator<Uint8Array> {
  const piece = new Float32Array(Math.min(PIECE_ELEMENTS, count));
  for (let done = 0; done < count; done += piece.length) {
    const values = piece.subarray(0, Math.min(piece.length, count - done));
    source.read(tensor, first + done, values);
    yield new Uint8Array(values.buffer, 0, values.byteLength);
  }
}
