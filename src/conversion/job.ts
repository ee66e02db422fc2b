/** What a user asks a conversion for. */
import type { EncodableDtype } from '../tensor/encode.js';

/** Layouts by the names that users give them. */
export const LAYOUTS = {
  shared: { sharing: 'shared', form: 'table', title: 'one full table for all layers' },
  'low-rank': { sharing: 'shared', form: 'low-rank', title: 'one low-rank pair for all layers' },
  sincos: { sharing: 'shared', form: 'sincos', title: 'sines and cosines, without a table' },
  'per-layer': { sharing: 'per-layer', form: 'table', title: 'a full table for each layer' },
} as const;

export type LayoutName = keyof typeof LAYOUTS;

/** How one table is made out of those of several layers. */
export type Merge = 'mean' | 'first' | { readonly layer: number };

/** What stands in the rows that a table is made longer by: its rows from the first on again, or zeros. */
export type Extension = 'repeat' | 'zero';

/** Whose weights a tied embedding and head have: one of the two, or their mean. */
export type Tie = 'embed' | 'head' | 'mean';

/** How much of a table a low-rank pair keeps. */
export type Truncation = { readonly rank: number } | { readonly relativeError: number };

export interface ConversionRequest {
  /** Undefined: the SRTE stays as it is, or becomes what the target config says. */
  readonly to?: LayoutName | undefined;
  /** Of a low-rank pair. */
  readonly truncation?: Truncation | undefined;
  readonly merge: Merge;
  /** Rows of the tables; undefined for as many as there are. */
  readonly positions?: number | undefined;
  /** Undefined: more rows than there are are refused. */
  readonly extension?: Extension | undefined;
  readonly tie?: Tie | undefined;
  /** Of the parameters; undefined for what each has. Buffers keep theirs. */
  readonly dtype?: EncodableDtype | undefined;
  /** Whether values beyond the dtype become its largest instead of an error. */
  readonly saturate: boolean;
}
