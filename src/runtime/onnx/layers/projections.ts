/** Products with weights. Shapes: R rows. */
import type { FusedProjection, Projection, Projections } from '../../../architecture/layer.js';
import { type Context, weightOf } from '../context.js';
import type { Value } from '../graph.js';

/** How a weight lies, as `Gemm` asks for it: [out, in] or [in, out]. */
const TRANSPOSED = { linear: 1, transposedLinear: 0 } as const satisfies Record<
  Projection['kind'],
  0 | 1
>;

/** [R, in] → [R, out]. */
export function projection(context: Context, { kind, weight, bias }: Projection, x: Value): Value {
  const inputs = [x, weightOf(context, weight), ...(bias ? [weightOf(context, bias)] : [])];
  return context.graph.op('Gemm', inputs, { attributes: { transB: TRANSPOSED[kind] } });
}

/** The values that a fused product gives, [R, width] each. */
export function fusedParts(context: Context, layer: FusedProjection, x: Value): Value[] {
  const { graph, apply } = context;
  const { widths, groups } = layer;
  const rows = apply(layer.projection, x);
  if (groups === 1) return graph.split(rows, widths);
  const share = widths.reduce((sum, width) => sum + width, 0) / groups;
  const grouped = graph.op('Reshape', [rows, graph.ints(-1, groups, share)]);
  const parts = graph.split(
    grouped,
    widths.map((width) => width / groups),
  );
  return parts.map((part, index) =>
    graph.op('Reshape', [part, graph.ints(-1, widths[index] ?? 0)]),
  );
}

/** Several values of x [R, in]: as many as there are projections, or as one product gives. */
export const projected = (context: Context, inputs: Projections, x: Value): Value[] =>
  'kind' in inputs ? fusedParts(context, inputs, x) : inputs.map((each) => context.apply(each, x));
