/** Element types of GGUF files, and the values of their blocks. Imports nothing that reads files. */
import { valueTable } from '../../base/tensor/decode-values.js';
import type { StoredDtype } from '../../base/tensor/dtype.js';
import { narrowFloats } from '../../base/tensor/encode.js';

/** Values of a block in K types. */
const QK = 256;

interface GgmlType {
  /** Number in a file. */
  readonly id: number;
  /** Values of a block; 1 for plain numbers. */
  readonly values: number;
  /** Bytes of a block. */
  readonly bytes: number;
  /** Element type of plain numbers. */
  readonly dtype?: StoredDtype;
}

/**
 * Types by name, with their numbers and block sizes: `ggml_type` of ggml.h, block structures of ggml-common.h.
 * Types 4, 5, 31 to 33 and 36 to 38 were removed.
 */
export const GGML_TYPES = {
  F32: { id: 0, values: 1, bytes: 4, dtype: 'F32' },
  F16: { id: 1, values: 1, bytes: 2, dtype: 'F16' },
  Q4_0: { id: 2, values: 32, bytes: 18 },
  Q4_1: { id: 3, values: 32, bytes: 20 },
  Q5_0: { id: 6, values: 32, bytes: 22 },
  Q5_1: { id: 7, values: 32, bytes: 24 },
  Q8_0: { id: 8, values: 32, bytes: 34 },
  Q8_1: { id: 9, values: 32, bytes: 40 },
  Q2_K: { id: 10, values: QK, bytes: 84 },
  Q3_K: { id: 11, values: QK, bytes: 110 },
  Q4_K: { id: 12, values: QK, bytes: 144 },
  Q5_K: { id: 13, values: QK, bytes: 176 },
  Q6_K: { id: 14, values: QK, bytes: 210 },
  Q8_K: { id: 15, values: QK, bytes: 292 },
  IQ2_XXS: { id: 16, values: QK, bytes: 66 },
  IQ2_XS: { id: 17, values: QK, bytes: 74 },
  IQ3_XXS: { id: 18, values: QK, bytes: 98 },
  IQ1_S: { id: 19, values: QK, bytes: 50 },
  IQ4_NL: { id: 20, values: 32, bytes: 18 },
  IQ3_S: { id: 21, values: QK, bytes: 110 },
  IQ2_S: { id: 22, values: QK, bytes: 82 },
  IQ4_XS: { id: 23, values: QK, bytes: 136 },
  I8: { id: 24, values: 1, bytes: 1, dtype: 'I8' },
  I16: { id: 25, values: 1, bytes: 2, dtype: 'I16' },
  I32: { id: 26, values: 1, bytes: 4, dtype: 'I32' },
  I64: { id: 27, values: 1, bytes: 8, dtype: 'I64' },
  F64: { id: 28, values: 1, bytes: 8, dtype: 'F64' },
  IQ1_M: { id: 29, values: QK, bytes: 56 },
  BF16: { id: 30, values: 1, bytes: 2, dtype: 'BF16' },
  TQ1_0: { id: 34, values: QK, bytes: 54 },
  TQ2_0: { id: 35, values: QK, bytes: 66 },
  MXFP4: { id: 39, values: 32, bytes: 17 },
  NVFP4: { id: 40, values: 64, bytes: 36 },
  Q1_0: { id: 41, values: 128, bytes: 18 },
} as const satisfies Record<string, GgmlType>;

export type GgmlTypeName = keyof typeof GGML_TYPES;

const BY_ID: ReadonlyMap<number, GgmlTypeName> = new Map(
  (Object.keys(GGML_TYPES) as GgmlTypeName[]).map((name) => [GGML_TYPES[name].id, name]),
);

export const ggmlTypeOf = (id: number): GgmlTypeName | undefined => BY_ID.get(id);

export const isGgmlName = (name: string): name is GgmlTypeName => Object.hasOwn(GGML_TYPES, name);

export const ggmlType = (name: GgmlTypeName): GgmlType => GGML_TYPES[name];

// Blocks as numbers. All products are exact in float64, so each value is rounded to float32 once, as in ggml.

const HALVES = valueTable('F16');

/** The float16 at a position. */
const half = (bytes: Uint8Array, at: number): number =>
  HALVES[(bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)] ?? 0;

const signed = (byte: number): number => (byte << 24) >> 24;

/** Decodes the block at `at` into the values from `to` on. */
type DecodeBlock = (bytes: Uint8Array, at: number, target: Float32Array, to: number) => void;

/** Blocks of 32 values in nibbles, low ones first, with an optional fifth bit each. */
const nibbles =
  ({ hasMinimum, hasFifthBit }: { hasMinimum: boolean; hasFifthBit: boolean }): DecodeBlock =>
  (bytes, at, target, to) => {
    const scale = half(bytes, at);
    const zero = hasFifthBit ? 16 : 8;
    const minimum = hasMinimum ? half(bytes, at + 2) : 0;
    const fifths = at + (hasMinimum ? 4 : 2);
    const first = fifths + (hasFifthBit ? 4 : 0);
    for (let i = 0; i < 32; i++) {
      const byte = bytes[first + (i & 15)] ?? 0;
      const low = i < 16 ? byte & 15 : byte >> 4;
      const fifth = hasFifthBit ? (((bytes[fifths + (i >> 3)] ?? 0) >> (i & 7)) & 1) << 4 : 0;
      const code = low | fifth;
      target[to + i] = hasMinimum ? scale * code + minimum : scale * (code - zero);
    }
  };

const q8: DecodeBlock = (bytes, at, target, to) => {
  const scale = half(bytes, at);
  for (let i = 0; i < 32; i++) target[to + i] = signed(bytes[at + 2 + i] ?? 0) * scale;
};

/** Scale and minimum, six bits each, of part `index` of eight: the packing of Q4_K and Q5_K. */
function scaleAndMinimum(bytes: Uint8Array, at: number, index: number): readonly [number, number] {
  if (index < 4) return [(bytes[at + index] ?? 0) & 63, (bytes[at + index + 4] ?? 0) & 63];
  const [scaleTop, minimumTop] = [bytes[at + index - 4] ?? 0, bytes[at + index] ?? 0];
  const low = bytes[at + index + 4] ?? 0;
  return [(low & 15) | ((scaleTop >> 6) << 4), (low >> 4) | ((minimumTop >> 6) << 4)];
}

const fourOrFiveBits =
  (hasFifthBit: boolean): DecodeBlock =>
  (bytes, at, target, to) => {
    const [scale, minimum] = [half(bytes, at), half(bytes, at + 2)];
    const fifths = at + 16;
    const first = fifths + (hasFifthBit ? 32 : 0);
    for (let part = 0; part < 8; part++) {
      const [scaleCode, minimumCode] = scaleAndMinimum(bytes, at + 4, part);
      const [step, lowest] = [scale * scaleCode, minimum * minimumCode];
      for (let i = 0; i < 32; i++) {
        const byte = bytes[first + (part >> 1) * 32 + i] ?? 0;
        const low = part & 1 ? byte >> 4 : byte & 15;
        const fifth = hasFifthBit ? (((bytes[fifths + i] ?? 0) >> part) & 1) << 4 : 0;
        target[to + part * 32 + i] = step * (low | fifth) - lowest;
      }
    }
  };

const q6k: DecodeBlock = (bytes, at, target, to) => {
  const scale = half(bytes, at + 208);
  for (let i = 0; i < QK; i++) {
    const [side, inSide] = [i >> 7, i & 127];
    const low = (bytes[at + side * 64 + (inSide & 63)] ?? 0) >> (inSide < 64 ? 0 : 4);
    const high = (bytes[at + 128 + side * 32 + (inSide & 31)] ?? 0) >> (2 * (inSide >> 5));
    const code = ((low & 15) | ((high & 3) << 4)) - 32;
    target[to + i] = scale * signed(bytes[at + 192 + (i >> 4)] ?? 0) * code;
  }
};

/** Two bits of value `i`: each run of 128 values has 32 bytes, with 32 values in each pair of bits. */
const twoBits = (bytes: Uint8Array, first: number, i: number): number =>
  ((bytes[first + (i >> 7) * 32 + (i & 31)] ?? 0) >> (2 * ((i >> 5) & 3))) & 3;

const q2k: DecodeBlock = (bytes, at, target, to) => {
  const [scale, minimum] = [half(bytes, at + 80), half(bytes, at + 82)];
  for (let i = 0; i < QK; i++) {
    const codes = bytes[at + (i >> 4)] ?? 0;
    target[to + i] = scale * (codes & 15) * twoBits(bytes, at + 16, i) - minimum * (codes >> 4);
  }
};

const q3k: DecodeBlock = (bytes, at, target, to) => {
  const scale = half(bytes, at + 108);
  for (let i = 0; i < QK; i++) {
    const part = i >> 4;
    const low = ((bytes[at + 96 + (part & 7)] ?? 0) >> (part < 8 ? 0 : 4)) & 15;
    const high = ((bytes[at + 104 + (part & 3)] ?? 0) >> (2 * (part >> 2))) & 3;
    const isKept = ((bytes[at + (i & 31)] ?? 0) >> (i >> 5)) & 1;
    const code = twoBits(bytes, at + 32, i) - (isKept ? 0 : 4);
    target[to + i] = scale * ((low | (high << 4)) - 32) * code;
  }
};

const DECODERS: Readonly<Partial<Record<GgmlTypeName, DecodeBlock>>> = {
  Q4_0: nibbles({ hasMinimum: false, hasFifthBit: false }),
  Q4_1: nibbles({ hasMinimum: true, hasFifthBit: false }),
  Q5_0: nibbles({ hasMinimum: false, hasFifthBit: true }),
  Q5_1: nibbles({ hasMinimum: true, hasFifthBit: true }),
  Q8_0: q8,
  Q2_K: q2k,
  Q3_K: q3k,
  Q4_K: fourOrFiveBits(false),
  Q5_K: fourOrFiveBits(true),
  Q6_K: q6k,
};

/** Whether values of a type of blocks can be read; the others are only named and sized. */
export const isDecodable = (name: GgmlTypeName): boolean => name in DECODERS;

/** @throws RangeError for a type that cannot be decoded. */
export function decodeBlocks(name: GgmlTypeName, bytes: Uint8Array, target: Float32Array): void {
  const decode = DECODERS[name];
  if (decode === undefined) throw new RangeError(`no values of ${name}`);
  const { values, bytes: blockBytes } = GGML_TYPES[name];
  for (let block = 0; block * blockBytes < bytes.length; block++) {
    decode(bytes, block * blockBytes, target, block * values);
  }
}

// Numbers as blocks, with the float32 steps of ggml's reference (quantize_row_q8_0_ref, quantize_row_q4_0_ref).

/** Types that can be written in blocks. */
export const WRITABLE_BLOCKS = ['Q8_0', 'Q4_0'] as const satisfies readonly GgmlTypeName[];

export type WritableBlocks = (typeof WRITABLE_BLOCKS)[number];

const f32 = Math.fround;

/** Away from zero for halves. */
const rounded = (value: number): number => Math.sign(value) * Math.floor(Math.abs(value) + 0.5);

const [word, wordCode] = [new Float32Array(1), new Uint16Array(1)];
const wordBits = new Uint32Array(word.buffer);

/** Stores a float16. @returns Whether a finite value became infinite. */
function putHalf(value: number, target: Uint8Array, at: number): boolean {
  word[0] = value;
  const overflow = narrowFloats('F32', 'F16', wordBits, wordCode, false);
  const code = wordCode[0] ?? 0;
  target[at] = code & 255;
  target[at + 1] = code >> 8;
  return overflow >= 0;
}

/**
 * Encodes whole blocks of numbers.
 * @returns Index of a value whose block has a scale beyond float16, or a value that is not finite; −1 without one.
 */
export function encodeBlocks(
  name: WritableBlocks,
  numbers: Float32Array,
  target: Uint8Array,
): number {
  const { values, bytes } = GGML_TYPES[name];
  let wrong = -1;
  for (let block = 0; block * values < numbers.length; block++) {
    const first = block * values;
    const at = block * bytes;
    let largest = numbers[first] ?? 0;
    let isWhole = true;
    for (let i = first; i < first + values; i++) {
      const value = numbers[i] ?? 0;
      if (!Number.isFinite(value)) isWhole = false;
      if (Math.abs(value) > Math.abs(largest)) largest = value;
    }
    const scale = f32(name === 'Q8_0' ? Math.abs(largest) / 127 : largest / -8);
    const inverse = scale === 0 ? 0 : f32(1 / scale);
    const overflows = putHalf(scale, target, at);
    if ((overflows || !isWhole) && wrong < 0) wrong = first;
    if (name === 'Q8_0') {
      for (let i = 0; i < values; i++) {
        target[at + 2 + i] = rounded(f32((numbers[first + i] ?? 0) * inverse));
      }
    } else {
      for (let i = 0; i < 16; i++) {
        const low = nibbleOf(numbers[first + i] ?? 0, inverse);
        target[at + 2 + i] = low | (nibbleOf(numbers[first + i + 16] ?? 0, inverse) << 4);
      }
    }
  }
  return wrong;
}

const nibbleOf = (value: number, inverse: number): number =>
  Math.max(0, Math.min(15, Math.trunc(f32(f32(value * inverse) + 8.5))));
