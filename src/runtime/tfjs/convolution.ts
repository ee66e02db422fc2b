import type { CausalConv } from '../../architecture/layer.js';
import type { Tensor3D, Tensor4D } from './library.js';
import { type Run, valuesOf } from './run.js';

/** x [B, T, D]: Σ_k weight[:, 0, k] · x, kernel − 1 − k tokens before, + bias. */
export function causalConv(run: Run, layer: CausalConv, x: Tensor3D): Tensor3D {
  const { tf, weights, decoding } = run;
  const [batch, tokens, channels] = x.shape;
  const kernel = layer.weight.shape[2] ?? 1;
  const past: [number, number, number] = [batch, kernel - 1, channels];
  const before = decoding?.before.convolutions.get(layer);
  const padding: Tensor3D = before ? tf.tensor3d(before, past) : tf.zeros(past);
  const padded: Tensor3D = tf.concat([padding, x], 1); // (B, kernel − 1 + T, D)
  decoding?.after.convolutions.set(layer, valuesOf(tf.slice(padded, [0, tokens, 0], past)));
  // Time as the height of an image that is one pixel wide.
  const image: Tensor4D = tf.reshape(padded, [batch, kernel - 1 + tokens, 1, channels]);
  const filter: Tensor4D = tf.reshape(weights.transposed(layer.weight), [kernel, 1, channels, 1]);
  const mixed = tf.depthwiseConv2d(image, filter, 1, 'valid'); // (B, T, 1, D)
  return tf.reshape(tf.add(mixed, weights.tensor(layer.bias)), [batch, tokens, channels]);
}
