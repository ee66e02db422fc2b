/**
 * Encoders of K types: super-blocks of 256 values, whose groups of 16 or 32 have scales of 4 to 8 bits. The layouts are
 * those of ggml-common.h, the choice of scales that of ggml's reference (see `scale-search.ts`).
 */
import { half, putHalf } from './half.js';
import { nearest, positiveScale, refinedScale } from './scale-search.js';
import {
  affineTrials,
  groupCodes,
  groupMinima,
  groupPlace,
  groupScales,
  groupValues,
  groupWeights,
  STRIDE,
  searchAffine,
  searchSymmetric,
  type Trials,
  ZERO_GROUP,
} from './search-kernels.js';

const f32 = Math.fround;

/** Values of a super-block. */
const QK = 256;

/**
 * Encodes the super-block of 256 values from `from` on into the bytes from `at` on.
 * @param importance Weights of the columns of the matrix; undefined without an importance matrix.
 * @param column Column of the first value.
 * @returns Whether all scales are finite.
 */
export type EncodeSuperBlock = (
  values: Float32Array,
  from: number,
  target: Uint8Array,
  at: number,
  importance: Float32Array | undefined,
  column: number,
) => boolean;

// One super-block at a time: nothing is allocated for a block.
const values = new Float32Array(QK);
const codes = new Uint8Array(QK);
const scales = new Float32Array(16);
const minima = new Float32Array(16);
/** Sums of the importances of each group. */
const sums = new Float32Array(16);
const scaleCodes = new Uint8Array(16);
const minimumCodes = new Uint8Array(16);

/** Copies a block to `values`, and to the places of its groups of `count` values. */
function loadBlock(source: Float32Array, from: number, count: number): void {
  for (let i = 0; i < QK; i++) values[i] = source[from + i] as number;
  for (let group = 0; group * count < QK; group++) {
    const place = groupPlace(group, count);
    for (let i = 0; i < count; i++) {
      groupValues[place + STRIDE * i] = values[group * count + i] as number;
    }
  }
}

/** Takes codes and scales of all groups out of the places of a search. */
function takeFound(count: number): void {
  const groups = QK / count;
  for (let group = 0; group < groups; group++) {
    const place = groupPlace(group, count);
    for (let i = 0; i < count; i++) {
      codes[group * count + i] = groupCodes[place + STRIDE * i] as number;
    }
    scales[group] = groupScales[group] as number;
    minima[group] = groupMinima[group] as number;
  }
}

/** Searches scales and minima of all groups. */
function searchAll(count: number, largestCode: number, trials: Trials, isAbsolute: boolean): void {
  searchAffine(QK / count, count, largestCode, trials, isAbsolute);
  takeFound(count);
}

/** Sum of squares of `count` values from `at` on. */
function squares(at: number, count: number): number {
  let sum = f32(0);
  for (let i = at; i < at + count; i++) {
    const x = f32(values[i] as number);
    sum = f32(sum + f32(x * x));
  }
  return sum;
}

/** Importances of a group: that of the column, times a size of the value. */
function weigh(
  group: number,
  count: number,
  variance: number,
  importance: Float32Array,
  column: number,
): void {
  const place = groupPlace(group, count);
  const first = group * count;
  let sum = f32(0);
  for (let i = 0; i < count; i++) {
    const x = f32(values[first + i] as number);
    const size = f32(Math.sqrt(f32(variance + f32(x * x))));
    const weight = f32((importance[column + first + i] as number) * size);
    groupWeights[place + STRIDE * i] = weight;
    sum = f32(sum + weight);
  }
  sums[group] = sum;
}

/** Largest of the first `count` numbers, at least 0. */
function largestNumber(numbers: Float32Array, count: number): number {
  let high = 0;
  for (let i = 0; i < count; i++) if ((numbers[i] as number) > high) high = numbers[i] as number;
  return high;
}

/** Codes of scales without importances: the largest number has the largest code. @returns The unit. */
function unitCodes(
  numbers: Float32Array,
  count: number,
  largestCode: number,
  into: Uint8Array,
): number {
  const high = largestNumber(numbers, count);
  const inverse = high > 0 ? f32(largestCode / high) : 0;
  for (let i = 0; i < count; i++) {
    into[i] = Math.min(largestCode, nearest(f32(inverse * (numbers[i] as number))) & 255);
  }
  return high > 0 ? f32(high / largestCode) : 0;
}

/** Final codes with the stored scale and minimum. A group with a scale of 0 keeps its codes. */
function affineCodes(
  at: number,
  count: number,
  scale: number,
  minimum: number,
  largestCode: number,
): void {
  if (scale === 0) return;
  for (let i = at; i < at + count; i++) {
    const code = nearest(f32(f32((values[i] as number) + minimum) / scale));
    codes[i] = code < 0 ? 0 : code > largestCode ? largestCode : code;
  }
}

/** Final codes with a stored scale, from 0 to 2 · halfway − 1. A group with a scale of 0 keeps its codes. */
function symmetricCodes(at: number, scale: number, halfway: number): void {
  if (scale === 0) return;
  for (let i = at; i < at + 16; i++) {
    const code = nearest(f32((values[i] as number) / scale));
    codes[i] = (code < -halfway ? -halfway : code > halfway - 1 ? halfway - 1 : code) + halfway;
  }
}

/** Packs two bits of each code, four rows of 32 codes to 32 bytes. */
function packPairs(target: Uint8Array, at: number): void {
  for (let side = 0; side < 2; side++) {
    for (let i = 0; i < 32; i++) {
      const first = side * 128 + i;
      target[at + side * 32 + i] =
        ((codes[first] as number) & 3) |
        (((codes[first + 32] as number) & 3) << 2) |
        (((codes[first + 64] as number) & 3) << 4) |
        (((codes[first + 96] as number) & 3) << 6);
    }
  }
}

const Q2_PLAIN = affineTrials(-0.5, 0.1, 16, 3);
const Q2_WEIGHTED = affineTrials(-0.9, 0.05, 37, 3);

const q2k: EncodeSuperBlock = (source, from, target, at, importance, column) => {
  loadBlock(source, from, 16);
  const variance = importance ? f32(squares(0, QK) / QK) : 0;
  if (importance) {
    for (let part = 0; part < 16; part++) weigh(part, 16, variance, importance, column);
  } else {
    for (let i = 0; i < QK; i++) groupWeights[i] = Math.abs(groupValues[i] as number);
  }
  searchAll(16, 3, importance ? Q2_WEIGHTED : Q2_PLAIN, !importance);
  const scale = importance
    ? positiveScale(scales, 16, 15, scaleCodes, sums)
    : unitCodes(scales, 16, 15, scaleCodes);
  const minimum = importance
    ? positiveScale(minima, 16, 15, minimumCodes, sums)
    : unitCodes(minima, 16, 15, minimumCodes);
  const isScaleWhole = putHalf(scale, target, at + 80);
  const isWhole = putHalf(minimum, target, at + 82) && isScaleWhole;
  const [unit, lowest] = [half(target, at + 80), half(target, at + 82)];
  for (let part = 0; part < 16; part++) {
    const [s, m] = [scaleCodes[part] as number, minimumCodes[part] as number];
    target[at + part] = s | (m << 4);
    affineCodes(16 * part, 16, f32(unit * s), f32(lowest * m), 3);
  }
  packPairs(target, at + 16);
  return isWhole;
};

const q3k: EncodeSuperBlock = (source, from, target, at, importance, column) => {
  loadBlock(source, from, 16);
  let unit: number;
  if (importance) {
    const variance = f32(f32(2 * squares(0, QK)) / QK);
    for (let part = 0; part < 16; part++) weigh(part, 16, variance, importance, column);
    searchSymmetric(16, 16, 4);
    takeFound(16);
    unit = signedScale();
  } else {
    let peak = 0;
    for (let part = 0; part < 16; part++) {
      const scale = refinedScale(values, 16 * part, 4, codes);
      scales[part] = scale;
      if (Math.abs(scale) > Math.abs(peak)) peak = scale;
    }
    unit = signedUnitCodes(peak);
  }
  const isWhole = putHalf(unit, target, at + 108);
  const stored = half(target, at + 108);
  target.fill(0, at, at + 32);
  target.fill(0, at + 96, at + 108);
  for (let part = 0; part < 16; part++) {
    const code = scaleCodes[part] as number;
    put(target, at + 96 + (part & 7), (code & 15) << (part < 8 ? 0 : 4));
    put(target, at + 104 + (part & 3), (code >> 4) << (2 * (part >> 2)));
    symmetricCodes(16 * part, f32(stored * (code - 32)), 4);
  }
  for (let i = 0; i < QK; i++) {
    if ((codes[i] as number) > 3) put(target, at + (i & 31), 1 << (i >> 5));
  }
  packPairs(target, at + 32);
  return isWhole;
};

/** Codes of `scales` with a sign, with the sums of importances. @returns The unit. */
function signedScale(): number {
  for (let i = 0; i < 16; i++) {
    groupValues[STRIDE * i] = scales[i] as number;
    groupWeights[STRIDE * i] = sums[i] as number;
  }
  searchSymmetric(STRIDE, 16, 32);
  for (let i = 0; i < 16; i++) scaleCodes[i] = groupCodes[STRIDE * i] as number;
  return groupScales[0] as number;
}

/** Sets bits of a byte. */
function put(target: Uint8Array, at: number, bits: number): void {
  target[at] = (target[at] as number) | bits;
}

/** Six-bit codes of `scales` with a sign: the one of largest size is −32. @returns The unit. */
function signedUnitCodes(peak: number): number {
  const inverse = peak === 0 ? 0 : f32(-32 / peak);
  for (let part = 0; part < 16; part++) {
    // Bits of a scale of zero are zero, not the code of zero.
    const code = nearest(f32(inverse * (scales[part] as number)));
    scaleCodes[part] = peak === 0 ? 0 : Math.max(-32, Math.min(31, code)) + 32;
  }
  return peak === 0 ? 0 : f32(1 / inverse);
}

/** Q4_K, and Q5_K with a fifth bit in 32 bytes before the nibbles. */
const fourOrFiveBits = (hasFifthBit: boolean): EncodeSuperBlock => {
  const largestCode = hasFifthBit ? 31 : 15;
  const plain = hasFifthBit
    ? affineTrials(-0.5, 0.1, 16, largestCode)
    : affineTrials(-1, 0.1, 21, largestCode);
  const weighted = affineTrials(-0.9, 0.05, 37, largestCode);
  return (source, from, target, at, importance, column) => {
    loadBlock(source, from, 32);
    const variance = importance ? f32(f32(2 * squares(0, QK)) / QK) : 0;
    for (let part = 0; part < 8; part++) {
      if (importance) {
        weigh(part, 32, variance, importance, column);
        continue;
      }
      const mean = f32(Math.sqrt(f32(squares(32 * part, 32) / 32)));
      const place = groupPlace(part, 32);
      for (let i = 0; i < 32; i++) {
        const to = place + STRIDE * i;
        groupWeights[to] = f32(mean + Math.abs(groupValues[to] as number));
      }
    }
    searchAll(32, largestCode, importance ? weighted : plain, false);
    const scale = importance
      ? positiveScale(scales, 8, 63, scaleCodes, sums)
      : unitCodes(scales, 8, 63, scaleCodes);
    const minimum = importance
      ? positiveScale(minima, 8, 63, minimumCodes, sums)
      : unitCodes(minima, 8, 63, minimumCodes);
    const isScaleWhole = putHalf(scale, target, at);
    const isWhole = putHalf(minimum, target, at + 2) && isScaleWhole;
    const [unit, lowest] = [half(target, at), half(target, at + 2)];
    for (let part = 0; part < 8; part++) {
      const [s, m] = [scaleCodes[part] as number, minimumCodes[part] as number];
      if (part < 4) {
        target[at + 4 + part] = s;
        target[at + 8 + part] = m;
      } else {
        target[at + 8 + part] = (s & 15) | ((m & 15) << 4);
        put(target, at + part, (s >> 4) << 6);
        put(target, at + 4 + part, (m >> 4) << 6);
      }
      affineCodes(32 * part, 32, f32(unit * s), f32(lowest * m), largestCode);
    }
    const nibbles = at + (hasFifthBit ? 48 : 16);
    if (hasFifthBit) target.fill(0, at + 16, at + 48);
    for (let pair = 0; pair < 4; pair++) {
      for (let i = 0; i < 32; i++) {
        const low = codes[64 * pair + i] as number;
        const high = codes[64 * pair + 32 + i] as number;
        target[nibbles + 32 * pair + i] = (low & 15) | ((high & 15) << 4);
        if (hasFifthBit) put(target, at + 16 + i, ((low >> 4) | ((high >> 4) << 1)) << (2 * pair));
      }
    }
    return isWhole;
  };
};

const q6k: EncodeSuperBlock = (source, from, target, at, importance, column) => {
  loadBlock(source, from, 16);
  if (importance) {
    for (let part = 0; part < 16; part++) {
      const place = groupPlace(part, 16);
      const first = column + 16 * part;
      for (let i = 0; i < 16; i++) {
        groupWeights[place + STRIDE * i] = importance[first + i] as number;
      }
    }
  } else {
    for (let i = 0; i < QK; i++) {
      const x = groupValues[i] as number;
      groupWeights[i] = f32(x * x);
    }
  }
  searchSymmetric(16, 16, 32);
  takeFound(16);
  let peak = 0;
  for (let part = 0; part < 16; part++) {
    const scale = scales[part] as number;
    if (Math.abs(scale) > Math.abs(peak)) peak = scale;
  }
  if (Math.abs(peak) < ZERO_GROUP) {
    target.fill(0, at, at + 210);
    return true;
  }
  const inverse = f32(-128 / peak);
  const isWhole = putHalf(f32(1 / inverse), target, at + 208);
  const unit = half(target, at + 208);
  for (let part = 0; part < 16; part++) {
    const code = Math.min(127, nearest(f32(inverse * (scales[part] as number))));
    target[at + 192 + part] = code;
    symmetricCodes(16 * part, f32(unit * code), 32);
  }
  for (let side = 0; side < 2; side++) {
    for (let i = 0; i < 32; i++) {
      const first = 128 * side + i;
      const [a, b] = [codes[first] as number, codes[first + 32] as number];
      const [c, d] = [codes[first + 64] as number, codes[first + 96] as number];
      target[at + 64 * side + i] = (a & 15) | ((c & 15) << 4);
      target[at + 64 * side + 32 + i] = (b & 15) | ((d & 15) << 4);
      target[at + 128 + 32 * side + i] =
        (a >> 4) | ((b >> 4) << 2) | ((c >> 4) << 4) | ((d >> 4) << 6);
    }
  }
  return isWhole;
};

/** Encoders of K types. */
export const SUPER_BLOCKS = {
  Q2_K: q2k,
  Q3_K: q3k,
  Q4_K: fourOrFiveBits(false),
  Q5_K: fourOrFiveBits(true),
  Q6_K: q6k,
} as const;
