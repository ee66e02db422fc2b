/** Elementwise functions. */
import type {
  ActivationName,
  GatedMlp,
  GatedRmsNorm,
  GateLimits,
  HeadNorms,
  LayerNorm,
  RmsNorm,
  Xielu,
} from '../../../model/architecture/layer.js';
import { LAPLACE } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { normWidth } from '../../../model/architecture/walk.js';
import type { Context } from '../context.js';
import { scaledBy, sizeNames, weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';
import { LEFT_OUT } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { emitProjections } from './projections.js';

/** Graph of each activation function. */
const ACTIVATED: Readonly<Record<ActivationName, (context: Context, x: GraphValue) => GraphValue>> =
  {
    silu: emitSilu,
    gelu: ({ graph }, x) => graph.op('Gelu', [x]),
    geluTanh: ({ graph }, x) => graph.op('Gelu', [x], { attributes: { approximate: 'tanh' } }),
    quickGelu: ({ graph }, x) =>
      graph.op('QuickGelu', [x], { domain: MICROSOFT, attributes: { alpha: { float: 1.702 } } }),
    relu: ({ graph }, x) => graph.op('Relu', [x]),
    reluSquared({ graph }, x) {
      const positive = graph.op('Relu', [x]);
      return graph.op('Mul', [positive, positive]);
    },
    relu6: ({ graph }, x) => clipped(graph, x, 0, 6),
    leakyRelu: ({ graph }, x) =>
      graph.op('LeakyRelu', [x], { attributes: { alpha: { float: 0.01 } } }),
    geluClipped: ({ graph }, x) => clipped(graph, graph.op('Gelu', [x]), -10, 10),
    hardSwish: ({ graph }, x) => graph.op('HardSwish', [x]),
    mish: (context, x) =>
      context.graph.op('Mul', [x, context.graph.op('Tanh', [softplus(context, x)])]),
    tanh: ({ graph }, x) => graph.op('Tanh', [x]),
    sigmoid: ({ graph }, x) => graph.op('Sigmoid', [x]),
    identity: (_, x) => x,
    softplus,
    sqrtSoftplus: (context, x) => context.graph.op('Sqrt', [softplus(context, x)]),
    laplace(context, x) {
      const { graph } = context;
      const apart = graph.op('Sub', [x, graph.float(LAPLACE.mean)]);
      const half = Math.SQRT1_2 / LAPLACE.deviation;
      const normal = graph.op('Erf', [graph.op('Mul', [apart, graph.float(half)])]);
      return scaledBy(context, graph.op('Add', [normal, graph.float(1)]), 0.5);
    },
  };

export const activated = (context: Context, name: ActivationName, x: GraphValue): GraphValue =>
  ACTIVATED[name](context, x);

export const clipped = (
  graph: Context['graph'],
  x: GraphValue,
  least: number,
  most: number,
): GraphValue => graph.op('Min', [graph.op('Max', [x, graph.float(least)]), graph.float(most)]);

/** x · sigmoid(x). */
export function emitSilu({ graph }: Context, x: GraphValue): GraphValue {
  return graph.op('Mul', [x, graph.op('Sigmoid', [x])]);
}

/** cap · tanh(x / cap). */
export function capped(context: Context, x: GraphValue, cap: number): GraphValue {
  const { graph } = context;
  return scaledBy(context, graph.op('Tanh', [graph.op('Div', [x, graph.float(cap)])]), cap);
}

/** Threshold above which log(1 + exp(x)) equals x, while exp(x) is still finite. */
const LARGE = 80;

/** log(1 + exp(x)). ONNX Runtime's own `Softplus` takes four times as long: it computes value by value. */
export function softplus({ graph }: Context, x: GraphValue): GraphValue {
  const power = graph.op('Exp', [graph.op('Min', [x, graph.float(LARGE)])]);
  return graph.op('Max', [x, graph.op('Log', [graph.op('Add', [power, graph.float(1)])])]);
}

/** See `Xielu`. */
export function emitXielu(context: Context, layer: Xielu, x: GraphValue): GraphValue {
  const { graph } = context;
  const [positive, negative, beta, eps] = [
    softplus(context, weightOf(context, layer.positive)),
    softplus(context, weightOf(context, layer.negative)),
    weightOf(context, layer.beta),
    weightOf(context, layer.eps),
  ];
  // exp(y) − 1 = 2t / (1 − t) with t = tanh(y / 2), exact near 0.
  const half = scaledBy(context, graph.op('Min', [x, eps]), 0.5);
  const t = graph.op('Tanh', [half]);
  const exponential = graph.op('Div', [
    scaledBy(context, t, 2),
    graph.op('Sub', [graph.float(1), t]),
  ]);
  const curve = graph.op('Where', [
    graph.op('Greater', [x, graph.float(0)]),
    graph.op('Mul', [positive, graph.op('Mul', [x, x])]),
    graph.op('Mul', [graph.op('Add', [beta, negative]), graph.op('Sub', [exponential, x])]),
  ]);
  return graph.op('Add', [curve, graph.op('Mul', [beta, x])]);
}

/** [R, H] → [R, H]. */
export function emitGatedMlp(context: Context, layer: GatedMlp, x: GraphValue): GraphValue {
  const [gate = LEFT_OUT, up = LEFT_OUT] = emitProjections(context, layer.inputs, x);
  const inner = gated(
    context,
    layer.activation,
    [aboveCutoff(context, layer, scaledBy(context, gate, layer.gateScale ?? 1)), up],
    layer.limits,
  );
  return context.apply(layer.down, inner);
}

/** max(gate − cutoff, 0), see `GatedMlp`. */
function aboveCutoff(
  { graph }: Context,
  { cutoffDeviations: deviations }: GatedMlp,
  gate: GraphValue,
): GraphValue {
  if (deviations === undefined) return gate;
  const mean = (x: GraphValue) =>
    graph.op('ReduceMean', [x, graph.ints(-1)], { attributes: { keepdims: 1 } });
  const apart = graph.op('Sub', [gate, mean(gate)]);
  const deviation = graph.op('Sqrt', [mean(graph.op('Mul', [apart, apart]))]);
  const cutoff = graph.op('Mul', [deviation, graph.float(deviations)]);
  return graph.op('Relu', [graph.op('Sub', [apart, cutoff])]);
}

/** activation(gate) · up, within limits if there are any. */
export function gated(
  context: Context,
  activation: ActivationName,
  [gate = LEFT_OUT, up = LEFT_OUT]: readonly GraphValue[],
  limits?: GateLimits,
): GraphValue {
  const { graph } = context;
  if (!limits) return graph.op('Mul', [activated(context, activation, gate), up]);
  const { limit, sharpness, raise } = limits;
  const low = graph.op('Min', [gate, graph.float(limit)]);
  const opened = activated(context, activation, scaledBy(context, low, sharpness));
  const near = clipped(graph, up, -limit, limit);
  const raised = raise === 0 ? near : graph.op('Add', [near, graph.float(raise)]);
  return graph.op('Mul', [scaledBy(context, opened, 1 / sharpness), raised]);
}

// Normalisation over the last dimension, [.., H] → [.., H].

/** Layer norm. A weight with a row for each part of x [R, parts · size] is multiplied in a separate operation. */
export function emitLayerNorm(context: Context, layer: LayerNorm, x: GraphValue): GraphValue {
  const { graph } = context;
  const { weight, bias, eps, size } = layer;
  const width = normWidth(layer);
  const factor = weight && offsetWeight(context, { weight, offset: layer.offset });
  const isOneRow = width === size && factor !== undefined;
  const ones = () => graph.floats(`ones:${size}`, new Float32Array(size).fill(1));
  const rows = width === size ? x : graph.op('Reshape', [x, graph.ints(-1, width / size, size)]);
  const inputs = [
    rows,
    isOneRow ? factor : ones(),
    ...(bias && width === size ? [weightOf(context, bias)] : []),
  ];
  const normed = graph.op('LayerNormalization', inputs, {
    attributes: { axis: -1, epsilon: { float: eps } },
  });
  if (width === size || factor === undefined) return normed;
  const scaled = graph.op('Mul', [normed, factor]);
  const moved = bias ? graph.op('Add', [scaled, weightOf(context, bias)]) : scaled;
  const together = graph.op('Reshape', [moved, graph.ints(-1, width)]);
  return graph.sized(together, [sizeNames(context.sizes).rows, width]);
}

/** Norms the parts of x [R, heads · d], each with its own norm. */
export function emitHeadNorms(context: Context, { norms }: HeadNorms, x: GraphValue): GraphValue {
  const { graph } = context;
  const parts = graph.split(x, norms.map(normWidth));
  return graph.joined(norms.map((norm, index) => context.apply(norm, parts[index] ?? LEFT_OUT)));
}

/** x and gate [R, W] → [R, W]. */
export function emitGatedRmsNorm(
  context: Context,
  layer: GatedRmsNorm,
  x: GraphValue,
  gate: GraphValue,
): GraphValue {
  const { graph } = context;
  const { activation, gated: place } = layer;
  const times = (value: GraphValue) =>
    graph.op('Mul', [value, activated(context, activation, gate)]);
  if (place === 'before') return normedGroups(context, layer, times(x));
  return times(normedGroups(context, layer, x));
}

/** RMS norm of each group of columns. */
function normedGroups(context: Context, layer: GatedRmsNorm, x: GraphValue): GraphValue {
  const { graph } = context;
  const { width, groups, eps } = layer;
  const weight = weightOf(context, layer.weight);
  if (groups === 1) return normed(context, x, weight, eps);
  const size = width / groups;
  const rows = graph.op('Reshape', [x, graph.ints(-1, size)]);
  const whole = (value: GraphValue) => graph.op('Reshape', [value, graph.ints(-1, width)]);
  if (layer.weight.elements === size) return whole(normed(context, rows, weight, eps));
  return graph.op('Mul', [whole(unweightedRmsNorm(context, rows, size, eps)), weight]);
}

/** x [R, size] → [R, size]. */
export function unweightedRmsNorm(
  context: Context,
  x: GraphValue,
  size: number,
  eps: number,
): GraphValue {
  const ones = context.graph.floats(`ones:${size}`, new Float32Array(size).fill(1));
  return normed(context, x, ones, eps);
}

/** x [R, size] divided by its L2 norm, √(sum of squares + eps). */
export function l2Normalized(
  context: Context,
  x: GraphValue,
  size: number,
  eps: number,
): GraphValue {
  const factor = new Float32Array(size).fill(1 / Math.sqrt(size));
  const factors = context.graph.floats(`lengths:${size}`, factor);
  return normed(context, x, factors, eps / size);
}

export function emitRmsNorm(context: Context, layer: RmsNorm, x: GraphValue): GraphValue {
  const { weight, size, eps, offset } = layer;
  if (!weight) return unweightedRmsNorm(context, x, size, eps);
  return normed(context, x, offsetWeight(context, { weight, offset }), eps);
}

/** RMS norm. `SimplifiedLayerNormalization` is ONNX Runtime's own, although its domain is ONNX's. */
function normed(context: Context, x: GraphValue, factor: GraphValue, eps: number): GraphValue {
  if (context.isForOthers) return normedInSteps(context, x, factor, eps);
  return context.graph.op('SimplifiedLayerNormalization', [x, factor], {
    attributes: { axis: -1, epsilon: { float: eps } },
  });
}

/** RMS norm in ONNX's operators, in the form that ONNX Runtime fuses into one operation. */
function normedInSteps(
  { graph }: Context,
  x: GraphValue,
  factor: GraphValue,
  eps: number,
): GraphValue {
  const squares = graph.op('Pow', [x, graph.float(2)]);
  const mean = graph.op('ReduceMean', [squares, graph.ints(-1)], { attributes: { keepdims: 1 } });
  const root = graph.op('Sqrt', [graph.op('Add', [mean, graph.float(eps)])]);
  return graph.op('Mul', [graph.op('Div', [x, root]), factor]);
}

/** Weight plus offset. ONNX Runtime computes the sum once, when the session is created. */
function offsetWeight(
  context: Context,
  { weight, offset }: { readonly weight: Param; readonly offset: number },
): GraphValue {
  const { graph, once } = context;
  const values = weightOf(context, weight);
  if (offset === 0) return values;
  return once(`${offset}+${values}`, () => graph.op('Add', [values, graph.float(offset)]));
}
