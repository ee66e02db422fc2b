/** Keys and values as a cache of another type returns them, by the encoders of GGUF. */
import { decodeValues } from '../../../base/tensor/decode-values.js';
import type { CacheType } from '../../../base/tensor/dtype.js';
import { encode } from '../../../base/tensor/encode.js';
import { ggmlType } from '../ggml-types.js';
import { decodeBlocks } from './decode-blocks.js';
import { encodeBlocks } from './encode-blocks.js';

/**
 * Values as a cache of this type returns them; unchanged without one.
 * @param values Rows of heads, a whole number of blocks for the types in blocks.
 */
export function asCached(type: CacheType | undefined, values: Float32Array): Float32Array {
  if (type === undefined) return values;
  if (type === 'f16') {
    const [words, numbers] = [new Uint8Array(2 * values.length), new Float64Array(values.length)];
    encode('F16', Float64Array.from(values), words);
    decodeValues('F16', words, numbers);
    return Float32Array.from(numbers);
  }
  const name = type === 'q8_0' ? 'Q8_0' : 'Q4_0';
  const { values: perBlock, bytes } = ggmlType(name);
  const blocks = new Uint8Array((values.length / perBlock) * bytes);
  const rounded = new Float32Array(values.length);
  encodeBlocks(name, values, blocks);
  decodeBlocks(name, blocks, rounded);
  return rounded;
}
