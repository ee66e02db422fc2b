/** Values of the flags of `convert-checkpoint`: the only list of them. Imports only names, so that `--help` stays fast. */
import { MIXTURE_NAMES, type MixtureName } from '../../checkpoint/gguf/mixtures.js';

/** SRTE layouts: one table, one pair or one formula for all layers, or a table for each. */
export const LAYOUTS = {
  shared: { sharing: 'shared', form: 'table' },
  'low-rank': { sharing: 'shared', form: 'low-rank' },
  sincos: { sharing: 'shared', form: 'sincos' },
  'per-layer': { sharing: 'per-layer', form: 'table' },
} as const;

export type LayoutName = keyof typeof LAYOUTS;

export const LAYOUT_NAMES = Object.keys(LAYOUTS) as readonly LayoutName[];

/** Rule for merging the tables of several layers. */
export type Merge = 'mean' | 'first' | { readonly layer: number };

/** Values of additional rows: the table's rows repeated from the first, or zeros. */
export const EXTENSIONS = ['repeat', 'zero'] as const;

export type Extension = (typeof EXTENSIONS)[number];

/** Source of the weights of a tied embedding and head: one of the two, or their mean. */
export const TIES = ['embed', 'head', 'mean'] as const;

export type Tie = (typeof TIES)[number];

/** Naming schemes of older inputs: MiniMind before April 2025. */
export const NAMING_SCHEMES = ['minimind'] as const;

export type NamingScheme = (typeof NAMING_SCHEMES)[number];

/** Types of parameters; undefined keeps each. Types of blocks (q8_0, q4_k_m) are those of GGUF files only. */
export const CONVERTED_DTYPES = {
  keep: undefined,
  f32: 'F32',
  f16: 'F16',
  bf16: 'BF16',
  ...(Object.fromEntries(MIXTURE_NAMES.map((name) => [name, name])) as {
    readonly [Name in MixtureName]: Name;
  }),
} as const;

export const CONVERTED_DTYPE_NAMES = Object.keys(
  CONVERTED_DTYPES,
) as readonly (keyof typeof CONVERTED_DTYPES)[];

/** Bits of quantized weights. */
export const QUANTIZATIONS = { int8: 8, int4: 4 } as const;

export const QUANTIZATION_NAMES = Object.keys(
  QUANTIZATIONS,
) as readonly (keyof typeof QUANTIZATIONS)[];

/** Values of a row that share a scale. */
export const QUANTIZATION_GROUPS = { 32: 32, 64: 64, 128: 128 } as const;

export const QUANTIZATION_GROUP_NAMES = ['32', '64', '128'] as const;
