/** Windows over texts of token ids: what a model reads at once, and which of it is scored. */
import { UserError } from '../errors.js';
import { formatInteger } from '../text/units.js';

export interface WindowSettings {
  /** Tokens of a window, the BOS token included. */
  readonly context: number;
  /** Tokens from the start of a window to that of the next. */
  readonly stride: number;
  /** Token before each window; undefined for none. */
  readonly bos: number | undefined;
}

/** One forward pass. */
export interface ScoringWindow {
  /** Tokens that the model reads. */
  readonly tokens: readonly number[];
  /** Index in `tokens` of the first token that is scored; at least 1. All later ones are scored. */
  readonly firstScored: number;
  /** Position in the text of the first scored token. */
  readonly position: number;
}

/**
 * Windows of all texts, each token scored at most once. A window scores what the former one did not read. Without a BOS
 * token nothing predicts the first token of a text, nor of a window that does not overlap the former one.
 */
export function* windowsOf(
  texts: readonly ArrayLike<number>[],
  { context, stride, bos }: WindowSettings,
): Generator<ScoringWindow> {
  const own = bos === undefined ? 0 : 1;
  const room = context - own;
  for (const ids of texts) {
    let read = 0;
    for (let begin = 0; begin < ids.length; begin += stride) {
      const end = Math.min(begin + room, ids.length);
      const part = Array.from({ length: end - begin }, (_, at) => ids[begin + at] as number);
      const tokens = bos === undefined ? part : [bos, ...part];
      const firstScored = Math.max(1, read - begin + own);
      if (firstScored < tokens.length) {
        yield { tokens, firstScored, position: begin + firstScored - own };
      }
      read = end;
      if (end === ids.length) break;
    }
  }
}

/** Number of tokens that the windows score. */
export function scoredTokens(
  texts: readonly ArrayLike<number>[],
  settings: WindowSettings,
): number {
  let count = 0;
  for (const { tokens, firstScored } of windowsOf(texts, settings)) {
    count += tokens.length - firstScored;
  }
  return count;
}

/** @throws UserError when a stride or context leaves tokens out, or is more than the model has positions. */
export function checkWindows({ context, stride, bos }: WindowSettings, positions: number): void {
  const room = context - (bos === undefined ? 0 : 1);
  if (context > positions) {
    throw new UserError(
      'usage',
      `--context: ${formatInteger(context)} tokens are more than the ${formatInteger(positions)} positions of the model`,
      { suggestion: `write --context ${positions}, or less` },
    );
  }
  if (context < 2) {
    throw new UserError('usage', `--context: expected at least 2 tokens, found ${context}`, {
      suggestion: 'a token is predicted from those before it',
    });
  }
  if (stride > room) {
    throw new UserError(
      'usage',
      `--stride: expected at most the ${formatInteger(room)} tokens of a window, found ${formatInteger(stride)}`,
      { suggestion: `write --stride ${room}, or less: a longer one leaves tokens out` },
    );
  }
}
