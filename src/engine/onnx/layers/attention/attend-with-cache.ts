/**
 * Attention of a call to the cached keys and to its own, without joining them: only the scores of both are joined,
 * which are smaller. `GroupQueryAttention` of ONNX Runtime 1.30 also writes into a cache. It takes three times as long
 * for 2000 keys, and refuses several tokens of several sequences after others.
 *
 * Shapes: B batch, T tokens of the call, P cached keys, K key-value heads, G = heads / K, d width of a head.
 */
import type { Window } from '../../../../model/architecture/layer.js';
import { windowKey } from '../../../../model/architecture/masks.js';
import type { Context } from '../../context.js';
import { scaledBy, sizeNames, swapped } from '../../context.js';
import { type GraphValue, LEFT_OUT } from '../../graph.js';
import { MICROSOFT } from '../../proto.js';
import type { ScoreHeads } from './attended.js';

interface CachedHeads extends ScoreHeads {
  readonly window: Window | undefined;
}

/** Rows of a cache that a call sees. */
export interface CachedRows {
  /** [P, B, K, d] */
  readonly past: GraphValue;
  /** [T, B, K, d] */
  readonly now: GraphValue;
}

interface AttendedCache {
  /** [B, T, heads · keyDim] */
  readonly queries: GraphValue;
  readonly keys: CachedRows;
  readonly values: CachedRows;
  /** Value added to the scores, [1, 1 or heads, T, P + T]. */
  readonly bias: GraphValue;
  /** Scores without values, [1, heads, 1, 1]. */
  readonly sinks?: GraphValue | undefined;
}

/** → [B, T, heads · valueDim] */
export function attendWithCache(
  context: Context,
  all: CachedHeads,
  { queries, keys, values, bias, sinks }: AttendedCache,
): GraphValue {
  const { graph, sizes } = context;
  const { heads, keyValueHeads, keyDim, valueDim, scale, softcap, window } = all;
  const { batch, tokens } = sizeNames(sizes);
  const isShared = heads !== keyValueHeads;
  const rows = `${tokens}·${heads / keyValueHeads}`;
  /** [B, heads, T, ·] → [B, K, G · T, ·] */
  const grouped = (value: GraphValue) =>
    isShared
      ? graph.sized(graph.op('Reshape', [value, graph.ints(0, keyValueHeads, -1, 0)]), [
          batch,
          keyValueHeads,
          rows,
          '',
        ])
      : value;
  /** [B, K, G · T, ·] → [B, heads, T, ·] */
  const single = (value: GraphValue) =>
    isShared
      ? graph.sized(graph.op('Reshape', [value, graph.ints(0, heads, -1, 0)]), [
          batch,
          heads,
          tokens,
          '',
        ])
      : value;
  const byHead = graph.op('Reshape', [queries, graph.ints(0, 0, heads, keyDim)]);
  const q = grouped(swapped(context, byHead));
  const alpha = scale / (softcap ?? 1);
  const products = graph.joined([
    queryKeyProducts(context, q, keys.past, alpha),
    queryKeyProducts(context, q, keys.now, alpha),
  ]);
  const capped =
    softcap === undefined ? products : scaledBy(context, graph.op('Tanh', [products]), softcap);
  const scores = graph.op('Add', [single(capped), bias]);
  const probabilities = sinks
    ? softmaxWithSinks(context, scores, sinks, heads)
    : graph.op('Softmax', [scores]);
  const counts = context.feed(`counts.${windowKey(window)}`, { kind: 'keyCounts', window });
  const [before = LEFT_OUT, own = LEFT_OUT] = graph.splitBy(grouped(probabilities), counts, {
    parts: 2,
    axis: -1,
  });
  const results = graph.op('Add', [
    weightedRows(context, before, values.past),
    weightedRows(context, own, values.now),
  ]);
  return graph.op('Reshape', [
    swapped(context, single(results)),
    graph.ints(0, 0, heads * valueDim),
  ]);
}

/** Probabilities [B, heads, T, S]: softmax over the scores and one sink per head, without the sinks' shares. */
function softmaxWithSinks(
  { graph, sizes }: Context,
  scores: GraphValue,
  sinks: GraphValue,
  heads: number,
): GraphValue {
  const size = (at: number) => graph.op('Gather', [sizes, graph.ints(at)]);
  const shape = graph.op('Concat', [size(0), graph.ints(heads), size(1), graph.ints(1)], {
    attributes: { axis: 0 },
  });
  const all = graph.op('Softmax', [graph.joined([scores, graph.op('Expand', [sinks, shape])])]);
  return graph.op('Slice', [all, graph.ints(0), graph.ints(-1), graph.ints(3)]);
}

interface Cache {
  /** Name of the rows, unique in the model. */
  readonly name: string;
  readonly window: Window | undefined;
  /** K */
  readonly groups: number;
  /** d */
  readonly width: number;
}

/** Adds the call's rows [B, T, K · d] to the cache. Returns them and the cached rows. */
export function cached(context: Context, { name, ...cache }: Cache, rows: GraphValue): CachedRows {
  const { graph, outputs, sizes } = context;
  const { batch, tokens } = sizeNames(sizes);
  const inOrder = graph.op('Transpose', [rows], { attributes: { perm: [1, 0, 2] } });
  const shape = graph.ints(0, 0, cache.groups, cache.width);
  const now = graph.sized(graph.op('Reshape', [inOrder, shape]), [
    tokens,
    batch,
    cache.groups,
    cache.width,
  ]);
  outputs.newRows.set(name, graph.output(now));
  return { past: context.feed(name, { kind: 'pastRows', ...cache }), now };
}

/** Dot products of queries [B, K, G · T, d] and cached rows [P, B, K, d] → [B, K, G · T, P]. */
const queryKeyProducts = (
  { graph }: Context,
  queries: GraphValue,
  rows: GraphValue,
  alpha: number,
): GraphValue =>
  graph.op('FusedMatMul', [queries, rows], {
    domain: MICROSOFT,
    attributes: { transB: 1, transBatchB: 1, alpha: { float: alpha } },
  });

/** Sums of cached rows [P, B, K, d], weighted by probabilities [B, K, G · T, P] → [B, K, G · T, d]. */
const weightedRows = (
  { graph }: Context,
  probabilities: GraphValue,
  rows: GraphValue,
): GraphValue =>
  graph.op('FusedMatMul', [probabilities, rows], {
    domain: MICROSOFT,
    attributes: { transBatchB: 1 },
  });
