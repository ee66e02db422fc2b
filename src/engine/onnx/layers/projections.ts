/** Products with weights. Shapes: R rows. */
import type {
  FusedProjection,
  ProjectionLayer,
  Projections,
} from '../../../model/architecture/layer.js';
import { valuesInTurn } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { projectionLayers } from '../../../model/architecture/walk.js';
import { type Context, type Rows, sizeNames, weightBlocks, weightOf } from '../context.js';
import { type GraphValue, LEFT_OUT } from '../graph.js';
import { quantizedProduct } from '../quantized-products.js';

/** [R, in] → [R, out]. */
export function emitProjection(
  context: Context,
  layer: ProjectionLayer,
  x: GraphValue,
): GraphValue {
  const { graph } = context;
  const bias = layer.bias && weightOf(context, layer.bias);
  switch (layer.kind) {
    case 'linear':
      return graph.joined(productParts(context, layer.weight, x, { bias }));
    case 'transposedLinear':
      return transposedProduct(context, layer.weight, x, bias);
  }
}

interface LayerProductOptions {
  /** Rows of the weight; all when absent. */
  readonly rows?: Rows;
  /** One element per row. */
  readonly bias?: GraphValue | undefined;
}

/** x [R, in] · weightᵀ [in, out] plus the bias, as columns [R, ..] of one block of the weight each. */
export function productParts(
  context: Context,
  weight: Param,
  x: GraphValue,
  { rows, bias }: LayerProductOptions = {},
): GraphValue[] {
  const { graph } = context;
  const quantized = context.quantized(weight, rows);
  if (quantized) return [quantizedProduct(context, quantized, x, bias)];
  const blocks = weightBlocks(context, weight, rows);
  const sizes = blocks.map(({ count }) => count);
  const biases = bias === undefined ? [] : graph.split(bias, sizes);
  return blocks.map(({ value }, index) =>
    graph.op('Gemm', [x, value, ...biases.slice(index, index + 1)], { attributes: { transB: 1 } }),
  );
}

/** x [R, in] · weight [in, out], as a sum over blocks of the weight and their columns of x. */
export function transposedProduct(
  context: Context,
  weight: Param,
  x: GraphValue,
  bias: GraphValue | undefined,
  rows?: Rows,
): GraphValue {
  const { graph } = context;
  const quantized = context.quantized(weight, rows);
  if (quantized) return quantizedProduct(context, quantized, x, bias);
  const blocks = weightBlocks(context, weight, rows);
  const shares = graph.split(
    x,
    blocks.map(({ count }) => count),
  );
  return blocks.reduce(
    (before, { value }, index) =>
      graph.op('Gemm', [shares[index] ?? x, value, ...(before === LEFT_OUT ? [] : [before])]),
    bias ?? LEFT_OUT,
  );
}

/** The outputs of a fused product, [R, width] each. */
export function fusedParts(context: Context, layer: FusedProjection, x: GraphValue): GraphValue[] {
  const { graph, apply, sizes } = context;
  const { widths, groups } = layer;
  const rows = apply(layer.projection, x);
  if (groups === 1) return valuesInTurn(layer, graph.split(rows, widths));
  const share = widths.reduce((sum, width) => sum + width, 0) / groups;
  const count = sizeNames(sizes).rows;
  const grouped = graph.sized(graph.op('Reshape', [rows, graph.ints(-1, groups, share)]), [
    count,
    groups,
    share,
  ]);
  const parts = graph.split(
    grouped,
    widths.map((width) => width / groups),
  );
  const values = parts.map((part, index) => {
    const width = widths[index] ?? 0;
    return graph.sized(graph.op('Reshape', [part, graph.ints(-1, width)]), [count, width]);
  });
  return valuesInTurn(layer, values);
}

/** Projections of x [R, in], separate or from one fused product. */
export const emitProjections = (
  context: Context,
  inputs: Projections,
  x: GraphValue,
): GraphValue[] =>
  projectionLayers(inputs).flatMap((each) =>
    each.kind === 'fusedProjection' ? fusedParts(context, each, x) : [context.apply(each, x)],
  );
