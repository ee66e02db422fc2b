/** A tower of images or sounds beside a language model. */
import type * as z from 'zod';
import { described } from '../constructors/described-layer.js';
import type { Described, Layer } from '../layer.js';
import { buffer } from '../param.js';
import { type HarmlessKeys, harmless } from '../transformer/config-keys.js';
import { type BlockLeaves, encoderBlock } from '../transformer/described/encoder-parts.js';

/** Settings of a tower, whose types its `shape` checks. */
export type Settings = Readonly<Record<string, never>>;

/** A kind of tower. */
export interface Tower {
  readonly component: 'visionTower' | 'audioTower';
  readonly shape: z.ZodRawShape;
  readonly harmless: HarmlessKeys;
  /** Other names of settings in a `config.json`. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  /** @param hidden Width of the language model. */
  build(prefix: string, settings: Settings, hidden: number): BuiltTower;
}

/** Layers of a tower. */
export interface BuiltTower {
  readonly layers: readonly Layer[];
  /** Products into the width of the language model that belong to the tower. */
  readonly projector?: readonly Layer[];
  /** Width of its output. */
  readonly width: number;
}

/** A tower of images, with the type of its settings. */
export const vision = <Config>(
  shape: z.ZodRawShape,
  build: (prefix: string, config: Config, hidden: number) => BuiltTower,
  unread: HarmlessKeys = {},
  names: NonNullable<Tower['names']> = {},
): Tower => ({
  component: 'visionTower',
  shape,
  harmless: { ...ROTARY, ...unread },
  names,
  build: (prefix, settings, hidden) => build(prefix, settings as unknown as Config, hidden),
});

const ROTARY: HarmlessKeys = {
  ...harmless('changes values only, which are described and not computed', [
    'rope_parameters',
    'rope_theta',
    'rope_scaling',
  ]),
  ...harmless('of the text tower, or of a class around this tower', [
    'projection_dim',
    'vocab_size',
    'projector_hidden_act',
  ]),
};

/** Blocks of a tower. */
export const blocks = (
  count: number,
  name: (index: number) => string,
  leaves: BlockLeaves,
  sizes: Parameters<typeof encoderBlock>[2],
): Layer[] => Array.from({ length: count }, (_, index) => encoderBlock(name(index), leaves, sizes));

/** Buffers below the name of a tower, which are stored and not trained. */
export const heldBuffers = (
  prefix: string,
  shapes: Readonly<Record<string, readonly number[]>>,
  width: number,
): Described =>
  described(`${prefix}buffers`, {
    title: 'values that are stored and not trained',
    component: 'embedding',
    held: Object.entries(shapes).map(([name, shape]) => buffer(`${prefix}${name}`, shape)),
    output: width,
  });

const LIMITS = ['input_min', 'input_max', 'output_min', 'output_max'];

/** Limits that products of Gemma 4's towers clamp their inputs and outputs to: four numbers of each. */
export const clampLimits = (name: string, products: readonly string[], width: number): Described =>
  heldBuffers(
    `${name}.`,
    Object.fromEntries(products.flatMap((leaf) => LIMITS.map((limit) => [`${leaf}.${limit}`, []]))),
    width,
  );
