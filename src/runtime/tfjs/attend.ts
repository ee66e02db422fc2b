/** Softmax attention of heads whose queries, keys and values are there. */
import type { Window } from '../../architecture/layer.js';
import { firstKeys } from '../attention-rules.js';
import { softcap } from './basic.js';
import type { Tensor, Tensor2D, Tensor3D, Tf } from './library.js';
import type { Run } from './run.js';

/** What the queries of a head can see; d is the width of a query. */
export interface HeadKeys {
  /** Position of the first key. */
  readonly first: number;
  /** [d, S]: turned once, for products without transposition. */
  readonly keys: Tensor2D;
  /** [S, width of a value] */
  readonly values: Tensor2D;
}

/** Query heads that read the same keys and values. */
export interface HeadGroup extends HeadKeys {
  /** Of each head: [T, d], scaled. */
  readonly queries: readonly Tensor2D[];
  /** ALiBi's, of each head. */
  readonly slopes?: readonly number[] | undefined;
}

/** What holds for all heads that see equally far. */
export interface Rules {
  readonly window: Window | undefined;
  readonly softcap?: number | undefined;
}

/** Rows of scores of a group that are in memory at a time; keys that none of them sees are left out. */
const ROWS_AT_ONCE = 512;

/** Some queries in a row, and the keys that they see: all positions. */
interface Block {
  readonly from: number;
  readonly to: number;
  readonly firstKey: number;
  readonly endKey: number;
}

/**
 * The groups of each sequence → [B, T, heads · width of a value]. Two products of plain matrices for each
 * group and block, as the wasm backend is 10 to 20 times slower at batches of them.
 */
export function attend(
  run: Run,
  sequences: readonly (readonly HeadGroup[])[],
  rules: Rules,
): Tensor3D {
  const { tf, start, tokens } = run;
  const seen = firstKeys({ start, tokens, total: run.decoding?.totalTokens }, rules.window);
  const heads = Math.max(...sequences.flat().map(({ queries }) => queries.length));
  const atOnce = Math.max(1, Math.floor(ROWS_AT_ONCE / heads));
  const blocks: Tensor3D[] = [];
  for (let from = 0; from < tokens; from += atOnce) {
    const to = Math.min(from + atOnce, tokens);
    const firstKey = seen.subarray(from, to).reduce((least, key) => Math.min(least, key));
    const block = { from, to, firstKey, endKey: start + to };
    blocks.push(tf.tidy(() => attendBlock(run, sequences, block, { ...rules, seen })));
  }
  return tf.concat(blocks, 1);
}

type BlockRules = Rules & { readonly seen: Int32Array };

function attendBlock(
  run: Run,
  sequences: readonly (readonly HeadGroup[])[],
  block: Block,
  rules: BlockRules,
): Tensor3D {
  const { tf } = run;
  const mask = maskOf(run, block, rules.seen);
  const rows = sequences.map((groups) =>
    tf.concat(
      groups.flatMap((group) => tf.tidy(() => attendGroup(tf, group, block, { ...rules, mask }))),
      1,
    ),
  );
  return tf.stack(rows) as Tensor3D; // (B, to − from, heads · width)
}

/** Of each head: [to − from, width of a value]. */
function attendGroup(
  tf: Tf,
  group: HeadGroup,
  block: Block,
  rules: Rules & { readonly mask: Tensor2D | undefined },
): Tensor2D[] {
  const { from, to, firstKey, endKey } = block;
  const [heads, count, rows] = [group.queries.length, endKey - firstKey, to - from];
  const first = firstKey - group.first;
  const parts = group.queries.map((each): Tensor2D => tf.slice(each, [from, 0], [rows, -1]));
  const queries = tf.concat(parts);
  const keys: Tensor2D = tf.slice(group.keys, [0, first], [-1, count]);
  const values: Tensor2D = tf.slice(group.values, [first, 0], [count, -1]);
  const products: Tensor2D = tf.matMul(queries, keys); // (heads · rows, S)
  const capped = rules.softcap === undefined ? products : softcap(tf, products, rules.softcap);
  const scores = [rules.mask, penaltyOf(tf, group, block)].reduce<Tensor>(
    (sum, each) => (each ? tf.add(sum, each) : sum),
    tf.reshape(capped, [heads, rows, count]),
  );
  const weights: Tensor2D = tf.reshape(tf.softmax(scores), [heads * rows, count]);
  const result: Tensor2D = tf.matMul(weights, values);
  return heads === 1 ? [result] : (tf.split(result, heads) as Tensor2D[]);
}

/** What ALiBi adds to scores, relative to the last key: softmax sees no more than differences. [heads, 1, S] */
function penaltyOf(
  tf: Tf,
  { slopes }: HeadGroup,
  { firstKey, endKey }: Block,
): Tensor3D | undefined {
  if (!slopes) return undefined;
  const distances: Tensor3D = tf.reshape(tf.range(firstKey + 1 - endKey, 1), [1, 1, -1]);
  return tf.mul(tf.tensor3d([...slopes], [slopes.length, 1, 1]), distances);
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
