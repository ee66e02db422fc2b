/**
 * Seconds of a step of a server: some prompt tokens, and a token of each decoding sequence. A step without prompts is
 * the decoding step of the roofline.
 */

import { sumOf } from '../../../../base/values.js';
import type { Bounds } from '../../../../model/budget/figure.js';
import { realValue } from '../../../../model/budget/figure.js';
import type { DecodeWork, ExpertGroup, PrefillWork, Rates } from '../roofline.js';
import { decodeTerms, promptPlaces } from '../roofline.js';
import type { ServedModel } from '../serving-work.js';
import { decodeWork, prefillWork } from '../serving-work.js';
import type { StepSeconds } from './simulation.js';

/** Lengths of the requests that a step is timed for. */
export interface RequestLengths {
  /** Tokens of a prompt. */
  readonly prompt: number;
  /** Tokens of a prompt that a prefix cache holds. */
  readonly cachedTokens: number;
  /** Output tokens of a request at most. */
  readonly output: number;
}

/** Work of requests of these lengths, for all bounds. */
export interface RequestWork {
  /** Decoding of a sequence, by context. */
  readonly decoding: readonly { readonly context: number; readonly work: DecodeWork }[];
  /** The whole prompt, and the prefix that a cache holds. */
  readonly prompt: PrefillWork;
  readonly cached: PrefillWork | undefined;
  readonly lengths: RequestLengths;
}

export function requestWork(served: ServedModel, lengths: RequestLengths): RequestWork {
  const { prompt, cachedTokens } = lengths;
  return {
    decoding: contextsOf(lengths).map((context) => ({
      context,
      work: decodeWork(served, context),
    })),
    prompt: prefillWork(served, prompt),
    cached: cachedTokens > 0 ? prefillWork(served, cachedTokens) : undefined,
    lengths,
  };
}

/** Seconds of parts of a step on one GPU, for one token each. */
export interface StepParts {
  /** Seconds of reading the cache of a sequence, by context. */
  readonly cache: (context: number) => number;
  /** Seconds of computing with the cache of a sequence, by context. */
  readonly scores: (context: number) => number;
  /** Seconds of the other products of a decoded token. */
  readonly products: number;
  /** Seconds of all computing of a prompt token. */
  readonly promptProducts: number;
  /** Seconds of moving activations and writing the cache of a prompt token. */
  readonly promptMoving: number;
  /** Seconds of reading the weights that some tokens need. */
  readonly weights: (tokens: number) => number;
  /** Seconds of the exchanges between GPUs of some decoded tokens, and of some tokens of prompts. */
  readonly links: (decoded: number, prefill: number) => number;
  /** Seconds of kernel launches. */
  readonly launches: number;
}

/** @param bound `lower`: everything at its peak. */
export function stepPartsOf(request: RequestWork, rates: Rates, bound: keyof Bounds): StepParts {
  const works = request.decoding.map(({ context, work }) => ({
    context,
    ...decodingSeconds(work, rates, bound),
  }));
  const read = request.prompt;
  const [{ products, launches, links }] = works as [(typeof works)[0]];
  const { bandwidth, efficiencies } = rates;
  const { weightUtilisation, expertUtilisation } = efficiencies[bound];
  return {
    ...promptSeconds(request, rates, bound),
    cache: interpolated(works.map(({ context, cache }) => [context, cache])),
    scores: interpolated(works.map(({ context, scores }) => [context, scores])),
    products,
    weights: (tokens) =>
      read.weightBytes / (bandwidth * weightUtilisation) +
      expertBytesRead(read, tokens) / (bandwidth * expertUtilisation),
    links: (decoded, prefill) =>
      links(decoded + prefill) - prefill * savedSeconds(read, rates, bound),
    launches,
  };
}

/** Seconds that a token of a prompt takes less than a decoded one on its way to experts: machines pass it on. */
function savedSeconds({ exchangedBytes }: PrefillWork, rates: Rates, bound: keyof Bounds): number {
  const { expertLink, expertPlaces, efficiencies } = rates;
  const places = promptPlaces(rates);
  if (!exchangedBytes || !expertLink || !expertPlaces || !places) return 0;
  const bytes = exchangedBytes(expertPlaces.gpus) - exchangedBytes(places);
  return bytes / (expertLink.bandwidth * efficiencies[bound].linkUtilisation);
}

/** Terms of the roofline for one sequence. */
function decodingSeconds(work: DecodeWork, rates: Rates, bound: keyof Bounds) {
  const [one, two] = [1, 2].map((batch) => decodeTerms(work, rates, batch, bound)) as [
    ReturnType<typeof decodeTerms>,
    ReturnType<typeof decodeTerms>,
  ];
  const [first, second] = [realValue(one.links), realValue(two.links)];
  return {
    cache: realValue(one.cache),
    scores: one.computing ? realValue(one.computing.scores) : 0,
    products: one.computing ? realValue(one.computing.products) : 0,
    launches: realValue(one.launches),
    links: (tokens: number) => first + (tokens - 1) * (second - first),
  };
}

/** Mean work of the prompt tokens that no cache holds. */
function promptSeconds(
  { prompt: whole, cached, lengths: { prompt, cachedTokens } }: RequestWork,
  { bandwidth, peakFlops, efficiencies }: Rates,
  bound: keyof Bounds,
): Pick<StepParts, 'promptProducts' | 'promptMoving'> {
  const computed = Math.max(1, prompt - cachedTokens);
  const { memoryUtilisation, computeUtilisation } = efficiencies[bound];
  const flops = whole.flops - (cached?.flops ?? 0);
  // Fused kernels at their best keep activations on the chip.
  const activations = bound === 'lower' ? 0 : whole.activationBytes / prompt;
  const bytes = activations + whole.cacheBytes / prompt;
  return {
    promptProducts: peakFlops === null ? 0 : flops / computed / (peakFlops * computeUtilisation),
    promptMoving: bytes / (bandwidth * memoryUtilisation),
  };
}

/** Contexts between which the work of a sequence is interpolated: it is linear but for windows. */
const CONTEXTS = 5;

function contextsOf({ prompt, output }: RequestLengths): number[] {
  const [from, to] = [prompt + 1, prompt + output];
  const at = Array.from({ length: CONTEXTS }, (_, index) =>
    Math.round(from + ((to - from) * index) / (CONTEXTS - 1)),
  );
  return [...new Set(at)];
}

/** Value between points in order of their places; beyond them, that of the nearest point. */
function interpolated(points: readonly (readonly [at: number, value: number])[]) {
  return (at: number): number => {
    let below = points[0] as readonly [number, number];
    for (const point of points) {
      if (at < point[0]) {
        const share = Math.max(0, at - below[0]) / Math.max(1, point[0] - below[0]);
        return below[1] + share * (point[1] - below[1]);
      }
      below = point;
    }
    return below[1];
  };
}

/** Bytes of experts that tokens need, as in the roofline: an expert is read if a token selects it. */
export const expertBytesRead = (
  { expertGroups }: Pick<DecodeWork, 'expertGroups'>,
  tokens: number,
): number => sumOf(expertGroups, (group) => group.bytes * shareRead(group, tokens));

const shareRead = (
  { experts, expertsPerToken, tokens: groups = 1 }: ExpertGroup,
  tokens: number,
): number =>
  expertsPerToken === experts ? 1 : 1 - (1 - expertsPerToken / experts) ** (groups * tokens);

/** How the terms of a step add up. */
export interface StepForm {
  /** Whether exchanges, launches and moving overlap with other work, as at the physical limit. */
  readonly isOverlapped: boolean;
  /** Seconds for each decoding sequence beyond the first. */
  readonly sequenceSeconds: number;
  /** Part of the products and reads of decoding that do not overlap with many sequences. */
  readonly apartShare: number;
  /** Tokens of a sequence that a decoding step computes. */
  readonly computedPerStep: number;
}

/**
 * Seconds of a step. Products and the reading of weights overlap for a single user, half of them with many, and not in a
 * prefill; a step with both has its share of each.
 */
export const stepSecondsOf =
  (parts: StepParts, form: StepForm): StepSeconds =>
  (prefill, decoding, context) => {
    const decoded = decoding * form.computedPerStep;
    const tokens = prefill + decoded;
    const attention =
      decoding * Math.max(parts.cache(context), form.computedPerStep * parts.scores(context));
    const products = decoded * parts.products + prefill * parts.promptProducts;
    const weights = parts.weights(tokens);
    const moving = prefill * parts.promptMoving;
    const links = parts.links(decoded, prefill);
    if (form.isOverlapped) {
      return Math.max(attention + Math.max(products, weights, moving), links, parts.launches);
    }
    const apart =
      (Math.min(products, weights) * (prefill + form.apartShare * Math.max(0, decoded - 1))) /
      tokens;
    const sequences = Math.max(0, decoding - 1) * form.sequenceSeconds;
    const busy = attention + Math.max(products, weights) + apart + moving;
    return busy + links + parts.launches + sequences;
  };
