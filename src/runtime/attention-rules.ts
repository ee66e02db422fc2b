import type { Window } from '../architecture/layer.js';
import { firstVisibleKey, reachOf } from '../architecture/masks.js';

/** Tokens of one call; `total` is how many there will be in the end, when decoding. */
interface Extent {
  readonly start: number;
  readonly tokens: number;
  readonly total: number | undefined;
}

/** First visible key of each token of a call. */
export function firstKeys(
  { start, tokens, total }: Extent,
  window: Window | undefined,
): Int32Array {
  return total === undefined
    ? fullForwardKeys(tokens, window)
    : decodingKeys(start, tokens, window, total);
}

/** First visible key of each of `tokens` positions of a full forward. */
export function fullForwardKeys(tokens: number, window: Window | undefined): Int32Array {
  return Int32Array.from({ length: tokens }, (_, position) =>
    firstVisibleKey(position, tokens, window),
  );
}

/**
 * First visible key of each of `tokens` positions from `start` on, when a cache holds those before. The
 * original's mask of local heads depends on the length of the whole input, so decoding is told it beforehand: up to a
 * window's length the heads see everything, beyond it the window slides. It slides past 2048 tokens too, where
 * the original's moves by blocks, which no cache can follow.
 * @param total Tokens that there will be in the end.
 */
export function decodingKeys(
  start: number,
  tokens: number,
  window: Window | undefined,
  total: number,
): Int32Array {
  if (window === undefined || total <= window.tokens) return new Int32Array(tokens);
  const reach = reachOf(window);
  return Int32Array.from({ length: tokens }, (_, index) => Math.max(0, start + index - reach));
}
