/** Values of the blocks of GGUF types. */
import { GGML_TYPES, type GgmlTypeName } from '../ggml-types.js';
import { half } from './half.js';

/** Values of a block in K types. */
const QK = 256;

// Blocks as numbers. All products are exact in float64, so each value is rounded to float32 once, as in ggml.

const signedByte = (byte: number): number => (byte << 24) >> 24;

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
  for (let i = 0; i < 32; i++) target[to + i] = signedByte(bytes[at + 2 + i] ?? 0) * scale;
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
    target[to + i] = scale * signedByte(bytes[at + 192 + (i >> 4)] ?? 0) * code;
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
