/** Parts of vision towers, which are described and not run. */
import * as z from 'zod';
import { noEmbedding } from '../../constructors/basic-layers.js';
import { described } from '../../constructors/described-layer.js';
import type { Described, Layer } from '../../layer.js';
import { type Param, param } from '../../param.js';
import { count } from '../settings.js';
import type { EncoderBody } from './define-encoder.js';

const side = z.int().min(1);

/** Size of an image or of a patch. */
export const pixels = (byDefault: number, meaning: string) =>
  side.default(byDefault).describe(meaning);

/** The same, or height and width. */
export const sides = (byDefault: number, meaning: string) =>
  z
    .union([side, z.tuple([side, side])])
    .default(byDefault)
    .describe(`${meaning}, or height and width`);

/** A side, or height and width. */
export type Sides = number | readonly [number, number];

export const bothSides = (size: Sides): readonly [number, number] =>
  typeof size === 'number' ? [size, size] : size;

/** Patches of an image; at least one, so that a model has positions. */
export function patchesOf(image: Sides, patch: Sides): number {
  const [height, width] = bothSides(image);
  const [rows, columns] = bothSides(patch);
  return Math.floor(height / rows) * Math.floor(width / columns);
}

/** Keys of a vision tower's blocks. */
export const towerSizes = (sizes: {
  readonly hidden: number;
  readonly inner: number;
  readonly layers: number;
  readonly heads: number;
}): z.ZodRawShape => ({
  hidden_size: count(sizes.hidden, 'Width of the residual stream'),
  intermediate_size: count(sizes.inner, 'Width inside the feed-forward network'),
  num_hidden_layers: count(sizes.layers, 'Number of blocks'),
  num_attention_heads: count(sizes.heads, 'Heads'),
  num_channels: count(3, 'Channels of an image'),
});

/** Settings of `towerSizes`. */
export interface TowerSizes {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_channels: number;
}

/** Values that a tower holds as tensors alone, such as that of a class. */
export const heldValues = (
  name: string,
  tensors: readonly (readonly [name: string, shape: readonly number[]])[],
  output: number,
): Described =>
  described(`${name}.values`, {
    title: 'values that are added to patches',
    component: 'embedding',
    held: tensors.map(([tensor, shape]): Param => param(tensor, shape)),
    output,
  });

/** A body that reads images in place of token ids. */
export const imageBody = (
  parts: Omit<EncoderBody, 'embedding'> & { readonly hidden: number },
): EncoderBody => ({
  ...parts,
  embedding: noEmbedding(parts.hidden),
  positions: Math.max(1, parts.positions),
});

/** Layers of a body, in order. */
export const bodyLayers = ({ steps, blocks, after = [] }: EncoderBody): readonly Layer[] => [
  ...steps,
  ...blocks,
  ...after,
];
