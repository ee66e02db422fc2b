/**
 * Parts of encoders, which are described and not run: blocks whose attention sees all positions, and heads. Shapes and
 * names follow transformers 5.18.
 */
import {
  activation,
  layerNormLayer,
  linear,
  rmsNormLayer,
  sequence,
} from '../../constructors/basic-layers.js';
import { described } from '../../constructors/described-layer.js';
import type { Component, Described, DescribedWork, Layer } from '../../layer.js';
import { EVERYWHERE, type Window } from '../../masks.js';
import { param } from '../../param.js';
import { tensorsOf } from '../../walk.js';

/** A product of a block: the end of its name, and whether it has a bias (by default). */
export type Leaf = string | readonly [leaf: string, bias: boolean];

/** A leaf without a bias. */
export const biaslessLeaf = (leaf: string) => [leaf, false] as const;

/** A leaf with its bias. */
export const leafOf = (leaf: Leaf): readonly [leaf: string, bias: boolean] =>
  typeof leaf === 'string' ? [leaf, true] : leaf;

/** Names of the parts of a block, below its path. */
export interface BlockLeaves {
  /** Queries, keys and values apart, or one product of them; then the product behind the heads. */
  readonly attention: readonly [Leaf, Leaf, Leaf, Leaf] | readonly [Leaf, Leaf];
  /** Into the network and out of it, or gate, up and down. */
  readonly feedForward: readonly [Leaf, Leaf] | readonly [Leaf, Leaf, Leaf];
  readonly norms: readonly string[];
}

/** Sizes of a block, and what its attention sees. */
export interface BlockSizes {
  readonly hidden: number;
  readonly heads: number;
  /** Width of a head; default: hidden / heads. */
  readonly headDim?: number;
  readonly keyValueHeads?: number;
  readonly inner: number;
  /** Columns of the first product of the network; default: `inner`, and twice that where gate and up are one. */
  readonly innerColumns?: number;
  /** Default: all positions. */
  readonly window?: Window | undefined;
  /** Kind of its norms: with a bias (by default), with weights alone, or RMSNorms, which have weights alone, too. */
  readonly norm?: 'both' | 'weight' | 'rms';
  readonly eps?: number;
  /** Further layers of the block. */
  readonly more?: (name: string) => readonly Layer[];
}

/** Epsilon of the norms of blocks; it changes no count. */
const EPS = 1e-12;

/** A norm of a block. */
export function blockNorm(
  name: string,
  size: number,
  { norm = 'both', eps = EPS }: Pick<BlockSizes, 'norm' | 'eps'> = {},
): Layer {
  if (norm === 'rms') return rmsNormLayer(name, size, eps);
  return layerNormLayer(name, size, eps, norm === 'weight' ? { holds: 'weight' } : {});
}

/** Attention of a block to all positions, or to those of its window. No cache holds its keys. */
export function attentionBothWays(
  name: string,
  leaves: BlockLeaves['attention'],
  sizes: Omit<BlockSizes, 'inner'>,
): Described {
  const { hidden, heads, headDim = Math.floor(hidden / heads), keyValueHeads = heads } = sizes;
  // A class without a width of the heads can have heads that do not divide its width.
  const isWhole = sizes.headDim === undefined && sizes.keyValueHeads === undefined;
  const [queries, keys] = isWhole ? [hidden, hidden] : [heads * headDim, keyValueHeads * headDim];
  const own = leaves.map(leafOf);
  const [out] = own.splice(-1);
  const widths = own.length === 1 ? [queries + 2 * keys] : [queries, keys, keys];
  return described(`${name}.attention_both_ways`, {
    title: 'attention in both directions',
    component: 'attention',
    parts: [
      ...own.map(([leaf, bias], index) =>
        linear(`${name}.${leaf}`, hidden, widths[index] ?? keys, { bias }),
      ),
      linear(`${name}.${out?.[0]}`, queries, hidden, { bias: out?.[1] ?? true }),
    ],
    works: [
      {
        work: 'attention',
        heads,
        keyValueHeads,
        headDim,
        valueDim: headDim,
        window: sizes.window ?? EVERYWHERE,
        isUncached: true,
      },
    ],
    output: hidden,
  });
}

/** Two products with an activation between them, or three with a gate. */
export function network(
  name: string,
  leaves: BlockLeaves['feedForward'],
  { hidden, inner, innerColumns = inner }: Pick<BlockSizes, 'hidden' | 'inner' | 'innerColumns'>,
): Layer {
  const own = leaves.map(leafOf);
  const [down] = own.splice(-1);
  return sequence(
    `${name}.network`,
    [
      described(`${name}.network_inputs`, {
        title: 'inputs of a network',
        parts: own.map(([leaf, bias]) => linear(`${name}.${leaf}`, hidden, innerColumns, { bias })),
        output: inner,
      }),
      activation(`${name}.activation`, 'gelu'),
      linear(`${name}.${down?.[0]}`, inner, hidden, { bias: down?.[1] ?? true }),
    ],
    'feedForward',
  );
}

/** A block of an encoder. */
export function encoderBlock(name: string, leaves: BlockLeaves, sizes: BlockSizes): Described {
  return described(name, {
    title: 'encoder block',
    parts: [
      attentionBothWays(name, leaves.attention, sizes),
      network(name, leaves.feedForward, sizes),
      ...leaves.norms.map((leaf) => blockNorm(`${name}.${leaf}`, sizes.hidden, sizes)),
      ...(sizes.more?.(name) ?? []),
    ],
    output: sizes.hidden,
  });
}

/**
 * Layers that run once for an input, such as the classifier of a text or the product of a pooled image. Their tensors are
 * counted; their FLOPs are below a thousandth of those of the blocks, and are not.
 */
export function onceForInput(
  name: string,
  layers: readonly Layer[],
  output: number,
  component: Component = 'head',
): Described {
  return described(name, {
    title: 'layers that run once for an input',
    component,
    held: layers.flatMap(tensorsOf),
    output,
  });
}

/** Rows that a step adds by something other than the token, such as its segment. */
export const rowsAdded = (
  name: string,
  rows: number,
  width: number,
  component: Component = 'embedding',
): Described =>
  described(`${name}.rows`, {
    title: 'rows added to the embedding',
    component,
    held: rows > 0 ? [param(`${name}.weight`, [rows, width])] : [],
    output: width,
  });

/** A product with a weight of any shape, such as the convolution that reads patches; once for each position. */
export function patchProduct(
  name: string,
  shape: readonly number[],
  { bias, component }: { readonly bias: boolean; readonly component?: Component },
): Described {
  const [output = 0] = shape;
  const weight = param(`${name}.weight`, shape);
  const works: readonly DescribedWork[] = [
    { work: 'product', tensor: weight, input: weight.elements / output, output },
  ];
  return described(`${name}.product`, {
    title: 'product of patches',
    ...(component && { component }),
    held: [weight, ...(bias ? [param(`${name}.bias`, [output])] : [])],
    works,
    output,
  });
}
