/** The model block by block, and tensor by tensor. */
import type { Component, HeadSpan, LanguageModel } from '../architecture/layer.js';
import { ownedTensors, tensorsOf, walk } from '../architecture/walk.js';
import type { Figure } from './figure.js';
import { forwardFlopsOf } from './flops.js';
import { elementsFigure } from './parameters.js';
import type { ProfileSetting } from './profile.js';
import { stateOf } from './state.js';

export interface BlockBudget {
  readonly name: string;
  /** Its own; what blocks share is not in it. */
  readonly parameters: Figure;
  /** Attention heads and how far back they see; undefined is everything. */
  readonly spans: readonly HeadSpan[];
  /** Key-value cache and recurrent state at the setting of inference. */
  readonly state: Figure;
  readonly forwardFlops: Figure;
}

/** A row for each block, in order. */
export function blocksOf(
  model: LanguageModel,
  { inference }: Pick<ProfileSetting, 'inference'>,
): BlockBudget[] {
  const shared = new Set(model.shared.flatMap(tensorsOf));
  return model.blocks.map((block) => {
    const own = ownedTensors(block).filter(
      ({ tensor }) => tensor.role === 'parameter' && !shared.has(tensor),
    );
    return {
      name: block.name,
      parameters: elementsFigure(block.name, 'parameters', own),
      spans: walk(block).flatMap(({ layer }) => (layer.kind === 'attention' ? layer.spans : [])),
      state: stateOf(block, inference).total,
      forwardFlops: forwardFlopsOf(block, inference).total,
    };
  });
}

export interface TensorEntry {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly shape: readonly number[];
  readonly elements: number;
  readonly role: 'parameter' | 'buffer';
  readonly component: Component;
}

/** Every stored tensor once, in the order of the state dict. */
export function tensorInventory(model: LanguageModel): TensorEntry[] {
  return ownedTensors(model).map(({ tensor, component }) => ({ ...tensor, component }));
}
