/** Walks a description: its layers, their tensors, and the resulting state dict. */
import { sumOf } from '../../base/values.js';
import type {
  ActivationName,
  Attention,
  ClampedExperts,
  ClosingProjection,
  Component,
  Described,
  DifferentialAttention,
  Expert,
  ExpertAttention,
  HeadNorms,
  LanguageModel,
  LatentAttention,
  Layer,
  MixtureOfExperts,
  NormLayer,
  PackedExperts,
  Projection,
  ProjectionLayer,
  Projections,
  StateSpaceDual,
} from './layer.js';
import { expertHeads } from './layer.js';
import type { Param } from './param.js';

/** Memoizes `of` per object: descriptions never change, and searches repeat the same calls. */
export function memoized<Key extends object, Value>(of: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined || known.has(key)) return found as Value;
    const value = of(key);
    known.set(key, value);
    return value;
  };
}

/** As `memoized`, with a value for each setting. Settings are the same if `identityOf` gives the same value for them. */
export function memoizedBy<Key extends object, Setting, Value>(
  identityOf: (setting: Setting) => unknown,
  of: (key: Key, setting: Setting) => Value,
): (key: Key, setting: Setting) => Value {
  const values = memoized((_: Key) => new Map<unknown, { readonly value: Value }>());
  return (key, setting) => {
    const known = values(key);
    const identity = identityOf(setting);
    const found = known.get(identity);
    if (found) return found.value;
    const value = of(key, setting);
    known.set(identity, { value });
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
  for (const name in fields) {
    const field = fields[name];
    if (typeof field !== 'object' || field === null) continue;
    if (!Array.isArray(field)) hold(field, held);
    // A list has values of one type.
    else if (typeof field[0] === 'object') for (const value of field) hold(value, held);
  }
  return held;
}

function hold(
  value: Partial<Param | Layer>,
  { layers, tensors }: { layers: Layer[]; tensors: Param[] },
): void {
  const { role, kind, name } = value as { role?: string; kind?: string; name?: string };
  // A model without a head or an embedding has one of no rows: no file holds it.
  if (role !== undefined) {
    if ((value as Param).elements > 0) tensors.push(value as Param);
  } else if (kind !== undefined && name !== undefined) layers.push(value as Layer);
}

/** Layers that compute several values of one input. */
export function projectionLayers(inputs: Projections): readonly Projection[] {
  return 'kind' in inputs ? [inputs] : inputs;
}

/** Products that compute several values of one input, without their adapters. */
export function productsOf(inputs: Projections): readonly ProjectionLayer[] {
  return projectionLayers(inputs).map((each) => {
    const product = each.kind === 'fusedProjection' ? each.projection : each;
    return product.kind === 'sum' ? product.branches[0] : product;
  });
}

/** Routed experts: one layer each, or one for all. */
export const expertLayers = (
  experts: MixtureOfExperts['experts'],
): readonly (Expert | PackedExperts | ClampedExperts)[] =>
  'kind' in experts ? [experts] : experts;

/** Experts that compute something: those of the router without its zero experts. */
export const computingExperts = (layer: Routed): number =>
  (layer.router.weight.shape[0] ?? 0) - ('zeroExperts' in layer ? (layer.zeroExperts ?? 0) : 0);

/** A matrix of all experts in one tensor. */
interface PackedMatrix {
  readonly tensor: Param;
  readonly copies: number;
  /** Output values. */
  readonly rows: number;
  /** Input values. */
  readonly length: number;
}

/** The matrices of packed experts; none of another layer. */
export function packedMatrices(layer: Layer): readonly PackedMatrix[] {
  if (layer.kind !== 'packedExperts' && layer.kind !== 'clampedExperts') return [];
  if (layer.kind === 'packedExperts' && layer.up && layer.stacked) {
    const [copies, rows, length] = [layer.stacked, packedInner(layer), layer.gateUp.shape[1] ?? 1];
    return [
      { tensor: layer.gateUp, copies, rows, length },
      { tensor: layer.up, copies, rows, length },
      { tensor: layer.down, copies, rows: length, length: rows },
    ];
  }
  return [layer.gateUp, layer.down].map((tensor) => {
    const [copies = 1, first = 1, second = 1] = tensor.shape;
    return isTransposedPack(layer)
      ? { tensor, copies, rows: second, length: first }
      : { tensor, copies, rows: first, length: second };
  });
}

/** Whether the matrices of packed experts are [inputs, outputs]. */
export const isTransposedPack = (experts: PackedExperts | ClampedExperts): boolean =>
  experts.kind === 'clampedExperts' || experts.isTransposed === true;

/** Width between the two products of a packed expert. */
export const packedInner = (experts: PackedExperts | ClampedExperts): number =>
  experts.kind === 'packedExperts' && experts.stacked
    ? (experts.down.shape[0] ?? 0) / experts.stacked
    : (experts.down.shape[isTransposedPack(experts) ? 1 : 2] ?? 0);

/** Whether packed experts have a gate. */
export const isGatedPack = (experts: PackedExperts | ClampedExperts): boolean =>
  experts.kind === 'clampedExperts' ||
  experts.up !== undefined ||
  experts.gateUp.shape[isTransposedPack(experts) ? 2 : 1] === 2 * packedInner(experts);

/** Layers in which a token goes to some of many experts. */
export type Routed = MixtureOfExperts | ExpertAttention;

export const isRouted = (layer: Layer): layer is Routed =>
  layer.kind === 'mixtureOfExperts' || layer.kind === 'expertAttention';

/** Layers that compare each token with earlier ones. */
export type AnyAttention = Attention | LatentAttention | ExpertAttention | DifferentialAttention;

const ATTENTIONS: ReadonlySet<Layer['kind']> = new Set<AnyAttention['kind']>([
  'attention',
  'latentAttention',
  'expertAttention',
  'differentialAttention',
]);

export const isAttention = (layer: Layer): layer is AnyAttention => ATTENTIONS.has(layer.kind);

/** Query heads of each token. */
export const queryHeads = (layer: AnyAttention): number =>
  layer.kind === 'expertAttention' ? expertHeads(layer) : layer.heads;

/** Whether a layer is a plain product with a weight. */
export const isProduct = (layer: Layer): layer is ProjectionLayer =>
  layer.kind === 'linear' || layer.kind === 'transposedLinear';

/** Stages of a model in order, from ids to logits. */
export function stagesOf(model: LanguageModel): readonly Layer[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  return [embedding, ...embeddingSteps, ...blocks, norm, head, ...logitSteps];
}

/** Tensors below a layer that no computation reads; the tables of RoPE are computed on demand. */
export function unreadTensors(layer: Layer): ReadonlySet<Param> {
  return new Set(walk(layer).flatMap((visit) => unreadIn(visit.layer)));
}

function unreadIn(layer: Layer): readonly Param[] {
  switch (layer.kind) {
    case 'rotary':
    case 'lightningAttention':
      return layer.tables;
    case 'altUpBlock':
      return layer.isScaled ? [] : [layer.outputScale];
    case 'sum':
      return (layer.unread ?? []).flatMap(tensorsOf);
    case 'skippedBlock':
      return tensorsOf(layer);
    default:
      return [];
  }
}

/** The first layer that no engine runs, if there is one. */
export const describedLayer = memoized((model: LanguageModel): Described | undefined => {
  for (const layer of [...model.blocks, model]) {
    const found = describedIn(layer);
    if (found) return found;
  }
  return undefined;
});

const describedIn = memoized((layer: Layer): Described | undefined => {
  for (const { layer: each } of walkCounted(layer)) if (each.kind === 'described') return each;
  return undefined;
});

/** Tensors of a layer itself, without those of its children. */
export const ownTensors = (layer: Layer): readonly Param[] => heldBy(layer).tensors;

/** A layer met on a walk. */
export interface Visit {
  readonly layer: Layer;
  /** Component of the layer, or of the nearest layer above that has one. */
  readonly component: Component;
}

/** Visit of a layer and of those equal to it. */
interface CountedVisit extends Visit {
  /** Tensors of the layer itself. */
  readonly tensors: readonly Param[];
  /** Number of equal layers that this one represents. */
  readonly count: number;
}

/** All layers from `layer` down, parents first; a shared layer appears at each of its places. */
export const walk = (layer: Layer): readonly Visit[] => visits(layer);

const visits = (layer: Layer): readonly CountedVisit[] =>
  // Only whole models are walked often enough to cache.
  layer.kind === 'languageModel' ? visitsOfModel(layer) : visitsFrom(layer, 'each');

const visitsOfModel = memoized((model: LanguageModel) => {
  const counted = walkCounted(model);
  // The two walks differ only if a mixture has several experts.
  return counted.every(({ count }) => count === 1) ? counted : visitsFrom(model, 'each');
});

/**
 * `walk` with one expert of each mixture for all: experts differ only in their names. Counts take time by the layers
 * of a model, and not by its experts, of which there can be tens of thousands.
 */
export const walkCounted: (layer: Layer) => readonly CountedVisit[] = memoized((layer) => {
  if (layer.kind !== 'languageModel') return visitsFrom(layer, 'one');
  // The constructors have walked the blocks, so that their visits are cached.
  const { layers, tensors } = heldBy(layer);
  return [{ layer, ...WHOLE, tensors }, ...layers.flatMap(walkCounted)];
});

/** Whether each expert of a mixture is met, or one for all. */
type Experts = 'each' | 'one';

/** Component of a layer, and the number of equal layers that it represents. */
type Place = Pick<CountedVisit, 'component' | 'count'>;

const WHOLE: Place = { component: 'other', count: 1 };

function visitsFrom(layer: Layer, experts: Experts): readonly CountedVisit[] {
  const met: CountedVisit[] = [];
  descend(layer, WHOLE, experts, met);
  return met;
}

/** Adds `layer` to those met, then all layers below it. */
function descend(layer: Layer, above: Place, experts: Experts, met: CountedVisit[]): void {
  const { component = above.component } = layer;
  const { count } = above;
  const equal =
    experts === 'one' && layer.kind === 'mixtureOfExperts' ? expertLayers(layer.experts) : [];
  const [first] = equal;
  const { layers, tensors } = heldBy(first ? { ...layer, experts: [first] } : layer);
  const visit = { layer, component, tensors, count };
  met.push(visit);
  for (const child of layers) {
    const place = child === first ? { component, count: count * equal.length } : visit;
    descend(child, place, experts, met);
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
  layer.kind === 'languageModel' ? ownedByModel(layer) : ownedBy(visits(layer));

const ownedByModel = memoized((model: LanguageModel) => ownedBy(visits(model)));

/** `ownedTensors` with those of one expert of each mixture for all. */
export const countedTensors: (layer: Layer) => readonly OwnedTensor[] = memoized((layer) =>
  ownedBy(walkCounted(layer)),
);

function ownedBy(met: readonly CountedVisit[]): readonly OwnedTensor[] {
  const known = new Set<Param>();
  const owned: OwnedTensor[] = [];
  for (const { tensors, component, count } of met) {
    for (const tensor of tensors) {
      if (known.has(tensor)) continue;
      known.add(tensor);
      owned.push({ tensor, component, count });
    }
  }
  return owned;
}

/** Tensors that more than one of the layers hold, with those of one expert of each mixture. */
export function sharedTensors(layers: readonly Layer[]): ReadonlySet<Param> {
  const [met, several] = [new Set<Param>(), new Set<Param>()];
  for (const layer of layers) {
    for (const { tensor } of countedTensors(layer)) (met.has(tensor) ? several : met).add(tensor);
  }
  return several;
}

/** `ownedTensors` without their components. */
export function tensorsOf(layer: Layer): Param[] {
  return ownedTensors(layer).map(({ tensor }) => tensor);
}

/** Tensors of a mixture's experts, those of the first for all. */
export function expertTensors({
  experts,
}: Pick<MixtureOfExperts, 'experts'>): readonly OwnedTensor[] {
  const layers = expertLayers(experts);
  const [first] = layers;
  return first
    ? countedTensors(first).map((each) => ({ ...each, count: each.count * layers.length }))
    : [];
}

export interface StateDictEntry {
  /** The tensor's own name, or an alias. */
  readonly name: string;
  readonly tensor: Param;
}

/**
 * State dict of a model as PyTorch writes it, including aliases and buffers, in order. The first place that holds a
 * tensor has its name, the others its aliases in turn; places beyond these only read it. Aliases beyond the places come
 * last: places that hold the tensor and do not read it.
 */
export function stateDictOf(layer: Layer): StateDictEntry[] {
  const met = new Map<Param, number>();
  const entries: StateDictEntry[] = [];
  for (const { tensors } of visits(layer)) {
    for (const tensor of tensors) {
      const times = met.get(tensor) ?? 0;
      met.set(tensor, times + 1);
      const name = times === 0 ? tensor.name : tensor.aliases[times - 1];
      if (name !== undefined) entries.push({ name, tensor });
    }
  }
  for (const [tensor, times] of met) {
    for (const name of tensor.aliases.slice(times - 1)) entries.push({ name, tensor });
  }
  return entries;
}

// Widths of values between layers

/** Input values of a product, per token. */
export const inputWidth = ({ kind, weight }: ProjectionLayer): number =>
  weight.shape[kind === 'linear' ? 1 : 0] ?? 0;

/** Product of the last layers of a branch. */
export const closingProduct = (layer: ClosingProjection): ProjectionLayer =>
  layer.kind === 'sequence' ? layer.layers[1] : layer;

/** Output values of a product, per token. */
export const outputWidth = ({ kind, weight }: ProjectionLayer): number =>
  weight.shape[kind === 'linear' ? 0 : 1] ?? 0;

/** Values that a norm takes: those of one head, or of each head for which it has a row of weights. */
export function normWidth(norm: NormLayer | HeadNorms): number {
  switch (norm.kind) {
    case 'rmsNorm':
      return norm.size;
    case 'layerNorm':
      return norm.weight?.elements ?? norm.size;
    case 'headNorms':
      return sumOf(norm.norms, (each) => normWidth(each));
  }
}

/** Width of a head's value. */
export const valueWidth = ({
  headDim,
  valueDim = headDim,
}: Pick<Attention, 'headDim' | 'valueDim'>): number => valueDim;

/** Values of the gate for each head. */
export const gateWidth = (layer: Attention): number => layer.gateDim ?? valueWidth(layer);

/** Input values of all products that share one input, per token. */
export function sharedInputWidth(inputs: Projections): number {
  const [first] = productsOf(inputs);
  return first ? inputWidth(first) : 0;
}

/** Width between the two products of an expert, the same for all experts. */
export function expertInner({ experts }: Pick<MixtureOfExperts, 'experts'>): number {
  if ('kind' in experts) {
    return packedInner(experts);
  }
  const [first] = experts;
  if (!first) return 0;
  if (first.kind === 'gatedMlp') return inputWidth(closingProduct(first.down));
  const last = first.layers.findLast(isProduct);
  return last ? inputWidth(last) : 0;
}

/** Width that a mixture's routed experts read and give. */
export const expertWidth = ({ router, latent }: MixtureOfExperts): number =>
  latent[0] ? outputWidth(latent[0]) : (router.weight.shape[1] ?? 0);

/** Activation of an expert. */
export const expertActivation = (
  expert: Expert | PackedExperts | ClampedExperts,
): ActivationName | undefined =>
  expert.kind === 'sequence'
    ? expert.layers.find((layer) => layer.kind === 'activation')?.fn
    : expert.activation;

/** Factor of each column that in_proj gives; undefined for a layer without any. */
export function columnFactors(layer: StateSpaceDual): Float32Array | undefined {
  const { heads, headDim, stateSize, groups, inputScales } = layer;
  if (!inputScales) return undefined;
  const [inner, shared] = [heads * headDim, groups * stateSize];
  const widths = [inner, inner, shared, shared, heads];
  return Float32Array.from(
    widths.flatMap((width, part) => new Array<number>(width).fill(inputScales[part] ?? 1)),
  );
}
