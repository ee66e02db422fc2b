/** Generation of tokens one after the other, or speculatively with a draft. */

import { nextTurn } from '../../base/next-turn.js';
import { MersenneTwister, uniform53 } from '../../base/random/distributions.js';
import { argmaxOf } from '../../base/tensor/logits.js';
import type { Decoder } from '../../engine/decoder.js';
import { advance, rowValues } from '../../engine/decoder.js';
import type {
  SamplingSettings,
  SamplingStage,
  ScoredToken,
  TokenDistribution,
} from './sampling.js';
import {
  certain,
  distributionOf,
  logNorm,
  probabilityOf,
  samplingStages,
  tokenAt,
  topTokens,
} from './sampling.js';

export interface GenerationRequest {
  readonly settings: SamplingSettings;
  /** Most tokens of the answer. */
  readonly maxTokens: number;
  /** Tokens that end the answer. They are part of it. */
  readonly stopIds: ReadonlySet<number>;
  readonly seed: number;
  /** Number of likeliest tokens to report for each token. */
  readonly topLogprobs: number;
  /** Number of first tokens whose sampling is reported step by step. */
  readonly explained: number;
  readonly draft?: { readonly by: Draft; readonly tokens: number } | undefined;
}

/** A token of the answer. */
export interface GeneratedToken {
  readonly id: number;
  /** Log-probability in the model's own distribution, before any filter. */
  readonly logprob: number;
  /** Probability in the distribution from which it was drawn. */
  readonly probability: number;
  readonly top: readonly ScoredToken[];
  /** Stages of its sampling, when they were asked for. */
  readonly stages: readonly SamplingStage[] | undefined;
}

/** Reason why an answer ended: a stop token, or the number of tokens. */
export type TokenEnd = 'stop token' | 'length';

/** Accepted tokens of a draft, by position. */
export interface Acceptance {
  /** Tokens proposed at each position of a draft. */
  readonly proposed: number[];
  readonly accepted: number[];
  /** Calls of the model. */
  calls: number;
}

/** An answer while it is generated. */
export interface TokenRun {
  readonly tokens: AsyncGenerator<GeneratedToken, TokenEnd>;
  readonly acceptance: Acceptance;
  /** Milliseconds in which the prompt was read; 0 before that. */
  readonly prefillMilliseconds: () => number;
}

/** A drawn token with its probabilities. */
interface Drawn {
  readonly id: number;
  readonly logits: Float32Array;
  readonly distribution: TokenDistribution;
}

/**
 * Generates an answer to a prompt.
 * @param decoder Continued from the tokens that it shares with the prompt.
 */
export function generateTokens(
  decoder: Decoder,
  prompt: readonly number[],
  request: GenerationRequest,
): TokenRun {
  const acceptance: Acceptance = { proposed: [], accepted: [], calls: 0 };
  let prefill = 0;
  async function* tokens(): AsyncGenerator<GeneratedToken, TokenEnd> {
    const { settings, maxTokens, stopIds, draft } = request;
    const twister = new MersenneTwister(request.seed);
    const draw = () => uniform53(twister);
    const all = [...prompt];
    const earlier = new Set(prompt);
    let count = 0;
    const sampled = (logits: Float32Array): Drawn => {
      const distribution = distributionOf(logits, settings, earlier);
      const id = tokenAt(distribution, settings.temperature === 0 ? 0 : draw());
      return { id, logits, distribution };
    };
    const report = (drawn: Drawn): GeneratedToken => {
      const { id, logits, distribution } = drawn;
      const token = {
        id,
        logprob: (logits[id] ?? 0) - logNorm(logits),
        probability: probabilityOf(distribution, id),
        top: topTokens(logits, request.topLogprobs),
        stages: count < request.explained ? samplingStages(logits, settings, earlier) : undefined,
      };
      count++;
      all.push(id);
      earlier.add(id);
      return token;
    };
    const start = performance.now();
    let next = sampled(rowValues(await advance(decoder, prompt), 0));
    prefill = performance.now() - start;
    // The next prompt of a chat begins with this one, but the text of the answer can be tokenized differently there.
    decoder.keep();
    for (;;) {
      yield report(next);
      if (stopIds.has(next.id)) return 'stop token';
      if (count >= maxTokens) return 'length';
      // Lets signals, timers and input run: a call of the engine blocks the process.
      await new Promise(setImmediate);
      const room = Math.min(draft?.tokens ?? 0, maxTokens - count - 1);
      const proposed = room > 0 && draft ? await draft.by.propose(all, room, settings, draw) : [];
      const ids = [next.id, ...proposed.map(({ id }) => id)];
      const logits = await decoder.append(ids, ids.length);
      acceptance.calls++;
      let follower: Drawn | undefined;
      let accepted = 0;
      for (const [index, token] of proposed.entries()) {
        const row = rowValues(logits, index);
        const distribution = distributionOf(row, settings, earlier);
        const isAccepted = isTaken(distribution, token, settings, draw);
        acceptance.proposed[index] = (acceptance.proposed[index] ?? 0) + 1;
        acceptance.accepted[index] = (acceptance.accepted[index] ?? 0) + Number(isAccepted);
        if (!isAccepted) {
          const id = replacement(distribution, token, settings, draw);
          follower = { id, logits: row, distribution };
          break;
        }
        accepted++;
        yield report({ id: token.id, logits: row, distribution });
        if (stopIds.has(token.id)) return 'stop token';
      }
      await decoder.rewind(decoder.position - (proposed.length - accepted));
      next = follower ?? sampled(rowValues(logits, accepted));
    }
  }
  return { tokens: tokens(), acceptance, prefillMilliseconds: () => prefill };
}

// Rejection sampling, which leaves the distribution of the model unchanged (Leviathan et al., arXiv 2211.17192).

/** Accepts a token of a draft with the ratio of its probabilities. */
export function isTaken(
  distribution: TokenDistribution,
  { id, distribution: drafted }: DraftToken,
  { temperature }: Pick<SamplingSettings, 'temperature'>,
  draw: () => number,
): boolean {
  const probability = probabilityOf(distribution, id);
  if (temperature === 0) return probability === 1;
  return draw() * probabilityOf(drafted, id) < probability;
}

/** Token in place of a rejected one, drawn from the excess of the distribution over that of the draft. */
export function replacement(
  distribution: TokenDistribution,
  { distribution: drafted }: DraftToken,
  { temperature }: Pick<SamplingSettings, 'temperature'>,
  draw: () => number,
): number {
  if (temperature === 0) return tokenAt(distribution, 0);
  const { ids } = distribution;
  const missing = distribution.probabilities.map((probability, at) =>
    Math.max(0, probability - probabilityOf(drafted, ids[at] ?? 0)),
  );
  const sum = missing.reduce((a, b) => a + b, 0);
  // For equal distributions, only rounding rejects a token.
  if (sum === 0) return tokenAt(distribution, draw());
  return tokenAt({ ids, probabilities: missing.map((each) => each / sum) }, draw());
}

// Drafts of the next tokens for speculative decoding: by a smaller model, or from the text so far.

/** A proposed token, and the distribution from which it was drawn. */
export interface DraftToken {
  readonly id: number;
  readonly distribution: TokenDistribution;
}

export interface Draft {
  /**
   * Proposes up to `count` tokens after `tokens`.
   * @param draw Next number of the generator, from 0 up to below 1.
   */
  propose(
    tokens: readonly number[],
    count: number,
    settings: SamplingSettings,
    draw: () => number,
  ): Promise<DraftToken[]>;
}

/** A smaller model with the same vocabulary. */
export function modelDraft(decoder: Decoder): Draft {
  return {
    async propose(tokens, count, settings, draw) {
      const proposed: DraftToken[] = [];
      const all = [...tokens];
      while (proposed.length < count) {
        const logits = rowValues(await advance(decoder, all), 0);
        // The proposed tokens can be rejected.
        if (proposed.length === 0) decoder.keep();
        const distribution = distributionOf(logits, settings, all);
        const id = tokenAt(distribution, settings.temperature === 0 ? 0 : draw());
        proposed.push({ id, distribution });
        all.push(id);
      }
      return proposed;
    },
  };
}

/**
 * Drafts the tokens that followed the last occurrence of the last `longest` tokens, or of fewer. A repetition that
 * reaches the end of the text is continued.
 */
export function lookupDraft(longest: number): Draft {
  return {
    propose: async (tokens, count) =>
      followers(tokens, longest, count).map((id) => ({ id, distribution: certain(id) })),
  };
}

function followers(tokens: readonly number[], longest: number, count: number): readonly number[] {
  const end = tokens.length;
  for (let size = Math.min(longest, end - 1); size > 0; size--) {
    for (let start = end - size - 1; start >= 0; start--) {
      let same = 0;
      while (same < size && tokens[start + same] === tokens[end - size + same]) same++;
      if (same < size) continue;
      const all = [...tokens];
      while (all.length < end + count) all.push(all[all.length - (end - size - start)] ?? 0);
      return all.slice(end);
    }
  }
  return [];
}

// Whole answers: text and tokens of one prompt, why it ended, and its figures.

/** Reason why an answer ended; `stopped` by the user. */
export type AnswerEnd = TokenEnd | 'stop string' | 'stopped';

/** Text of tokens as they arrive. */
export interface TextSink {
  readonly text: string;
  readonly isStopped: boolean;
  readonly add: (id: number) => string;
  readonly end: () => string;
}

export interface AnswerFigures {
  /** Tokens of the prompt. @integer @minimum 1 */
  readonly promptTokens: number;
  /** Time to read the prompt. @minimum 0 */
  readonly prefillMilliseconds: number;
  /** Tokens of the answer. @integer @minimum 1 */
  readonly tokens: number;
  /** Tokens after the first in each second; null for one token. */
  readonly tokensPerSecond: number | null;
  /** Exponential of the mean negative log-probability of the answer's tokens, in the model's own distribution. */
  readonly perplexity: number;
  /** The token with the lowest probability in the model's own distribution. */
  readonly leastSure: {
    /** Place in the answer, from 0. @count */
    readonly position: number;
    /** Id of the token. @count */
    readonly id: number;
    /** Its probability. @minimum 0 @maximum 1 */
    readonly probability: number;
  };
}

export interface Answer {
  readonly prompt: readonly number[];
  /** Null without a tokenizer. */
  readonly text: string | null;
  readonly tokens: readonly GeneratedToken[];
  readonly ended: AnswerEnd;
  readonly figures: AnswerFigures;
  readonly acceptance: Acceptance | undefined;
}

export interface AnswerRequest extends GenerationRequest {
  /** Absent without a tokenizer. */
  readonly sink?: TextSink | undefined;
  /** Receives each part of the text, or each token without a tokenizer. */
  readonly watch: (part: string, token: GeneratedToken | undefined) => void | Promise<void>;
  readonly isStopped?: () => boolean;
}

/** Generates an answer. */
export async function answerTo(
  decoder: Decoder,
  prompt: readonly number[],
  request: AnswerRequest,
): Promise<Answer> {
  const { sink, watch, isStopped } = request;
  const run = generateTokens(decoder, prompt, request);
  const tokens: GeneratedToken[] = [];
  let firstAt = 0;
  let lastAt = 0;
  let ended: AnswerEnd | undefined;
  while (ended === undefined) {
    const { value, done } = await run.tokens.next();
    if (done) {
      ended = value;
      break;
    }
    tokens.push(value);
    lastAt = performance.now();
    if (tokens.length === 1) firstAt = lastAt;
    // Some tokenizers do not list the token that ends an answer as a special one.
    const part = request.stopIds.has(value.id) ? '' : (sink?.add(value.id) ?? '');
    // Some engines compute on the main thread: a Ctrl-C meanwhile is heard before the next token, not after it.
    if (isStopped) await nextTurn();
    const isInterrupted = isStopped?.() === true;
    if (sink === undefined || part !== '') await watch(part, value);
    if (sink?.isStopped) ended = 'stop string';
    else if (isInterrupted) ended = 'stopped';
  }
  // Ends the generator when it did not end by itself.
  await run.tokens.return('length');
  const rest = sink?.end() ?? '';
  if (rest !== '') await watch(rest, undefined);
  const seconds = (lastAt - firstAt) / 1000;
  return {
    prompt,
    text: sink?.text ?? null,
    tokens,
    ended,
    figures: {
      promptTokens: prompt.length,
      prefillMilliseconds: run.prefillMilliseconds(),
      tokens: tokens.length,
      tokensPerSecond: tokens.length > 1 && seconds > 0 ? (tokens.length - 1) / seconds : null,
      ...certaintyOf(tokens),
    },
    acceptance: request.draft ? run.acceptance : undefined,
  };
}

function certaintyOf(tokens: readonly GeneratedToken[]) {
  let [sum, least] = [0, 0];
  for (const [position, { logprob }] of tokens.entries()) {
    sum -= logprob;
    if (logprob < (tokens[least]?.logprob ?? 0)) least = position;
  }
  const { id = 0, logprob = 0 } = tokens[least] ?? {};
  return {
    perplexity: Math.exp(sum / Math.max(1, tokens.length)),
    leastSure: { position: least, id, probability: Math.exp(logprob) },
  };
}

/** Tokens whose speed is measured without a draft. */
const MEASURED_TOKENS = 32;

/** Tokens per second without a draft: the last tokens of an answer, read one by one. Null for fewer than two tokens. */
export async function plainSpeed(decoder: Decoder, answer: Answer): Promise<number | null> {
  const all = [...answer.prompt, ...answer.tokens.map(({ id }) => id)];
  const first = Math.max(answer.prompt.length, all.length - MEASURED_TOKENS);
  if (all.length - first < 2) return null;
  await decoder.rewind(Math.min(decoder.position, first));
  if (decoder.position < first) await decoder.append(all.slice(decoder.position, first));
  const start = performance.now();
  for (const id of all.slice(first)) await decoder.append([id]);
  return ((all.length - first) * 1000) / (performance.now() - start);
}

/** A position at which another model prefers another token. */
export interface Parting {
  /** Position in the answer, from 0. */
  readonly position: number;
  readonly own: { readonly id: number; readonly probability: number };
  readonly other: { readonly id: number; readonly probability: number };
}

export interface AnswerComparison {
  /** Tokens of the answer that are also the other model's likeliest. */
  readonly same: number;
  readonly tokens: number;
  readonly partings: readonly Parting[];
}

/** Compares an answer with the other model's likeliest token at each position. */
export async function compareAnswer(other: Decoder, answer: Answer): Promise<AnswerComparison> {
  const ids = answer.tokens.map(({ id }) => id);
  await other.rewind(0);
  const all = [...answer.prompt, ...ids.slice(0, -1)];
  const partings: Parting[] = [];
  let position = 0;
  for await (const part of other.appendInParts(all, ids.length)) {
    for (let row = 0; row < (part.shape[0] ?? 0); row++, position++) {
      const logits = rowValues(part, row);
      const id = argmaxOf(logits);
      const token = answer.tokens[position];
      if (token === undefined || token.id === id) continue;
      partings.push({
        position,
        own: { id: token.id, probability: Math.exp(token.logprob) },
        other: { id, probability: Math.exp((logits[id] ?? 0) - logNorm(logits)) },
      });
    }
  }
  return { same: ids.length - partings.length, tokens: ids.length, partings };
}
