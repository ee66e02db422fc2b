/**
 * Attention sinks as one more key for all queries: its values are zero, and its score is that of each head. Shapes:
 * B batch, T queries, S keys.
 */
import type { Param } from '../../../architecture/param.js';
import type { Context } from '../context.js';
import { weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';
import type { HeadRange } from './mask.js';
import type { Attended } from './scores.js';

/** @param from First head of the attended ones. */
export function withSinks(
  context: Context,
  sinks: Param,
  from: number,
  { queries, keys, values, bias }: Attended,
): Attended {
  const { graph } = context;
  const extended = (rows: GraphValue) => graph.op('Pad', [rows, graph.ints(0, 0, 0, 0, 1, 0)]);
  return {
    queries,
    keys: extended(keys),
    values: extended(values),
    bias: (range) =>
      biasWithSinks(context, sinks, { ...range, first: from + range.first }, bias(range)),
  };
}

/** [1, heads, 1, 1] */
export function sinkScores(
  context: Context,
  sinks: Param,
  { first, heads }: HeadRange,
): GraphValue {
  const { graph } = context;
  const own = graph.op('Slice', [
    weightOf(context, sinks),
    graph.ints(first),
    graph.ints(first + heads),
  ]);
  return graph.op('Reshape', [own, graph.ints(1, heads, 1, 1)]);
}

/** Bias [1, 1 or heads, T, S] → [1, heads, T, S + 1]. */
function biasWithSinks(
  context: Context,
  sinks: Param,
  { first, heads }: HeadRange,
  bias: GraphValue,
): GraphValue {
  const { graph } = context;
  const keys = graph.op('Shape', [bias], { attributes: { start: 3, end: 4 } });
  const before = graph.op('Concat', [graph.ints(0, 0, 0), keys, graph.ints(0, 0, 0, 0)], {
    attributes: { axis: 0 },
  });
  const scores = sinkScores(context, sinks, { first, heads });
  const padded = graph.op('Pad', [bias, graph.ints(0, 0, 0, 0, 0, 0, 0, 1)]);
  return graph.op('Add', [padded, graph.op('Pad', [scores, before])]); // [1, heads, 1, S + 1] added
}
