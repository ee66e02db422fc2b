/** Elementwise functions. */
import type { ActivationName } from '../../../architecture/layer.js';
import { type Context, scaled } from '../context.js';
import type { Value } from '../graph.js';
import { MICROSOFT } from '../proto.js';

/** Each adds an activation of x. */
const ACTIVATED: Readonly<Record<ActivationName, (context: Context, x: Value) => Value>> = {
  silu,
  gelu: ({ graph }, x) => graph.op('Gelu', [x]),
  geluTanh: ({ graph }, x) => graph.op('Gelu', [x], { attributes: { approximate: 'tanh' } }),
  quickGelu: ({ graph }, x) =>
    graph.op('QuickGelu', [x], { domain: MICROSOFT, attributes: { alpha: { float: 1.702 } } }),
  relu: ({ graph }, x) => graph.op('Relu', [x]),
  reluSquared({ graph }, x) {
    const positive = graph.op('Relu', [x]);
    return graph.op('Mul', [positive, positive]);
  },
};

export const activated = (context: Context, name: ActivationName, x: Value): Value =>
  ACTIVATED[name](context, x);

/** x · sigmoid(x). */
export function silu({ graph }: Context, x: Value): Value {
  return graph.op('Mul', [x, graph.op('Sigmoid', [x])]);
}

/** cap · tanh(x / cap). */
export function capped(context: Context, x: Value, cap: number): Value {
  const { graph } = context;
  return scaled(context, graph.op('Tanh', [graph.op('Div', [x, graph.float(cap)])]), cap);
}

/** Where exp(x) is still finite, and x all there is of the logarithm of 1 + exp(x). */
const LARGE = 80;

/** log(1 + exp(x)). ONNX Runtime's own `Softplus` takes four times as long: it goes value by value. */
export function softplus({ graph }: Context, x: Value): Value {
  const power = graph.op('Exp', [graph.op('Min', [x, graph.float(LARGE)])]);
  return graph.op('Max', [x, graph.op('Log', [graph.op('Add', [power, graph.float(1)])])]);
}
