/** The recurrent block of Griffin. Shapes: B batch, T tokens of this run, W width. */
import {
  type BlockDiagonal,
  type GriffinRecurrence,
  RECURRENCE_FACTOR,
} from '../../../model/architecture/layer.js';
import { activate } from '../differentiable.js';
import type { Tensor, Tensor2D, Tensor3D } from '../packages.js';
import { type ForwardRun, readValues } from '../run.js';

/** x [B, T, W] → [B, T, W], as a product of plain matrices for each head. */
export function runBlockDiagonal(
  { tf, weights }: ForwardRun,
  { weight, bias }: BlockDiagonal,
  x: Tensor3D,
): Tensor3D {
  const [heads = 0, size = 0] = weight.shape;
  const rows: Tensor2D = tf.reshape(x, [-1, heads * size]);
  const matrices = weights.tensor(weight);
  const products = Array.from({ length: heads }, (_, head): Tensor2D => {
    const part: Tensor2D = tf.slice(rows, [0, head * size], [-1, size]);
    const matrix = tf.reshape(tf.slice(matrices, [head, 0, 0], [1, size, size]), [size, size]);
    return tf.matMul(part, matrix as Tensor2D);
  });
  const joined = tf.reshape(tf.concat(products, 1), x.shape);
  return tf.add(joined, tf.reshape(weights.tensor(bias), [heads * size]));
}

/** u [B, T, H] → [B, T, H]. */
export function runGriffin(run: ForwardRun, layer: GriffinRecurrence, u: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const y = activate(tf, layer.activation, run.apply(layer.y, u));
  const x = run.apply(layer.conv, run.apply(layer.x, u));
  const input: Tensor3D = tf.mul(x, tf.sigmoid(run.apply(layer.inputGate, x)));
  const rate = tf.mul(tf.softplus(weights.tensor(layer.decay)), -RECURRENCE_FACTOR);
  const log: Tensor3D = tf.mul(tf.sigmoid(run.apply(layer.recurrentGate, x)), rate);
  const added: Tensor3D = tf.mul(input, rootOrOne(run, log));
  const h = recurrence(run, layer, tf.exp(log), added);
  return run.apply(layer.out, tf.mul(y, h));
}

/** √(1 − a²), and 1 for the first token of a sequence: [B, T, W]. */
function rootOrOne({ tf, start, tokens }: ForwardRun, log: Tensor3D): Tensor3D {
  const others = tf.tensor3d(
    Float32Array.from({ length: tokens }, (_, token) => (start + token === 0 ? 0 : 1)),
    [1, tokens, 1],
  );
  // The root of 1 where it is not used: that of 0 has no gradient.
  const square = tf.mul(tf.exp(tf.mul(log, 2)), others);
  return tf.sqrt(tf.sub(1, square));
}

/** h = a · h + x, token by token; a, x [B, T, W]. */
function recurrence(
  { tf, batch, tokens, decoding }: ForwardRun,
  layer: GriffinRecurrence,
  decays: Tensor3D,
  x: Tensor3D,
): Tensor3D {
  const width = x.shape[2];
  const before = decoding?.before.scans.get(layer);
  let state: Tensor2D = before ? tf.tensor2d(before, [batch, width]) : tf.zeros([batch, width]);
  const [decaysOf, inputsOf] = [decays, x].map((each) => tf.unstack(each, 1)) as [
    Tensor[],
    Tensor[],
  ];
  const states = Array.from({ length: tokens }, (_, token): Tensor2D => {
    state = tf.add(tf.mul(state, decaysOf[token] as Tensor2D), inputsOf[token] as Tensor2D);
    return state;
  });
  decoding?.after.scans.set(layer, readValues(state).slice());
  return tf.stack(states, 1) as Tensor3D;
}
