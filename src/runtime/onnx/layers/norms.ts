/** Normalisation over the last dimension, [.., H] → [.., H]. */
import type { LayerNorm, RmsNorm } from '../../../architecture/layer.js';
import { type Context, weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';

export function emitLayerNorm(
  context: Context,
  { weight, bias, eps }: LayerNorm,
  x: GraphValue,
): GraphValue {
  return context.graph.op(
    'LayerNormalization',
    [x, weightOf(context, weight), weightOf(context, bias)],
    { attributes: { axis: -1, epsilon: { float: eps } } },
  );
}

/** `SimplifiedLayerNormalization` is ONNX Runtime's own, although its domain is ONNX's. */
export function emitRmsNorm(context: Context, layer: RmsNorm, x: GraphValue): GraphValue {
  if (context.isForOthers) return rmsNormInSteps(context, layer, x);
  return context.graph.op('SimplifiedLayerNormalization', [x, factorOf(context, layer)], {
    attributes: { axis: -1, epsilon: { float: layer.eps } },
  });
}

/** RMS norm in ONNX's operators, in the form that ONNX Runtime fuses to one operation. */
function rmsNormInSteps(context: Context, layer: RmsNorm, x: GraphValue): GraphValue {
  const { graph } = context;
  const squares = graph.op('Pow', [x, graph.float(2)]);
  const mean = graph.op('ReduceMean', [squares, graph.ints(-1)], { attributes: { keepdims: 1 } });
  const root = graph.op('Sqrt', [graph.op('Add', [mean, graph.float(layer.eps)])]);
  return graph.op('Mul', [graph.op('Div', [x, root]), factorOf(context, layer)]);
}

/** The sum with the offset is computed once, when the session is created. */
function factorOf(context: Context, { weight, offset }: RmsNorm): GraphValue {
  const { graph, once } = context;
  const values = weightOf(context, weight);
  if (offset === 0) return values;
  return once(`${offset}+${values}`, () => graph.op('Add', [values, graph.float(offset)]));
}
