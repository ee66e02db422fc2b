/** Layers that combine others. Shapes: R = batch · tokens rows, H hidden. */
import type {
  Alignment,
  Gate,
  HybridBlock,
  LanguageModel,
  Layer,
  Residual,
  Sum,
} from '../../../architecture/layer.js';
import { type Context, weightBlocks, weightOf, whole } from '../context.js';
import { type GraphValue, LEFT_OUT } from '../graph.js';
import { withPositions } from './embeddings.js';
import { productParts } from './projections.js';

/** Applies layers in sequence. */
export const emitInTurn = (context: Context, layers: readonly Layer[], x: GraphValue): GraphValue =>
  layers.reduce((value, each) => context.apply(each, value), x);

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

/** Token ids [B, T] → logits [R, V], as columns [R, ..] of one block of the head's weight each. */
export function emitLanguageModel(
  context: Context,
  model: LanguageModel,
  ids: GraphValue = LEFT_OUT,
): GraphValue[] {
  let x = emitInTurn(context, model.embeddingSteps, context.apply(model.embedding, ids));
  for (const block of model.blocks) {
    x = context.apply(block, x);
    context.outputs.blocks?.set(block.name, context.graph.output(whole(context, x)));
  }
  const normed = context.apply(model.norm, x);
  const { weight, bias } = model.head;
  const blocks = weightBlocks(context, weight);
  if (blocks.length === 1 || context.outputs.taps) {
    return [emitInTurn(context, [model.head, ...model.logitSteps], normed)];
  }
  return productParts(context, weight, normed, {
    bias: bias && weightOf(context, bias),
  }).map((part) => emitInTurn(context, model.logitSteps, part));
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
