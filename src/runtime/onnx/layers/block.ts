/** Layers that lead values through others. Shapes: R = batch · tokens rows, H hidden. */
import type { Alignment, Gate, HybridBlock, LanguageModel } from '../../../architecture/layer.js';
import { type Context, folded, unfolded, whole } from '../context.js';
import type { Value } from '../graph.js';

/** Token ids [B, T] → logits [R, V]. */
export function languageModel(context: Context, model: LanguageModel, ids: Value): Value {
  let x = context.apply(model.embedding, ids);
  for (const block of model.blocks) {
    x = context.apply(block, x);
    context.outputs.blocks.set(block.name, context.graph.output(whole(context, x)));
  }
  return context.apply(model.head, context.apply(model.norm, x));
}

/** x [R, H] → [R, H]. */
export function hybridBlock(context: Context, block: HybridBlock, x: Value): Value {
  const { graph, apply } = context;
  const n = apply(block.inputNorm, x);
  const m = apply(block.mamba, withEncoding(context, block, n));
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

/** n [R, H], and to each token's row that of its position. */
function withEncoding(context: Context, { srte }: HybridBlock, n: Value): Value {
  const rows = context.once(srte, () => context.apply(srte)); // [T, H]
  return folded(context, context.graph.op('Add', [unfolded(context, n, -1), rows]));
}

/** m, a [R, H] → [R, H]. */
export function alignment(context: Context, layer: Alignment, m: Value, a: Value): Value {
  const { graph, apply } = context;
  const c = graph.joined([m, a]);
  return graph.op('Add', [apply(layer.net, c), apply(layer.residual, c)]);
}

/** z [R, H] → [R, H]. */
export function gate({ graph, apply }: Context, layer: Gate, z: Value): Value {
  return graph.op('Sigmoid', [apply(layer.down, graph.op('Tanh', [apply(layer.up, z)]))]);
}
