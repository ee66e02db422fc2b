/** A configuration read back from what a checkpoint holds. */
import type { Shape } from '../tensor/shape.js';

/** What the index of a checkpoint tells. Names are the model's own, without prefixes of wrappers. */
export interface StoredShapes {
  /** How many names there are. */
  readonly size: number;
  /** In the order of the file. */
  names(): Iterable<string>;
  /** Undefined when the checkpoint has no such tensor. */
  shapeOf(name: string): Shape | undefined;
  /** The numbers n of all names `prefix.n.…`, ascending. */
  numbersUnder(prefix: string): readonly number[];
  /** Whether tensors of these names are there, and all hold the same values. */
  areOne(names: readonly string[]): boolean;
}

/** One value of a document, as a checkpoint has it. */
export interface Reading {
  /** Dotted path in the document: `model.num_layers`. */
  readonly path: string;
  readonly value: number | string | boolean;
  /** What shows it, in words: `the SRTE has 48 rows`. */
  readonly shows: string;
  /** Whether a conversion could change it in the checkpoint instead. */
  readonly convertible: boolean;
}
