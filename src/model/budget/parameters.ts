import { groupBy, sumOf } from '../../base/values.js';
import { tensorsOfKinds } from '../architecture/equal-blocks.js';
import { COMPONENTS, type Component, type Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import {
  computingExperts,
  expertTensors,
  isRouted,
  memoized,
  type OwnedTensor,
  type Routed,
  walkCounted,
} from '../architecture/walk.js';
import { add, div, type Expression, inputNamed, mul, sub, v } from './expression.js';
import { type Figure, figure } from './figure.js';

/** Exact counts of stored values, each storage once. */
export interface ParameterBudget {
  readonly parameters: number;
  /** Parameters by component; their sum is `parameters`. */
  readonly byComponent: Readonly<Record<Component, number>>;
  /** Values in buffers: stored, but not parameters. */
  readonly buffers: number;
}

const COMPONENT_NAMES = Object.keys(COMPONENTS) as readonly Component[];

/** Counts a layer and everything below it. Exact for all models that `languageModel` accepts. */
export const countParameters: (layer: Layer) => ParameterBudget = memoized((layer) => {
  const byComponent = Object.fromEntries(COMPONENT_NAMES.map((name) => [name, 0])) as Record<
    Component,
    number
  >;
  let parameters = 0;
  let buffers = 0;
  for (const { tensor, component, count } of tensorsOfKinds(layer)) {
    const elements = count * tensor.elements;
    if (tensor.role === 'buffer') {
      buffers += elements;
      continue;
    }
    parameters += elements;
    byComponent[component] += elements;
  }
  return { parameters, byComponent, buffers };
});

/** `countParameters` with its derivation. */
export interface ParameterFigures {
  readonly total: Figure;
  readonly trainable: Figure;
  readonly embedding: Figure;
  readonly nonEmbedding: Figure;
  /** Everything except embedding, learned positions and head. */
  readonly body: Figure;
  /** Parameters used per token: of a mixture's experts, only the chosen ones. */
  readonly active: Figure;
  /** `active` without the embedding, of which a token uses one row. */
  readonly activeWithoutEmbedding: Figure;
  readonly buffers: Figure;
  /** Buffers that some sources count as parameters; equal ones of several layers together. */
  readonly contested: readonly ContestedBuffers[];
  /** Parameters including contested buffers. */
  readonly withContested: Figure;
  /** Components present in the model, in the order of `COMPONENTS`. */
  readonly components: readonly {
    /** Component of the model. */
    readonly component: Component;
    readonly parameters: Figure;
  }[];
}

export interface ContestedBuffers {
  /** Name of the tensor, with `*` for the layer number. */
  readonly pattern: string;
  /** Values of the buffers. @integer */
  readonly values: number;
  /** Sources that count the buffers as parameters. */
  readonly reason: string;
}

/** Components outside a model's body: token and position vectors, and the product with the vocabulary. */
const AROUND_BODY: readonly string[] = ['embedding', 'positions', 'head'] satisfies Component[];

const isOfBody = (component: string) => !AROUND_BODY.includes(component);

/** Parameters of the body; see `ParameterFigures`. */
export const bodyIn = ({ byComponent }: Pick<ParameterBudget, 'byComponent'>): number =>
  sumOf(COMPONENT_NAMES.filter(isOfBody), (name) => byComponent[name]);

/** Parameters of a model, summed from its tensors. */
export function parameterFigures(layer: Layer): ParameterFigures {
  const owned = tensorsOfKinds(layer);
  const parameters = groupBy(
    owned.filter(({ tensor }) => tensor.role === 'parameter'),
    ({ component }) => component,
  );
  const { total, active, ...sums } = parameterSums(layer);
  const components = COMPONENT_NAMES.filter((component) => parameters.has(component))
    .map((component) => ({
      component,
      parameters: elementsFigure(
        COMPONENTS[component],
        'parameters',
        parameters.get(component) ?? [],
      ),
    }))
    .filter(({ parameters: { value } }) => value > 0);
  const contested = contestedBuffers(owned);
  return {
    total,
    ...sums,
    active,
    activeWithoutEmbedding: withoutLookup(layer, active),
    buffers: elementsFigure(
      'buffers',
      'values',
      owned.filter(({ tensor }) => tensor.role === 'buffer'),
    ),
    contested,
    withContested: figure({
      label: 'with contested buffers',
      unit: 'parameters',
      formula: add(
        v({ parameters: total.value }),
        ...contested.map(({ values }, index) => v({ [`buffers_${index}`]: values })),
      ),
      source: ['all parameters', ...contested.map(({ pattern }) => pattern)].join(', and '),
    }),
    components,
  };
}

/** Sums over a layer, without the tensors of each component. */
export type ParameterSums = ReturnType<typeof componentSums> & Pick<ParameterFigures, 'active'>;

/** The sums of `parameterFigures` alone, for tables of many models. */
export function parameterSums(layer: Layer): ParameterSums {
  const sums = componentSums(countParameters(layer).byComponent);
  return { ...sums, active: activeFigure(layer, sums.total) };
}

/** Figures that sum components, in the order of `COMPONENTS`. */
export function componentSums(
  counts: Readonly<Partial<Record<Component, number>>>,
): Pick<ParameterFigures, 'total' | 'trainable' | 'embedding' | 'nonEmbedding' | 'body'> {
  const counted: Readonly<Record<string, number>> = counts;
  const names = COMPONENT_NAMES.filter((name) => (counts[name] ?? 0) > 0);
  const sumFigureOf = (label: string, which: readonly string[], source: string) =>
    figure({
      label,
      unit: 'parameters',
      formula: add(...which.map((name) => v({ [name]: counted[name] ?? 0 }))),
      source,
    });
  const isEmbedding = (name: string) => name === 'embedding';
  return {
    total: sumFigureOf(
      'parameters',
      names,
      'each stored tensor once, even if several layers share it',
    ),
    trainable: sumFigureOf('trainable', names, 'all parameters; buffers are not trained'),
    embedding: sumFigureOf(
      'in the embedding',
      names.filter(isEmbedding),
      'the token embedding, with a tied head',
    ),
    nonEmbedding: sumFigureOf(
      'non-embedding',
      names.filter((name) => !isEmbedding(name)),
      'without the token embedding; an untied head counts',
    ),
    body: sumFigureOf(
      'body',
      names.filter(isOfBody),
      'without embedding, learned positions and head (non-embedding in arXiv 2304.01373)',
    ),
  };
}

/** All parameters except those of the experts not used by a token. */
function activeFigure(layer: Layer, total: Figure): Figure {
  const groups = new Map<string, { experts: number; idle: number; elements: number }>();
  let unread = 0;
  for (const { layer: each } of walkCounted(layer)) {
    if (!isRouted(each)) continue;
    const experts = computingExperts(each);
    const active = Math.min(each.router.expertsPerToken, experts);
    const name = `experts_${active}_of_${experts}`;
    const rows = rowsOfZeroExperts(each);
    const elements = (groups.get(name)?.elements ?? 0) + expertElements(each) - rows;
    groups.set(name, { experts, idle: experts - active, elements });
    unread += rows;
  }
  const unused = [...groups].map(([name, { experts, idle, elements }]) =>
    div(mul(v({ [name]: elements }), idle), experts),
  );
  return figure({
    label: 'active for a token',
    unit: 'parameters',
    formula: sub(
      v({ parameters: total.value }),
      ...unused,
      ...(unread > 0 ? [v({ rows_of_zero_experts: unread })] : []),
    ),
    source:
      unused.length > 0
        ? 'without the unused experts of a token; embedding and head count in full'
        : 'all parameters (no experts)',
  });
}

function withoutLookup(layer: Layer, active: Figure): Figure {
  const lookup = layer.kind === 'languageModel' ? layer.embedding.weight.elements : 0;
  return figure({
    label: 'active, without the embedding',
    unit: 'parameters',
    formula: sub(v({ active: active.value }), v({ embedding: lookup })),
    source: 'without the token embedding, even if the head shares it',
  });
}

const expertElements = (mixture: Routed): number =>
  sumOf(expertTensors(mixture), ({ tensor, count }) => count * tensor.elements);

/** Values for zero experts in packed tensors, which nothing reads. */
function rowsOfZeroExperts(mixture: Routed): number {
  const { experts, router } = mixture;
  const all = router.weight.shape[0] ?? 0;
  if (!('kind' in experts) || experts.gateUp.shape[0] !== all) return 0;
  return (experts.gateUp.elements / all) * zeroExpertsIn(mixture);
}

/** Values of a layer and its sublayers that packed tensors have for experts that compute nothing. */
export const idleExpertElements = (layer: Layer): number =>
  sumOf(walkCounted(layer), ({ layer: each }) => (isRouted(each) ? rowsOfZeroExperts(each) : 0));

const zeroExpertsIn = (mixture: Routed): number =>
  'zeroExperts' in mixture ? (mixture.zeroExperts ?? 0) : 0;

function contestedBuffers(owned: readonly OwnedTensor[]): ContestedBuffers[] {
  const found = new Map<string, ContestedBuffers>();
  for (const { tensor, count } of owned) {
    if (tensor.contested === undefined) continue;
    const pattern = layerPattern(tensor.name);
    const values = (found.get(pattern)?.values ?? 0) + count * tensor.elements;
    found.set(pattern, { pattern, values, reason: tensor.contested });
  }
  return [...found.values()];
}

export function bufferBytes(values: Figure['value']): Figure {
  return figure({
    label: 'buffers in float32',
    unit: 'bytes',
    formula: mul(4, v({ values })),
    source: 'in float32, as a checkpoint stores them',
  });
}

/** Elements of some tensors: equal tensors of several layers form one input, times the layers. */
export function elementsFigure(
  label: string,
  unit: Figure['unit'],
  owned: readonly OwnedTensor[],
): Figure {
  const kinds = new Map<string, { pattern: string; elements: number; copies: number }>();
  for (const { tensor, count } of owned) {
    const { pattern, key } = kindOf(tensor);
    const kind = kinds.get(key);
    if (kind) kind.copies += count;
    else kinds.set(key, { pattern, elements: tensor.elements, copies: count });
  }
  const terms: Expression[] = [];
  const sources = [...kinds.values()].map(({ pattern }) => pattern);
  const names = freeNames(sources);
  for (const { elements, copies } of kinds.values()) {
    const input = inputNamed(names[terms.length] ?? '', elements);
    terms.push(copies > 1 ? mul(copies, input) : input);
  }
  const source = sources.length > 0 ? `tensors ${sources.join(', ')}` : 'no such tensors';
  return figure({ label, unit, formula: add(...terms), source });
}

/** Pattern of a tensor's name, and a key that equal tensors of several layers share. */
const kindOf = memoized((tensor: Param) => {
  const pattern = layerPattern(tensor.name);
  return { pattern, key: `${pattern} ${tensor.elements}` };
});

/** `layers.*.mamba.D` for `layers.0.mamba.D`: shared by all layers, and by all experts of a layer. */
export function layerPattern(name: string): string {
  const pattern = name.replace(/\.\d+\./, '.*.');
  // This runs for every tensor of a model, and few belong to experts.
  return pattern.includes('experts.') ? pattern.replace(/\bexperts\.\d+\./, 'experts.*.') : pattern;
}

const knownNames = new Map<string, readonly string[]>();

/** Lists of names that are remembered at once. */
const MOST_NAMES = 1000;

/** Input names for tensors, remembered: a sweep asks for those of the same tensors thousands of times. */
function freeNames(patterns: readonly string[]): readonly string[] {
  const key = patterns.join('\n');
  const known = knownNames.get(key);
  if (known) return known;
  const names = new Set<string>();
  for (const pattern of patterns) names.add(freeName(pattern, names));
  if (knownNames.size >= MOST_NAMES) knownNames.clear();
  const list = [...names];
  knownNames.set(key, list);
  return list;
}

/** Input name for a tensor: the shortest unique tail of its path. */
function freeName(pattern: string, taken: ReadonlySet<string>): string {
  const parts = pattern.split('.').filter((part) => part !== '*');
  for (let length = Math.min(2, parts.length); length <= parts.length; length++) {
    const name = identifier(parts.slice(-length).join('_'));
    // `0_weight` is not a valid name; `small_mlp_0_weight` is.
    if (/^[A-Za-z]/.test(name) && !taken.has(name)) return name;
  }
  const full = `tensor_${identifier(parts.join('_'))}`;
  let number = 2;
  while (taken.has(`${full}_${number}`)) number++;
  return `${full}_${number}`;
}

const identifier = (text: string) => text.replace(/\W/g, '_');
