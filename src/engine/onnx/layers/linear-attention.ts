/** Attention without a softmax, whose state has decays. Shapes: B batch, T tokens, R = B·T rows. */
import type { KimiDelta, LightningAttention } from '../../../model/architecture/layer.js';
import { type Context, flattened, unflattenedRows, weightOf } from '../context.js';
import { type GraphValue, LEFT_OUT } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { activated, softplus } from './elementwise.js';
import { unitHeads } from './emit-recurrent.js';
import { emitProjections } from './projections.js';
import { startingState } from './scan.js';

/** u [R, H] → [R, H]. */
export function emitLightningAttention(
  context: Context,
  layer: LightningAttention,
  u: GraphValue,
): GraphValue {
  const { graph, apply, sizes } = context;
  const { name, slopes, headDim, activation } = layer;
  const heads = slopes.length;
  const [q = LEFT_OUT, k = LEFT_OUT, v = LEFT_OUT, gate = LEFT_OUT] = emitProjections(
    context,
    layer.inputs,
    u,
  );
  const log = graph.op('Expand', [
    graph.floats(
      `${name}.decays`,
      Float32Array.from(slopes, (slope) => -slope),
    ),
    graph.op('Concat', [sizes, graph.ints(heads)], { attributes: { axis: 0 } }),
  ]);
  const sequences = (rows: GraphValue) =>
    unflattenedRows(context, activated(context, activation, rows), heads * headDim);
  const before = startingState(context, layer, [heads, headDim, headDim]);
  const [y, after] = graph.pair(
    'LinearAttention',
    [sequences(q), sequences(k), sequences(v), before, log],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated',
        q_num_heads: heads,
        kv_num_heads: heads,
        scale: { float: 1 },
      },
    },
  );
  context.outputs.states?.set(`${name}.scan`, graph.output(after));
  return apply(layer.outProj, apply(layer.norm, flattened(context, y), gate));
}

/** u [R, H] → [R, H]. */
export function emitKimiDelta(context: Context, layer: KimiDelta, u: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { name, heads, headDim } = layer;
  const inner = heads * headDim;
  const inputs = emitProjections(context, layer.inputs, u);
  const given = layer.convs.length === 1 ? [graph.joined(inputs)] : inputs;
  const convolved = layer.convs.map((conv, index) => apply(conv, given[index] ?? LEFT_OUT));
  const mixed = activated(context, layer.activation, graph.joined(convolved));
  const [q, k, v] = graph.split(mixed, [inner, inner, inner]);
  const unit = (x: GraphValue) => unitHeads(context, { keyHeads: heads, keyDim: headDim }, x);
  const sequences = (rows: GraphValue, width: number) => unflattenedRows(context, rows, width);
  const [y, after] = graph.pair(
    'LinearAttention',
    [
      sequences(unit(q), inner),
      sequences(unit(k), inner),
      sequences(v, inner),
      startingState(context, layer, [heads, headDim, headDim]),
      sequences(channelDecays(context, layer, u), inner),
      sequences(graph.op('Sigmoid', [apply(layer.beta, u)]), heads),
    ],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated_delta',
        q_num_heads: heads,
        kv_num_heads: heads,
        scale: { float: 1 / Math.sqrt(headDim) },
      },
    },
  );
  context.outputs.states?.set(`${name}.scan`, graph.output(after));
  return apply(layer.outProj, apply(layer.norm, flattened(context, y), apply(layer.gate, u)));
}

/** Logarithms of the decays, [R, heads · headDim]. */
function channelDecays(context: Context, layer: KimiDelta, u: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { heads, headDim, stepBias, stateLog } = layer;
  const biased = graph.op('Add', [apply(layer.forget, u), weightOf(context, stepBias)]);
  const steps = graph.op('Reshape', [softplus(context, biased), graph.ints(-1, heads, headDim)]);
  const log = graph.op('Reshape', [weightOf(context, stateLog), graph.ints(heads, 1)]);
  const rate = graph.op('Neg', [graph.op('Exp', [log])]);
  return graph.op('Reshape', [graph.op('Mul', [steps, rate]), graph.ints(-1, heads * headDim)]);
}
