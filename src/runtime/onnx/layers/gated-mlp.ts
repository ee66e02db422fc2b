import type { ActivationName, GatedMlp } from '../../../architecture/layer.js';
import type { Context } from '../context.js';
import { LEFT_OUT, type Value } from '../graph.js';
import { activated } from './activations.js';
import { projected } from './projections.js';

/** [R, H] → [R, H]. */
export function gatedMlp(context: Context, layer: GatedMlp, x: Value): Value {
  const inner = gated(context, layer.activation, projected(context, layer.inputs, x));
  return context.apply(layer.down, inner);
}

/** activation(gate) · up. */
export function gated(
  context: Context,
  activation: ActivationName,
  [gate = LEFT_OUT, up = LEFT_OUT]: readonly Value[],
): Value {
  return context.graph.op('Mul', [activated(context, activation, gate), up]);
}
