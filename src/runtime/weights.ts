import type { Param } from '../architecture/param.js';
import type { StoredDtype } from '../tensor/stored-dtype.js';

/** What an engine can read from a file by itself. */
export const MAPPABLE_DTYPES = ['F32', 'F16', 'BF16'] as const satisfies readonly StoredDtype[];

export type MappableDtype = (typeof MAPPABLE_DTYPES)[number];

/** Where the values of a tensor lie in a file, contiguous and little-endian. */
export interface FileRange {
  /** Absolute, without symbolic links. */
  readonly path: string;
  /** Of the first byte. */
  readonly position: number;
  readonly bytes: number;
  readonly dtype: MappableDtype;
}

/** Where an engine gets a model's weights from, one tensor at a time. */
export interface WeightSource {
  /**
   * The values of a tensor as they lie in a file, for an engine that can map it; undefined when they do
   * not lie there in one piece.
   */
  rangeOf(tensor: Param): FileRange | undefined;
  /**
   * Fills `target` with elements from `first` on, as float32, row-major. May be called for any part in
   * any order, so that nothing larger than a part need be in memory.
   */
  read(tensor: Param, first: number, target: Float32Array): void;
}
