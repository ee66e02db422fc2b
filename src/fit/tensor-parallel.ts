/** Among how many GPUs a model can be shared in training, and what these then tell each other. */
import type { Layer, MixtureOfExperts, Projection } from '../architecture/layer.js';
import { isProduct } from '../architecture/walk.js';
import { inputWidth, outputWidth, sharedInputWidth, widthAfter } from '../architecture/widths.js';
import { remembered } from '../budget/remember.js';
import { UserError } from '../errors.js';
import { isDealtEqually, tensorCuts } from './tensor-cuts.js';

/** What must be a multiple of the GPUs that share a layer. */
const divisibleIn = remembered((model: Layer) =>
  [...tensorCuts(model).values()].flatMap(({ runs, of }) =>
    runs.filter(isDealtEqually).map(({ unit, count }) => ({ unit, of, count })),
  ),
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
    `--tensor-parallel: ${gpus} GPUs cannot share the ${bad.count} ${bad.unit} of ${bad.of} equally`,
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
