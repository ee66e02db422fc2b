/** Which keys a query of the hybrid attention sees; the original's rules, edges included. */

/** Up to this many tokens the window slides with every position; beyond, it moves block by block. */
const LONGEST_SLIDING_CONTEXT = 2048;
const LARGEST_BLOCK = 1024;

/**
 * The first key that position `position` of `context` tokens sees; the last is its own.
 * @param window undefined for a head without one.
 */
export function firstVisibleKey(
  position: number,
  context: number,
  window: number | undefined,
): number {
  if (window === undefined) return 0;
  const reach = Math.floor(window / 2);
  if (context > LONGEST_SLIDING_CONTEXT) {
    const block = Math.min(window, LARGEST_BLOCK);
    return Math.max(0, position - (position % block) - reach);
  }
  return window < context ? Math.max(0, position - reach) : 0;
}

/** Pairs of query and key that the mask lets through, over all positions of one sequence. Exact. */
export function visiblePairs(context: number, window: number | undefined): bigint {
  const tokens = BigInt(context);
  const triangle = (n: bigint) => (n * (n + 1n)) / 2n;
  if (window === undefined) return triangle(tokens);
  const reach = BigInt(Math.floor(window / 2));
  if (context <= LONGEST_SLIDING_CONTEXT) {
    // The first `reach` positions see all before them, each of the others reach + 1 keys.
    if (window >= context || tokens <= reach) return triangle(tokens);
    return triangle(reach) + (tokens - reach) * (reach + 1n);
  }
  const block = BigInt(Math.min(window, LARGEST_BLOCK));
  // Blocks that start below `reach` see everything before them …
  const early = min(tokens, ((reach + block - 1n) / block) * block);
  const rest = tokens - early;
  // … the others `reach` keys before their block, and the triangle inside it.
  const pairsOf = (length: bigint) => length * reach + triangle(length);
  return triangle(early) + (rest / block) * pairsOf(block) + pairsOf(rest % block);
}

/**
 * Scores that the original computes for one head and sequence, masked ones included: the whole square,
 * or, for a local head beyond 2048 tokens, each block of queries against all keys that it may see.
 */
export function scoreValues(context: number, window: number | undefined): bigint {
  const tokens = BigInt(context);
  if (window === undefined || context <= LONGEST_SLIDING_CONTEXT) return tokens * tokens;
  const reach = BigInt(Math.floor(window / 2));
  const block = BigInt(Math.min(window, LARGEST_BLOCK));
  const early = min(tokens, ((reach + block - 1n) / block) * block);
  // Blocks that start below `reach`: their queries see all keys up to the end of their block.
  const full = early / block;
  const earlyScores = block * block * ((full * (full + 1n)) / 2n) + (early % block) * early;
  const rest = tokens - early;
  const last = rest % block;
  return earlyScores + (rest / block) * block * (reach + block) + last * (reach + last);
}

const min = (a: bigint, b: bigint) => (a < b ? a : b);
