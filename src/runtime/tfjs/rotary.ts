import type { Rotary } from '../../architecture/layer.js';
import { rotaryFrequencies } from '../../architecture/rotary-scaling.js';
import type { Tensor, Tensor3D, Tensor4D } from './library.js';
import type { Run } from './run.js';

/** Turns each head of x, [B, T, heads · headDim], by the angles of the positions of this run. */
export function rotate(run: Run, layer: Rotary, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const { headDim } = layer;
  const [batch, tokens, width] = x.shape;
  const heads: Tensor4D = tf.reshape(x, [batch, tokens, width / headDim, headDim]);
  const [a, b] = tf.split(heads, 2, 3) as [Tensor4D, Tensor4D];
  const turned = tf.concat([tf.neg(b), a], 3);
  const [cos, sin] = tablesOf(run, layer);
  const rotated = tf.add(tf.mul(heads, cos), tf.mul(turned, sin));
  return tf.reshape(rotated, [batch, tokens, width]);
}

/** Cosine and sine of each position and frequency, twice side by side: [T, 1, headDim]. */
function tablesOf(run: Run, layer: Rotary): [Tensor, Tensor] {
  const { base, headDim } = layer;
  const table = (name: string, wave: (angle: number) => number) =>
    run.once(`${name} ${base} ${headDim}`, () => {
      const frequencies = rotaryFrequencies(layer);
      const values = Float32Array.from({ length: run.tokens * headDim }, (_, index) => {
        const frequency = frequencies[index % frequencies.length] ?? Number.NaN;
        return wave(Math.fround((run.start + Math.floor(index / headDim)) * frequency));
      });
      return run.tf.tensor3d(values, [run.tokens, 1, headDim]);
    });
  return [table('cos', Math.cos), table('sin', Math.sin)];
}
