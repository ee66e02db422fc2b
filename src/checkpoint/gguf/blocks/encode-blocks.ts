/** Numbers as blocks of GGUF types, as llama.cpp's quantizer writes them. */
import { GGML_TYPES } from '../ggml-types.js';
import { type EncodeBlock, SIMPLE_BLOCKS } from './simple-blocks.js';
import { type EncodeSuperBlock, SUPER_BLOCKS } from './super-blocks.js';

const f32 = Math.fround;

/** Types that can be written in blocks. */
export const WRITABLE_BLOCKS = [
  'Q8_0',
  'Q6_K',
  'Q5_K',
  'Q5_1',
  'Q5_0',
  'Q4_K',
  'Q4_1',
  'Q4_0',
  'Q3_K',
  'Q2_K',
] as const;

export type WritableBlocks = (typeof WRITABLE_BLOCKS)[number];

/**
 * No block holds values of this size: the largest of Q6_K is 65504 · 128 · 32. Squares of values that are 2^34 times as
 * large would overflow in a search, and NaN would pass for no scale at all.
 */
const BEYOND_ALL = 2 ** 30;

/** Rows of a matrix that are encoded with importances of their columns. */
export interface ImportantRows {
  /** Values of a row: a whole number of blocks. */
  readonly columns: number;
  /** One number per column, not negative. */
  readonly importance: Float32Array;
}

/**
 * Encodes whole blocks of numbers.
 * @param rows With importances, `numbers` are whole rows.
 * @returns Index of a value whose block has a scale beyond float16, or a value that is not finite; −1 without one.
 */
export function encodeBlocks(
  name: WritableBlocks,
  numbers: Float32Array,
  target: Uint8Array,
  rows?: ImportantRows,
): number {
  const { values, bytes } = GGML_TYPES[name];
  for (let i = 0; i < numbers.length; i++) {
    if (!(Math.abs(numbers[i] as number) < BEYOND_ALL)) return i - (i % values);
  }
  return name in SUPER_BLOCKS
    ? encodeSuper(
        SUPER_BLOCKS[name as keyof typeof SUPER_BLOCKS],
        values,
        bytes,
        numbers,
        target,
        rows,
      )
    : encodeSimple(
        SIMPLE_BLOCKS[name as keyof typeof SIMPLE_BLOCKS],
        values,
        bytes,
        numbers,
        target,
        rows,
      );
}

function encodeSuper(
  encode: EncodeSuperBlock,
  values: number,
  bytes: number,
  numbers: Float32Array,
  target: Uint8Array,
  rows: ImportantRows | undefined,
): number {
  for (let from = 0, at = 0; from < numbers.length; from += values, at += bytes) {
    const column = rows ? from % rows.columns : 0;
    if (!encode(numbers, from, target, at, rows?.importance, column)) return from;
  }
  return -1;
}

const weights = new Float32Array(32);

function encodeSimple(
  encode: EncodeBlock,
  values: number,
  bytes: number,
  numbers: Float32Array,
  target: Uint8Array,
  rows: ImportantRows | undefined,
): number {
  let variance = 0;
  for (let from = 0, at = 0; from < numbers.length; from += values, at += bytes) {
    if (rows) {
      const column = from % rows.columns;
      if (column === 0) variance = meanSquare(numbers, from, rows.columns);
      for (let i = 0; i < values; i++) {
        const x = numbers[from + i] as number;
        const size = f32(Math.sqrt(f32(variance + f32(x * x))));
        weights[i] = (rows.importance[column + i] as number) * size;
      }
    }
    if (!encode(numbers, from, target, at, rows && weights)) return from;
  }
  return -1;
}

/** Mean of the squares of a row. */
function meanSquare(numbers: Float32Array, from: number, columns: number): number {
  let sum = f32(0);
  for (let i = from; i < from + columns; i++) {
    const x = f32(numbers[i] as number);
    sum = f32(sum + f32(x * x));
  }
  return f32(sum / columns);
}
