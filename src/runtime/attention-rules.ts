import { firstVisibleKey } from '../architecture/masks.js';

/** Tokens of one call; `total` is how many there will be in the end, when decoding. */
interface Extent {
  readonly start: number;
  readonly tokens: number;
  readonly total: number | undefined;
}

/** First visible key of each token of a call. */
export function firstKeys(
  { start, tokens, total }: Extent,
  window: number | undefined,
): Int32Array {
  return total === undefined
    ? fullForwardKeys(tokens, window)
    : decodingKeys(start, tokens, window, total);
}

/** First visible key of each of `tokens` positions of a full forward. */
export function fullForwardKeys(tokens: number, window: number | undefined): Int32Array {
  return Int32Array.from({ length: tokens }, (_, position) =>
    firstVisibleKey(position, tokens, window),
  );
}

/**
 * First visible key of each of `tokens` positions from `start` on, when a cache holds those before. The
 * original's mask depends on the length of the whole input, so decoding is told it beforehand: up to a
 * window's length the heads see everything, beyond it the window slides. It slides past 2048 tokens too, where
 * the original's moves by blocks, which no cache can follow.
 * @param total Tokens that there will be in the end.
 */
export function decodingKeys(
  start: number,
  tokens: number,
  window: number | undefined,
  total: number,
): Int32Array {
  if (window === undefined || total <= window) return new Int32Array(tokens);
  const reach = Math.floor(window / 2);
  return Int32Array.from({ length: tokens }, (_, index) => Math.max(0, start + index - reach));
}
