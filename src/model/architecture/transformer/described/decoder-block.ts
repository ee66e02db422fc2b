/** Blocks of decoders that attend to an encoder, which are described and not run. */
import { linear } from '../../constructors/basic-layers.js';
import { described } from '../../constructors/described-layer.js';
import type { Described, DescribedWork, Layer } from '../../layer.js';
import { tensorsOf } from '../../walk.js';
import { type BlockLeaves, type BlockSizes, blockNorm, leafOf, network } from './encoder-parts.js';

/** Names of the parts of a decoder's block. */
export interface DecoderLeaves extends BlockLeaves {
  readonly attention: BlockLeaves['attention'];
  /** Queries, keys, values, and the product behind the heads. */
  readonly cross: readonly [Leaf, Leaf, Leaf, Leaf];
}

type Leaf = Parameters<typeof leafOf>[0];

/** Sizes of a decoder's block. */
export interface DecoderSizes extends BlockSizes {
  /** Positions of the encoder where they are the same for every input, as in Whisper. */
  readonly encoderPositions?: number;
}

/**
 * A block with attention to the tokens before, attention to the encoder, and a network. The cache holds a key and a value
 * of each token, and of each position of the encoder: of as many positions as tokens, or of `encoderPositions`.
 */
export const decoderBlock = (name: string, leaves: DecoderLeaves, sizes: DecoderSizes): Described =>
  described(name, {
    title: 'decoder block with cross-attention',
    parts: [
      decoderAttention(name, 'attention', leaves.attention, sizes),
      crossAttention(name, leaves.cross, sizes),
      network(name, leaves.feedForward, sizes),
      ...leaves.norms.map((leaf) => blockNorm(`${name}.${leaf}`, sizes.hidden, sizes)),
      ...(sizes.more?.(name) ?? []),
    ],
    output: sizes.hidden,
  });

const widths = ({ hidden, heads, headDim = Math.floor(hidden / heads) }: BlockSizes) => ({
  hidden,
  heads,
  headDim,
  inner: heads * headDim,
});

const cachedHeads = (sizes: BlockSizes): DescribedWork => {
  const { heads, headDim } = widths(sizes);
  return { work: 'attention', heads, keyValueHeads: heads, headDim, valueDim: headDim };
};

const products = (name: string, leaves: readonly Leaf[], sizes: BlockSizes): Layer[] => {
  const { hidden, inner } = widths(sizes);
  return leaves.map((each, index) => {
    const [leaf, bias] = leafOf(each);
    const isLast = index === leaves.length - 1;
    return linear(`${name}.${leaf}`, isLast ? inner : hidden, isLast ? hidden : inner, { bias });
  });
};

const decoderAttention = (
  name: string,
  title: string,
  leaves: readonly Leaf[],
  sizes: BlockSizes,
): Described =>
  described(`${name}.${title.replaceAll(' ', '_')}`, {
    title,
    component: 'attention',
    parts: products(name, leaves, sizes),
    works: [cachedHeads(sizes)],
    output: sizes.hidden,
  });

/** Attention to an encoder. Its keys and values are computed once where the encoder's positions are always the same. */
function crossAttention(
  name: string,
  leaves: DecoderLeaves['cross'],
  sizes: DecoderSizes,
): Described {
  const { encoderPositions: positions, hidden } = sizes;
  if (positions === undefined)
    return decoderAttention(name, 'attention to the encoder', leaves, sizes);
  const { inner } = widths(sizes);
  const [queries, keys, values, out] = products(name, leaves, sizes) as [
    Layer,
    Layer,
    Layer,
    Layer,
  ];
  return described(`${name}.attention_to_the_encoder`, {
    title: 'attention to the encoder',
    component: 'attention',
    parts: [queries, out],
    held: [keys, values].flatMap(tensorsOf),
    works: [{ work: 'buffer', channels: 2 * inner, tokens: positions, macs: positions }],
    output: hidden,
  });
}
