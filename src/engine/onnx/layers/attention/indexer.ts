/**
 * Indexers: they choose the keys that a query sees. Shapes: B batch, T tokens of the call, S keys, N heads of the indexer,
 * d width of a key, G groups of heads of the attention with a choice each.
 */
import type { BlockIndexer, Indexer, TokenIndexer } from '../../../../model/architecture/layer.js';
import type { Context } from '../../context.js';
import { cachesInPlace, feedPositions, scaledBy, unflattenedRows } from '../../context.js';
import type { GraphValue } from '../../graph.js';
import { emitRotary } from '../embeddings.js';
import { cached } from './attend-with-cache.js';
import { keyPositions, mask } from './masks.js';
import { withPast } from './scores.js';

/** Inputs of an indexer: that of the attention, and for some the normed latent of its queries, [R, ·]. */
export interface IndexerInputs {
  readonly input: GraphValue;
  readonly latent: GraphValue;
}

/** 0 for a key that a query sees, −∞ for another: [B, G, T, S], G = 1 for one choice for all heads. */
export function emitIndexer(
  context: Context,
  layer: Indexer,
  { input, latent }: IndexerInputs,
): GraphValue {
  const { graph } = context;
  const keys = indexerKeys(context, layer, input);
  const chosen =
    layer.kind === 'tokenIndexer'
      ? tokensChosen(context, layer, keys, { input, latent })
      : blocksChosen(context, layer, keys, input);
  return graph.op('Add', [chosen, mask(context, undefined)]);
}

/** Keys of all tokens, [B, d, S]. */
function indexerKeys(context: Context, layer: Indexer, x: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { headDim } = layer.rotary;
  const normed = unflattenedRows(context, apply(layer.keyNorm, apply(layer.key, x)), headDim);
  const now = emitRotary(context, layer.rotary, normed, 1);
  const name = `${layer.name}.keys`;
  if (!cachesInPlace(context)) {
    const all = withPast(context, { name, width: headDim, window: undefined }, now);
    return graph.op('Transpose', [all], { attributes: { perm: [0, 2, 1] } });
  }
  const rows = cached(context, { name, window: undefined, groups: 1, width: headDim }, now);
  const all = graph.op('Concat', [rows.past, rows.now], { attributes: { axis: 0 } }); // [S, B, 1, d]
  const flat = graph.op('Squeeze', [all, graph.ints(2)]);
  return graph.op('Transpose', [flat], { attributes: { perm: [1, 2, 0] } });
}

/** Scores q · k, [B, T, N, S]. @param queries [R, N · d] */
function products(
  context: Context,
  { rotary, heads }: Indexer,
  queries: GraphValue,
  keys: GraphValue,
): GraphValue {
  const { graph } = context;
  const { headDim } = rotary;
  const rows = unflattenedRows(context, queries, heads * headDim);
  const rotated = emitRotary(context, rotary, rows, heads);
  const together = graph.op('Reshape', [rotated, graph.ints(0, -1, headDim)]); // [B, T · N, d]
  const scores = graph.op('MatMul', [together, keys]);
  const sizes = graph.op('Concat', [context.sizes, graph.ints(heads, -1)], {
    attributes: { axis: 0 },
  });
  return graph.op('Reshape', [scores, sizes]);
}

/** [B, 1, T, S] */
function tokensChosen(
  context: Context,
  layer: TokenIndexer,
  keys: GraphValue,
  { input, latent }: IndexerInputs,
): GraphValue {
  const { graph, apply } = context;
  const scores = products(context, layer, apply(layer.query, latent), keys);
  const positive = scaledBy(context, graph.op('Relu', [scores]), layer.scale);
  const weights = unflattenedRows(context, apply(layer.weights, input), 1, layer.heads);
  const sums = graph.op('MatMul', [weights, positive]); // [B, T, 1, S]
  const byToken = graph.op('Transpose', [sums], { attributes: { perm: [0, 2, 1, 3] } });
  return bestOf(context, graph.op('Add', [byToken, mask(context, undefined)]), layer.kept);
}

/** 0 for the `count` largest of the last dimension, −∞ for the others. */
function bestOf({ graph }: Context, values: GraphValue, count: number): GraphValue {
  const there = graph.op('Shape', [values], { attributes: { start: -1 } });
  const [, places] = graph.pair('TopK', [values, graph.op('Min', [graph.ints(count), there])]);
  const filled = (value: number, like: GraphValue) =>
    graph.op('Expand', [graph.float(value), graph.op('Shape', [like])]);
  return graph.op(
    'ScatterElements',
    [filled(Number.NEGATIVE_INFINITY, values), places, filled(0, places)],
    { attributes: { axis: -1 } },
  );
}

/** [B, N, T, S] */
function blocksChosen(
  context: Context,
  layer: BlockIndexer,
  keys: GraphValue,
  input: GraphValue,
): GraphValue {
  const { graph, apply } = context;
  const { size, kept, local } = layer;
  const queries = apply(layer.queryNorm, flatHeads(context, layer, apply(layer.query, input)));
  const ofHeads = products(context, layer, queries, keys);
  const byHead = graph.op('Transpose', [ofHeads], { attributes: { perm: [0, 2, 1, 3] } });
  const all = graph.op('Add', [byHead, mask(context, undefined)]); // [B, N, T, S]
  // Blocks begin at position 0; a row before it belongs to none.
  const positions = graph.cast(keyPositions(context, undefined), 'i64');
  const before = graph.op('Neg', [graph.op('Slice', [positions, graph.ints(0), graph.ints(1)])]);
  const end = graph.ints(Number.MAX_SAFE_INTEGER);
  const scores = graph.op('Slice', [all, before, end, graph.ints(3)]);
  const count = graph.op('Shape', [scores], { attributes: { start: -1 } });
  // Keys that fill the last block, 0 to size − 1.
  const missing = graph.op('Mod', [graph.op('Neg', [count]), graph.ints(size)]);
  const ends = graph.op('Concat', [graph.ints(0, 0, 0, 0, 0, 0, 0), missing], {
    attributes: { axis: 0 },
  });
  const none = graph.float(Number.NEGATIVE_INFINITY);
  const padded = graph.op('Pad', [scores, ends, none]);
  const blocks = graph.op('Reshape', [padded, graph.ints(0, 0, 0, -1, size)]);
  const best = graph.op('ReduceMax', [blocks, graph.ints(-1)], { attributes: { keepdims: 0 } });
  const first = local > 0 ? withLocal(context, best, layer) : best;
  const chosen = graph.op('Unsqueeze', [bestOf(context, first, kept), graph.ints(-1)]);
  const spread = graph.op('Tile', [chosen, graph.ints(1, 1, 1, 1, size)]);
  const whole = graph.op('Reshape', [spread, graph.op('Shape', [padded])]);
  const own = graph.op('Slice', [whole, graph.ints(0), count, graph.ints(3)]);
  const front = graph.op('Concat', [graph.ints(0, 0, 0), before, graph.ints(0, 0, 0, 0)], {
    attributes: { axis: 0 },
  });
  return graph.op('Pad', [own, front, none]);
}

/** Rows of queries [R, N · d] as the norm of each head takes them, [R · N, d]; `products` takes either. */
const flatHeads = ({ graph }: Context, { rotary }: Indexer, queries: GraphValue): GraphValue =>
  graph.op('Reshape', [queries, graph.ints(-1, rotary.headDim)]);

/** Scores of blocks with ∞ for the last ones up to that of the query, [B, N, T, blocks]. */
function withLocal(
  context: Context,
  scores: GraphValue,
  { size, local }: BlockIndexer,
): GraphValue {
  const { graph } = context;
  const count = graph.op('Squeeze', [
    graph.op('Shape', [scores], { attributes: { start: -1 } }),
    graph.ints(0),
  ]);
  const blocks = graph.op('Range', [graph.int(0), count, graph.int(1)]);
  const own = graph.op('Unsqueeze', [
    graph.op('Div', [graph.cast(feedPositions(context), 'i64'), graph.ints(size)]),
    graph.ints(1),
  ]); // [T, 1]
  const isLocal = graph.op('And', [
    graph.op('LessOrEqual', [blocks, own]),
    graph.op('Greater', [graph.op('Add', [blocks, graph.ints(local)]), own]),
  ]);
  return graph.op('Where', [isLocal, graph.float(Number.POSITIVE_INFINITY), scores]);
}
