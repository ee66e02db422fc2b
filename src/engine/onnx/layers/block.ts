/** Layers that combine others. Shapes: R = batch · tokens rows, H hidden. */
import type {
  Alignment,
  AltUpBlock,
  AltUpMerge,
  AltUpSplit,
  Cycles,
  Gate,
  HybridBlock,
  LanguageModel,
  Layer,
  Residual,
  Sum,
} from '../../../model/architecture/layer.js';
import { ALTUP_LEAST } from '../../../model/architecture/layer.js';
import { inputWidth } from '../../../model/architecture/walk.js';
import type { Context } from '../context.js';
import { flattened, scaledBy, sizeNames, weightBlocks, weightOf, whole } from '../context.js';
import type { GraphValue } from '../graph.js';
import { LEFT_OUT } from '../graph.js';
import { withPositions } from './embeddings.js';
import { productParts } from './projections.js';

/** Applies layers in sequence. */
export const emitSequence = (
  context: Context,
  layers: readonly Layer[],
  x: GraphValue,
): GraphValue => layers.reduce((value, each) => context.apply(each, value), x);

/** x [R, H] → [R, H]. */
export function emitSum({ graph, apply }: Context, { branches }: Sum, x: GraphValue): GraphValue {
  return branches
    .map((branch) => apply(branch, x))
    .reduce((sum, value) => graph.op('Add', [sum, value]));
}

/** x [R, H] → [R, H]. */
export function emitResidual(
  { graph, apply }: Context,
  { branches }: Residual,
  x: GraphValue,
): GraphValue {
  return branches.reduce((sum, branch) => graph.op('Add', [sum, apply(branch, x)]), x);
}

/** Token ids [B, T] → logits [R, V]. */
export const emitLanguageModel = (
  context: Context,
  model: LanguageModel,
  ids: GraphValue = LEFT_OUT,
): GraphValue => context.graph.joined(emitLogits(context, model, emitHidden(context, model, ids)));

/**
 * Token ids [B, T] → the logits that a call asks for, [B, n, V], as columns of one block of the head's weight each. When
 * decoding, these are the logits of the last n tokens, else n is T.
 */
export function emitNeededLogits(
  context: Context,
  model: LanguageModel,
  ids: GraphValue = LEFT_OUT,
): GraphValue[] {
  const { graph } = context;
  const all = emitHidden(context, model, ids);
  if (!context.outputs.states) return emitLogits(context, model, all);
  const first = context.feed('first needed', { kind: 'firstNeeded' });
  const end = [graph.ints(Number.MAX_SAFE_INTEGER), graph.ints(1)];
  const needed = graph.op('Slice', [whole(context, all), first, ...end]); // [B, n, H]
  const sizes = graph.op('Shape', [needed], { attributes: { start: 0, end: 2 } }); // B and n
  const few = context.withSizes(sizes);
  return emitLogits(few, model, flattened(few, needed));
}

/** Token ids [B, T] → output of the last block, [R, H]. */
export function emitHidden(
  context: Context,
  model: LanguageModel,
  ids: GraphValue = LEFT_OUT,
): GraphValue {
  let x = emitSequence(context, model.embeddingSteps, context.apply(model.embedding, ids));
  for (const block of model.blocks) {
    x = context.apply(block, x);
    context.outputs.blocks?.set(block.name, context.graph.output(whole(context, x)));
  }
  return x;
}

/** x [R, H] → [R, V], as columns of one block of the head's weight each. */
export function emitLogits(context: Context, model: LanguageModel, x: GraphValue): GraphValue[] {
  const normed = context.apply(model.norm, x);
  const { weight, bias } = model.head;
  const isWhole =
    context.quantized(weight) !== undefined || weightBlocks(context, weight).length === 1;
  if (isWhole || context.outputs.taps) {
    return [emitSequence(context, [model.head, ...model.logitSteps], normed)];
  }
  return productParts(context, weight, normed, {
    bias: bias && weightOf(context, bias),
  }).map((part) => emitSequence(context, model.logitSteps, part));
}

/** x [R, H] → [R, H]. */
export function emitHybridBlock(context: Context, block: HybridBlock, x: GraphValue): GraphValue {
  const { graph, apply } = context;
  const n = apply(block.inputNorm, x);
  const encoding = context.once(block.srte, () => apply(block.srte)); // [T, H]
  const m = apply(block.mamba, withPositions(context, n, encoding));
  const a = apply(block.attention, n);
  const z = block.alignment
    ? apply(block.alignment, m, a)
    : graph.op('Mul', [graph.op('Add', [m, a]), graph.float(0.5)]);
  const g = apply(block.gate, z);
  // g·m + (1 − g)·a = a + g·(m − a)
  const fused = graph.op('Add', [a, graph.op('Mul', [g, graph.op('Sub', [m, a])])]);
  const sum = graph.op('Add', [x, apply(block.fusion, fused)]);
  return apply(block.outputNorm, graph.op('Add', [sum, apply(block.mlp, z)]));
}

/** m, a [R, H] → [R, H]. */
export function emitAlignment(
  context: Context,
  layer: Alignment,
  m: GraphValue,
  a: GraphValue,
): GraphValue {
  const { graph, apply } = context;
  const c = graph.joined([m, a]);
  return graph.op('Add', [apply(layer.net, c), apply(layer.residual, c)]);
}

/** z [R, H] → [R, H]. */
export function emitGate({ graph, apply }: Context, layer: Gate, z: GraphValue): GraphValue {
  return graph.op('Sigmoid', [apply(layer.down, graph.op('Tanh', [apply(layer.up, z)]))]);
}

// AltUp: several parallel streams, of which a block computes one. Shapes: R rows, N streams, H hidden.

/** Mean square of each row, [R, 1]. */
const meanSquare = ({ graph }: Context, x: GraphValue): GraphValue =>
  graph.op('ReduceMean', [graph.op('Mul', [x, x]), graph.ints(-1)], {
    attributes: { keepdims: 1 },
  });

/** Products scaled to the root mean square of `like`. */
function scaledLike(context: Context, products: readonly GraphValue[], like: GraphValue) {
  const { graph } = context;
  const wanted = graph.op('Sqrt', [meanSquare(context, like)]);
  return products.map((x) => {
    const found = graph.op('Max', [meanSquare(context, x), graph.float(ALTUP_LEAST)]);
    const factor = graph.op('Div', [wanted, graph.op('Sqrt', [found])]);
    return graph.op('Mul', [x, factor]);
  });
}

/** x [R, H] → [R, H]. */
export function emitCycles(context: Context, layer: Cycles, x: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { initial, stacks, lowPerHigh } = layer;
  let [low, high] = [weightOf(context, initial), x];
  for (const [index, stack] of stacks.entries()) {
    const value = apply(stack, graph.op('Add', [high, low]));
    if (index % (lowPerHigh + 1) === lowPerHigh) high = value;
    else low = value;
  }
  return high;
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
