/** Attention without a softmax, whose state has decays. Shapes: B batch, T tokens, R = B·T rows. */
import type { LightningAttention } from '../../../model/architecture/layer.js';
import { type Context, flattened, unflattenedRows } from '../context.js';
import { type GraphValue, LEFT_OUT } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { activated } from './elementwise.js';
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
