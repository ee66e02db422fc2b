/** Which keys a query sees. Of the local rule those of the original hybrid model, edges included. */
import type { Window } from './layer.js';

/**
 * How steeply each head is penalised for distance: a score gains slope · position of its key, of which the
 * softmax only sees the differences, −slope · distance. [heads]; arXiv 2108.12409, and for a number of heads
 * that is no power of two BLOOM's `build_alibi_tensor` in transformers: the slopes of the power below, then
 * every other one of the power above.
 */
export function alibiSlopes(heads: number): Float32Array {
  const power = 2 ** Math.floor(Math.log2(heads));
  const [whole, between] = [ratioOf(power), ratioOf(2 * power)];
  return Float32Array.from({ length: heads }, (_, head) =>
    head < power ? whole ** (head + 1) : between ** (2 * (head - power) + 1),
  );
}

/** 2^(−8 / heads): what each slope is of the one before it, where heads are a power of two. */
const ratioOf = (heads: number) => Math.fround(2 ** (-8 / heads));

/** Up to this many tokens the window slides with every position; beyond, it moves block by block. */
export const LONGEST_SLIDING_CONTEXT = 2048;
export const LARGEST_BLOCK = 1024;

/**
 * The first key that position `position` of `context` tokens sees; the last is its own.
 * @param window Undefined for a head without one.
 */
export function firstVisibleKey(
  position: number,
  context: number,
  window: Window | undefined,
): number {
  if (window === undefined) return 0;
  const before = reachOf(window);
  if (window.rule === 'sliding') return Math.max(0, position - before);
  if (context > LONGEST_SLIDING_CONTEXT) {
    const block = Math.min(window.tokens, LARGEST_BLOCK);
    return Math.max(0, position - (position % block) - before);
  }
  return window.tokens < context ? Math.max(0, position - before) : 0;
}

/** Keys before its own that a query sees where the window slides. */
export function reachOf({ rule, tokens }: Window): number {
  return rule === 'sliding' ? tokens - 1 : Math.floor(tokens / 2);
}

/** The same text for windows that are alike: `global`, `window_512` (local), `sliding_4096`. */
export function windowKey(window: Window | undefined): string {
  if (window === undefined) return 'global';
  return `${window.rule === 'local' ? 'window' : window.rule}_${window.tokens}`;
}

/** Pairs of query and key that the mask lets through, over all positions of one sequence. Exact. */
export function visiblePairs(context: number, window: Window | undefined): bigint {
  const tokens = BigInt(context);
  const triangle = (n: bigint) => (n * (n + 1n)) / 2n;
  if (window === undefined) return triangle(tokens);
  const reach = BigInt(reachOf(window));
  const slides = window.rule === 'sliding' || context <= LONGEST_SLIDING_CONTEXT;
  if (slides) {
    // The first `reach` positions see all before them, each of the others reach + 1 keys.
    if (window.tokens >= context || tokens <= reach) return triangle(tokens);
    return triangle(reach) + (tokens - reach) * (reach + 1n);
  }
  const block = BigInt(Math.min(window.tokens, LARGEST_BLOCK));
  // Blocks that start below `reach` see everything before them …
  const early = min(tokens, ((reach + block - 1n) / block) * block);
  const rest = tokens - early;
  // … the others `reach` keys before their block, and the triangle inside it.
  const pairsOf = (length: bigint) => length * reach + triangle(length);
  return triangle(early) + (rest / block) * pairsOf(block) + pairsOf(rest % block);
}

/**
 * Scores that the plain implementation computes for one head and sequence, masked ones included: the whole
 * square, or, for a local head beyond 2048 tokens, each block of queries against all keys that it may see.
 */
export function scoreValues(context: number, window: Window | undefined): bigint {
  const tokens = BigInt(context);
  if (window?.rule !== 'local' || context <= LONGEST_SLIDING_CONTEXT) return tokens * tokens;
  const reach = BigInt(reachOf(window));
  const block = BigInt(Math.min(window.tokens, LARGEST_BLOCK));
  const early = min(tokens, ((reach + block - 1n) / block) * block);
  // Blocks that start below `reach`: their queries see all keys up to the end of their block.
  const full = early / block;
  const earlyScores = block * block * ((full * (full + 1n)) / 2n) + (early % block) * early;
  const rest = tokens - early;
  const last = rest % block;
  return earlyScores + (rest / block) * block * (reach + block) + last * (reach + last);
}

const min = (a: bigint, b: bigint) => (a < b ? a : b);
