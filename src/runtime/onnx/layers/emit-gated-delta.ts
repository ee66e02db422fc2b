/** The gated delta rule, and the gated short convolution. Shapes: B batch, T tokens, R = B·T rows. */
import type { GatedConv, GatedDelta } from '../../../architecture/layer.js';
import { LENGTH_EPS } from '../../../architecture/layer.js';
import { inputWidth } from '../../../architecture/walk.js';
import type { Context } from '../context.js';
import { folded, scaledBy, sizeNames, unfoldedRows, weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';
import { LEFT_OUT } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { activated, ofUnitLength, softplus } from './elementwise.js';
import { emitProjections } from './projections.js';
import { startingState } from './scan.js';

/** u [R, H] → [R, H]. */
export function emitGatedDelta(context: Context, layer: GatedDelta, u: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { activation, keyHeads, keyDim, valueHeads, valueDim } = layer;
  const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
  const [q0, k0, v0, gate, low, steps] = emitProjections(context, layer.inputs, u) as SixValues;
  const given = layer.convs.length === 1 ? [graph.joined([q0, k0, v0])] : [q0, k0, v0];
  const convolved = layer.convs.map((conv, index) => apply(conv, given[index] ?? LEFT_OUT));
  const mixed = activated(context, activation, graph.joined(convolved));
  const [q, k, v] = graph.split(mixed, [keys, keys, inner]);
  const step = softplus(context, graph.op('Add', [steps, weightOf(context, layer.stepBias)]));
  const rate = graph.op('Neg', [graph.op('Exp', [weightOf(context, layer.stateLog)])]);
  const y = deltaRule(context, layer, {
    queries: unitHeads(context, layer, q),
    keys: unitHeads(context, layer, k),
    values: v,
    beta: scaledBy(context, graph.op('Sigmoid', [low]), layer.betaScale),
    log: graph.op('Mul', [step, rate]),
  });
  return apply(layer.outProj, apply(layer.norm, y, gate));
}

type SixValues = [GraphValue, GraphValue, GraphValue, GraphValue, GraphValue, GraphValue];

/** Each head of x [R, keyHeads · keyDim] divided by its length. */
function unitHeads(context: Context, { keyHeads, keyDim }: GatedDelta, x: GraphValue): GraphValue {
  const { graph, sizes } = context;
  const { rows } = sizeNames(sizes);
  const heads = graph.sized(graph.op('Reshape', [x, graph.ints(-1, keyDim)]), [
    `${rows}·${keyHeads}`,
    keyDim,
  ]);
  const width = keyHeads * keyDim;
  const unit = ofUnitLength(context, heads, keyDim, LENGTH_EPS);
  return graph.sized(graph.op('Reshape', [unit, graph.ints(-1, width)]), [rows, width]);
}

interface DeltaInputs {
  /** [R, keyHeads · keyDim] */
  readonly queries: GraphValue;
  readonly keys: GraphValue;
  /** [R, valueHeads · valueDim] */
  readonly values: GraphValue;
  /** [R, valueHeads] */
  readonly beta: GraphValue;
  /** Logarithms of the decays, [R, valueHeads]. */
  readonly log: GraphValue;
}

/** → [R, valueHeads · valueDim]. `LinearAttention` takes the chunks itself. */
function deltaRule(context: Context, layer: GatedDelta, inputs: DeltaInputs): GraphValue {
  const { graph, outputs } = context;
  const { name, keyHeads, keyDim, valueHeads, valueDim } = layer;
  const rows = (value: GraphValue, width: number) => unfoldedRows(context, value, width);
  const before = startingState(context, layer, [valueHeads, keyDim, valueDim]);
  const [y, after] = graph.pair(
    'LinearAttention',
    [
      rows(inputs.queries, keyHeads * keyDim),
      rows(inputs.keys, keyHeads * keyDim),
      rows(inputs.values, valueHeads * valueDim),
      before,
      rows(inputs.log, valueHeads),
      rows(inputs.beta, valueHeads),
    ],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated_delta',
        q_num_heads: keyHeads,
        kv_num_heads: valueHeads,
        scale: { float: 1 / Math.sqrt(keyDim) },
      },
    },
  );
  outputs.states?.set(`${name}.scan`, graph.output(after));
  return folded(context, y);
}

/** x [R, H] → [R, H]. */
export function emitGatedConv(
  { graph, apply }: Context,
  layer: GatedConv,
  x: GraphValue,
): GraphValue {
  const hidden = inputWidth(layer.inProj);
  const [b, c, input] = graph.split(apply(layer.inProj, x), [hidden, hidden, hidden]);
  const mixed = apply(layer.conv, graph.op('Mul', [b, input]));
  return apply(layer.outProj, graph.op('Mul', [c, mixed]));
}
