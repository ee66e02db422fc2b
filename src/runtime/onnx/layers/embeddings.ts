/** Layers that depend only on a token or its position. Shapes: B batch, T tokens, R = B·T rows, H hidden. */
import type {
  Embedding,
  LearnedPositions,
  SrteLowRank,
  SrteSincos,
  SrteTable,
} from '../../../architecture/layer.js';
import type { Param } from '../../../architecture/param.js';
import type { Context } from '../context.js';
import {
  feedPositions,
  folded,
  sizeNames,
  unfoldedRows,
  weightOf,
  weightRows,
} from '../context.js';
import type { GraphValue } from '../graph.js';

/** Token ids [B, T] → [R, H]. */
export function emitEmbedding(
  context: Context,
  { weight }: Embedding,
  ids: GraphValue,
): GraphValue {
  const { graph, sizes } = context;
  const rows = graph.op('Reshape', [ids, graph.ints(-1)]);
  return weightRows(context, weight, graph.sized(rows, [sizeNames(sizes).rows], 'i32'));
}

/** x [R, H] plus the position's row for each token. */
export const emitLearnedPositions = (
  context: Context,
  { weight }: LearnedPositions,
  x: GraphValue,
): GraphValue => withPositions(context, x, weightRows(context, weight, feedPositions(context)));

/** x [R, H] plus the same rows [T, H] for every sequence. */
export const withPositions = (context: Context, x: GraphValue, rows: GraphValue): GraphValue =>
  folded(context, context.graph.op('Add', [unfoldedRows(context, x, -1), rows]));

// Rows of the time encoding at the positions of a call, [T, H].

export const emitSrteTable = (context: Context, { table }: SrteTable): GraphValue =>
  rowsAtPositions(context, table);

export const emitSrteLowRank = (
  context: Context,
  { lowRank, projection }: SrteLowRank,
): GraphValue => context.apply(projection, rowsAtPositions(context, lowRank));

/** [1, rows, n] → [T, n]. */
function rowsAtPositions(context: Context, table: Param): GraphValue {
  return weightRows(context, table, feedPositions(context));
}

/** Sines in the even columns, cosines in the odd ones. */
export function emitSrteSincos(context: Context, { inverseFrequencies }: SrteSincos): GraphValue {
  const { graph, sizes } = context;
  const t = graph.op('Unsqueeze', [graph.cast(feedPositions(context), 'f32'), graph.ints(1)]);
  const angles = graph.op('Mul', [t, weightOf(context, inverseFrequencies)]); // [T, H / 2]
  const columns = ['Sin', 'Cos'].map((op) =>
    graph.op('Unsqueeze', [graph.op(op, [angles]), graph.ints(2)]),
  );
  const pairs = graph.op('Concat', columns, { attributes: { axis: 2 } }); // [T, H / 2, 2]
  const width = 2 * inverseFrequencies.elements;
  const rows = graph.op('Reshape', [pairs, graph.ints(-1, width)]);
  return graph.sized(rows, [sizeNames(sizes).tokens, width]);
}
