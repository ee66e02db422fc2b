/** Walking a description: its layers, the tensors that they hold, and the state dict that they make. */
import type {
  Component,
  FusedProjection,
  GatedMlp,
  LanguageModel,
  Layer,
  MixtureOfExperts,
  PackedExperts,
  Projection,
  Projections,
} from './layer.js';
import type { Param } from './param.js';

/** `of`, computed once for each object: descriptions never change, and a search asks for the same again and again. */
export function remembered<Key extends object, Value>(
  of: (key: Key) => Value,
): (key: Key) => Value {
  const known = new WeakMap<Key, { readonly value: Value }>();
  return (key) => {
    const found = known.get(key) ?? { value: of(key) };
    known.set(key, found);
    return found.value;
  };
}

/** What the fields of a layer hold. */
interface Held {
  readonly layers: readonly Layer[];
  readonly tensors: readonly Param[];
}

/**
 * The layers and the tensors that a layer holds itself: its fields, and the items of those that are lists, in the order
 * of its constructor, which is the order in which PyTorch registers them.
 */
function heldBy(layer: Layer): Held {
  const held = { layers: [], tensors: [] };
  const fields = layer as unknown as Readonly<Record<string, unknown>>;
  // Every model is walked several times as it is made: a loop over the fields, and no copies of them.
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

/** The layers behind several values of one input. */
export function projectionLayers(inputs: Projections): readonly (Projection | FusedProjection)[] {
  return 'kind' in inputs ? [inputs] : inputs;
}

/** The products behind several values of one input. */
export function productsOf(inputs: Projections): readonly Projection[] {
  return 'kind' in inputs ? [inputs.projection] : inputs;
}

/** The routed experts: a layer for each, or one for all. */
export const expertLayers = (
  experts: MixtureOfExperts['experts'],
): readonly (GatedMlp | PackedExperts)[] => ('kind' in experts ? [experts] : experts);

/** Whether a layer is a product with a weight, and nothing else. */
export const isProduct = (layer: Layer): layer is Projection =>
  layer.kind === 'linear' || layer.kind === 'transposedLinear';

/** What a model does, one after the other, from ids to logits. */
export function stagesOf(model: LanguageModel): readonly Layer[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  return [embedding, ...embeddingSteps, ...blocks, norm, head, ...logitSteps];
}

/** The tensors that a layer itself holds, without those of its children. */
export const ownTensors = (layer: Layer): readonly Param[] => heldBy(layer).tensors;

/** The layers that a layer itself holds. */
export const childLayers = (layer: Layer): readonly Layer[] => heldBy(layer).layers;

/** A layer met on a walk. */
export interface Visit {
  readonly layer: Layer;
  /** What it is for: its own, or that of the nearest layer above which says so. */
  readonly component: Component;
}

/** Every layer below and with `layer`, parents before children; a shared layer at each place that holds it. */
export const walk = (layer: Layer): readonly Visit[] =>
  // A whole model is asked for again and again; its parts are mostly asked for once.
  layer.kind === 'languageModel' ? walkOfModel(layer) : visitsOf(layer);

function visitsOf(layer: Layer): Visit[] {
  const visits: Visit[] = [];
  collect(layer, 'other', visits);
  return visits;
}

const walkOfModel = remembered<LanguageModel, readonly Visit[]>(visitsOf);

function collect(layer: Layer, inherited: Component, visits: Visit[]): void {
  const component = layer.component ?? inherited;
  visits.push({ layer, component });
  for (const child of heldBy(layer).layers) collect(child, component, visits);
}

/** A stored tensor and what it is for. */
export interface OwnedTensor {
  readonly tensor: Param;
  /** The component of the first layer that holds it: a tied head counts as embedding. */
  readonly component: Component;
}

/** Every stored tensor below `layer` once, by identity, in the canonical order. */
export const ownedTensors = (layer: Layer): readonly OwnedTensor[] =>
  layer.kind === 'languageModel' ? ownedByModel(layer) : ownedBy(layer);

function ownedBy(layer: Layer): OwnedTensor[] {
  const owned = new Map<Param, OwnedTensor>();
  for (const visit of walk(layer)) {
    for (const tensor of ownTensors(visit.layer)) {
      if (!owned.has(tensor)) owned.set(tensor, { tensor, component: visit.component });
    }
  }
  return [...owned.values()];
}

const ownedByModel = remembered<LanguageModel, readonly OwnedTensor[]>(ownedBy);

/** `ownedTensors` without their components. */
export function tensorsOf(layer: Layer): Param[] {
  return ownedTensors(layer).map(({ tensor }) => tensor);
}

/** One entry of a state dict. */
export interface StateDictEntry {
  /** The tensor's own name, or the alias under which it stands here. */
  readonly name: string;
  readonly tensor: Param;
}

/**
 * The state dict of a model as PyTorch writes it, aliases and buffers included: an entry for each place
 * that holds a tensor, in the order of the places. The first has the tensor's name, the others its
 * aliases in turn.
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

// How wide values are on their way through a description.

/** Values that a product reads of each token. */
export const inputWidth = ({ kind, weight }: Projection): number =>
  weight.shape[kind === 'linear' ? 1 : 0] ?? 0;

/** Values that a product gives of each token. */
export const outputWidth = ({ kind, weight }: Projection): number =>
  weight.shape[kind === 'linear' ? 0 : 1] ?? 0;

/** Values that all products of one input read of each token. */
export function sharedInputWidth(inputs: Projections): number {
  const [first] = productsOf(inputs);
  return first ? inputWidth(first) : 0;
}

/** Width between the two products of an expert; experts are alike. */
export function expertInner({ experts }: MixtureOfExperts): number {
  if ('kind' in experts) return experts.down.shape[2] ?? 0;
  const [first] = experts;
  return first ? inputWidth(first.down) : 0;
}
