/** AltUp: several streams beside each other, of which a block computes one. Shapes: R rows, N streams, H hidden. */
import type { AltUpBlock, AltUpMerge, AltUpSplit } from '../../../architecture/layer.js';
import { ALTUP_LEAST } from '../../../architecture/layer.js';
import { inputWidth } from '../../../architecture/walk.js';
import { type Context, scaledBy, sizeNames, weightOf } from '../context.js';
import { type GraphValue, LEFT_OUT } from '../graph.js';

/** Mean square of each row, [R, 1]. */
const meanSquare = ({ graph }: Context, x: GraphValue): GraphValue =>
  graph.op('ReduceMean', [graph.op('Mul', [x, x]), graph.ints(-1)], {
    attributes: { keepdims: 1 },
  });

/** Each product with the root mean square of `like`. */
function scaledLike(context: Context, products: readonly GraphValue[], like: GraphValue) {
  const { graph } = context;
  const wanted = graph.op('Sqrt', [meanSquare(context, like)]);
  return products.map((x) => {
    const found = graph.op('Max', [meanSquare(context, x), graph.float(ALTUP_LEAST)]);
    const factor = graph.op('Div', [wanted, graph.op('Sqrt', [found])]);
    return graph.op('Mul', [x, factor]);
  });
}

/** x [R, H] → [R, N · H]. */
export function emitAltUpSplit(
  context: Context,
  { projections }: AltUpSplit,
  x: GraphValue,
): GraphValue {
  const products = projections.map((each) => context.apply(each, x));
  return context.graph.joined([x, ...scaledLike(context, products, x)]);
}

/** x [R, N · H] → [R, H]. */
export function emitAltUpMerge(
  context: Context,
  { projections }: AltUpMerge,
  x: GraphValue,
): GraphValue {
  const { graph, apply } = context;
  const [first] = projections;
  if (!first) return x;
  const hidden = inputWidth(first);
  const count = projections.length + 1;
  const [own = LEFT_OUT, ...others] = graph.split(x, new Array<number>(count).fill(hidden));
  const products = projections.map((each, index) => apply(each, others[index] ?? LEFT_OUT));
  const sum = scaledLike(context, products, own).reduce((a, b) => graph.op('Add', [a, b]), own);
  return scaledBy(context, sum, 1 / count);
}

/** x [R, N · H] → the same. */
export function emitAltUpBlock(context: Context, layer: AltUpBlock, x: GraphValue): GraphValue {
  const { graph, apply, sizes } = context;
  const { router, routerNorm, active } = layer;
  const hidden = inputWidth(router);
  const streams = inputWidth(layer.correction);
  const { rows } = sizeNames(sizes);
  const shaped = (value: GraphValue, ...shape: number[]) =>
    graph.sized(graph.op('Reshape', [value, graph.ints(-1, ...shape)]), [rows, ...shape]);
  const streamOf = (value: GraphValue) =>
    graph.sized(graph.op('Gather', [value, graph.int(active)], { attributes: { axis: 1 } }), [
      rows,
      hidden,
    ]);
  /** Coefficients of the streams, [R, N]. */
  const routed = (value: GraphValue) =>
    graph.op('Tanh', [apply(router, scaledBy(context, apply(routerNorm, value), 1 / hidden))]);
  const before = shaped(x, streams, hidden);
  const mixing = shaped(apply(layer.prediction, routed(streamOf(before))), streams, streams);
  const predicted = graph.op('Add', [before, graph.op('MatMul', [mixing, before])]);
  const own = streamOf(predicted);
  const computed = apply(layer.inner, own);
  const shares = graph.op('Add', [apply(layer.correction, routed(computed)), graph.float(1)]);
  const change = graph.op('Sub', [computed, own]);
  const corrected = graph.op('Add', [
    predicted,
    graph.op('Mul', [
      graph.op('Unsqueeze', [shares, graph.ints(2)]),
      graph.op('Unsqueeze', [change, graph.ints(1)]),
    ]),
  ]);
  const chosen = streamOf(corrected);
  const given = layer.isScaled
    ? graph.op('Mul', [chosen, weightOf(context, layer.outputScale)])
    : chosen;
  const added = apply(layer.perLayer, given);
  const receives = Float32Array.from({ length: streams }, (_, stream) => (stream === 0 ? 0 : 1));
  const mask = graph.op('Reshape', [
    graph.floats(`streams:${streams}`, receives),
    graph.ints(1, streams, 1),
  ]);
  const result = graph.op('Add', [
    corrected,
    graph.op('Mul', [mask, graph.op('Unsqueeze', [added, graph.ints(1)])]),
  ]);
  return shaped(result, streams * hidden);
}
