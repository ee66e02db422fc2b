/** Windows and ALiBi: the keys that a query sees. The local rule is that of the original hybrid model, edges included. */

/**
 * Window of a head. `sliding`: the last `tokens` keys, including a position's own. `chunked`: the keys up to its own in
 * its chunk of `tokens` positions. `local`: the hybrid model's rule, tokens // 2 keys before it and itself. `compressed`:
 * one entry in place of the keys of each `tokens` positions, from the last of these on. `both`: tokens // 2 keys before it,
 * as many behind it, and itself.
 */
export interface Window {
  /** Rule by which tokens are visible. */
  readonly rule: 'sliding' | 'chunked' | 'local' | 'compressed' | 'both';
  /** Length of the window in tokens. @integer */
  readonly tokens: number;
}

/** Attention of an encoder: each position sees all others. */
export const EVERYWHERE: Window = { rule: 'both', tokens: Number.MAX_SAFE_INTEGER };

/** A group of heads with the same window; without a window they see all earlier positions. */
export interface HeadSpan {
  readonly heads: number;
  readonly window: Window | undefined;
}

/**
 * ALiBi slopes [heads] (arXiv 2108.12409). A score gains slope · key position; the softmax only sees the
 * differences, −slope · distance. Head counts other than powers of two follow BLOOM's `build_alibi_tensor` in
 * transformers: slopes of the power below, then every other one of the power above.
 */
export function alibiSlopes(heads: number): Float32Array {
  const power = 2 ** Math.floor(Math.log2(heads));
  const [whole, between] = [ratioOf(power), ratioOf(2 * power)];
  return Float32Array.from({ length: heads }, (_, head) =>
    head < power ? whole ** (head + 1) : between ** (2 * (head - power) + 1),
  );
}

/**
 * MPT's slopes [heads]: for head counts other than powers of two, every other one of the power above, and then those
 * between.
 */
export function alibiSlopesInOrder(heads: number): Float32Array {
  const power = 2 ** Math.ceil(Math.log2(heads));
  const all = Array.from({ length: power }, (_, index) => 2 ** ((-8 * (index + 1)) / power));
  const odd = (wanted: 0 | 1) => all.filter((_, index) => index % 2 === wanted);
  const sorted = power === heads ? all : [...odd(1), ...odd(0)];
  return Float32Array.from(sorted.slice(0, heads));
}

/** Slopes of an `Alibi` layer. */
interface AlibiSlopes {
  readonly slopes: readonly number[];
  readonly bfloat16Factor?: number | undefined;
}

/** Term added to the score of a head for a key at `position`, up to a constant that is equal for all keys. */
export function alibiScore(
  { slopes, bfloat16Factor }: AlibiSlopes,
  head: number,
  position: number,
): number {
  const slope = slopes[head] ?? 0;
  if (bfloat16Factor === undefined) return slope * position;
  return toBfloat16(toBfloat16(slope) * toBfloat16(position)) * bfloat16Factor;
}

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

/** The nearest bfloat16 of a finite number; of two, the one with an even last bit. */
export function toBfloat16(value: number): number {
  float[0] = value;
  const [word = 0] = bits;
  bits[0] = (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000;
  return float[0] ?? 0;
}

/** 2^(−8 / heads): ratio of consecutive slopes, if heads is a power of two. */
const ratioOf = (heads: number) => Math.fround(2 ** (-8 / heads));

/** Maximum context of a sliding window; beyond it, the window moves block by block. */
export const LONGEST_SLIDING_CONTEXT = 2048;
export const LARGEST_BLOCK = 1024;

/**
 * First key visible to position `position` of `context` tokens; the last is its own.
 * @param window Undefined for a head without one.
 */
export function firstVisibleKey(
  position: number,
  context: number,
  window: Window | undefined,
): number {
  if (window === undefined) return 0;
  const before = reachOf(window);
  if (window.rule !== 'local') return firstCachedKey(position, window);
  if (context > LONGEST_SLIDING_CONTEXT) {
    const block = Math.min(window.tokens, LARGEST_BLOCK);
    return Math.max(0, position - (position % block) - before);
  }
  return window.tokens < context ? Math.max(0, position - before) : 0;
}

/** First key visible to a position whose window slides token by token, or changes with its chunk. */
export function firstCachedKey(position: number, window: Window): number {
  if (window.rule === 'chunked') return position - (position % window.tokens);
  if (window.rule === 'compressed') return 0;
  return Math.max(0, position - reachOf(window));
}

/** Most earlier keys visible to a query in a window. */
export function reachOf({ rule, tokens }: Window): number {
  return rule === 'local' ? Math.floor(tokens / 2) : tokens - 1;
}

/** Key shared by equal windows: `global`, `window_512` (local), `sliding_4096`, `chunked_8192`. */
export function windowKey(window: Window | undefined): string {
  if (window === undefined) return 'global';
  if (window.tokens === EVERYWHERE.tokens) return 'both';
  return `${window.rule === 'local' ? 'window' : window.rule}_${window.tokens}`;
}

/** Sums a size of the heads of layers by their window, in order of first appearance. */
export function sumByWindow<Spanned extends { readonly spans: readonly HeadSpan[] }>(
  layers: readonly Spanned[],
  sizeOf: (layer: Spanned, heads: number) => number,
): ReadonlyMap<string, { readonly window: Window | undefined; readonly size: number }> {
  const sums = new Map<string, { readonly window: Window | undefined; readonly size: number }>();
  for (const layer of layers) {
    for (const { heads, window } of layer.spans) {
      const key = windowKey(window);
      sums.set(key, { window, size: (sums.get(key)?.size ?? 0) + sizeOf(layer, heads) });
    }
  }
  return sums;
}

/** Unmasked pairs of query and key over all positions of one sequence. Exact. */
export function visiblePairs(context: number, window: Window | undefined): bigint {
  const tokens = BigInt(context);
  const triangle = (n: bigint) => (n * (n + 1n)) / 2n;
  if (window === undefined) return triangle(tokens);
  if (window.rule === 'chunked') {
    const chunk = BigInt(window.tokens);
    return (tokens / chunk) * triangle(chunk) + triangle(tokens % chunk);
  }
  if (window.rule === 'compressed') {
    const [size, entries] = [BigInt(window.tokens), compressedEntries(context, window)];
    return size * triangle(entries) - (size - 1n - (tokens % size)) * entries;
  }
  if (window.rule === 'both') {
    const side = min(BigInt(Math.floor(window.tokens / 2)), tokens - 1n);
    return tokens * (2n * side + 1n) - side * (side + 1n);
  }
  const reach = BigInt(reachOf(window));
  const slides = window.rule === 'sliding' || context <= LONGEST_SLIDING_CONTEXT;
  if (slides) {
    // The first `reach` positions see all before them; the others see reach + 1 keys each.
    if (window.tokens >= context || tokens <= reach) return triangle(tokens);
    return triangle(reach) + (tokens - reach) * (reach + 1n);
  }
  const block = BigInt(Math.min(window.tokens, LARGEST_BLOCK));
  // Blocks that start below `reach` see everything before them.
  const early = min(tokens, ((reach + block - 1n) / block) * block);
  const rest = tokens - early;
  // Other blocks see `reach` keys before their block, and the triangle inside it.
  const pairsOf = (length: bigint) => length * reach + triangle(length);
  return triangle(early) + (rest / block) * pairsOf(block) + pairsOf(rest % block);
}

/**
 * Scores computed by the plain implementation for one head and sequence, including masked ones. This is the whole
 * square. For a local head beyond 2048 tokens, it is each block of queries times its visible keys.
 */
export function scoreValues(context: number, window: Window | undefined): bigint {
  const tokens = BigInt(context);
  if (window?.rule === 'compressed') return tokens * compressedEntries(context, window);
  if (window?.rule !== 'local' || context <= LONGEST_SLIDING_CONTEXT) return tokens * tokens;
  const reach = BigInt(reachOf(window));
  const block = BigInt(Math.min(window.tokens, LARGEST_BLOCK));
  const early = min(tokens, ((reach + block - 1n) / block) * block);
  // Blocks that start below `reach`: their queries see all keys up to the end of the block.
  const full = early / block;
  const earlyScores = block * block * ((full * (full + 1n)) / 2n) + (early % block) * early;
  const rest = tokens - early;
  const last = rest % block;
  return earlyScores + (rest / block) * block * (reach + block) + last * (reach + last);
}

const compressedEntries = (context: number, { tokens }: Window): bigint =>
  BigInt(Math.floor(context / tokens));

const min = (a: bigint, b: bigint) => (a < b ? a : b);
