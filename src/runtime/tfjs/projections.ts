import type { FusedProjection, GatedMlp, Projections } from '../../architecture/layer.js';
import { activate } from './activations.js';
import type { Tensor3D } from './library.js';
import type { Run } from './run.js';

/** Several values of x [B, T, in], each [B, T, its width]. */
export function projected(run: Run, inputs: Projections, x: Tensor3D): Tensor3D[] {
  return 'kind' in inputs
    ? fusedProjection(run, inputs, x)
    : inputs.map((each) => run.apply(each, x));
}

/** One product, cut into its values. */
export function fusedProjection(run: Run, layer: FusedProjection, x: Tensor3D): Tensor3D[] {
  const { tf } = run;
  const [batch, tokens] = x.shape;
  const { projection, widths, groups } = layer;
  const product = run.apply(projection, x);
  const columns = widths.reduce((sum, width) => sum + width, 0);
  const grouped: Tensor3D = tf.reshape(product, [-1, groups, columns / groups]);
  let from = 0;
  return widths.map((width) => {
    const part = tf.slice(grouped, [0, 0, from], [-1, groups, width / groups]);
    from += width / groups;
    return tf.reshape(part, [batch, tokens, width]);
  });
}

/** x [B, T, H] → [B, T, H]. */
export function gatedMlp(run: Run, layer: GatedMlp, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const [gate, up] = projected(run, layer.inputs, x) as [Tensor3D, Tensor3D];
  return run.apply(layer.down, tf.mul(activate(tf, layer.activation, gate), up));
}
