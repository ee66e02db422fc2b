/** Walks a description: its layers, their tensors, and the resulting state dict. */
import type {
  Component,
  FusedProjection,
  GatedMlp,
  LanguageModel,
  Layer,
  MixtureOfExperts,
  PackedExperts,
  ProjectionLayer,
  Projections,
} from './layer.js';
import type { Param } from './param.js';

/** Memoizes `of` per object: descriptions never change, and searches repeat the same calls. */
export function remembered<Key extends object, Value>(
  of: (key: Key) => Value,
): (key: Key) => Value {
  const known = new WeakMap<Key, { readonly value: Value }>();
  return (key) => {
    const found = known.get(key);
    if (found) return found.value;
    const value = of(key);
    known.set(key, { value });
    return value;
  };
}

/** Contents of a layer's fields. */
interface FieldContents {
  readonly layers: readonly Layer[];
  readonly tensors: readonly Param[];
}

/**
 * Layers and tensors in a layer's own fields, lists included. They follow the order of its constructor, in which
 * PyTorch registers them.
 */
function heldBy(layer: object): FieldContents {
  const held = { layers: [], tensors: [] };
  const fields = layer as Readonly<Record<string, unknown>>;
  // A loop over the fields, without copies of them: every model is walked as it is made.
  for (const name in fields) {
    const field = fields[name];
    if (typeof field !== 'object' || field === null) continue;
    if (!Array.isArray(field)) hold(field, held);
    // A list has values of one type.
    else if (typeof field[0] === 'object') for (const value of field) hold(value, held);
  }
  return held;
}

function hold(value: object, { layers, tensors }: { layers: Layer[]; tensors: Param[] }): void {
  const { kind, role } = value as { readonly kind?: unknown; readonly role?: unknown };
  if (role !== undefined) tensors.push(value as Param);
  else if (kind !== undefined && 'name' in value) layers.push(value as Layer);
}

/** Layers that compute several values of one input. */
export function projectionLayers(
  inputs: Projections,
): readonly (ProjectionLayer | FusedProjection)[] {
  return 'kind' in inputs ? [inputs] : inputs;
}

/** Products that compute several values of one input. */
export function productsOf(inputs: Projections): readonly ProjectionLayer[] {
  return 'kind' in inputs ? [inputs.projection] : inputs;
}

/** Routed experts: one layer each, or one for all. */
export const expertLayers = (
  experts: MixtureOfExperts['experts'],
): readonly (GatedMlp | PackedExperts)[] => ('kind' in experts ? [experts] : experts);

/** Whether a layer is a plain product with a weight. */
export const isProduct = (layer: Layer): layer is ProjectionLayer =>
  layer.kind === 'linear' || layer.kind === 'transposedLinear';

/** Stages of a model in order, from ids to logits. */
export function stagesOf(model: LanguageModel): readonly Layer[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  return [embedding, ...embeddingSteps, ...blocks, norm, head, ...logitSteps];
}

/** Tensors of a layer itself, without those of its children. */
export const ownTensors = (layer: Layer): readonly Param[] => heldBy(layer).tensors;

/** A layer met on a walk. */
export interface Visit {
  readonly layer: Layer;
  /** Component of the layer, or of the nearest layer above that has one. */
  readonly component: Component;
}

/** All layers from `layer` down, parents first; a shared layer appears at each of its places. */
export const walk = (layer: Layer): readonly Visit[] =>
  // Only whole models are walked often enough to cache.
  layer.kind === 'languageModel' ? walkOfModel(layer) : visitsOf(layer, 'each');

const walkOfModel = remembered((model: LanguageModel) => visitsOf(model, 'each'));

/**
 * `walk` with one expert of each mixture for all: experts differ only in their names. Counts take time by the layers
 * of a model, and not by its experts, of which there can be tens of thousands.
 */
export const walkCounted = (layer: Layer): readonly Visit[] =>
  layer.kind === 'languageModel' ? countedWalkOfModel(layer) : visitsOf(layer, 'one');

const countedWalkOfModel = remembered((model: LanguageModel) => visitsOf(model, 'one'));

function visitsOf(layer: Layer, experts: Experts): Visit[] {
  const visits: Visit[] = [];
  descend(layer, { component: 'other', count: 1 }, experts, (each, _, { component }) =>
    visits.push({ layer: each, component }),
  );
  return visits;
}

/** Whether each expert of a mixture is met, or one for all. */
type Experts = 'each' | 'one';

/** Component of a layer, and the number of equal layers that it represents. */
type LayerOwner = Pick<OwnedTensor, 'component' | 'count'>;

/** Meets `layer` with its own tensors, then all layers below it. */
function descend(
  layer: Layer,
  above: LayerOwner,
  experts: Experts,
  meet: (layer: Layer, tensors: readonly Param[], place: LayerOwner) => void,
): void {
  const { component = above.component } = layer;
  const place = component === above.component ? above : { component, count: above.count };
  const equal =
    experts === 'one' && layer.kind === 'mixtureOfExperts' ? expertLayers(layer.experts) : [];
  const [first] = equal;
  const { layers, tensors } = heldBy(first ? { ...layer, experts: [first] } : layer);
  meet(layer, tensors, place);
  for (const child of layers) {
    const below = child === first ? { component, count: place.count * equal.length } : place;
    descend(child, below, experts, meet);
  }
}

/** A stored tensor and its component. */
export interface OwnedTensor {
  readonly tensor: Param;
  /** Component of the first layer that holds it: a tied head counts as embedding. */
  readonly component: Component;
  /** Number of equal tensors that this one represents; see `walkCounted`. */
  readonly count: number;
}

/** Every stored tensor below `layer` once, by identity, in the canonical order. */
export const ownedTensors = (layer: Layer): readonly OwnedTensor[] =>
  layer.kind === 'languageModel' ? ownedByModel(layer) : ownedBy(layer, 'each');

const ownedByModel = remembered((model: LanguageModel) => ownedBy(model, 'each'));

/** `ownedTensors` with those of one expert of each mixture for all. */
export const countedTensors = (layer: Layer): readonly OwnedTensor[] =>
  layer.kind === 'languageModel' ? countedByModel(layer) : ownedBy(layer, 'one');

const countedByModel = remembered((model: LanguageModel) => ownedBy(model, 'one'));

function ownedBy(layer: Layer, experts: Experts): readonly OwnedTensor[] {
  const met = new Set<Param>();
  const owned: OwnedTensor[] = [];
  descend(layer, { component: 'other', count: 1 }, experts, (_, tensors, { component, count }) => {
    for (const tensor of tensors) {
      if (met.has(tensor)) continue;
      met.add(tensor);
      owned.push({ tensor, component, count });
    }
  });
  return owned;
}

/** `ownedTensors` without their components. */
export function tensorsOf(layer: Layer): Param[] {
  return ownedTensors(layer).map(({ tensor }) => tensor);
}

/** Tensors of a mixture's experts, those of the first for all. */
export function expertTensors({ experts }: MixtureOfExperts): readonly OwnedTensor[] {
  const layers = expertLayers(experts);
  const [first] = layers;
  return first
    ? countedTensors(first).map((each) => ({ ...each, count: each.count * layers.length }))
    : [];
}

/** Sum of a value over all tensors below `layer`. */
export const sumOfTensors = (layer: Layer, of: (tensor: Param) => number): number =>
  countedTensors(layer).reduce((total, { tensor, count }) => total + count * of(tensor), 0);

export interface StateDictEntry {
  /** The tensor's own name, or an alias. */
  readonly name: string;
  readonly tensor: Param;
}

/**
 * State dict of a model as PyTorch writes it, including aliases and buffers. Each place that holds a tensor has an
 * entry, in order. The first uses the tensor's name, the others its aliases in turn.
 */
export function stateDictOf(layer: Layer): StateDictEntry[] {
  const met = new Map<Param, number>();
  const entries: StateDictEntry[] = [];
  for (const visit of walk(layer)) {
    for (const tensor of ownTensors(visit.layer)) {
      const times = met.get(tensor) ?? 0;
      met.set(tensor, times + 1);
      entries.push({
        name: times === 0 ? tensor.name : (tensor.aliases[times - 1] ?? tensor.name),
        tensor,
      });
    }
  }
  return entries;
}

// Widths of values between layers

/** Input values of a product, per token. */
export const inputWidth = ({ kind, weight }: ProjectionLayer): number =>
  weight.shape[kind === 'linear' ? 1 : 0] ?? 0;

/** Output values of a product, per token. */
export const outputWidth = ({ kind, weight }: ProjectionLayer): number =>
  weight.shape[kind === 'linear' ? 0 : 1] ?? 0;

/** Input values of all products that share one input, per token. */
export function sharedInputWidth(inputs: Projections): number {
  const [first] = productsOf(inputs);
  return first ? inputWidth(first) : 0;
}

/** Width between the two products of an expert, the same for all experts. */
export function expertInner({ experts }: MixtureOfExperts): number {
  if ('kind' in experts) return experts.down.shape[2] ?? 0;
  const [first] = experts;
  return first ? inputWidth(first.down) : 0;
}
