import type { Rotary } from '../../../architecture/layer.js';
import { rotaryFrequencies } from '../../../architecture/rotary-scaling.js';
import { type Context, folded, positionsOf, unfolded } from '../context.js';
import type { Value } from '../graph.js';
import { MICROSOFT } from '../proto.js';

/** Turns each head's pairs of columns by the angle of their position, [R, heads · d] → the same. */
export function rotary(context: Context, layer: Rotary, x: Value): Value {
  const { graph } = context;
  const { base, headDim } = layer;
  const angles = context.once(`angles:${base}:${headDim}`, () => tables(context, layer));
  // The tables have a row for each token of the call: their own positions begin at 0.
  const inputs = [unfolded(context, x, -1), graph.ints(0), angles.cos, angles.sin];
  const turned = graph.op('RotaryEmbedding', inputs, { domain: MICROSOFT });
  return folded(context, turned);
}

/** Cosine and sine of position / base^(2j / d), [T, d / 2] each. */
function tables(context: Context, layer: Rotary): { cos: Value; sin: Value } {
  const { graph } = context;
  const inverse = graph.floats(`inverse:${layer.base}:${layer.headDim}`, rotaryFrequencies(layer));
  const t = graph.op('Unsqueeze', [graph.cast(positionsOf(context), 'f32'), graph.ints(1)]);
  const angles = graph.op('Mul', [t, inverse]);
  return { cos: graph.op('Cos', [angles]), sin: graph.op('Sin', [angles]) };
}
