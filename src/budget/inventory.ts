/** The model block by block, and tensor by tensor. */
import {
  type Component,
  type HeadSpan,
  type LanguageModel,
  ownedTensors,
  walk,
} from '../architecture/layer.js';
import type { Exact } from './figure.js';
import { flopsOf } from './flops.js';
import type { ProfileSetting } from './profile.js';
import { stateOf } from './state.js';

export interface BlockBudget {
  readonly name: string;
  /** Its own; what blocks share is not in it. */
  readonly parameters: number;
  /** Attention heads and how far back they see; undefined is everything. */
  readonly spans: readonly HeadSpan[];
  /** Key-value cache and recurrent state at the setting of inference. */
  readonly stateBytes: Exact;
  readonly forwardFlops: Exact;
}

/** A row for each block, in order. */
export function blocksOf(
  model: LanguageModel,
  { inference }: Pick<ProfileSetting, 'inference'>,
): BlockBudget[] {
  const shared = new Set(
    model.shared.flatMap((layer) => ownedTensors(layer).map(({ tensor }) => tensor)),
  );
  return model.blocks.map((block) => ({
    name: block.name,
    parameters: ownedTensors(block)
      .filter(({ tensor }) => tensor.role === 'parameter' && !shared.has(tensor))
      .reduce((total, { tensor }) => total + tensor.elements, 0),
    spans: [...walk(block)].flatMap(({ layer }) => (layer.kind === 'attention' ? layer.spans : [])),
    stateBytes: stateOf(block, inference).total.value,
    forwardFlops: flopsOf(block, { ...inference, recompute: 'none' }).forward.value,
  }));
}

export interface TensorEntry {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly shape: readonly number[];
  readonly elements: number;
  readonly role: 'parameter' | 'buffer';
  readonly component: Component | undefined;
}

/** Every stored tensor once, in the order of the state dict. */
export function tensorInventory(model: LanguageModel): TensorEntry[] {
  return ownedTensors(model).map(({ tensor, component }) => ({ ...tensor, component }));
}
