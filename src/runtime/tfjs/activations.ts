import { type ActivationName, LAPLACE } from '../../architecture/layer.js';
import type { Tensor, Tf } from './library.js';

type Activate = <T extends Tensor>(tf: Tf, x: T) => T;

/** x · σ(slope · x) */
const gated = <T extends Tensor>(tf: Tf, x: T, slope: number): T =>
  tf.mul(x, tf.sigmoid(slope === 1 ? x : tf.mul(x, slope)));

/** Φ(x), of the normal distribution. */
const normal = <T extends Tensor>(tf: Tf, x: T): T =>
  tf.mul(tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1), 0.5);

const ACTIVATE = {
  silu: (tf, x) => gated(tf, x, 1),
  gelu: (tf, x) => tf.mul(x, normal(tf, x)),
  // (1 + tanh(u)) / 2 is σ(2u), with u = sqrt(2 / π) · (x + 0.044715 · x³)
  geluTanh: (tf, x) => {
    const bent = tf.add(tf.mul(tf.square(x), 0.044715), 1);
    return tf.mul(x, tf.sigmoid(tf.mul(tf.mul(x, 2 * Math.sqrt(2 / Math.PI)), bent)));
  },
  quickGelu: (tf, x) => gated(tf, x, 1.702),
  relu: (tf, x) => tf.relu(x),
  reluSquared: (tf, x) => tf.square(tf.relu(x)),
  relu6: (tf, x) => tf.relu6(x),
  leakyRelu: (tf, x) => tf.leakyRelu(x, 0.01),
  geluClipped: (tf, x) => tf.clipByValue(tf.mul(x, normal(tf, x)), -10, 10),
  hardSwish: (tf, x) => tf.mul(x, tf.div(tf.relu6(tf.add(x, 3)), 6)),
  mish: (tf, x) => tf.mul(x, tf.tanh(tf.softplus(x))),
  tanh: (tf, x) => tf.tanh(x),
  sigmoid: (tf, x) => tf.sigmoid(x),
  laplace: (tf, x) => normal(tf, tf.div(tf.sub(x, LAPLACE.mean), LAPLACE.deviation)),
} as const satisfies Record<ActivationName, Activate>;

/** Elementwise. */
export function activate<T extends Tensor>(tf: Tf, fn: ActivationName, x: T): T {
  return (ACTIVATE[fn] as Activate)(tf, x);
}
