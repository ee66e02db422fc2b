/** The layer kind of what is described and not run: its tensors, work and caches, without its formula. */
import type { Layer } from './layer.js';
import type { Component, Node } from './layer-kinds.js';
import type { Window } from './masks.js';
import type { Param } from './param.js';
import { param } from './param.js';

/** Work of a described layer beside that of its parts, per token. */
export type DescribedWork =
  /** A product with one of its own tensors: a multiply-accumulate for each element. */
  | {
      readonly work: 'product';
      readonly tensor: Param;
      readonly input: number;
      readonly output: number;
    }
  /** Softmax attention, with a key and a value of each key-value head in the cache, or `cached` values of a token. */
  | {
      readonly work: 'attention';
      readonly heads: number;
      readonly keyValueHeads: number;
      readonly headDim: number;
      readonly valueDim: number;
      readonly window?: Window | undefined;
      readonly cached?: number | undefined;
      /** Values of a cached token that a head multiplies in decoding; default: its query and its value. */
      readonly multiplied?: number;
    }
  /** Scores of an indexer over one key of `headDim` values for each token or entry, which the cache holds. */
  | {
      readonly work: 'index';
      readonly heads: number;
      readonly headDim: number;
      readonly window?: Window | undefined;
    }
  /** A recurrence with a state [inner, state] and a decay for each head. */
  | {
      readonly work: 'state';
      readonly inner: number;
      readonly state: number;
      readonly inFloat32?: boolean;
    }
  /** The last `tokens` values of each of some channels, which the cache holds. */
  | {
      readonly work: 'buffer';
      readonly channels: number;
      readonly tokens: number;
      /** Multiply-accumulates of a channel. */
      readonly macs: number;
    };

/**
 * A layer whose parameters, FLOPs and caches are exact, and which no engine runs. A model with one of these is
 * described, not run.
 */
export interface Described extends Node<'described'> {
  /** `compressed attention` */
  readonly title: string;
  /** Tensors that belong to no part. */
  readonly tensors: readonly Param[];
  /** Each is computed once for each token. */
  readonly parts: readonly Layer[];
  readonly works: readonly DescribedWork[];
  /** Values of a token that it gives. */
  readonly output: number;
}

interface DescribedParts {
  readonly title: string;
  readonly output: number;
  /** Names and shapes of its own tensors: `sinks`. */
  readonly tensors?: Readonly<Record<string, readonly number[]>>;
  /** Further tensors of its own, with names that do not begin with its path. */
  readonly held?: readonly Param[];
  readonly parts?: readonly Layer[];
  /** Those of its own tensors that are matrices of a product, with the widths of input and output. */
  readonly products?: Readonly<Record<string, readonly [input: number, output: number]>>;
  readonly works?: readonly DescribedWork[];
  readonly component?: Component;
}

/** @throws TypeError for a product of a tensor that it does not hold. */
export function described(name: string, given: DescribedParts): Described {
  const { title, output, tensors = {}, held = [], parts = [], products = {} } = given;
  const own = new Map(
    Object.entries(tensors).map(([leaf, shape]) => [leaf, param(`${name}.${leaf}`, shape)]),
  );
  const multiplied = Object.entries(products).map(([leaf, [input, output]]): DescribedWork => {
    const tensor = own.get(leaf);
    if (tensor === undefined) throw new TypeError(`${name} has no tensor ${leaf}`);
    return { work: 'product', tensor, input, output };
  });
  return {
    kind: 'described',
    name,
    ...(given.component && { component: given.component }),
    title,
    tensors: [...own.values(), ...held],
    parts,
    works: [...multiplied, ...(given.works ?? [])],
    output,
  };
}
