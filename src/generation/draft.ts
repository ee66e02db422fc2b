/** Drafts of the next tokens for speculative decoding: by a smaller model, or from the text so far. */
import { advance, type Decoder, rowOf } from '../runtime/decoder.js';
import type { SamplingSettings, TokenDistribution } from './sampling.js';
import { certain, distributionOf, tokenAt } from './sampling.js';

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
        const logits = rowOf(await advance(decoder, all), 0);
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
 * The tokens that followed the last occurrence of the last `longest` tokens, or fewer. A repetition that reaches the end
 * of the text is continued.
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
