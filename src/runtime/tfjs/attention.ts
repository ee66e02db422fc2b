import type { Attention, Projection } from '../../architecture/layer.js';
import { productsOf } from '../../architecture/walk.js';
import { firstKeys } from '../attention-rules.js';
import { type HeadKeys, headKeys, splitHeads } from './head-keys.js';
import type { Tensor2D, Tensor3D, Tf } from './library.js';
import { rotate } from './rotary.js';
import type { Run } from './run.js';

/** Rows of scores that are in memory at a time; keys that none of them sees are left out. */
const QUERIES_AT_ONCE = 512;

/**
 * u [B, T, H] → [B, T, H]. Two products of plain matrices for each head, as the wasm backend is 10 to 20
 * times slower at batches of them.
 */
export function attention(run: Run, layer: Attention, u: Tensor3D): Tensor3D {
  const { tf } = run;
  const [first, second, third] = productsOf(layer.inputs) as [Projection, Projection, Projection];
  const turned = (x: Tensor3D) => (layer.rotary ? rotate(run, layer.rotary, x) : x);
  // The rotary layer turns two values: it has no single one to be kept, and is no step of its own.
  const q = turned(run.apply(first, u)); // (B, T, heads · d)
  const k = turned(run.apply(second, u)); // (B, T, keyValueHeads · d)
  const scaled: Tensor3D = tf.mul(q, 1 / Math.sqrt(layer.headDim));
  const heads = pairHeads(
    layer,
    splitHeads(tf, scaled, layer.headDim),
    headKeys(run, layer, k, run.apply(third, u)),
  );
  const extent = { ...run, total: run.decoding?.totalTokens };
  let head = 0;
  const spans = layer.spans.map((span) => {
    const own = heads.map((each) => each.slice(head, head + span.heads));
    head += span.heads;
    return attendSpan(run, own, firstKeys(extent, span.window)); // (B, T, span.heads · d)
  });
  return run.apply(layer.out, tf.concat(spans, 2));
}

interface Head extends HeadKeys {
  /** [T, d] */
  readonly queries: Tensor2D;
}

/** The heads of each sequence, with the keys and values that they share. */
function pairHeads(
  { heads, keyValueHeads }: Attention,
  queries: readonly Tensor2D[],
  keys: readonly HeadKeys[],
): Head[][] {
  const group = heads / keyValueHeads;
  const paired = queries.map((each, index) => ({
    ...(keys[Math.floor(index / group)] as HeadKeys),
    queries: each,
  }));
  return Array.from({ length: paired.length / heads }, (_, sequence) =>
    paired.slice(sequence * heads, (sequence + 1) * heads),
  );
}

/** Some queries in a row, and the keys that they see: all positions. */
interface Block {
  readonly from: number;
  readonly to: number;
  readonly firstKey: number;
  readonly endKey: number;
}

/** Heads that see equally far, of each sequence: [B, T, their number · d]. */
function attendSpan(run: Run, heads: readonly (readonly Head[])[], seen: Int32Array): Tensor3D {
  const { tf, start } = run;
  const blocks: Tensor3D[] = [];
  for (let from = 0; from < seen.length; from += QUERIES_AT_ONCE) {
    const to = Math.min(from + QUERIES_AT_ONCE, seen.length);
    const firstKey = seen.subarray(from, to).reduce((least, key) => Math.min(least, key));
    const block = { from, to, firstKey, endKey: start + to };
    blocks.push(tf.tidy(() => attendBlock(run, heads, block, seen)));
  }
  return tf.concat(blocks, 1);
}

function attendBlock(
  run: Run,
  heads: readonly (readonly Head[])[],
  block: Block,
  seen: Int32Array,
): Tensor3D {
  const { tf } = run;
  const mask = maskOf(run, block, seen);
  const sequences = heads.map((each) =>
    tf.concat(
      each.map((head) => tf.tidy(() => attendHead(tf, head, block, mask))),
      1,
    ),
  );
  return tf.stack(sequences) as Tensor3D; // (B, to − from, heads · d)
}

function attendHead(
  tf: Tf,
  head: Head,
  { from, to, firstKey, endKey }: Block,
  mask: Tensor2D | undefined,
): Tensor2D {
  const [first, count] = [firstKey - head.first, endKey - firstKey];
  const queries: Tensor2D = tf.slice(head.queries, [from, 0], [to - from, -1]);
  const keys: Tensor2D = tf.slice(head.keys, [0, first], [-1, count]);
  const values: Tensor2D = tf.slice(head.values, [first, 0], [count, -1]);
  const scores: Tensor2D = tf.matMul(queries, keys); // (to − from, S)
  const weights = tf.softmax(mask ? tf.add(scores, mask) : scores);
  return tf.matMul(weights as Tensor2D, values); // (to − from, d)
}

/** 0 where a query sees a key, −∞ elsewhere, [to − from, S]; undefined where all see all. */
function maskOf(
  { tf, start }: Run,
  { from, to, firstKey, endKey }: Block,
  seen: Int32Array,
): Tensor2D | undefined {
  // The keys begin where the first of the queries begins to see: a single one sees them all.
  if (to - from === 1) return undefined;
  const [rows, columns] = [to - from, endKey - firstKey];
  const mask = new Float32Array(rows * columns).fill(Number.NEGATIVE_INFINITY);
  for (let row = 0; row < rows; row++) {
    const first = (seen[from + row] ?? 0) - firstKey;
    const own = start + from + row - firstKey;
    mask.fill(0, row * columns + first, row * columns + own + 1);
  }
  return tf.tensor2d(mask, [rows, columns]);
}
