/** The layers of RWKV-4. Shapes: B batch, T tokens, R = B·T rows, W width. */
import type { RwkvChannelMix, RwkvTimeMix } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { outputWidth } from '../../../model/architecture/walk.js';
import { type Context, flattened, sizeNames, unflattenedRows, weightOf } from '../context.js';
import { GraphBuilder, type GraphValue } from '../graph.js';
import type { GraphProto } from '../proto.js';
import { withPast } from './emit-recurrent.js';
import { startingState } from './scan.js';

/** Exponent before the first token. */
const LEAST = -1e30;

interface Shift {
  readonly name: string;
  readonly mixes: readonly Param[];
  readonly hidden: number;
}

/** Mixes of each token of x [R, H] with the one before it, [R, H] each. */
function tokenMixes(context: Context, { name, mixes, hidden }: Shift, x: GraphValue): GraphValue[] {
  const { graph, sizes } = context;
  const { batch, tokens } = sizeNames(sizes);
  const place = { name: `${name}.shift`, weight: { shape: [hidden, 1, 2] } };
  const both = withPast(context, place, unflattenedRows(context, x, hidden)); // [B, 1 + T, H]
  const part = graph.op('Slice', [both, graph.ints(0), graph.ints(-1), graph.ints(1)]);
  const before = flattened(context, graph.sized(part, [batch, tokens, hidden]));
  return mixes.map((mix) => {
    const weight = graph.op('Reshape', [weightOf(context, mix), graph.ints(hidden)]);
    const rest = graph.op('Sub', [graph.float(1), weight]);
    return graph.op('Add', [graph.op('Mul', [x, weight]), graph.op('Mul', [before, rest])]);
  });
}

/** x [R, H] → [R, H]. */
export function emitRwkvTimeMix(context: Context, layer: RwkvTimeMix, x: GraphValue): GraphValue {
  const { graph, apply, outputs } = context;
  const { name } = layer;
  const width = outputWidth(layer.key);
  const [keys, values, receptances] = tokenMixes(context, layer, x) as [
    GraphValue,
    GraphValue,
    GraphValue,
  ];
  const decay = graph.op('Neg', [graph.op('Exp', [weightOf(context, layer.timeDecay)])]);
  const first = weightOf(context, layer.timeFirst);
  const before = startingState(context, layer, [3 * width]);
  const [after, y] = graph.pair(
    'Scan',
    [
      before,
      unflattenedRows(context, apply(layer.key, keys), width),
      unflattenedRows(context, apply(layer.value, values), width),
    ],
    {
      attributes: {
        body: meanStep({ decay, first, width }, `${name}/`),
        num_scan_inputs: 2,
        scan_input_axes: [1, 1],
        scan_output_axes: [1],
      },
    },
  );
  outputs.states?.set(`${name}.scan`, graph.output(after));
  const gate = graph.op('Sigmoid', [apply(layer.receptance, receptances)]);
  return apply(layer.output, graph.op('Mul', [gate, flattened(context, y)]));
}

/**
 * One token: numerator, denominator and largest exponent of all channels side by side, [B, 3 · W]. A denominator of 0
 * is that before the first token. @param weights From the outer graph.
 */
function meanStep(
  { decay, first, width }: { decay: GraphValue; first: GraphValue; width: number },
  prefix: string,
): GraphProto {
  const graph = new GraphBuilder(prefix);
  const state = graph.input('state', 'f32', ['B', 3 * width]);
  const key = graph.input('key', 'f32', ['B', width]);
  const value = graph.input('value', 'f32', ['B', width]);
  const [numerator, denominator, stored] = graph.split(state, [width, width, width]);
  const isEmpty = graph.op('Equal', [denominator, graph.float(0)]);
  const most = graph.op('Where', [isEmpty, graph.float(LEAST), stored]);
  const joined = (old: GraphValue, own: GraphValue) => {
    const larger = graph.op('Max', [old, own]);
    const [e1, e2] = [old, own].map((each) =>
      graph.op('Exp', [graph.op('Sub', [each, larger])]),
    ) as [GraphValue, GraphValue];
    const kept = (each: GraphValue) => graph.op('Mul', [e1, each]);
    return {
      larger,
      numerator: graph.op('Add', [kept(numerator), graph.op('Mul', [e2, value])]),
      denominator: graph.op('Add', [kept(denominator), e2]),
    };
  };
  const seen = joined(most, graph.op('Add', [key, first]));
  const next = joined(graph.op('Add', [most, decay]), key);
  graph.output(graph.joined([next.numerator, next.denominator, next.larger]));
  graph.output(graph.op('Div', [seen.numerator, seen.denominator]));
  return graph.build('mean');
}

/** x [R, H] → [R, H]. */
export function emitRwkvChannelMix(
  context: Context,
  layer: RwkvChannelMix,
  x: GraphValue,
): GraphValue {
  const { graph, apply } = context;
  const [keys, receptances] = tokenMixes(context, layer, x) as [GraphValue, GraphValue];
  const positive = graph.op('Relu', [apply(layer.key, keys)]);
  const values = apply(layer.value, graph.op('Mul', [positive, positive]));
  return graph.op('Mul', [graph.op('Sigmoid', [apply(layer.receptance, receptances)]), values]);
}
