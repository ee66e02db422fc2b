/** Blocks that are alike. */
import type { Layer } from '../architecture/layer.js';
import { tensorsOf } from '../architecture/walk.js';

export interface BlockForm {
  /** The first of them. */
  readonly block: Layer;
  /** How many there are. */
  readonly times: number;
}

/** One for all blocks that differ in nothing but names, windows and the values of their weights. */
export function formsOf(blocks: readonly Layer[]): BlockForm[] {
  const forms = new Map<string, BlockForm>();
  for (const block of blocks) {
    const form = tensorsOf(block)
      .map(({ shape }) => shape.join())
      .join(' ');
    const known = forms.get(form);
    forms.set(form, { block: known?.block ?? block, times: (known?.times ?? 0) + 1 });
  }
  return [...forms.values()];
}
