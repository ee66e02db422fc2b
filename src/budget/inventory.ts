/** The model block by block, and tensor by tensor. */
import type { Component, LanguageModel, Layer, Window } from '../architecture/layer.js';
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
  readonly spans: readonly BlockSpan[];
  /** Key-value cache and recurrent state at the setting of inference. */
  readonly state: Figure;
  readonly forwardFlops: Figure;
}

/** Attention heads and how far back they see. */
interface BlockSpan {
  readonly heads: number;
  /** In tokens; without it, everything. */
  readonly window?: number;
  readonly rule?: Window['rule'];
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
      spans: walk(block).flatMap(({ layer }) => spansOf(layer)),
      state: stateOf(block, inference).total,
      forwardFlops: forwardFlopsOf(block, inference).total,
    };
  });
}

function spansOf(layer: Layer): BlockSpan[] {
  if (layer.kind === 'latentAttention') return [{ heads: layer.heads }];
  if (layer.kind !== 'attention') return [];
  return layer.spans.map(({ heads, window }) =>
    window === undefined ? { heads } : { heads, window: window.tokens, rule: window.rule },
  );
}

export interface TensorEntry {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly shape: readonly number[];
  readonly elements: number;
  readonly role: 'parameter' | 'buffer';
  /** Of a buffer that others count as a parameter: who does. */
  readonly contested: string | undefined;
  readonly component: Component;
}

/** Every stored tensor once, in the order of the state dict. */
export function tensorInventory(model: LanguageModel): TensorEntry[] {
  return ownedTensors(model).map(({ tensor, component }) => ({ ...tensor, component }));
}
