/**
 * What each of the GPUs that share every layer has of its tensors, and what they tell each other. As in
 * Megatron-LM (arXiv 1909.08053): products by columns and then by rows, attention by heads, the vocabulary by
 * rows; the state space by channels. Norms, routers, low-rank gates, SRTE tables, learned positions and what makes
 * latents are whole on every GPU. Each has its part of every expert: experts are not spread out.
 */
import type { Layer, MixtureOfExperts, Projection, Projections } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { productsOf, tensorsOf, walk } from '../architecture/walk.js';
import {
  expertInner,
  inputWidth,
  outputWidth,
  sharedInputWidth,
  widthAfter,
} from '../architecture/widths.js';
import { remembered } from '../budget/remember.js';
import { UserError } from '../errors.js';

/** How a tensor is shared: not; in equal parts; by rows of the vocabulary, padded to equal parts. */
export type Split = 'whole' | 'even' | 'vocabulary';

/** A tensor and how it is shared. */
export interface SharedTensor {
  readonly tensor: Param;
  readonly split: Split;
}

/** The elements that one of `tensor` GPUs has. */
export function elementsPerGpu({ tensor: { elements, shape }, split }: SharedTensor, gpus: number) {
  switch (split) {
    case 'whole':
      return elements;
    case 'even':
      return Math.ceil(elements / gpus);
    case 'vocabulary': {
      const [rows = 1] = shape;
      return Math.ceil(rows / gpus) * (elements / rows);
    }
  }
}

/** Every tensor of some layers once, by identity. */
export function sharedTensors(layers: readonly Layer[]): SharedTensor[] {
  const shares = new Map<Param, SharedTensor>();
  for (const share of layers.flatMap((layer) => splitsOf(layer))) {
    if (!shares.has(share.tensor)) shares.set(share.tensor, share);
  }
  return [...shares.values()];
}

const all = (split: Split, tensors: readonly Param[]): SharedTensor[] =>
  tensors.map((tensor) => ({ tensor, split }));

const whole = (layer: Layer) => all('whole', tensorsOf(layer));

/** A product whose outputs are shared, and its bias with them. */
const byColumns = (product: Layer) => all('even', tensorsOf(product));

/** A product whose inputs are shared; its bias is added once, to the sum. */
const byRows = ({ weight, bias }: Projection) => [
  ...all('even', [weight]),
  ...all('whole', bias ? [bias] : []),
];

const inputsByColumns = (inputs: Projections) => productsOf(inputs).flatMap(byColumns);

function splitsOf(layer: Layer): SharedTensor[] {
  const each = (layers: readonly Layer[]) => layers.flatMap(splitsOf);
  switch (layer.kind) {
    case 'languageModel': {
      const { embedding, embeddingSteps, shared, blocks, norm, head, logitSteps } = layer;
      return [
        ...each([embedding, ...embeddingSteps, ...shared, ...blocks, norm]),
        ...headSplits(head),
        ...each(logitSteps),
      ];
    }
    case 'embedding':
      return all('vocabulary', [layer.weight]);
    case 'hybridBlock': {
      const { inputNorm, mamba, attention, srte, alignment, gate, fusion, mlp, outputNorm } = layer;
      const optional = alignment ? [alignment] : [];
      return each([inputNorm, mamba, attention, srte, ...optional, gate, fusion, mlp, outputNorm]);
    }
    case 'mamba':
      return [
        ...all('even', [layer.stateLog, layer.skip]),
        ...[layer.inProj, layer.conv, layer.dtProj].flatMap(byColumns),
        ...[layer.xProj, layer.outProj].flatMap(byRows),
      ];
    case 'attention': {
      const { inputs, out, headDim, queryNorm, keyNorm, rotary } = layer;
      // A norm over all heads together is shared with them.
      const norms = [queryNorm, keyNorm].flatMap((norm) =>
        norm ? all(norm.weight.elements > headDim ? 'even' : 'whole', [norm.weight]) : [],
      );
      return [
        ...inputsByColumns(inputs),
        ...byRows(out),
        ...norms,
        ...(rotary ? whole(rotary) : []),
      ];
    }
    case 'latentAttention': {
      const { query, keyValueDown, latentNorm, keyValueUp, out, rotary } = layer;
      return [
        ...latentQuerySplits(query),
        ...[keyValueDown, latentNorm, rotary].flatMap(whole),
        ...byColumns(keyValueUp),
        ...byRows(out),
      ];
    }
    case 'gatedMlp':
      return [...inputsByColumns(layer.inputs), ...byRows(layer.down)];
    case 'mixtureOfExperts': {
      const { router, experts, shared, sharedGate } = layer;
      return [
        ...whole(router),
        ...('kind' in experts ? each([experts]) : each(experts)),
        ...each(shared),
        ...(sharedGate ? whole(sharedGate) : []),
      ];
    }
    case 'packedExperts':
      return all('even', [layer.gateUp, layer.down]);
    case 'residual':
      return each(layer.branches);
    case 'sequence':
      return layer.layers.flatMap((child, index) =>
        isProduct(child) && layer.layers[index - 1]?.kind === 'activation'
          ? byRows(child)
          : splitsOf(child),
      );
    case 'alignment':
      return each([layer.net, layer.residual]);
    case 'fusedProjection':
    case 'linear':
    case 'transposedLinear':
    case 'causalConv':
      return byColumns(layer);
    case 'gate':
    case 'layerNorm':
    case 'rmsNorm':
    case 'learnedPositions':
    case 'router':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
    case 'activation':
    case 'scale':
    case 'softcap':
    case 'alibi':
      return whole(layer);
  }
}

/** A head is shared by the rows of the vocabulary, as the embedding that it may be tied to. */
export const headSplits = (head: Layer): SharedTensor[] => all('vocabulary', tensorsOf(head));

/** What makes a latent is whole; what makes heads of it is shared. */
const latentQuerySplits = (query: Layer): SharedTensor[] =>
  query.kind === 'sequence'
    ? [...query.layers.slice(0, -1).flatMap(whole), ...query.layers.slice(-1).flatMap(byColumns)]
    : byColumns(query);

const isProduct = (layer: Layer): layer is Projection =>
  layer.kind === 'linear' || layer.kind === 'transposedLinear';

/** What must be a multiple of the GPUs that share a layer. */
interface Divisible {
  readonly what: string;
  readonly count: number;
}

const divisible = (layer: Layer): Divisible[] => {
  const { name } = layer;
  switch (layer.kind) {
    case 'attention':
      return [
        { what: `heads of ${name}`, count: layer.heads },
        { what: `key-value heads of ${name}`, count: layer.keyValueHeads },
      ];
    case 'latentAttention':
      return [{ what: `heads of ${name}`, count: layer.heads }];
    case 'gatedMlp':
      return [{ what: `inner values of ${name}`, count: inputWidth(layer.down) }];
    case 'mixtureOfExperts':
      return [{ what: `inner values of the experts of ${name}`, count: expertInner(layer) }];
    case 'mamba':
      return [{ what: `channels of ${name}`, count: layer.innerSize }];
    case 'sequence':
      return layer.layers.flatMap((child, index) =>
        isProduct(child) && layer.layers[index + 1]?.kind === 'activation'
          ? [{ what: `inner values of ${name}`, count: outputWidth(child) }]
          : [],
      );
    case 'languageModel':
    case 'hybridBlock':
    case 'residual':
    case 'alignment':
    case 'embedding':
    case 'linear':
    case 'transposedLinear':
    case 'fusedProjection':
    case 'packedExperts':
    case 'causalConv':
    case 'gate':
    case 'layerNorm':
    case 'rmsNorm':
    case 'learnedPositions':
    case 'router':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
    case 'activation':
    case 'scale':
    case 'softcap':
    case 'alibi':
      return [];
  }
};

const divisibleIn = remembered((model: Layer) =>
  walk(model).flatMap(({ layer }) => divisible(layer)),
);

/** @throws UserError when so many GPUs cannot share every layer, with the nearest numbers that can. */
export function requireTensorParallel(model: Layer, gpus: number): void {
  if (gpus === 1) return;
  const counts = divisibleIn(model);
  const bad = counts.find(({ count }) => count % gpus !== 0);
  if (bad === undefined) return;
  const common = counts.reduce((gcd, { count }) => greatestCommonDivisor(gcd, count), 0);
  throw new UserError(
    'usage',
    `--tensor-parallel: ${gpus} GPUs cannot share the ${bad.count} ${bad.what} equally`,
    { suggestion: `write ${nearestDivisors(common, gpus).join(' or ')}` },
  );
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** The divisors of `of` nearest to a number, from below and from above. */
export function nearestDivisors(of: number, to: number): number[] {
  const divides = (value: number) => of % value === 0;
  const below = Array.from({ length: to }, (_, index) => to - index).find(divides) ?? 1;
  const above = of > to ? firstFrom(to, of, divides) : undefined;
  return above === undefined || above === below ? [below] : [below, above];
}

function firstFrom(from: number, to: number, isFound: (value: number) => boolean) {
  // Nobody has more GPUs than this, so that no larger divisor is of use.
  const last = Math.min(to, 65_536);
  for (let value = from; value <= last; value++) if (isFound(value)) return value;
  return undefined;
}

/**
 * Values of each token that a layer makes each GPU exchange with those that share it, times (gpus − 1) / gpus: an
 * all-reduce counts twice, as it is a reduce-scatter and an all-gather (arXiv 2205.05198).
 */
export interface Exchange {
  readonly forward: number;
  readonly backward: number;
}

const NOTHING: Exchange = { forward: 0, backward: 0 };

export const exchangeOf = (layers: readonly Layer[]): Exchange => sumOf(layers.map(exchangedBy));

const sumOf = (exchanges: readonly Exchange[]): Exchange =>
  exchanges.reduce(
    (sum, each) => ({
      forward: sum.forward + each.forward,
      backward: sum.backward + each.backward,
    }),
    NOTHING,
  );

/** Its input's gradient is summed on the way back, its output on the way there. */
const region = (input: number, output = input): Exchange => ({
  forward: 2 * output,
  backward: 2 * input,
});

function exchangedBy(layer: Layer): Exchange {
  const each = (layers: readonly Layer[]) => sumOf(layers.map(exchangedBy));
  switch (layer.kind) {
    case 'languageModel':
      return each([layer.embedding, ...layer.blocks, layer.head]);
    case 'embedding':
      return { forward: 2 * widthAfter(layer, 0), backward: 0 };
    case 'hybridBlock': {
      const { mamba, attention, alignment, fusion, mlp } = layer;
      return each([mamba, attention, ...(alignment ? [alignment] : []), fusion, mlp]);
    }
    case 'mamba': {
      const made = outputWidth(layer.xProj);
      const step = region(made);
      return sumOf([region(inputWidth(layer.inProj), outputWidth(layer.outProj)), step]);
    }
    case 'attention':
      return region(sharedInputWidth(layer.inputs), outputWidth(layer.out));
    case 'latentAttention':
      return region(inputWidth(layer.keyValueDown), outputWidth(layer.out));
    case 'gatedMlp':
      return region(sharedInputWidth(layer.inputs), outputWidth(layer.down));
    case 'mixtureOfExperts':
      return mixtureExchange(layer);
    case 'residual':
      return each(layer.branches);
    case 'alignment':
      return each([layer.net, layer.residual]);
    case 'sequence': {
      const split = layer.layers.findIndex(
        (child, index) => isProduct(child) && layer.layers[index + 1]?.kind === 'activation',
      );
      const [first, last] = [layer.layers[split], layer.layers[split + 2]];
      return first && last && isProduct(first) && isProduct(last)
        ? region(inputWidth(first), outputWidth(last))
        : each(layer.layers);
    }
    case 'linear':
    case 'transposedLinear':
      // Its outputs are gathered.
      return { forward: outputWidth(layer), backward: 2 * inputWidth(layer) };
    case 'fusedProjection':
      return exchangedBy(layer.projection);
    case 'packedExperts':
    case 'causalConv':
    case 'gate':
    case 'layerNorm':
    case 'rmsNorm':
    case 'learnedPositions':
    case 'router':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
    case 'activation':
    case 'scale':
    case 'softcap':
    case 'alibi':
      return NOTHING;
  }
}

/** The outputs of all experts are summed together. */
const mixtureExchange = ({ router }: MixtureOfExperts): Exchange =>
  region(router.weight.shape[1] ?? 0);

/** The loss is taken where the vocabulary is shared: only the gradient of the head's input is summed. */
export const headExchange = (head: Projection): Exchange => ({
  forward: 0,
  backward: 2 * inputWidth(head),
});
