/**
 * Operations with their gradients: the library's package for Node registers none. Products are of two matrices, neither
 * transposed, with the smaller one on the right: on the wasm backend all others take far longer.
 */
import type { ActivationName } from '../../model/architecture/layer.js';
import { LAPLACE } from '../../model/architecture/layer.js';
import type { TrainedActivation } from '../trainer.js';
import type { Tensor, Tensor1D, Tensor2D, Tf } from './packages.js';

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
    const factor = tf.add(tf.mul(tf.square(x), 0.044715), 1);
    return tf.mul(x, tf.sigmoid(tf.mul(tf.mul(x, 2 * Math.sqrt(2 / Math.PI)), factor)));
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
  identity: (_, x) => x,
  softplus: (tf, x) => tf.softplus(x),
  sqrtSoftplus: (tf, x) => tf.sqrt(tf.softplus(x)),
  laplace: (tf, x) => normal(tf, tf.div(tf.sub(x, LAPLACE.mean), LAPLACE.deviation)),
} as const satisfies Record<ActivationName, Activate>;

/** Applies an activation function elementwise. */
export function activate<T extends Tensor>(tf: Tf, fn: ActivationName, x: T): T {
  return (ACTIVATE[fn] as Activate)(tf, x);
}

/** A scalar. */
export type Loss = Tensor;

interface DifferentiableOperation<T extends Tensor> {
  readonly inputs: readonly Tensor[];
  /** Tensors that `backward` reads, in its order: they outlive the scope that created them. */
  readonly saved: Tensor[];
  readonly value: () => T;
  /** The gradient of each input from the gradient of the value. */
  readonly backward: (dy: T, saved: Tensor[]) => Tensor[];
}

function apply<T extends Tensor>(
  tf: Tf,
  { inputs, saved, value, backward }: DifferentiableOperation<T>,
): T {
  const operation = tf.customGrad((...given) => {
    const save = given.at(-1) as (tensors: Tensor[]) => void;
    save(saved);
    return { value: value(), gradFunc: backward };
  });
  return operation(...inputs) as T;
}

/** x · weightᵀ + bias; x [N, in], weight [out, in], bias [out] → [N, out]. The data has no gradient. */
export function differentiableLinear(
  tf: Tf,
  x: Tensor2D,
  { weight, bias, ofData }: { weight: Tensor2D; bias: Tensor1D; ofData: boolean },
): Tensor2D {
  return apply(tf, {
    inputs: ofData ? [weight, bias] : [weight, bias, x],
    saved: ofData ? [x] : [x, weight],
    value: () => tf.add(tf.transpose(tf.matMul(weight, tf.transpose(x))), bias),
    backward: (dy, [input, factor]) => {
      const dyColumns: Tensor2D = tf.transpose(dy);
      return [
        tf.matMul(dyColumns, input as Tensor2D),
        tf.sum(dy, 0),
        ...(factor ? [tf.transpose(tf.matMul(tf.transpose(factor as Tensor2D), dyColumns))] : []),
      ];
    },
  });
}

/** Each row with mean 0 and variance 1, times weight plus bias; x [N, H] is data. → [N, H] */
export function layerNormOfData(
  tf: Tf,
  x: Tensor2D,
  { weight, bias, epsilon }: { weight: Tensor1D; bias: Tensor1D; epsilon: number },
): Tensor2D {
  const normed = normalized(tf, x, epsilon);
  return apply(tf, {
    inputs: [weight, bias],
    saved: [normed],
    value: () => tf.add(tf.mul(normed, weight), bias),
    backward: (dy, [rows]) => [tf.sum(tf.mul(dy, rows as Tensor2D), 0), tf.sum(dy, 0)],
  });
}

/** Each row (of the last dimension) with mean 0 and variance 1. */
export function normalized<T extends Tensor>(tf: Tf, x: T, epsilon: number): T {
  const centred = tf.sub(x, tf.mean(x, -1, true));
  const variance = tf.mean(tf.square(centred), -1, true);
  return tf.mul(centred, tf.rsqrt(tf.add(variance, epsilon)));
}

type Slope = (tf: Tf, x: Tensor2D) => Tensor2D;

/** Derivatives of the activations, from their input. */
const SLOPES = {
  silu: (tf, x) => {
    const gate = tf.sigmoid(x);
    // σ · (1 + x · (1 − σ))
    return tf.mul(gate, tf.add(tf.mul(x, tf.sub(1, gate)), 1));
  },
  // 0 at 0, as in PyTorch.
  relu: (tf, x) => tf.cast(tf.greater(x, 0), 'float32'),
  // Φ(x) + x · φ(x), of the normal distribution
  gelu: (tf, x) => {
    const density = tf.mul(tf.exp(tf.mul(tf.square(x), -0.5)), 1 / Math.sqrt(2 * Math.PI));
    return tf.add(normal(tf, x), tf.mul(x, density));
  },
} as const satisfies Record<TrainedActivation, Slope>;

const differentiable =
  (fn: TrainedActivation) =>
  (tf: Tf, x: Tensor2D): Tensor2D =>
    apply(tf, {
      inputs: [x],
      saved: [x],
      value: () => activate(tf, fn, x),
      backward: (dy, [input = x]) => [tf.mul(dy, SLOPES[fn](tf, input as Tensor2D))],
    });

/** Activation functions with their gradients. */
export const TRAINED_ACTIVATIONS = {
  silu: differentiable('silu'),
  relu: differentiable('relu'),
  gelu: differentiable('gelu'),
} as const satisfies Record<TrainedActivation, ReturnType<typeof differentiable>>;

/** Dropout in training: x times a mask that is not a parameter. */
export const masked = (tf: Tf, x: Tensor2D, mask: Tensor2D): Tensor2D =>
  apply(tf, {
    inputs: [x],
    saved: [mask],
    value: () => tf.mul(x, mask),
    backward: (dy, [kept = mask]) => [tf.mul(dy, kept)],
  });

/** Mean over all elements. */
export const meanSquaredError = (tf: Tf, y: Tensor2D, target: Tensor2D): Loss =>
  apply<Loss>(tf, {
    inputs: [y],
    saved: [y, target],
    value: () => tf.mean(tf.square(tf.sub(y, target))),
    backward: (dy, [found = y, wanted = target]) => [
      tf.mul(tf.sub(found, wanted), tf.mul(dy, 2 / y.size)),
    ],
  });
