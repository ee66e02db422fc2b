/** The recurrent block of Griffin. Shapes: B batch, T tokens, R = B·T rows, W width. */
import {
  type BlockDiagonal,
  type GriffinRecurrence,
  RECURRENCE_FACTOR,
} from '../../../model/architecture/layer.js';
import { outputWidth } from '../../../model/architecture/walk.js';
import {
  type Context,
  feedPositions,
  flattened,
  scaledBy,
  unflattenedRows,
  weightOf,
} from '../context.js';
import type { GraphValue } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { activated, softplus } from './elementwise.js';
import { startingState } from './scan.js';

/** x [R, W] → [R, W]. */
export function emitBlockDiagonal(
  context: Context,
  { weight, bias }: BlockDiagonal,
  x: GraphValue,
): GraphValue {
  const { graph } = context;
  const [heads = 0, size = 0] = weight.shape;
  const swap = (value: GraphValue) =>
    graph.op('Transpose', [value], { attributes: { perm: [1, 0, 2] } });
  const byHead = swap(graph.op('Reshape', [x, graph.ints(-1, heads, size)])); // [heads, R, d]
  const products = swap(graph.op('MatMul', [byHead, weightOf(context, weight)]));
  const biased = graph.op('Add', [products, weightOf(context, bias)]);
  return graph.op('Reshape', [biased, graph.ints(-1, heads * size)]);
}

/** u [R, H] → [R, H]. */
export function emitGriffin(context: Context, layer: GriffinRecurrence, u: GraphValue): GraphValue {
  const { graph, apply, sizes } = context;
  const { name, x, activation } = layer;
  const width = outputWidth(x);
  const y = activated(context, activation, apply(layer.y, u));
  const mixed = apply(layer.conv, apply(x, u));
  const input = graph.op('Mul', [mixed, graph.op('Sigmoid', [apply(layer.inputGate, mixed)])]);
  const log = decayLogs(context, layer, mixed);
  const added = graph.op('Mul', [
    unflattenedRows(context, input, width),
    rootOrOne(context, log, width),
  ]);
  // A head with keys and values of one value for each channel, and queries and keys of one.
  const ones = graph.op('Expand', [
    graph.float(1),
    graph.op('Concat', [sizes, graph.ints(1)], { attributes: { axis: 0 } }),
  ]);
  const before = startingState(context, layer, [width, 1, 1]);
  const [h, after] = graph.pair(
    'LinearAttention',
    [ones, ones, added, before, unflattenedRows(context, log, width)],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated',
        q_num_heads: 1,
        kv_num_heads: width,
        scale: { float: 1 },
      },
    },
  );
  context.outputs.states?.set(`${name}.scan`, graph.output(after));
  return apply(layer.out, graph.op('Mul', [y, flattened(context, h)]));
}

/** Logarithms of the decays, [R, W]. */
function decayLogs(context: Context, layer: GriffinRecurrence, x: GraphValue): GraphValue {
  const { graph, apply } = context;
  const gate = graph.op('Sigmoid', [apply(layer.recurrentGate, x)]);
  const rate = scaledBy(
    context,
    softplus(context, weightOf(context, layer.decay)),
    -RECURRENCE_FACTOR,
  );
  return graph.op('Mul', [gate, rate]);
}

/** √(1 − a²), and 1 for the first token of a sequence: [B, T, W]. */
function rootOrOne(context: Context, log: GraphValue, width: number): GraphValue {
  const { graph } = context;
  const square = graph.op('Exp', [scaledBy(context, log, 2)]);
  const root = graph.op('Sqrt', [graph.op('Sub', [graph.float(1), square])]);
  const isFirst = graph.op('Equal', [
    // An exported graph counts the positions itself, in 64 bits.
    graph.op('Unsqueeze', [graph.cast(feedPositions(context), 'i64'), graph.ints(1)]),
    graph.int(0),
  ]); // [T, 1]
  return graph.op('Where', [isFirst, graph.float(1), unflattenedRows(context, root, width)]);
}
