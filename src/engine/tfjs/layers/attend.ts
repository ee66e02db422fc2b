/** Softmax attention over given queries, keys and values of each head. */
import type { Alibi, Window } from '../../../model/architecture/layer.js';
import { alibiScore } from '../../../model/architecture/masks.js';
import { firstKeys } from '../../calls.js';
import type { Tensor, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tf } from '../packages.js';
import type { ForwardRun } from '../run.js';
import { readValues } from '../run.js';
import { applySoftcap } from './basic.js';

/** Keys and values visible to the queries of a head; d is the width of a query. */
export interface HeadKeys {
  /** Position of the first key. */
  readonly first: number;
  /** [d, S]: transposed once, so that products need no transposition. */
  readonly keys: Tensor2D;
  /** [S, width of a value] */
  readonly values: Tensor2D;
  /** Bonus of the score of each key, [S]; a query sees only the `kept` visible keys with the largest. */
  readonly gains?: { readonly ofKeys: Tensor1D; readonly kept: number };
}

/** Query heads that read the same keys and values. */
export interface HeadGroup extends HeadKeys {
  /** Scaled queries of each head: [T, d]. */
  readonly queries: readonly Tensor2D[];
  /** ALiBi of these heads. */
  readonly alibi?: Pick<Alibi, 'slopes' | 'bfloat16Factor'> | undefined;
  /** Score of each head without a value, [heads]. */
  readonly sinks?: Tensor1D | undefined;
  /** 0 for a chosen key, −∞ for another: for each head, or for all, [heads or 1, T, S]. */
  readonly selection?: Tensor3D | undefined;
}

/** Rules for all heads with the same window. */
export interface Rules {
  readonly window: Window | undefined;
  readonly softcap?: number | undefined;
}

/** Rows of scores of a group in memory at a time; keys that none of them sees are excluded. */
const ROWS_AT_ONCE = 512;

/** A range of queries and the keys that they see: all positions. */
interface QueryRange {
  readonly from: number;
  readonly to: number;
  readonly firstKey: number;
  readonly endKey: number;
}

/**
 * The groups of each sequence → [B, T, heads · width of a value]. Computes two products of plain matrices for each
 * group and block, because the wasm backend is 10 to 20 times slower for batched products.
 */
export function attend(
  run: ForwardRun,
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
  run: ForwardRun,
  sequences: readonly (readonly HeadGroup[])[],
  block: QueryRange,
  rules: BlockRules,
): Tensor3D {
  const { tf } = run;
  const mask = maskOf(run, block, rules.seen);
  const rows = sequences.map((groups) =>
    tf.concat(
      groups.flatMap((group) =>
        tf.tidy(() => attendGroup(tf, group, block, { ...rules, mask, start: run.start })),
      ),
      1,
    ),
  );
  return tf.stack(rows) as Tensor3D; // (B, to − from, heads · width)
}

/** Output of each head: [to − from, width of a value]. */
function attendGroup(
  tf: Tf,
  group: HeadGroup,
  block: QueryRange,
  rules: BlockRules & { readonly mask: Tensor2D | undefined; readonly start: number },
): Tensor2D[] {
  const { from, to, firstKey, endKey } = block;
  const [heads, count, rows] = [group.queries.length, endKey - firstKey, to - from];
  const first = firstKey - group.first;
  const parts = group.queries.map((each): Tensor2D => tf.slice(each, [from, 0], [rows, -1]));
  const queries = tf.concat(parts);
  const keys: Tensor2D = tf.slice(group.keys, [0, first], [-1, count]);
  const values: Tensor2D = tf.slice(group.values, [first, 0], [count, -1]);
  const products: Tensor2D = tf.matMul(queries, keys); // (heads · rows, S)
  const capped = rules.softcap === undefined ? products : applySoftcap(tf, products, rules.softcap);
  const scores = [
    rules.mask,
    penaltyOf(tf, group, block),
    gainsOf(tf, group, block, rules),
    chosenOf(tf, group, block),
  ].reduce<Tensor>(
    (sum, each) => (each ? tf.add(sum, each) : sum),
    tf.reshape(capped, [heads, rows, count]),
  );
  const shares = group.sinks ? withoutSinks(tf, scores, group.sinks) : tf.softmax(scores);
  const weights: Tensor2D = tf.reshape(shares, [heads * rows, count]);
  const result: Tensor2D = tf.matMul(weights, values);
  return heads === 1 ? [result] : (tf.split(result, heads) as Tensor2D[]);
}

/** Probabilities: softmax of scores [heads, rows, S] and one sink per head, without the sinks' shares. */
function withoutSinks(tf: Tf, scores: Tensor, sinks: Tensor1D): Tensor {
  const [heads = 0, rows = 0, count = 0] = scores.shape;
  const columns = tf.tile(tf.reshape(sinks, [heads, 1, 1]), [1, rows, 1]);
  const all: Tensor3D = tf.softmax(tf.concat([scores as Tensor3D, columns as Tensor3D], 2));
  return tf.slice(all, [0, 0, 0], [heads, rows, count]);
}

/** ALiBi's penalty of the scores, relative to the last key: softmax depends only on differences. [heads, 1, S] */
function penaltyOf(
  tf: Tf,
  { alibi }: HeadGroup,
  { firstKey, endKey }: QueryRange,
): Tensor3D | undefined {
  if (!alibi) return undefined;
  const keys = endKey - firstKey;
  const penalties = alibi.slopes.flatMap((_, head) => {
    const own = alibiScore(alibi, head, endKey - 1);
    return Array.from({ length: keys }, (_key, at) => alibiScore(alibi, head, firstKey + at) - own);
  });
  return tf.tensor3d(penalties, [alibi.slopes.length, 1, keys]);
}

/** Bonus of the scores, −∞ for visible keys that are not kept: [1, to − from, S]. */
function gainsOf(
  tf: Tf,
  { gains, first: firstRow }: HeadGroup,
  { from, to, firstKey, endKey }: QueryRange,
  { seen, start }: { readonly seen: Int32Array; readonly start: number },
): Tensor3D | undefined {
  if (!gains) return undefined;
  const [rows, count] = [to - from, endKey - firstKey];
  const own: Tensor1D = tf.slice(gains.ofKeys, [firstKey - firstRow], [count]);
  const values = readValues(own);
  const hidden = new Float32Array(rows * count);
  for (let row = 0; row < rows; row++) {
    const [least, most] = [
      Math.max(0, (seen[from + row] ?? 0) - firstKey),
      start + from + row - firstKey,
    ];
    const order = Array.from({ length: most - least + 1 }, (_, at) => least + at);
    order.sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0) || a - b);
    for (const key of order.slice(gains.kept)) {
      hidden[row * count + key] = Number.NEGATIVE_INFINITY;
    }
  }
  return tf.add(tf.tensor3d(hidden, [1, rows, count]), tf.reshape(own, [1, 1, count]));
}

/** The part of a choice of keys for a block, [heads or 1, rows, S]. */
const chosenOf = (
  tf: Tf,
  { selection }: HeadGroup,
  { from, to, firstKey, endKey }: QueryRange,
): Tensor3D | undefined =>
  selection && tf.slice(selection, [0, from, firstKey], [-1, to - from, endKey - firstKey]);

/** 0 where a query sees a key, −∞ elsewhere, [to − from, S]; undefined when every query sees all keys. */
function maskOf(
  { tf, start }: ForwardRun,
  { from, to, firstKey, endKey }: QueryRange,
  seen: Int32Array,
): Tensor2D | undefined {
  // The keys start at the first one visible to the first query, so a single query sees them all.
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

/** Choices of keys of some heads in one sequence, [heads, T, S]. @param all [B, G, T, S] */
export function selectionFor(
  { tf }: ForwardRun,
  all: Tensor4D | undefined,
  { sequence, heads, from, to }: Readonly<Record<'sequence' | 'heads' | 'from' | 'to', number>>,
): Tensor3D | undefined {
  if (!all) return undefined;
  const [, groups, tokens, count] = all.shape;
  const ofHead = (head: number): Tensor3D => {
    const group = Math.floor((head * groups) / heads);
    const part = tf.slice(all, [sequence, group, 0, 0], [1, 1, -1, -1]);
    return tf.reshape(part, [1, tokens, count]);
  };
  return tf.concat(Array.from({ length: to - from }, (_, index) => ofHead(from + index)));
}

/** x [B, T, heads · d] → [T, d] for each sequence and, within it, each head. */
export function splitHeads(tf: Tf, x: Tensor3D, headDim: number): Tensor2D[] {
  const [batch, tokens, width] = x.shape;
  const heads = width / headDim;
  return Array.from({ length: batch * heads }, (_, index) => {
    const [sequence, head] = [Math.floor(index / heads), index % heads];
    const part = tf.slice(x, [sequence, 0, head * headDim], [1, tokens, headDim]);
    return tf.reshape(part, [tokens, headDim]);
  });
}
