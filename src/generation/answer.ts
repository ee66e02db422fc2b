/** Whole answers: text and tokens of one prompt, why it ended, and its figures. */
import { type Decoder, rowOf } from '../runtime/decoder.js';
import { argmaxOf } from '../tensor/logits.js';
import type { Acceptance, GeneratedToken, GenerationRequest, TokenEnd } from './generate-tokens.js';
import { generateTokens } from './generate-tokens.js';
import { logNorm } from './sampling.js';

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
  readonly promptTokens: number;
  readonly prefillMilliseconds: number;
  readonly tokens: number;
  /** Tokens after the first in each second; null for one token. */
  readonly tokensPerSecond: number | null;
  /** Exponential of the mean negative log-probability of the answer's tokens, in the model's own distribution. */
  readonly perplexity: number;
  /** The token with the lowest probability in the model's own distribution. */
  readonly leastSure: {
    readonly position: number;
    readonly id: number;
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

/** Where another model would have written another token. */
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

/** Compares an answer with what another model finds likeliest after the same tokens. */
export async function compareAnswer(other: Decoder, answer: Answer): Promise<AnswerComparison> {
  const ids = answer.tokens.map(({ id }) => id);
  await other.rewind(0);
  const all = [...answer.prompt, ...ids.slice(0, -1)];
  const partings: Parting[] = [];
  let position = 0;
  for await (const part of other.appendInParts(all, ids.length)) {
    for (let row = 0; row < (part.shape[0] ?? 0); row++, position++) {
      const logits = rowOf(part, row);
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
