/**
 * Element types as checkpoint files name them: the list of the safetensors format, and C128, which only
 * PyTorch's own files hold. (`Dtype` is the shorter list of types that one plans a model in.)
 */
export const STORED_DTYPES = {
  BOOL: { bits: 8, kind: 'bool', wordBytes: 1 },
  U8: { bits: 8, kind: 'integer', wordBytes: 1 },
  I8: { bits: 8, kind: 'integer', wordBytes: 1 },
  U16: { bits: 16, kind: 'integer', wordBytes: 2 },
  I16: { bits: 16, kind: 'integer', wordBytes: 2 },
  U32: { bits: 32, kind: 'integer', wordBytes: 4 },
  I32: { bits: 32, kind: 'integer', wordBytes: 4 },
  U64: { bits: 64, kind: 'integer', wordBytes: 8 },
  I64: { bits: 64, kind: 'integer', wordBytes: 8 },
  F4: { bits: 4, kind: 'float', wordBytes: 1 },
  F6_E2M3: { bits: 6, kind: 'float', wordBytes: 1 },
  F6_E3M2: { bits: 6, kind: 'float', wordBytes: 1 },
  F8_E4M3: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E5M2: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E8M0: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E4M3FNUZ: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E5M2FNUZ: { bits: 8, kind: 'float', wordBytes: 1 },
  F16: { bits: 16, kind: 'float', wordBytes: 2 },
  BF16: { bits: 16, kind: 'float', wordBytes: 2 },
  F32: { bits: 32, kind: 'float', wordBytes: 4 },
  F64: { bits: 64, kind: 'float', wordBytes: 8 },
  C64: { bits: 64, kind: 'complex', wordBytes: 4 },
  C128: { bits: 128, kind: 'complex', wordBytes: 8 },
} as const satisfies Record<
  string,
  {
    bits: number;
    kind: 'bool' | 'integer' | 'float' | 'complex';
    /** What changes places between byte orders; a complex number is two words. */
    wordBytes: number;
  }
>;

export type StoredDtype = keyof typeof STORED_DTYPES;

/**
 * Bytes that `elements` values take, packed. Undefined when they are no whole number of bytes, or beyond
 * 2^53 − 1.
 */
export function storedBytes(elements: number, dtype: StoredDtype): number | undefined {
  const { bits } = STORED_DTYPES[dtype];
  if (bits >= 8) return exactProduct(elements, bits / 8);
  // 4 and 6 bits: four values are a whole number of bytes; the quotient stays exact.
  const inLastGroup = ((elements % 4) * bits) / 8;
  const bytes = Math.floor(elements / 4) * (bits / 2) + inLastGroup;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** a · b when both are safe integers and so is the product. */
export function exactProduct(a: number, b: number): number | undefined {
  const product = a * b;
  return Number.isSafeInteger(product) ? product : undefined;
}
