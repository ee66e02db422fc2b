/** Element types of GGUF files. Imports only types, so that `--help` stays fast. */
import type { StoredDtype } from '../../base/tensor/dtype.js';

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
