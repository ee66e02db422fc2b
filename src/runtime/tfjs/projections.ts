import type { FusedProjection, GatedMlp, Projections, Rotary } from '../../architecture/layer.js';
import {
  amplitudeOf,
  dependsOnLength,
  rotaryFrequencies,
} from '../../architecture/rotary-scaling.js';
import { activate } from './differentiable.js';
import type { Tensor, Tensor3D, Tensor4D } from './library.js';
import type { Run } from './run.js';

/** Projections of x [B, T, in], each [B, T, its width]. */
export function projected(run: Run, inputs: Projections, x: Tensor3D): Tensor3D[] {
  return 'kind' in inputs
    ? fusedProjection(run, inputs, x)
    : inputs.map((each) => run.apply(each, x));
}

/** One product, split into its values. */
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

/** Rotates each head of x, [B, T, heads · headDim], by the angles of the positions of this run. */
export function rotate(run: Run, layer: Rotary, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const { headDim, rotatedDim } = layer;
  const [batch, tokens, width] = x.shape;
  const heads: Tensor4D = tf.reshape(x, [batch, tokens, width / headDim, headDim]);
  const [front, back] =
    rotatedDim === headDim ? [heads] : tf.split(heads, [rotatedDim, headDim - rotatedDim], 3);
  const [cos, sin] = tablesOf(run, layer);
  const turned = quarterTurn(run, layer, front as Tensor4D);
  const rotated = tf.add(tf.mul(front as Tensor4D, cos), tf.mul(turned, sin));
  return tf.reshape(back ? tf.concat([rotated, back], 3) : rotated, [batch, tokens, width]);
}

/** Rotates each pair (a, b) to (−b, a); x [B, T, heads, rotatedDim]. */
function quarterTurn({ tf }: Run, { rotatedDim, pairs }: Rotary, x: Tensor4D): Tensor4D {
  const half = rotatedDim / 2;
  const isHalves = pairs === 'halves';
  const axis = isHalves ? 1 : 2;
  const parts: Tensor3D = tf.reshape(x, isHalves ? [-1, 2, half] : [-1, half, 2]);
  const [a, b] = tf.split(parts, 2, axis) as [Tensor3D, Tensor3D];
  return tf.reshape(tf.concat([tf.neg(b), a], axis), x.shape);
}

/** Cosine and sine of each position and frequency, for both elements of a pair: [T, 1, rotatedDim]. */
function tablesOf(run: Run, layer: Rotary): [Tensor, Tensor] {
  const { base, rotatedDim, pairs, scaling } = layer;
  const { start, tokens, decoding } = run;
  const length = dependsOnLength(layer) ? (decoding?.totalTokens ?? start + tokens) : 0;
  const key = JSON.stringify([base, rotatedDim, pairs, scaling]);
  const table = (name: string, wave: (angle: number) => number) =>
    run.once(`${name} ${key}`, () => {
      const frequencies = rotaryFrequencies(layer, length);
      const amplitude = amplitudeOf(layer);
      const frequencyOf = (column: number) =>
        frequencies[pairs === 'halves' ? column % frequencies.length : column >> 1] ?? Number.NaN;
      const values = Float32Array.from({ length: tokens * rotatedDim }, (_, index) => {
        const position = start + Math.floor(index / rotatedDim);
        return amplitude * wave(Math.fround(position * frequencyOf(index % rotatedDim)));
      });
      return run.tf.tensor3d(values, [tokens, 1, rotatedDim]);
    });
  return [table('cos', Math.cos), table('sin', Math.sin)];
}
