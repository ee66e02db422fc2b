/** FLOPs of generating tokens one by one: with a cache of the tokens before, and computing all of them again each time. */

import { type Exact, exact } from './figure.js';
import type { Work } from './flops.js';
import { decodingFlopsOf, scoresByContext } from './flops.js';

export interface GenerationSetting {
  /** Tokens of the prompt, P. */
  readonly prompt: number;
  /** Generated tokens, N. The last one is not computed with. */
  readonly generated: number;
}

export interface GenerationFlops extends GenerationSetting {
  /** A forward pass over the prompt, and a step for each generated token but the last. */
  readonly cached: Exact;
  /** Forward passes over P, P + 1, …, P + N − 1 tokens. */
  readonly recomputed: Exact;
  /** The second divided by the first. */
  readonly ratio: number;
}

/** One sequence; scores are counted as masked. */
export function generationFlopsOf(work: Work, setting: GenerationSetting): GenerationFlops {
  const { prompt, generated } = setting;
  // All other parts cost the same for each token, at any position.
  const perToken = BigInt(decodingFlopsOf(work, 1).perToken.value);
  const scores = scoresByContext(work);
  const forward = (context: number) => BigInt(context) * perToken + scores.forward(context);
  let cached = forward(prompt);
  let recomputed = cached;
  for (let context = prompt + 1; context < prompt + generated; context++) {
    cached += perToken + scores.decoding(context);
    recomputed += forward(context);
  }
  return {
    ...setting,
    cached: exact(cached),
    recomputed: exact(recomputed),
    ratio: Number(recomputed) / Number(cached),
  };
}

/** Generated tokens that a report counts, at most. */
const GENERATED = 128;

/** Counts the first tokens of an answer. Undefined without a prompt or an answer. */
export const answerFlopsOf = (
  work: Work,
  { prompt, generated }: GenerationSetting,
): GenerationFlops | undefined =>
  prompt < 1 || generated < 1
    ? undefined
    : generationFlopsOf(work, { prompt, generated: Math.min(GENERATED, generated) });

/** Counts the last tokens of a context, generated after those before. Undefined for a context without room for both. */
export function lastTokensFlopsOf(work: Work, context: number): GenerationFlops | undefined {
  const generated = Math.min(GENERATED, Math.floor(context / 2));
  return answerFlopsOf(work, { prompt: context - generated, generated });
}
