import type { ActivationName } from '../../architecture/layer.js';
import type { Tensor, Tf } from './library.js';

type Activate = <T extends Tensor>(tf: Tf, x: T) => T;

/** x · σ(slope · x) */
const gated = <T extends Tensor>(tf: Tf, x: T, slope: number): T =>
  tf.mul(x, tf.sigmoid(slope === 1 ? x : tf.mul(x, slope)));

const ACTIVATE = {
  silu: (tf, x) => gated(tf, x, 1),
  // x · Φ(x)
  gelu: (tf, x) => tf.mul(tf.mul(x, 0.5), tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1)),
  // (1 + tanh(u)) / 2 is σ(2u), with u = sqrt(2 / π) · (x + 0.044715 · x³)
  geluTanh: (tf, x) => {
    const bent = tf.add(tf.mul(tf.square(x), 0.044715), 1);
    return tf.mul(x, tf.sigmoid(tf.mul(tf.mul(x, 2 * Math.sqrt(2 / Math.PI)), bent)));
  },
  quickGelu: (tf, x) => gated(tf, x, 1.702),
  relu: (tf, x) => tf.relu(x),
  reluSquared: (tf, x) => tf.square(tf.relu(x)),
} as const satisfies Record<ActivationName, Activate>;

/** Elementwise. */
export function activate<T extends Tensor>(tf: Tf, fn: ActivationName, x: T): T {
  return (ACTIVATE[fn] as Activate)(tf, x);
}
