/**
 * Floating-point formats of at most 16 bits: so few values that a table holds all of them. Every value is
 * exact, since each of them is a float32 too.
 *
 * Sources: IEEE 754-2019 (binary16); Intel, BFLOAT16 Hardware Numerics Definition, 2018; OCP 8-bit Floating
 * Point Specification (OFP8) 1.0, 2023, after Micikevicius et al., FP8 Formats for Deep Learning,
 * arXiv:2209.05433 (E4M3, E5M2); Noune et al., 8-bit Numerical Formats for Deep Neural Networks,
 * arXiv:2206.02915 (the FNUZ formats); OCP Microscaling Formats (MX) 1.0, 2023 (E8M0 and those of 6 and
 * 4 bits).
 */

/** From the highest bit down: a sign, an exponent, a fraction. */
interface FloatFormat {
  readonly exponentBits: number;
  readonly fractionBits: number;
  readonly bias: number;
  readonly special: keyof typeof SPECIAL_VALUES;
}

/** What a pattern of bits means when it is no number of the usual kind; undefined when it is one. */
type SpecialValue = (
  negative: boolean,
  exponent: number,
  fraction: number,
  format: FloatFormat,
) => number | undefined;

const SPECIAL_VALUES = {
  /** The highest exponent is for infinity and NaN. */
  ieee: (_negative, exponent, fraction, { exponentBits }) => {
    if (exponent !== 2 ** exponentBits - 1) return undefined;
    return fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
  },
  /** No infinity; NaN is all ones. */
  allOnes: (_negative, exponent, fraction, { exponentBits, fractionBits }) =>
    exponent === 2 ** exponentBits - 1 && fraction === 2 ** fractionBits - 1
      ? Number.NaN
      : undefined,
  /** No infinity and no negative zero: in its place stands NaN. */
  negativeZero: (negative, exponent, fraction) =>
    negative && exponent === 0 && fraction === 0 ? Number.NaN : undefined,
  none: () => undefined,
} as const satisfies Record<string, SpecialValue>;

export const FLOAT_FORMATS = {
  F16: { exponentBits: 5, fractionBits: 10, bias: 15, special: 'ieee' },
  BF16: { exponentBits: 8, fractionBits: 7, bias: 127, special: 'ieee' },
  F8_E5M2: { exponentBits: 5, fractionBits: 2, bias: 15, special: 'ieee' },
  F8_E4M3: { exponentBits: 4, fractionBits: 3, bias: 7, special: 'allOnes' },
  F8_E5M2FNUZ: { exponentBits: 5, fractionBits: 2, bias: 16, special: 'negativeZero' },
  F8_E4M3FNUZ: { exponentBits: 4, fractionBits: 3, bias: 8, special: 'negativeZero' },
  F6_E3M2: { exponentBits: 3, fractionBits: 2, bias: 3, special: 'none' },
  F6_E2M3: { exponentBits: 2, fractionBits: 3, bias: 1, special: 'none' },
  F4: { exponentBits: 2, fractionBits: 1, bias: 1, special: 'none' },
} as const satisfies Record<string, FloatFormat>;

function floatOf(bits: number, format: FloatFormat): number {
  const { exponentBits, fractionBits, bias, special } = format;
  const negative = bits >>> (exponentBits + fractionBits) === 1;
  const exponent = (bits >>> fractionBits) & (2 ** exponentBits - 1);
  const fraction = bits & (2 ** fractionBits - 1);
  const size =
    SPECIAL_VALUES[special](negative, exponent, fraction, format) ??
    (exponent === 0
      ? fraction * 2 ** (1 - bias - fractionBits)
      : (fraction + 2 ** fractionBits) * 2 ** (exponent - bias - fractionBits));
  return negative ? -size : size;
}

const tableOf = (format: FloatFormat) =>
  Float32Array.from({ length: 2 ** (1 + format.exponentBits + format.fractionBits) }, (_, bits) =>
    floatOf(bits, format),
  );

/** A power of two without sign or zero, the scale of a block of others. */
const scaleTable = () =>
  Float32Array.from({ length: 256 }, (_, bits) => (bits === 255 ? Number.NaN : 2 ** (bits - 127)));

/** The dtypes that a table holds. */
export type TabledDtype = keyof typeof FLOAT_FORMATS | 'F8_E8M0';

const tables = new Map<TabledDtype, Float32Array>();

/** The values of a dtype by their bits, made when first asked for. */
export function valueTable(dtype: TabledDtype): Float32Array {
  let table = tables.get(dtype);
  if (table === undefined) {
    table = dtype === 'F8_E8M0' ? scaleTable() : tableOf(FLOAT_FORMATS[dtype]);
    tables.set(dtype, table);
  }
  return table;
}
