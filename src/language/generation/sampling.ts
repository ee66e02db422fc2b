/**
 * Distribution of the next token: logits, filtered like in transformers' logits processors, in the same order and with
 * the same rule for ties.
 */
import { UserError } from '../../base/errors.js';
import { logSumExp } from '../../base/tensor/logits.js';
import { commandText } from '../../base/text/setting.js';

/** Settings of sampling. A value that changes nothing switches its step off. */
export interface SamplingSettings {
  /** 0 always takes the likeliest token. 1 changes nothing. @minimum 0 */
  readonly temperature: number;
  /** Likeliest tokens to keep, and those equal to the last of them; 0 keeps all. @count */
  readonly topK: number;
  /** Share of the probability to keep, by the likeliest tokens; 1 keeps all. @minimum 0 @maximum 1 */
  readonly topP: number;
  /** Least probability of a token, as a share of the likeliest token's; 0 keeps all. @minimum 0 @maximum 1 */
  readonly minP: number;
  /** Divides positive logits of earlier tokens, and multiplies negative ones; 1 changes nothing. */
  readonly repetitionPenalty: number;
}

export const GREEDY: SamplingSettings = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
};

/** Tokens of positive probability, by id. */
export interface TokenDistribution {
  readonly ids: Int32Array;
  /** Sum 1. */
  readonly probabilities: Float64Array;
}

/** Scores of the tokens that are left. */
interface Scores {
  readonly ids: Int32Array;
  readonly scores: Float64Array;
}

export type FilterName = 'repetition penalty' | 'temperature' | 'top-k' | 'top-p' | 'min-p';

interface Filter {
  readonly name: FilterName;
  readonly apply: (scores: Scores) => Scores;
}

/**
 * Distribution of the next token.
 * @param logits [V]
 * @param earlier Tokens of the prompt and the answer so far.
 */
export function distributionOf(
  logits: Float32Array,
  settings: SamplingSettings,
  earlier: Iterable<number>,
): TokenDistribution {
  let scores = allScores(logits);
  for (const { apply } of filtersOf(settings, earlier)) scores = apply(scores);
  return settings.temperature === 0 ? certain(likeliest(scores)) : softmax(scores);
}

/** Distribution before and after each filter. */
export interface SamplingStage {
  readonly name: 'model' | FilterName;
  readonly distribution: TokenDistribution;
}

/** All stages of `distributionOf`, the model's own distribution first. */
export function samplingStages(
  logits: Float32Array | Float64Array,
  settings: SamplingSettings,
  earlier: Iterable<number>,
): SamplingStage[] {
  let scores = allScores(logits);
  const stages: SamplingStage[] = [{ name: 'model', distribution: softmax(scores) }];
  for (const { name, apply } of filtersOf(settings, earlier)) {
    scores = apply(scores);
    stages.push({ name, distribution: softmax(scores) });
  }
  if (settings.temperature === 0) {
    stages.push({ name: 'temperature', distribution: certain(likeliest(scores)) });
  }
  return stages;
}

/** Distribution with one token. */
export const certain = (id: number): TokenDistribution => ({
  ids: Int32Array.of(id),
  probabilities: Float64Array.of(1),
});

/** Probability of a token. */
export function probabilityOf({ ids, probabilities }: TokenDistribution, id: number): number {
  let [low, high] = [0, ids.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const found = ids[middle] ?? 0;
    if (found === id) return probabilities[middle] ?? 0;
    if (found < id) low = middle + 1;
    else high = middle - 1;
  }
  return 0;
}

/** Token at `position` of the cumulative distribution, from 0 up to below 1. */
export function tokenAt({ ids, probabilities }: TokenDistribution, position: number): number {
  let sum = 0;
  let last = ids[0] ?? 0;
  for (let i = 0; i < ids.length; i++) {
    const probability = probabilities[i] ?? 0;
    if (probability === 0) continue;
    last = ids[i] ?? 0;
    sum += probability;
    if (position < sum) return last;
  }
  // The sum can be below 1 by rounding.
  return last;
}

/** Error for logits with a NaN or +∞. The session names its cause. */
export class NonFiniteLogits extends UserError {}

/**
 * `logSumExp` of a model's logits: a token's log-probability is its logit minus this.
 * @throws NonFiniteLogits when there is a NaN or +∞ among the logits.
 */
export function logNorm(logits: Float32Array): number {
  const norm = logSumExp(logits);
  if (!Number.isNaN(norm)) return norm;
  throw new NonFiniteLogits('refused-file', 'expected finite logits, found NaN or an infinity', {
    suggestion: `find the layer with ${commandText('quickTest')}; the weights of the model can be broken`,
  });
}

/** A token with its log-probability in the model's own distribution. */
export interface ScoredToken {
  readonly id: number;
  readonly logprob: number;
}

/** The likeliest tokens of the model's own distribution, the likeliest first. */
export function topTokens(logits: Float32Array, count: number): ScoredToken[] {
  if (count === 0) return [];
  const { ids, scores } = keepHighest(allScores(logits), count);
  const norm = logNorm(logits);
  return Array.from(ids, (id, at) => ({ id, logprob: (scores[at] ?? 0) - norm }))
    .sort((a, b) => b.logprob - a.logprob || a.id - b.id)
    .slice(0, count);
}

function filtersOf(settings: SamplingSettings, earlier: Iterable<number>): Filter[] {
  const { temperature, topK, topP, minP, repetitionPenalty: penalty } = settings;
  const filters: Filter[] = [];
  if (penalty !== 1) {
    filters.push({
      name: 'repetition penalty',
      apply: (scores) => penalise(scores, earlier, penalty),
    });
  }
  // The likeliest token stays the likeliest under all other filters.
  if (temperature === 0) return filters;
  if (temperature !== 1) {
    filters.push({ name: 'temperature', apply: (scores) => divide(scores, temperature) });
  }
  if (topK > 0) filters.push({ name: 'top-k', apply: (scores) => keepHighest(scores, topK) });
  if (topP < 1) filters.push({ name: 'top-p', apply: (scores) => keepNucleus(scores, topP) });
  if (minP > 0) filters.push({ name: 'min-p', apply: (scores) => keepLikely(scores, minP) });
  return filters;
}

const allScores = (logits: Float32Array | Float64Array): Scores => ({
  ids: Int32Array.from(logits, (_, id) => id),
  scores: Float64Array.from(logits),
});

/** Applies the repetition penalty. No token has been removed yet, so an id is its own position. */
function penalise({ ids, scores }: Scores, earlier: Iterable<number>, penalty: number): Scores {
  const changed = scores.slice();
  for (const id of earlier) {
    const score = scores[id] ?? 0;
    changed[id] = score < 0 ? score * penalty : score / penalty;
  }
  return { ids, scores: changed };
}

/**
 * Divides scores by the temperature. They are relative to the highest score, so that a tiny temperature gives −∞ and
 * never +∞.
 */
function divide({ ids, scores }: Scores, temperature: number): Scores {
  const most = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return { ids, scores: scores.map((score) => (score - most) / temperature) };
}

function keepHighest(scores: Scores, count: number): Scores {
  if (count >= scores.ids.length) return scores;
  const least = scores.scores.slice().sort()[scores.ids.length - count] ?? 0;
  return kept(scores, (at) => (scores.scores[at] ?? 0) >= least);
}

/**
 * Tolerance of a sum of probabilities: by rounding, the sum of 0.5, 0.25 and 0.15 from their logarithms is below 0.9.
 */
const ROUNDING = 1e-12;

/** Keeps tokens until their sum reaches the share. For equal scores the higher id comes first, as in transformers. */
function keepNucleus(scores: Scores, share: number): Scores {
  const { probabilities } = softmax(scores);
  const keep = new Uint8Array(scores.ids.length);
  let sum = 0;
  for (const at of descending(likelyPart(scores, probabilities, share))) {
    if (sum >= share - ROUNDING && sum > 0) break;
    keep[at] = 1;
    sum += probabilities[at] ?? 0;
  }
  // The likeliest token is always kept.
  if (sum === 0) return keepHighest(scores, 1);
  return kept(scores, (at) => keep[at] === 1);
}

/**
 * Scores with a subset of the tokens that contains the nucleus. Sorting a whole vocabulary would take longer than all
 * other steps.
 */
function likelyPart({ ids, scores }: Scores, probabilities: Float64Array, share: number): Scores {
  const most = probabilities.reduce((a, b) => Math.max(a, b), 0);
  for (const part of [1e-2, 1e-4, 1e-6]) {
    let sum = 0;
    for (const each of probabilities) if (each >= part * most) sum += each;
    if (sum < share) continue;
    return {
      ids,
      scores: scores.map((score, at) =>
        (probabilities[at] ?? 0) >= part * most ? score : Number.NEGATIVE_INFINITY,
      ),
    };
  }
  return { ids, scores };
}

function keepLikely(scores: Scores, share: number): Scores {
  const { probabilities } = softmax(scores);
  const least = share * probabilities.reduce((a, b) => Math.max(a, b), 0);
  return kept(scores, (at) => (probabilities[at] ?? 0) >= least);
}

function kept({ ids, scores }: Scores, isKept: (at: number) => boolean): Scores {
  return { ids: ids.filter((_, at) => isKept(at)), scores: scores.filter((_, at) => isKept(at)) };
}

/** Positions of finite scores, the highest first; for equal ones, the higher id first. */
function descending({ scores }: Scores): number[] {
  const positions: number[] = [];
  for (let at = 0; at < scores.length; at++) {
    if ((scores[at] ?? 0) !== Number.NEGATIVE_INFINITY) positions.push(at);
  }
  return positions.sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || b - a);
}

/** Id of the highest score, the first of equal ones. */
function likeliest({ ids, scores }: Scores): number {
  let best = 0;
  for (let at = 1; at < scores.length; at++) if ((scores[at] ?? 0) > (scores[best] ?? 0)) best = at;
  return ids[best] ?? 0;
}

function softmax({ ids, scores }: Scores): TokenDistribution {
  const most = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const probabilities = scores.map((score) => Math.exp(score - most));
  const sum = probabilities.reduce((a, b) => a + b, 0);
  for (let at = 0; at < probabilities.length; at++) {
    probabilities[at] = (probabilities[at] ?? 0) / sum;
  }
  return { ids, probabilities };
}
