/** What depends on a token or its position alone. Shapes: B batch, T tokens, R = B·T rows, H hidden. */
import type { Embedding, LearnedPositions } from '../../../architecture/layer.js';
import { type Context, folded, positionsOf, unfolded, weightRows } from '../context.js';
import type { Value } from '../graph.js';

/** Token ids [B, T] → [R, H]. */
export function embedding(context: Context, { weight }: Embedding, ids: Value): Value {
  const { graph } = context;
  return weightRows(context, weight, graph.op('Reshape', [ids, graph.ints(-1)]));
}

/** x [R, H] and, to each token's row, that of its position. */
export const learnedPositions = (context: Context, { weight }: LearnedPositions, x: Value): Value =>
  withPositions(context, x, weightRows(context, weight, positionsOf(context)));

/** To every sequence of x [R, H] the same rows [T, H]. */
export const withPositions = (context: Context, x: Value, rows: Value): Value =>
  folded(context, context.graph.op('Add', [unfolded(context, x, -1), rows]));
