/** Setting and result of the comparison of methods of attention. */
import type { Dtype } from '../../../base/tensor/dtype.js';
import type { HeadSpan } from '../../architecture/layer.js';
import type { Figure, Quantity } from '../figure.js';
import type { NormOperations } from '../norm-operations.js';
import type { LongTexts } from './long-texts.js';

export type AttentionMethod =
  | 'plain'
  | 'flash'
  | 'grouped'
  | 'window'
  | 'hierarchical'
  | 'block-sparse'
  /** The model as it is, where it is like no other row. */
  | 'own';

/** Memory on the chip that one block of threads can use. */
export interface OnChip {
  /** Memory of a tile. @integer @minimum 1 */
  readonly bytes: number;
  /** Source of the number. */
  readonly source: string;
}

export interface AttentionSetting {
  /** Tokens of one sequence. */
  readonly contexts: readonly number[];
  /** Element type of queries, keys, values and scores. */
  readonly dtype: Dtype;
  readonly onChip: OnChip;
  /** Tokens of a block of the block-sparse mask. @integer @minimum 1 */
  readonly block: number;
  /** Tokens of the window; default: the largest of the model, or 1,024. @integer @minimum 1 */
  readonly window?: number | undefined;
  /** Heads without a window in the hierarchical row; default: as in the model, or 2. @integer @minimum 1 */
  readonly globalHeads?: number | undefined;
  /** Numbers of key heads, a row each; default: those of the model, or a quarter of the heads. */
  readonly keyHeads?: readonly number[] | undefined;
}

/** Rows and columns of a tile of scores. */
export interface Tile {
  /** Rows of the tile. @integer @minimum 1 */
  readonly rows: number;
  /** Columns of the tile. @integer @minimum 1 */
  readonly columns: number;
}

export const COMPARED = ['scores', 'traffic', 'flops', 'cache'] as const;

export type ComparedFigure = (typeof COMPARED)[number];

/** Plain attention divided by a method; Infinity where the method has nothing. */
export interface AttentionRatios extends Readonly<Record<ComparedFigure, number>> {
  /** Ratio of the memory of the scores. @real @minimum 0 */
  readonly scores: number;
  /** Ratio of the bytes read from and written to the memory of the GPU. @real @minimum 0 */
  readonly traffic: number;
  /** Ratio of the FLOPs. @real @minimum 0 */
  readonly flops: number;
  /** Ratio of the bytes of keys and values. @real @minimum 0 */
  readonly cache: number;
}

export interface AttentionRow {
  /** Method of the row; `own`: the model, where it is like no other row. */
  readonly method: AttentionMethod;
  /** `grouped (2 key heads)`. */
  readonly name: string;
  /** Whether the model is like this. */
  readonly isModel: boolean;
  /** Set for kernels that work in tiles. */
  readonly tile?: Tile;
  /** Memory of the scores of one layer, the largest; ℓ and m of the softmax for kernels in tiles. */
  readonly scores: Figure;
  /** Bytes read from and written to the memory of the GPU, all layers. */
  readonly traffic: Figure;
  /** Scores and their sums over the values, all layers; without projections. */
  readonly flops: Figure;
  /** Keys and values of all layers. */
  readonly cache: Figure;
  /** Tokens that the last one can read from through all layers, itself included. */
  readonly reach: Quantity;
  /** Plain attention divided by this row; Infinity where the row has nothing. */
  readonly ratios: AttentionRatios;
}

export interface AttentionMethods {
  /** Sizes that the figures are counted for. */
  readonly setting: Omit<AttentionSetting, 'contexts' | 'keyHeads'> & {
    readonly window: number;
  };
  /** Number of attention layers; others have no scores. @integer @minimum 1 */
  readonly layers: number;
  /** Heads of the first attention layer. @integer @minimum 1 */
  readonly heads: number;
  /** Its key heads. @integer @minimum 1 */
  readonly keyHeads: number;
  /** Width of its heads. @integer @minimum 1 */
  readonly headDim: number;
  /** Figures for each context, from the shortest to the longest. */
  readonly contexts: readonly {
    /** Tokens of a sequence. @integer @minimum 1 */
    readonly context: number;
    /** The methods. */
    readonly rows: readonly AttentionRow[];
  }[];
}

/** Methods of attention on one model. */
export interface AttentionResult extends AttentionMethods {
  readonly schema: 'minimind/attention@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** GPU of the tiles; null for --on-chip. */
  readonly gpu: string | null;
  /** Operations of each kind of norm. */
  readonly norms: NormOperations;
  /** Counted ratios near published ones; absent without `--published`. */
  readonly published?: readonly RatioMatch[];
  /** Set for --chunk, for the longest context. */
  readonly longTexts?: LongTexts;
}

/** A ratio of one row to plain attention. */
export interface FoundRatio {
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** Method of the row; `own`: the model, where it is like no other row. */
  readonly method: AttentionMethod;
  /** Name of the row. */
  readonly name: string;
  /** The compared figure. */
  readonly figure: ComparedFigure;
  /** Plain attention divided by the row; Infinity where the row has nothing. @real @minimum 0 */
  readonly ratio: number;
}

export interface RatioMatch {
  /** The published ratio. */
  readonly published: number;
  /** Ratios within 2 %. */
  readonly matches: readonly FoundRatio[];
  /** The closest where none is that close. */
  readonly nearest?: FoundRatio;
}

/** Heads, widths and masks of one layer. */
export interface AttentionLayer {
  readonly heads: number;
  readonly keyHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  readonly spans: readonly HeadSpan[];
}

/** A method before its figures. */
export interface Variant {
  readonly method: AttentionMethod;
  readonly name: string;
  readonly layers: readonly AttentionLayer[];
  readonly isModel: boolean;
  /** Whether its kernel works in tiles on the chip. */
  readonly inTiles?: boolean;
  /** Tokens of a block, for the block-sparse mask. */
  readonly block?: number;
}
