/** Other kinds of attention. Shapes: B batch, T tokens, R = B·T rows, K experts of a token, G key-value heads, d width of a head. */
import {
  type DifferentialAttention,
  type DynamicMask,
  differentialCore,
  type ExpertAttention,
  expertCore,
  expertHeads,
} from '../../../../model/architecture/layer.js';
import type { Param } from '../../../../model/architecture/param.js';
import type { Context } from '../../context.js';
import { cachesInPlace, flattened, sizeNames, unflattenedRows, weightOf } from '../../context.js';
import { type GraphValue, LEFT_OUT } from '../../graph.js';
import { emitRotary } from '../embeddings.js';
import { expertProduct, routesOf, sentToExperts, throughExperts } from '../mixture-of-experts.js';
import { emitProjections } from '../projections.js';
import { cached } from './attend-with-cache.js';
import { attendPart, emitAttention } from './emit-attention.js';
import { type HeadRange, mask } from './masks.js';
import { withPast } from './scores.js';

/** u [R, H] → [R, H]. */
export function emitExpertAttention(
  context: Context,
  layer: ExpertAttention,
  u: GraphValue,
): GraphValue {
  const { graph, apply } = context;
  const { router, experts, keyValueHeads, headDim, rotary } = layer;
  const [width, heads, chosen] = [
    keyValueHeads * headDim,
    expertHeads(layer),
    router.expertsPerToken,
  ];
  const { rows } = sizeNames(context.sizes);
  const routes = routesOf(context, router, apply(router, u));
  const through = (weight: Param, sent: GraphValue, to: number) =>
    throughExperts(context, router, routes, sent, to, (expert, share) =>
      expertProduct(context, weight, expert, share),
    );
  const asked = through(experts.gateUp, sentToExperts(context, router, routes, u), width); // [R, K, G · d]
  const queries = graph.sized(graph.op('Reshape', [asked, graph.ints(-1, heads * headDim)]), [
    rows,
    heads * headDim,
  ]);
  const [k = LEFT_OUT, v = LEFT_OUT] = emitProjections(context, layer.keyValues, u);
  const rotated = (x: GraphValue, count: number) =>
    emitRotary(context, rotary, unflattenedRows(context, x, count * headDim), count);
  const core = expertCore(layer);
  const seen = attendPart(context, core, {
    name: `${layer.name}.0`,
    window: undefined,
    first: 0,
    heads,
    keyValueHeads,
    queries: regroupedHeads(context, rotated(queries, heads), [chosen, keyValueHeads, headDim]),
    keys: rotated(k, keyValueHeads),
    values: unflattenedRows(context, v, width),
  });
  const results = flattened(
    context,
    regroupedHeads(context, seen, [keyValueHeads, chosen, headDim]),
  );
  const pairs = graph.op('Reshape', [results, graph.ints(-1, width)]); // [R · K, G · d]
  const outputs = through(
    experts.down,
    graph.op('Gather', [pairs, routes.order]),
    layer.bias.shape[0] ?? 0,
  );
  const weighted = graph.op('Mul', [
    outputs,
    graph.op('Unsqueeze', [routes.weights, graph.ints(2)]),
  ]);
  const sum = graph.op('ReduceSum', [weighted, graph.ints(1)], { attributes: { keepdims: 0 } });
  return graph.op('Add', [sum, weightOf(context, layer.bias)]);
}

/** Heads [B, T, a · b · d] in the order of b, then a. */
function regroupedHeads(
  { graph }: Context,
  x: GraphValue,
  [a, b, d]: readonly [number, number, number],
): GraphValue {
  const apart = graph.op('Reshape', [x, graph.ints(0, 0, a, b, d)]);
  const transposed = graph.op('Transpose', [apart], { attributes: { perm: [0, 1, 3, 2, 4] } });
  return graph.op('Reshape', [transposed, graph.ints(0, 0, a * b * d)]);
}

/** u [R, H] → [R, H]. */
export function emitDifferentialAttention(
  context: Context,
  layer: DifferentialAttention,
  u: GraphValue,
): GraphValue {
  const { graph, apply, sizes } = context;
  const { heads, keyValueHeads, headDim, rotary, initial } = layer;
  const [q = LEFT_OUT, k = LEFT_OUT, v = LEFT_OUT] = emitProjections(context, layer.inputs, u);
  const rotated = (x: GraphValue, count: number) =>
    emitRotary(context, rotary, unflattenedRows(context, x, count * headDim), count);
  const seen = attendPart(context, differentialCore(layer), {
    name: `${layer.name}.0`,
    window: undefined,
    first: 0,
    heads,
    keyValueHeads,
    queries: rotated(q, heads),
    keys: rotated(k, keyValueHeads),
    values: unflattenedRows(context, v, keyValueHeads * headDim),
    valueForm: {
      width: 2 * headDim,
      of: (rows) => pairedValues(context, rows, keyValueHeads),
    },
  }); // [B, T, heads · 2d]
  const half = heads * headDim;
  const [first, second] = graph.split(flattened(context, seen), [half, half]);
  const difference = graph.op('Sub', [first, graph.op('Mul', [second, lambdaOf(context, layer)])]);
  const perPair = graph.op('Reshape', [difference, graph.ints(-1, 2 * headDim)]);
  const { rows } = sizeNames(sizes);
  const normed = graph.op('Reshape', [apply(layer.norm, perPair), graph.ints(-1, half)]);
  const scaled = graph.op('Mul', [graph.sized(normed, [rows, half]), graph.float(1 - initial)]);
  return apply(layer.out, scaled);
}

/** Values [·, ·, G, d] of two heads side by side, for both halves of the heads: [·, ·, G, 2d]. */
function pairedValues({ graph }: Context, rows: GraphValue, count: number): GraphValue {
  const half = (from: number) =>
    graph.op('Slice', [rows, graph.ints(from), graph.ints(from + count / 2), graph.ints(2)]);
  const pairs = graph.joined([half(0), half(count / 2)]);
  return graph.op('Concat', [pairs, pairs], { attributes: { axis: 2 } });
}

/** λ, [1] */
function lambdaOf(context: Context, { lambdas, initial }: DifferentialAttention): GraphValue {
  const { graph } = context;
  const [q1, k1, q2, k2] = lambdas.map((each) => weightOf(context, each)) as [
    GraphValue,
    GraphValue,
    GraphValue,
    GraphValue,
  ];
  const exponential = (q: GraphValue, k: GraphValue) =>
    graph.op('Exp', [graph.op('ReduceSum', [graph.op('Mul', [q, k]), graph.ints(0)])]);
  const learned = graph.op('Sub', [exponential(q1, k1), exponential(q2, k2)]);
  return graph.op('Add', [learned, graph.float(initial)]);
}

/** u [R, H] → [R, H]. */
export function emitDynamicMask(context: Context, layer: DynamicMask, u: GraphValue): GraphValue {
  const { graph } = context;
  const { heads, keyValueHeads } = layer.attention;
  return emitAttention(context, layer.attention, u, (values) => {
    const bias = keptScores(context, layer, keyScores(context, layer, values)); // [B, G, T, S]
    const sharing = heads / keyValueHeads;
    return ({ first, heads: count }: HeadRange) => {
      const groups = Array.from({ length: count }, (_, at) => Math.floor((first + at) / sharing));
      return graph.op('Gather', [bias, graph.ints(...groups)], { attributes: { axis: 1 } });
    };
  });
}

/** Bonus of the scores of each key, [B, G, 1, S]. @param values [B, T, G · d] */
function keyScores(context: Context, layer: DynamicMask, values: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { attention, rates, steps } = layer;
  const width = attention.keyValueHeads;
  const [window] = attention.spans.map((span) => span.window);
  const dt = graph.op('Softplus', [apply(steps, flattened(context, values))]);
  const own = graph.op('Exp', [graph.op('Mul', [dt, weightOf(context, rates)])]);
  const rows = unflattenedRows(context, own, width);
  const name = `${layer.name}.steps`;
  if (cachesInPlace(context)) {
    const { past, now } = cached(context, { name, window, groups: 1, width }, rows);
    const all = graph.op('Concat', [past, now], { attributes: { axis: 0 } }); // [S, B, 1, G]
    return graph.op('Transpose', [all], { attributes: { perm: [1, 3, 2, 0] } });
  }
  const all = withPast(context, { name, width, window }, rows); // [B, S, G]
  const transposed = graph.op('Transpose', [all], { attributes: { perm: [0, 2, 1] } });
  return graph.op('Unsqueeze', [transposed, graph.ints(2)]);
}

/** The scores of visible keys, −∞ for all but the best of each query: [B, G, T, S]. */
function keptScores(context: Context, layer: DynamicMask, scores: GraphValue): GraphValue {
  const { graph } = context;
  const [window] = layer.attention.spans.map((span) => span.window);
  const visible = graph.op('Add', [scores, mask(context, window)]);
  const keys = graph.op('Shape', [visible], { attributes: { start: 3, end: 4 } });
  const [best, at] = graph.pair('TopK', [visible, graph.op('Min', [keys, graph.ints(layer.kept)])]);
  const none = graph.op('Expand', [
    graph.float(Number.NEGATIVE_INFINITY),
    graph.op('Shape', [visible]),
  ]);
  return graph.op('ScatterElements', [none, at, best], { attributes: { axis: 3 } });
}
