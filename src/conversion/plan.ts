/**
 * What a conversion does, as data: for every tensor of the output where its values come from. It is made
 * from indexes and configs alone, printed by a dry run, and followed by `execute`.
 */
import type { SrteForm, SrteLayout } from '../architecture/srte-layout.js';
import type { Shape, StoredDtype } from '../tensor/dtype.js';
import type { Extension, Merge, Tie } from './request.js';
import type { SrtePart } from './srte-names.js';

/** Where the values of a tensor come from. Names are the input's own. */
export type Action =
  /** One tensor, as it is but for the dtype. */
  | { readonly do: 'copy'; readonly from: string }
  /** The first rows of a table or of a pair's rows; more than there are as `extension` says. */
  | {
      readonly do: 'fit';
      readonly from: string;
      readonly rows: number;
      readonly extension: Extension | null;
    }
  /** The rows of each attention head, of which neighbours made a pair for RoPE, as two halves. */
  | { readonly do: 'unpair'; readonly from: string; readonly heads: number }
  /** The mean of two tensors, value by value. */
  | { readonly do: 'average'; readonly from: readonly [string, string] }
  /** A part of a table of `SrtePlan.tables`. */
  | { readonly do: 'table'; readonly table: number; readonly part: SrtePart }
  /** A buffer that follows from the configuration. */
  | { readonly do: 'compute' };

export interface PlannedTensor {
  readonly name: string;
  /** Further names of the same values. */
  readonly aliases: readonly string[];
  readonly role: 'parameter' | 'buffer';
  readonly dtype: StoredDtype;
  readonly shape: Shape;
  readonly bytes: number;
  readonly action: Action;
}

/** A table of the output. */
export interface PlannedTable {
  /** `shared_srte`, `layers.0.srte`. */
  readonly name: string;
  /** Numbers of the input's tables that it takes the place of. */
  readonly replaces: readonly number[];
  /** Numbers of those that its values come from. */
  readonly sources: readonly number[];
  /** Whether its values have to be worked out: not, when they are those of one table. */
  readonly isMade: boolean;
  readonly form: SrteForm;
  /** Of a low-rank pair; null for other forms, and for one that is yet to be found. */
  readonly rank: number | null;
  readonly dtype: StoredDtype;
}

export interface SrtePlan {
  readonly source: SrteLayout;
  readonly target: SrteLayout;
  readonly merge: Merge;
  readonly extension: Extension | null;
  readonly tables: readonly PlannedTable[];
}

export interface PlannedShard {
  /** `model.safetensors`, `model-00001-of-00003.safetensors`, or the output's own name. */
  readonly file: string;
  readonly tensors: readonly string[];
  /** Of the tensors. */
  readonly bytes: number;
}

/** What of the input the output does not have. */
export interface LeftOut {
  readonly name: string;
  readonly why: string;
}

/** An embedding and a head that become one tensor. */
export interface PlannedTie {
  /** The tensor of the output. */
  readonly name: string;
  /** The embedding and the head, as the input names them. */
  readonly from: readonly [string, string];
  readonly values: Tie;
}

export interface ConversionPlan {
  /** In the order of the state dict; each once. */
  readonly tensors: readonly PlannedTensor[];
  /** All names in the order of the state dict, aliases in their places. */
  readonly names: readonly string[];
  /** Null when the SRTE stays as it is. */
  readonly srte: SrtePlan | null;
  /** Null when nothing is tied. */
  readonly tie: PlannedTie | null;
  readonly leftOut: readonly LeftOut[];
  /** What deserves a word. */
  readonly notes: readonly string[];
}
