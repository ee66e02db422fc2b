/**
 * How long a step takes at least, by the roofline: each byte is read at the memory's bandwidth, each FLOP computed at
 * the peak, and of the two the slower decides. The step of decoding follows the inference chapter of "How to Scale
 * Your Model" (Austin et al., 2025): the cache is read for each sequence and hardly computed with, the weights are read
 * once for all:
 *
 *     batch · cache / bandwidth + max(batch · FLOPs / peak, weights / bandwidth)
 *
 * Where computing with the cache takes longer than reading it, as latent attention does, that stands in its place.
 *
 * All is of one GPU: of several that share the layers, each has its part of the bytes and of the FLOPs.
 */
import { type Bounds, type Quantity, quantity } from '../../budget/quantity.js';
import type { Cluster } from '../../hardware/gpu.js';
import { computedDtype, isNarrow } from '../../hardware/gpu.js';
import { eachBound } from '../bounds.js';
import {
  type Efficiencies,
  type Efficiency,
  efficienciesOn,
  type GroupLink,
  hopSeconds,
} from '../efficiency.js';
import { linkFor } from '../parallelism/collectives.js';
import { WEIGHT_DTYPES, type WeightDtype } from './weight-types.js';

/** How fast a GPU is. */
export interface Rates {
  /** Of its memory, bytes per second. */
  readonly bandwidth: number;
  /** FLOP per second in the type that is computed in; null where none is published: then computing is not counted. */
  readonly peakFlops: number | null;
  /** What joins it to the others that share the layers; nothing where it is alone. */
  readonly link?: GroupLink | undefined;
  /** GPUs that share the layers. */
  readonly gpus: number;
  /** What share of all that is reached. */
  readonly efficiencies: Efficiencies;
}

/** Experts of which a token goes to some: of all layers that have as many of them. */
export interface ExpertGroup {
  readonly experts: number;
  readonly expertsPerToken: number;
  /** Of all experts, over all such layers, on one GPU. */
  readonly bytes: number;
}

/** What the GPUs that share the layers tell each other. */
export interface SharedWork {
  /** All-reduces of a pass. */
  readonly allReduces: number;
  /** Bytes of all of them, for a token. */
  readonly reducedBytes: number;
  /** Layers that are started one after the other in a pass. */
  readonly launches: number;
}

/** What one GPU does for a step of decoding: one more token of each sequence. */
export interface DecodeWork extends SharedWork {
  /** Weights that every step reads. */
  readonly weightBytes: number;
  readonly expertGroups: readonly ExpertGroup[];
  /** Keys, values and states of one sequence that are read, and states that are written again. */
  readonly cacheBytes: number;
  /** Of one sequence: what is computed with its cache. */
  readonly scoreFlops: number;
  /** Of one token: all else, above all the products with weights. */
  readonly flops: number;
}

export type StepLimit = 'weights' | 'cache' | 'compute' | 'links';

export interface DecodeStep {
  readonly seconds: Bounds;
  /** What takes longest at the roofline, of what decides there. */
  readonly limitedBy: StepLimit;
  /** The parts of the roofline. */
  readonly limits: readonly { readonly limit: StepLimit; readonly seconds: Quantity }[];
}

/** What one GPU does for a prefill: all tokens of the prompts in one pass. */
export interface PrefillWork extends SharedWork {
  /** In all prompts together. */
  readonly tokens: number;
  readonly flops: number;
  readonly weightBytes: number;
  readonly expertGroups: readonly ExpertGroup[];
  /** Activations written and read again. */
  readonly activationBytes: number;
  /** Keys, values and states written. */
  readonly cacheBytes: number;
}

export type PrefillLimit = 'compute' | 'memory' | 'links';

export interface Prefill {
  readonly seconds: Bounds;
  readonly limitedBy: PrefillLimit;
  readonly limits: readonly { readonly limit: PrefillLimit; readonly seconds: Quantity }[];
}

interface Term {
  readonly formula: string;
  readonly inputs: Readonly<Record<string, number>>;
}

const STEP_SOURCE =
  'the larger of reading the cache of each sequence and computing with it, and the larger of reading the weights and ' +
  'computing with them ("How to Scale Your Model", inference)';

/** The time of one step of decoding, and what limits it. */
export function decodeStep(work: DecodeWork, rates: Rates, batch: number): DecodeStep {
  const { cache, weights, computing, links } = decodeTerms(work, rates, batch);
  const atPeak = peakSeconds(rates);
  const compute = computing && sumTerm(computing.scores, computing.products);
  const limits = [
    { limit: 'weights' as const, seconds: atPeak('reading the weights', weights) },
    { limit: 'cache' as const, seconds: atPeak('reading the caches', cache) },
    ...(compute ? [{ limit: 'compute' as const, seconds: atPeak('computing', compute) }] : []),
    { limit: 'links' as const, seconds: atPeak('all-reduces', links) },
  ];
  const seconds = eachBound(rates.efficiencies, (_, bound) =>
    stepSeconds(work, rates, batch, bound),
  );
  return {
    seconds,
    limits,
    limitedBy: longest(takenAtPeak({ cache, weights, computing, links }, atPeak)),
  };
}

/** What each takes of a step at the roofline: of reading and of computing with the same, the slower alone does. */
function takenAtPeak(
  { cache, weights, computing, links }: Omit<DecodeTerms, 'launches'>,
  atPeak: ReturnType<typeof peakSeconds>,
) {
  const seconds = (term: Term | undefined) => (term ? atPeak('a part of the step', term).value : 0);
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

/** One of the bounds of that time, for those who ask for many batches. */
export function stepSeconds(
  work: DecodeWork,
  rates: Rates,
  batch: number,
  bound: keyof Bounds,
): Quantity {
  const { cache, weights, computing, links, launches } = decodeTerms(work, rates, batch);
  const efficiency = rates.efficiencies[bound];
  const computed = computing ? [computing.scores, computing.products] : [];
  const busy = computing
    ? `max(${cache.formula}, ${computing.scores.formula}) + max(${computing.products.formula}, ${weights.formula})`
    : `${cache.formula} + ${weights.formula}`;
  return quantity({
    label: 'step of decoding',
    unit: 'seconds',
    formula: withWaiting(busy, [links, launches], bound),
    inputs: inputsOf([cache, weights, ...computed, links, launches], efficiency, rates.link),
    source: `${computing ? STEP_SOURCE : READING_SOURCE}; ${efficiency.source}`,
  });
}

const READING_SOURCE =
  'reading the cache of each sequence, and the weights; computing is not counted, as no peak is published: with many ' +
  'sequences a step takes longer';

/** Tokens per second of all sequences together, by the time of a step. */
export const tokensPerSecond = (step: Bounds, batch: number): Bounds => {
  const rate = (of: Quantity) => rateOf(of.value, batch);
  // The shortest step gives most.
  return { lower: rate(step.upper), expected: rate(step.expected), upper: rate(step.lower) };
};

/** By the seconds of a step. */
export const rateOf = (step: number, batch: number): Quantity =>
  quantity({
    label: 'tokens per second',
    unit: 'tokens/s',
    formula: 'batch / step',
    inputs: { batch, step },
    source: 'one token of each sequence for each step',
  });

/** The time of one prefill; null where no peak is published: mostly it is what decides. */
export function prefill(work: PrefillWork, rates: Rates): Prefill | null {
  const { peakFlops: peak } = rates;
  if (peak === null) return null;
  const weights = weightsTerm(work, work.tokens);
  const compute: Term = {
    formula: 'flops / (peak * compute_utilisation)',
    inputs: { flops: work.flops, peak },
  };
  const moving = (activations: number): Term => ({
    formula: `(${weights.formula} + activation_bytes + cache_bytes) / (bandwidth * memory_utilisation)`,
    inputs: {
      ...weights.inputs,
      activation_bytes: activations,
      cache_bytes: work.cacheBytes,
      bandwidth: rates.bandwidth,
    },
  });
  const links = linksTerm(work, rates, work.tokens);
  const launches = launchesTerm(work);
  const atPeak = peakSeconds(rates);
  const bytes = 'weights once, activations written and read, the cache written';
  const seconds = eachBound(rates.efficiencies, (efficiency, bound) => {
    // What layers hand on may stay in the processors, layer by layer: nothing of it has to be in memory.
    const memory = moving(bound === 'lower' ? 0 : work.activationBytes);
    const { join, text } = OVERLAP[bound];
    return quantity({
      label: 'prefill',
      unit: 'seconds',
      formula: withWaiting(join(compute.formula, memory.formula), [links, launches], bound),
      inputs: inputsOf([compute, memory, links, launches], efficiency, rates.link),
      source: `${text}: ${bytes}; ${efficiency.source}`,
    });
  });
  const limits = [
    { limit: 'compute', seconds: atPeak('computing', compute) },
    { limit: 'memory', seconds: atPeak('moving bytes', moving(0)) },
    { limit: 'links', seconds: atPeak('all-reduces', links) },
  ] as const;
  return { seconds, limits, limitedBy: longest(limits) };
}

/**
 * Whether a prefill computes and moves bytes at the same time. Of a short one both take about as long, and programs reach
 * the sum of both rather than the larger: 128 tokens of Llama-2-7B take 16 ms on an A100 (TensorRT-LLM, performance.md),
 * of which computing takes 8 and moving 10. At the shares of the upper bound the larger alone is more than that sum.
 */
const LARGER = {
  join: (compute: string, memory: string) => `max(${compute}, ${memory})`,
  text: 'the larger of computing and of moving bytes',
};
const OVERLAP = {
  lower: LARGER,
  expected: {
    join: (compute: string, memory: string) => `${compute} + ${memory}`,
    text: 'computing, and moving bytes',
  },
  upper: LARGER,
} as const satisfies Record<keyof Bounds, typeof LARGER>;

/** At best, all-reduces and launches are hidden behind other work; else all waits for them. */
function withWaiting(work: string, waiting: readonly Term[], bound: keyof Bounds): string {
  const formulas = waiting.map(({ formula }) => formula).filter((formula) => formula !== '0');
  if (bound !== 'lower') return [work, ...formulas].join(' + ');
  return formulas.length === 0 ? work : `max(${[work, ...formulas].join(', ')})`;
}

type DecodeTerms = ReturnType<typeof decodeTerms>;

function decodeTerms(work: DecodeWork, rates: Rates, batch: number) {
  const weights = weightsTerm(work, batch);
  const { bandwidth, peakFlops: peak } = rates;
  return {
    cache: {
      formula: 'batch * cache_bytes / (bandwidth * memory_utilisation)',
      inputs: { batch, cache_bytes: work.cacheBytes, bandwidth },
    },
    weights: {
      formula: `(${weights.formula}) / (bandwidth * weight_utilisation)`,
      inputs: { ...weights.inputs, bandwidth },
    },
    computing: peak === null ? null : decodeComputing(work, peak, batch),
    links: linksTerm(work, rates, batch),
    launches: launchesTerm(work),
  } satisfies Record<string, Term | Readonly<Record<string, Term>> | null>;
}

/** With caches, and with all else. */
const decodeComputing = (work: DecodeWork, peak: number, batch: number) => ({
  scores: {
    formula: 'batch * score_flops / (peak * compute_utilisation)',
    inputs: { batch, score_flops: work.scoreFlops, peak },
  },
  products: {
    formula: 'batch * flops / (peak * compute_utilisation)',
    inputs: { batch, flops: work.flops, peak },
  },
});

/**
 * Weights that are read for so many tokens. An expert is read when at least one token goes to it: of E experts a token
 * goes to k, so it misses one with the chance 1 − k / E, and all tokens do with that to their power, when each chooses
 * for itself and all experts are as likely. Expected values add up, so that is the share of experts that are not read.
 */
export function weightsTerm(
  { weightBytes, expertGroups }: Pick<DecodeWork, 'weightBytes' | 'expertGroups'>,
  tokens: number,
): Term {
  const inputs: Record<string, number> = { weight_bytes: weightBytes };
  const terms = expertGroups.map(({ experts, expertsPerToken, bytes }) => {
    const name = `experts_${expertsPerToken}_of_${experts}_bytes`;
    inputs[name] = bytes;
    inputs.tokens = tokens;
    return expertsPerToken === experts
      ? name
      : `${name} * (1 - exp(tokens * ln(1 - ${expertsPerToken} / ${experts})))`;
  });
  return { formula: ['weight_bytes', ...terms].join(' + '), inputs };
}

/** A ring sends 2 (n − 1) / n of what it reduces (Patarasuk and Yuan, 2009), in 2 (n − 1) steps. */
function linksTerm(
  { allReduces, reducedBytes }: SharedWork,
  { gpus, link }: Rates,
  tokens: number,
): Term {
  if (gpus === 1 || link === undefined) return { formula: '0', inputs: {} };
  return {
    formula:
      '2 * (gpus - 1) / gpus * tokens * reduced_bytes / (link_bandwidth * link_utilisation) + ' +
      'all_reduces * (reduce_seconds + (gpus - 1) * hop_seconds)',
    inputs: {
      gpus,
      tokens: tokens,
      reduced_bytes: reducedBytes,
      link_bandwidth: link.bandwidth,
      all_reduces: allReduces,
    },
  };
}

const launchesTerm = ({ launches }: SharedWork): Term => ({
  formula: 'launches * launch_seconds',
  inputs: { launches },
});

const sumTerm = (a: Term, b: Term): Term => ({
  formula: `${a.formula} + ${b.formula}`,
  inputs: { ...a.inputs, ...b.inputs },
});

const peakSeconds =
  ({ efficiencies: { lower }, link }: Rates) =>
  (label: string, term: Term): Quantity =>
    quantity({
      label,
      unit: 'seconds',
      formula: term.formula,
      inputs: inputsOf([term], lower, link),
      source: lower.source,
    });

/** Those of all terms, and of the efficiency those that a term names. */
function inputsOf(
  terms: readonly Term[],
  efficiency: Efficiency,
  link: GroupLink | undefined,
): Record<string, number> {
  const all: Record<string, number> = {
    memory_utilisation: efficiency.memoryUtilisation,
    weight_utilisation: efficiency.weightUtilisation,
    compute_utilisation: efficiency.computeUtilisation,
    link_utilisation: efficiency.linkUtilisation,
    launch_seconds: efficiency.launchSeconds,
    reduce_seconds: efficiency.reduceSeconds,
    hop_seconds: link ? hopSeconds(efficiency, link) : 0,
  };
  const formulas = terms.map(({ formula }) => formula).join(' ');
  const named = Object.entries(all).filter(([name]) => formulas.includes(name));
  return Object.assign({}, ...terms.map(({ inputs }) => inputs), Object.fromEntries(named));
}

function longest<L extends string>(
  limits: readonly { readonly limit: L; readonly seconds: Pick<Quantity, 'value'> }[],
): L {
  const [first, ...others] = limits;
  if (first === undefined) throw new Error('nothing takes any time');
  return others.reduce((a, b) => (b.seconds.value > a.seconds.value ? b : a), first).limit;
}

/** The rates of one of several GPUs that share the layers, of weights in a type. */
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
