import type { Embedding, LayerNorm, Linear } from '../../architecture/layer.js';
import type { Tensor2D, Tensor3D, Tf } from './library.js';
import type { Run } from './run.js';

/** The rows of the ids, [B, T, H]. */
export function embedding({ tf, weights, ids }: Run, { name, weight }: Embedding): Tensor3D {
  if (!ids) throw new TypeError(`${name} needs token ids`);
  const [, hidden = 0] = weight.shape;
  const found = tf.gather(weights.tensor(weight), tf.tensor1d(ids.data, 'int32')); // (B·T, H)
  return tf.reshape(found, [ids.batch, ids.tokens, hidden]);
}

/**
 * x [B, T, in] → [B, T, out]. As one product of two matrices, neither transposed: the wasm backend is 10 to
 * 20 times slower at any other.
 */
export function linear({ tf, weights }: Run, { weight, bias }: Linear, x: Tensor3D): Tensor3D {
  const [batch, tokens, from] = x.shape;
  const [to = 0] = weight.shape;
  const rows: Tensor2D = tf.reshape(x, [batch * tokens, from]);
  const product = tf.matMul(rows, weights.transposed(weight)); // (B·T, out)
  const result = bias ? tf.add(product, weights.tensor(bias)) : product;
  return tf.reshape(result, [batch, tokens, to]);
}

export function layerNorm({ tf, weights }: Run, layer: LayerNorm, x: Tensor3D): Tensor3D {
  const centred = tf.sub(x, tf.mean(x, -1, true));
  const variance = tf.mean(tf.square(centred), -1, true);
  const normed = tf.mul(centred, tf.rsqrt(tf.add(variance, layer.eps)));
  return tf.add(tf.mul(normed, weights.tensor(layer.weight)), weights.tensor(layer.bias));
}

/** x · Φ(x) */
export function gelu(tf: Tf, x: Tensor3D): Tensor3D {
  return tf.mul(tf.mul(x, 0.5), tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1));
}
