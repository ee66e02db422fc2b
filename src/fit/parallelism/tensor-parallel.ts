/** Among how many GPUs a model can be shared in training, and what these then tell each other. */
import type { Layer, MixtureOfExperts, Projection } from '../../architecture/layer.js';
import { remembered } from '../../architecture/memoize.js';
import {
  inputWidth,
  isProduct,
  outputWidth,
  sharedInputWidth,
  widthAfter,
} from '../../architecture/walk.js';
import { UserError } from '../../errors.js';
import { isDealtEqually, tensorCuts } from './tensor-cuts.js';

/** The most GPUs that anybody is told to get. */
export const MOST_GPUS = 65_536;

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
  // No larger divisor is of use.
  const last = Math.min(to, MOST_GPUS);
  for (let value = from; value <= last; value++) if (isFound(value)) return value;
  return undefined;
}

/** What GPUs that share layers tell each other in one pass. */
export interface Exchanged {
  /**
   * Of each token, times (gpus − 1) / gpus: an all-reduce counts twice, as it is a reduce-scatter and an all-gather
   * (arXiv 2205.05198).
   */
  readonly values: number;
  /** How often: all-reduces, and all-gathers, which are taken to wait as long. */
  readonly times: number;
}

export interface Exchange {
  readonly forward: Exchanged;
  readonly backward: Exchanged;
}

/** With that which a layer's output is summed by, if it is, and which is part of its forward pass. */
interface LayerExchange extends Exchange {
  readonly closing: Exchanged;
}

const NOTHING: Exchanged = { values: 0, times: 0 };
const SILENT: LayerExchange = { forward: NOTHING, backward: NOTHING, closing: NOTHING };

const allReduce = (width: number): Exchanged => ({ values: 2 * width, times: 1 });
const allGather = (width: number): Exchanged => ({ values: width, times: 1 });

export function exchangeOf(layers: readonly Layer[]): Exchange {
  const { forward, backward } = inTurn(layers.map(exchangedBy));
  return { forward, backward };
}

const total = (all: readonly Exchanged[]): Exchanged =>
  all.reduce(
    (sum, { values, times }) => ({ values: sum.values + values, times: sum.times + times }),
    NOTHING,
  );

const inTurn = (all: readonly LayerExchange[]): LayerExchange => ({
  forward: total(all.map(({ forward }) => forward)),
  backward: total(all.map(({ backward }) => backward)),
  closing: all.at(-1)?.closing ?? NOTHING,
});

/**
 * Branches of one residual: what they add to the stream is added up on each GPU before one all-reduce (GPT-NeoX, arXiv
 * 2204.06745, section 2.1). On the way back one would be enough if they read the output of one norm; here each has its
 * own, as GPT-NeoX does, and the gradient of each norm's output is assumed to be summed before it goes through the norm,
 * as in Megatron-LM: the norm is whole on every GPU, and so the gradient of its weight has to be.
 */
function sideBySide(branches: readonly LayerExchange[]): LayerExchange {
  const { forward, backward } = inTurn(branches);
  const closing = branches.map((branch) => branch.closing).filter(({ times }) => times > 0);
  const spared = total(closing.slice(1));
  return {
    forward: { values: forward.values - spared.values, times: forward.times - spared.times },
    backward,
    closing: NOTHING,
  };
}

/** Its input's gradient is summed on the way back, its output on the way there. */
const region = (input: number, output = input): LayerExchange => ({
  forward: allReduce(output),
  backward: allReduce(input),
  closing: allReduce(output),
});

function exchangedBy(layer: Layer): LayerExchange {
  const each = (layers: readonly Layer[]) => inTurn(layers.map(exchangedBy));
  switch (layer.kind) {
    case 'languageModel':
      return each([layer.embedding, ...layer.blocks, layer.head]);
    case 'embedding':
      return { ...SILENT, forward: allReduce(widthAfter(layer, 0)) };
    case 'hybridBlock': {
      const { mamba, attention, alignment, fusion, mlp } = layer;
      return each([mamba, attention, ...(alignment ? [alignment] : []), fusion, mlp]);
    }
    case 'mamba': {
      const step = region(outputWidth(layer.xProj));
      return inTurn([step, region(inputWidth(layer.inProj), outputWidth(layer.outProj))]);
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
      return sideBySide(layer.branches.map(exchangedBy));
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
      return {
        ...SILENT,
        forward: allGather(outputWidth(layer)),
        backward: allReduce(inputWidth(layer)),
      };
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
      return SILENT;
  }
}

/** The outputs of all experts are summed together. */
const mixtureExchange = ({ router }: MixtureOfExperts): LayerExchange =>
  region(router.weight.shape[1] ?? 0);

/** The loss is taken where the vocabulary is shared: only the gradient of the head's input is summed. */
export const headExchange = (head: Projection): Exchange => ({
  forward: NOTHING,
  backward: allReduce(inputWidth(head)),
});
