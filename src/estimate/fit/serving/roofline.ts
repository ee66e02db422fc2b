/**
 * Roofline of decoding and prefill: bytes move at the memory bandwidth, FLOPs run at the compute peak, and the slower
 * of the two decides. The decoding step follows the inference chapter of "How to Scale Your Model" (Austin et al.,
 * 2025). The cache is read for each sequence with little compute, and the weights are read once for all:
 *
 *     batch · cache / bandwidth + max(batch · FLOPs / peak, weights / bandwidth)
 *
 * If computing with the cache takes longer than reading it, as in latent attention, the first term is the compute time.
 *
 * All figures are per GPU: GPUs that share the layers each have their part of the bytes and FLOPs.
 */

import { memoized } from '../../../model/architecture/walk.js';
import type { Expression, Input } from '../../../model/budget/expression.js';
import {
  add,
  div,
  exp,
  inputs,
  inputsOf,
  ln,
  max,
  mul,
  sub,
  v,
} from '../../../model/budget/expression.js';
import type { Bounds, Quantity } from '../../../model/budget/figure.js';
import { quantity, realValue } from '../../../model/budget/figure.js';
import type { Cluster } from '../../hardware/gpu.js';
import { computedDtype, isNarrow } from '../../hardware/gpu.js';
import { byBound, eachBound } from '../bounds.js';
import type { Efficiencies, GroupLink } from '../efficiency.js';
import { efficienciesOn, hopSeconds } from '../efficiency.js';
import { linkFor } from '../parallelism/collectives.js';
import type { WeightDtype } from './weight-types.js';
import { WEIGHT_DTYPES } from './weight-types.js';

/** Speed of a GPU. */
export interface Rates {
  /** Memory bandwidth, bytes per second. */
  readonly bandwidth: number;
  /** Compute peak in FLOP/s; null if none is published, and then compute is not counted. */
  readonly peakFlops: number | null;
  /** Link to the other GPUs that share the layers; undefined for a single GPU. */
  readonly link?: GroupLink | undefined;
  /** GPUs that share the layers. */
  readonly gpus: number;
  /** Link between the GPUs that share the experts; undefined if these share the layers. */
  readonly expertLink?: GroupLink | undefined;
  /** GPUs that share the experts, and the machines that they are in; undefined as above. */
  readonly expertPlaces?: { readonly gpus: number; readonly machines: number } | undefined;
  /** Utilisation for each bound. */
  readonly efficiencies: Efficiencies;
}

/** Routed experts of all layers with the same expert counts. */
export interface ExpertGroup {
  readonly experts: number;
  readonly expertsPerToken: number;
  /** Bytes of all experts of these layers on one GPU. */
  readonly bytes: number;
  /** Groups of GPUs whose tokens reach these experts, each with as many; absent: one. */
  readonly tokens?: number | undefined;
}

/** Communication and launches of a pass. */
export interface SharedWork {
  /** All-reduces per pass. */
  readonly allReduces: number;
  /** Bytes of all all-reduces, per token. */
  readonly reducedBytes: number;
  /** Sequential kernel launches per pass. */
  readonly launches: number;
  /** Exchanges of tokens with the GPUs of their experts per pass; absent: none. */
  readonly exchanges?: number;
  /**
   * Bytes of these exchanges per token of a GPU, which sends one copy to each of some places: GPUs, or machines that pass
   * it on.
   */
  readonly exchangedBytes?: (places: number) => number;
}

/** Work of one GPU in a decoding step: one more token for each sequence. */
export interface DecodeWork extends SharedWork {
  /** Bytes of weights that every step reads. */
  readonly weightBytes: number;
  readonly expertGroups: readonly ExpertGroup[];
  /** Cache bytes per sequence: keys, values and states read, and states written. */
  readonly cacheBytes: number;
  /** FLOPs per sequence that use the cache. */
  readonly scoreFlops: number;
  /** Other FLOPs per token, mainly products with weights. */
  readonly flops: number;
}

export type DecodingLimit = 'weights' | 'cache' | 'compute' | 'links';

export interface DecodeStep {
  readonly seconds: Bounds;
  /** Largest term of the roofline; null for a measured time. */
  readonly limitedBy: DecodingLimit | null;
  /** Terms of the roofline. */
  readonly limits: readonly {
    /** Resource that limits decoding. */
    readonly limit: DecodingLimit;
    readonly seconds: Quantity;
  }[];
}

/** Work of one GPU in a prefill: all prompt tokens in one pass. */
export interface PrefillWork extends SharedWork {
  /** Tokens of all prompts. */
  readonly tokens: number;
  readonly flops: number;
  readonly weightBytes: number;
  readonly expertGroups: readonly ExpertGroup[];
  /** Bytes of activations written and read. */
  readonly activationBytes: number;
  /** Bytes of keys, values and states written. */
  readonly cacheBytes: number;
}

export type PrefillLimit = 'compute' | 'memory' | 'links';

export interface Prefill {
  readonly seconds: Bounds;
  /** Null for a measured time. */
  readonly limitedBy: PrefillLimit | null;
  /** Resources that could be the limit. */
  readonly limits: readonly {
    /** Resource that limits the prefill. */
    readonly limit: PrefillLimit;
    readonly seconds: Quantity;
  }[];
}

const STEP_SOURCE =
  'per sequence, the larger of reading the cache and computing with it; plus the larger of reading the weights and ' +
  'computing with them ("How to Scale Your Model", inference)';

/** Bounds of a decoding step, and its limit. */
export function decodeStep(work: DecodeWork, rates: Rates, batch: number): DecodeStep {
  const terms = decodeTerms(work, rates, batch, 'lower');
  const { cache, weights, computing, links } = terms;
  const atPeak = peakSeconds(rates);
  const compute = computing && add(computing.scores, computing.products);
  const limits = [
    { limit: 'weights' as const, seconds: atPeak('reading the weights', weights) },
    { limit: 'cache' as const, seconds: atPeak('reading the caches', cache) },
    ...(compute ? [{ limit: 'compute' as const, seconds: atPeak('computing', compute) }] : []),
    { limit: 'links' as const, seconds: atPeak('all-reduces', links) },
  ];
  return {
    seconds: byBound((bound) => stepSeconds(work, rates, batch, bound)),
    limits,
    limitedBy: longest(takenAtPeak(terms, atPeak)),
  };
}

/** Share of each limit in the roofline time: only the slower of reading and computing counts. */
function takenAtPeak(
  { cache, weights, computing, links }: Omit<DecodeTerms, 'launches'>,
  atPeak: ReturnType<typeof peakSeconds>,
) {
  const seconds = (term: Expression | undefined) =>
    term ? atPeak('a part of the step', term).value : 0;
  const [reading, scores] = [seconds(cache), seconds(computing?.scores)];
  const [loading, products] = [seconds(weights), seconds(computing?.products)];
  const compute = (scores > reading ? scores : 0) + (products > loading ? products : 0);
  return [
    { limit: 'weights', seconds: { value: loading >= products ? loading : 0 } },
    { limit: 'cache', seconds: { value: reading >= scores ? reading : 0 } },
    { limit: 'compute', seconds: { value: compute } },
    { limit: 'links', seconds: { value: seconds(links) } },
  ] as const;
}

/** One bound of a decoding step. */
export function stepSeconds(
  work: DecodeWork,
  rates: Rates,
  batch: number,
  bound: keyof Bounds,
): Quantity {
  const terms = decodeTerms(work, rates, batch, bound);
  const { cache, weights, computing, links, launches } = terms;
  const computed = computing ? [computing.scores, computing.products] : [];
  return quantity({
    label: 'decoding step',
    unit: 'seconds',
    formula: stepFormula(terms, bound),
    inputs: limitWords([cache, weights, ...computed, links, launches], rates, bound),
    source: `${computing ? STEP_SOURCE : READING_SOURCE}; ${rates.efficiencies[bound].source}`,
  });
}

/** Value of `stepSeconds` only, for searches. */
export const secondsOfStep = (
  work: DecodeWork,
  rates: Rates,
  batch: number,
  bound: keyof Bounds,
): number => realValue(stepFormula(decodeTerms(work, rates, batch, bound), bound));

function stepFormula(
  { cache, weights, computing, links, launches }: DecodeTerms,
  bound: keyof Bounds,
): Expression {
  const busy = computing
    ? add(max(cache, computing.scores), max(computing.products, weights))
    : add(cache, weights);
  return withWaiting(busy, [links, launches], bound);
}

const READING_SOURCE =
  'reading the cache of each sequence and the weights; compute is not counted, as no peak is published: with many ' +
  'sequences a step takes longer';

/** Tokens per second of all sequences together. */
export const tokensPerSecond = (step: Bounds, batch: number): Bounds => {
  const rate = (of: Quantity) => rateOf(of.value, batch);
  // The shortest step gives the highest rate.
  return { lower: rate(step.upper), expected: rate(step.expected), upper: rate(step.lower) };
};

/** Tokens per second from the seconds of a step. */
export const rateOf = (step: number, batch: number): Quantity =>
  quantity({
    label: 'tokens per second',
    unit: 'tokens/s',
    formula: div(v({ batch }), v({ step })),
    source: 'one token per sequence and step',
  });

/** Bounds of a prefill; null if no peak is published, because compute usually decides. */
export function prefill(work: PrefillWork, rates: Rates): Prefill | null {
  if (rates.peakFlops === null) return null;
  const atPeak = peakSeconds(rates);
  const bytes = 'weights once, activations written and read, the cache written';
  const seconds = eachBound(rates.efficiencies, (efficiency, bound) => {
    const { compute, memory, links, launches } = prefillTerms(work, rates, bound);
    const { join, text } = OVERLAP[bound];
    return quantity({
      label: 'prefill',
      unit: 'seconds',
      formula: withWaiting(join(compute, memory), [links, launches], bound),
      inputs: limitWords([compute, memory, links, launches], rates, bound),
      source: `${text}: ${bytes}; ${efficiency.source}`,
    });
  });
  const { compute, memory, links } = prefillTerms(work, rates, 'lower');
  const limits = [
    { limit: 'compute', seconds: atPeak('computing', compute) },
    { limit: 'memory', seconds: atPeak('moving bytes', memory) },
    { limit: 'links', seconds: atPeak('all-reduces', links) },
  ] as const;
  return { seconds, limits, limitedBy: longest(limits) };
}

/** Times of a prefill, each for itself. */
export function prefillTerms(work: PrefillWork, rates: Rates, bound: keyof Bounds) {
  const utilisation =
    work.expertGroups.length === 0 ? 'compute_utilisation' : 'expert_compute_utilisation';
  const ends = reached(rates, bound);
  // At best, fused kernels keep activations on the chip, so none go through memory.
  const activation_bytes = bound === 'lower' ? 0 : work.activationBytes;
  const peak = rates.peakFlops ?? Number.POSITIVE_INFINITY;
  return {
    compute: div(v({ flops: work.flops }), mul(v({ peak }), ends[utilisation])),
    memory: div(
      add(
        weightsTerm(work, work.tokens),
        v({ activation_bytes }),
        v({ cache_bytes: work.cacheBytes }),
      ),
      mul(v({ bandwidth: rates.bandwidth }), ends.memory_utilisation),
    ),
    links: linksTerm(work, rates, { tokens: work.tokens, places: promptPlaces(rates) }, bound),
    launches: launchesTerm(work, rates, bound),
  };
}

/**
 * Overlap of compute and memory traffic in a prefill. In a short prefill both take about the same time, and programs
 * reach their sum: 128 tokens of Llama-2-7B take 16 ms on an A100 (TensorRT-LLM, performance.md), 8 ms of compute and
 * 10 ms of traffic. At the utilisation of the upper bound, the larger term alone exceeds that sum.
 */
type Join = (compute: Expression, memory: Expression) => Expression;
const LARGER = {
  join: max as Join,
  text: 'the larger of computing and of moving bytes',
};
const OVERLAP = {
  lower: LARGER,
  expected: { join: add, text: 'computing, and moving bytes' },
  upper: LARGER,
} as const satisfies Record<keyof Bounds, typeof LARGER>;

/** Adds all-reduces and launches; the lower bound assumes that they overlap with other work. */
function withWaiting(
  work: Expression,
  waiting: readonly Expression[],
  bound: keyof Bounds,
): Expression {
  const all = [work, ...waiting.filter((each) => each !== NOTHING)];
  if (bound !== 'lower') return add(...all);
  return all.length === 1 ? work : max(...all);
}

const NOTHING = add();

type DecodeTerms = ReturnType<typeof decodeTerms>;

/** Times of a decoding step, each for itself. */
export function decodeTerms(work: DecodeWork, rates: Rates, batch: number, bound: keyof Bounds) {
  const { memory_utilisation, weight_utilisation, expert_utilisation, compute_utilisation } =
    reached(rates, bound);
  const sequences = v({ batch });
  const bandwidth = v({ bandwidth: rates.bandwidth });
  const { peakFlops: peak } = rates;
  const computed = peak === null ? null : mul(v({ peak }), compute_utilisation);
  return {
    cache: div(
      mul(sequences, v({ cache_bytes: work.cacheBytes })),
      mul(bandwidth, memory_utilisation),
    ),
    weights: add(
      div(v({ weight_bytes: work.weightBytes }), mul(bandwidth, weight_utilisation)),
      ...(work.expertGroups.length === 0
        ? []
        : [div(add(...expertTerms(work, batch)), mul(bandwidth, expert_utilisation))]),
    ),
    /** Compute time with the caches, and of all other products. */
    computing: computed && {
      scores: div(mul(sequences, v({ score_flops: work.scoreFlops })), computed),
      products: div(mul(sequences, v({ flops: work.flops })), computed),
    },
    links: linksTerm(work, rates, { tokens: batch, places: rates.expertPlaces?.gpus }, bound),
    launches: launchesTerm(work, rates, bound),
  };
}

/**
 * Weights read for a number of tokens. An expert is read when at least one token selects it. A token with k of E
 * experts misses an expert with probability 1 − k / E; n tokens miss it with (1 − k / E)^n, for independent and uniform
 * routing. Expected values add up, so this is the share of experts that are not read.
 */
export const weightsTerm = (
  work: Pick<DecodeWork, 'weightBytes' | 'expertGroups'>,
  tokens: number,
): Expression => add(v({ weight_bytes: work.weightBytes }), ...expertTerms(work, tokens));

const expertTerms = (
  { expertGroups }: Pick<DecodeWork, 'expertGroups'>,
  tokens: number,
): Expression[] =>
  expertGroups.map(({ experts, expertsPerToken, bytes, tokens: groups = 1 }) => {
    const all = v({ [`experts_${expertsPerToken}_of_${experts}_bytes`]: bytes });
    const reaching = groups === 1 ? v({ tokens }) : v({ tokens_of_all_groups: groups * tokens });
    const missed = exp(mul(reaching, ln(sub(1, div(expertsPerToken, experts)))));
    return expertsPerToken === experts ? all : mul(all, sub(1, missed));
  });

/** A ring sends 2 (n − 1) / n of the reduced bytes (Patarasuk and Yuan, 2009), in 2 (n − 1) steps. */
function linksTerm(
  work: SharedWork,
  rates: Rates,
  sending: Sending,
  bound: keyof Bounds,
): Expression {
  const { tokens } = sending;
  const exchanged = exchangeTerm(work, rates, sending, bound);
  const { allReduces, reducedBytes } = work;
  const { link } = rates;
  if (rates.gpus === 1 || link === undefined) return exchanged;
  const { link_utilisation, reduce_seconds, hop_seconds } = reached(rates, bound);
  const gpus = v({ gpus: rates.gpus });
  const others = sub(gpus, 1);
  const sent = mul(div(mul(2, others), gpus), v({ tokens }), v({ reduced_bytes: reducedBytes }));
  return add(
    div(sent, mul(v({ link_bandwidth: link.bandwidth }), link_utilisation)),
    mul(v({ all_reduces: allReduces }), add(reduce_seconds, mul(others, hop_seconds))),
    ...(exchanged === NOTHING ? [] : [exchanged]),
  );
}

/** Tokens of a GPU, and the places of experts that each of them is sent to. */
interface Sending {
  readonly tokens: number;
  readonly places: number | undefined;
}

/** Places of the tokens of a prompt: other machines get one copy, and pass it on (DeepEP, normal kernels). */
export const promptPlaces = ({ expertPlaces }: Pick<Rates, 'expertPlaces'>): number | undefined =>
  expertPlaces && (expertPlaces.machines > 1 ? expertPlaces.machines : expertPlaces.gpus);

/** Tokens on their way to experts and back: their bytes, and a wait for each exchange (DeepEP). */
function exchangeTerm(
  { exchanges, exchangedBytes }: SharedWork,
  rates: Rates,
  { tokens, places }: Sending,
  bound: keyof Bounds,
): Expression {
  const { expertLink: link } = rates;
  if (exchanges === undefined || link === undefined || places === undefined) return NOTHING;
  const { link_utilisation, reduce_seconds, expert_hop_seconds } = reached(rates, bound);
  return add(
    div(
      mul(v({ tokens }), v({ exchanged_bytes: exchangedBytes?.(places) ?? 0 })),
      mul(v({ expert_link_bandwidth: link.bandwidth }), link_utilisation),
    ),
    mul(v({ exchanges }), add(reduce_seconds, expert_hop_seconds)),
  );
}

const launchesTerm = ({ launches }: SharedWork, rates: Rates, bound: keyof Bounds): Expression =>
  mul(v({ launches }), reached(rates, bound).launch_seconds);

/** Quantity of a term at the lower bound. */
const peakSeconds =
  (rates: Rates) =>
  (label: string, term: Expression): Quantity =>
    quantity({
      label,
      unit: 'seconds',
      formula: term,
      inputs: limitWords([term], rates, 'lower'),
      source: rates.efficiencies.lower.source,
    });

/** Utilisation of a bound as formula inputs, cached for searches. */
const reached = (rates: Rates, bound: keyof Bounds) => reachedAt(rates)[bound];

const reachedAt = memoized((rates: Rates) => byBound((bound) => inputsAt(rates, bound)));

function inputsAt({ efficiencies, link, expertLink }: Rates, bound: keyof Bounds) {
  const efficiency = efficiencies[bound];
  return inputs({
    memory_utilisation: efficiency.memoryUtilisation,
    weight_utilisation: efficiency.weightUtilisation,
    expert_utilisation: efficiency.expertUtilisation,
    expert_compute_utilisation: efficiency.expertComputeUtilisation,
    compute_utilisation: efficiency.computeUtilisation,
    link_utilisation: efficiency.linkUtilisation,
    launch_seconds: efficiency.launchSeconds,
    reduce_seconds: efficiency.reduceSeconds,
    hop_seconds: link ? hopSeconds(efficiency, link) : 0,
    expert_hop_seconds: expertLink ? hopSeconds(efficiency, expertLink) : 0,
  });
}

/** Inputs of terms: those of the work, then the utilisation. */
function limitWords(
  terms: readonly Expression[],
  rates: Rates,
  bound: keyof Bounds,
): Record<string, Input> {
  const all = inputsOf(...terms);
  const ends: Readonly<Record<string, Input>> = reached(rates, bound);
  const first: Record<string, Input> = {};
  for (const [name, input] of Object.entries(all)) if (!(name in ends)) first[name] = input;
  for (const [name, input] of Object.entries(ends)) if (name in all) first[name] = input;
  return first;
}

function longest<L extends string>(
  limits: readonly { readonly limit: L; readonly seconds: Pick<Quantity, 'value'> }[],
): L {
  const [first, ...others] = limits;
  if (first === undefined) throw new Error('nothing takes any time');
  return others.reduce((a, b) => (b.seconds.value > a.seconds.value ? b : a), first).limit;
}

/** Rates of one GPU among those that share the layers, for a weight type. */
export function ratesOf(
  cluster: Cluster,
  gpus: number,
  peak: Quantity | null,
  weights: WeightDtype,
): Rates {
  const { width, computes } = WEIGHT_DTYPES[weights];
  const computed = computedDtype(cluster.gpu, computes);
  return {
    bandwidth: cluster.gpu.bandwidth,
    peakFlops: peak?.value ?? null,
    gpus,
    link: linkFor({ cluster }, gpus),
    efficiencies: efficienciesOn(cluster.gpu, {
      weights: width,
      isNarrow: computed !== undefined && isNarrow(computed),
    }),
  };
}
