/** Float16 numbers in blocks. */
import { valueTable } from '../../../base/tensor/decode-values.js';
import { narrowFloats } from '../../../base/tensor/encode.js';

const HALVES = valueTable('F16');

/** The float16 at a position. */
export const half = (bytes: Uint8Array, at: number): number =>
  HALVES[(bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)] ?? 0;

const [word, wordCode] = [new Float32Array(1), new Uint16Array(1)];
const wordBits = new Uint32Array(word.buffer);

/** Stores a float16. @returns Whether it is finite. */
export function putHalf(value: number, target: Uint8Array, at: number): boolean {
  word[0] = value;
  narrowFloats('F32', 'F16', wordBits, wordCode, false);
  const code = wordCode[0] ?? 0;
  target[at] = code & 255;
  target[at + 1] = code >> 8;
  return (code & 0x7c00) !== 0x7c00;
}
