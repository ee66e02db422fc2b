/** Layers of one step. Shapes: B batch, T tokens, R = B·T rows. */
import type { Embedding, LayerNorm, Linear } from '../../../architecture/layer.js';
import { type Context, weightOf, weightRows } from '../context.js';
import type { Value } from '../graph.js';

/** Token ids [B, T] → [R, H]. */
export function embedding(context: Context, { weight }: Embedding, ids: Value): Value {
  const { graph } = context;
  return weightRows(context, weight, graph.op('Reshape', [ids, graph.ints(-1)]), 0);
}

/** [R, in] → [R, out]. */
export function linear(context: Context, { weight, bias }: Linear, x: Value): Value {
  const inputs = [x, weightOf(context, weight), ...(bias ? [weightOf(context, bias)] : [])];
  return context.graph.op('Gemm', inputs, { attributes: { transB: 1 } });
}

/** [R, H] → [R, H]. */
export function layerNorm(context: Context, { weight, bias, eps }: LayerNorm, x: Value): Value {
  return context.graph.op(
    'LayerNormalization',
    [x, weightOf(context, weight), weightOf(context, bias)],
    { attributes: { axis: -1, epsilon: { float: eps } } },
  );
}

/** x · sigmoid(x). */
export const silu = ({ graph }: Context, x: Value): Value =>
  graph.op('Mul', [x, graph.op('Sigmoid', [x])]);

/** Where exp(x) is still finite, and x all there is of the logarithm of 1 + exp(x). */
const LARGE = 80;

/** log(1 + exp(x)). ONNX Runtime's own `Softplus` takes four times as long: it goes value by value. */
export function softplus({ graph }: Context, x: Value): Value {
  const power = graph.op('Exp', [graph.op('Min', [x, graph.float(LARGE)])]);
  return graph.op('Max', [x, graph.op('Log', [graph.op('Add', [power, graph.float(1)])])]);
}
