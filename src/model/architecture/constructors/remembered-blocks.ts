/**
 * Blocks of models that differ in their vocabulary alone. A sweep describes thousands of them, and folds remember their
 * results for each block: equal blocks are one object, so they are built and counted once.
 */

import { sumOfTensors } from '../equal-blocks.js';
import type { LanguageModel } from '../layer.js';

/** Settings of a model, of which all but `vocab_size` decide the blocks. */
export interface BlockSettings {
  readonly family: string;
  readonly vocab_size: number;
}

/** Blocks, and the layers that they share. */
type Blocks = Pick<LanguageModel, 'blocks' | 'shared'>;

const known = new Map<string, Blocks>();

/** Tensors of all remembered blocks: with what folds remember of them, about 50 MB. */
const MOST_TENSORS = 50_000;

let held = 0;

/**
 * The blocks of a config, built unless those of the same settings are known.
 */
export function rememberedBlocks<Found extends Blocks>(
  { vocab_size: _, ...settings }: BlockSettings,
  build: () => Found,
): Found {
  const key = JSON.stringify(settings);
  const before = known.get(key);
  // The key has the family, and each family builds blocks of one type.
  if (before !== undefined) return before as Found;
  const blocks = build();
  const tensors = blocks.blocks.reduce((sum, block) => sum + sumOfTensors(block, () => 1), 0);
  if (tensors > MOST_TENSORS) return blocks;
  if (held + tensors > MOST_TENSORS) {
    known.clear();
    held = 0;
  }
  held += tensors;
  known.set(key, blocks);
  return blocks;
}
