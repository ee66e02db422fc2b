/** Windows over texts of token ids: the tokens that a model reads at once, and those of them that are scored. */
import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';

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

/** A window without its tokens. */
interface WindowRange extends Omit<ScoringWindow, 'tokens'> {
  readonly text: number;
  /** Tokens of the text. */
  readonly begin: number;
  readonly end: number;
}

/**
 * Windows of all texts, each token scored at most once. A window scores the tokens that the previous one did not read.
 * Without a BOS token, nothing predicts the first token of a text or of a window that does not overlap the previous
 * one.
 */
function* rangesOf(
  texts: readonly ArrayLike<number>[],
  { context, stride, bos }: WindowSettings,
): Generator<WindowRange> {
  const own = bos === undefined ? 0 : 1;
  const room = context - own;
  for (const [text, { length }] of texts.entries()) {
    let read = 0;
    for (let begin = 0; begin < length; begin += stride) {
      const end = Math.min(begin + room, length);
      const firstScored = Math.max(1, read - begin + own);
      if (firstScored < end - begin + own) {
        yield { text, begin, end, firstScored, position: begin + firstScored - own };
      }
      read = end;
      if (end === length) break;
    }
  }
}

/** The windows of texts by their numbers. Windows requested in order are found in one pass. */
export class Windows {
  readonly #texts: readonly ArrayLike<number>[];
  readonly #settings: WindowSettings;
  #ranges: Generator<WindowRange>;
  #next = 0;

  constructor(texts: readonly ArrayLike<number>[], settings: WindowSettings) {
    this.#texts = texts;
    this.#settings = settings;
    this.#ranges = rangesOf(texts, settings);
  }

  at(index: number): ScoringWindow {
    if (index < this.#next) {
      this.#ranges = rangesOf(this.#texts, this.#settings);
      this.#next = 0;
    }
    for (;;) {
      const { value, done } = this.#ranges.next();
      if (done) throw new RangeError(`no window ${index}`);
      if (this.#next++ === index) return this.#windowOf(value);
    }
  }

  #windowOf({ text, begin, end, firstScored, position }: WindowRange): ScoringWindow {
    const ids = this.#texts[text] ?? [];
    const part = Array.from({ length: end - begin }, (_, at) => ids[begin + at] as number);
    const { bos } = this.#settings;
    return { tokens: bos === undefined ? part : [bos, ...part], firstScored, position };
  }

  /** Tokens that each window reads and scores. */
  *sizes(): Generator<{ readonly read: number; readonly scored: number }> {
    const own = this.#settings.bos === undefined ? 0 : 1;
    for (const { begin, end, firstScored } of rangesOf(this.#texts, this.#settings)) {
      const read = end - begin + own;
      yield { read, scored: read - firstScored };
    }
  }
}

/** @throws UserError when a stride or context leaves tokens out, or is more than the model has positions. */
export function checkWindows({ context, stride, bos }: WindowSettings, positions: number): void {
  const room = context - (bos === undefined ? 0 : 1);
  if (context > positions) {
    throw usageError(
      `${setting('context')}: ${formatInteger(context)} tokens are more than the ${formatInteger(positions)} positions of the model`,
      `write ${setting('context', positions)}, or less`,
    );
  }
  if (context < 2) {
    throw usageError(
      `${setting('context')}: expected at least 2 tokens, found ${context}`,
      'a token is predicted from those before it',
    );
  }
  if (stride > room) {
    throw usageError(
      `${setting('stride')}: expected at most the ${formatInteger(room)} tokens of a window, found ${formatInteger(stride)}`,
      `write ${setting('stride', room)}, or less: a longer one leaves tokens out`,
    );
  }
}
