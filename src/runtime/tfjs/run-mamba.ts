import type { CausalConv, Mamba } from '../../architecture/layer.js';
import { activate } from './differentiable.js';
import type { Tensor3D, Tensor4D, Tf } from './packages.js';
import type { ForwardRun } from './run.js';
import { readValues } from './run.js';
import { selectiveScan } from './selective-scan.js';

/** x [B, T, D]: Σ_k weight[:, 0, k] · x, kernel − 1 − k tokens before, + bias. */
export function runCausalConv(run: ForwardRun, layer: CausalConv, x: Tensor3D): Tensor3D {
  const { tf, weights, decoding } = run;
  const [batch, tokens, channels] = x.shape;
  const kernel = layer.weight.shape[2] ?? 1;
  const past: [number, number, number] = [batch, kernel - 1, channels];
  const before = decoding?.before.convolutions.get(layer);
  const padding: Tensor3D = before ? tf.tensor3d(before, past) : tf.zeros(past);
  const padded: Tensor3D = tf.concat([padding, x], 1); // (B, kernel − 1 + T, D)
  decoding?.after.convolutions.set(layer, readValues(tf.slice(padded, [0, tokens, 0], past)));
  // Time is the height of an image with a width of one pixel.
  const image: Tensor4D = tf.reshape(padded, [batch, kernel - 1 + tokens, 1, channels]);
  const filter: Tensor4D = tf.reshape(weights.transposed(layer.weight), [kernel, 1, channels, 1]);
  const mixed = tf.depthwiseConv2d(image, filter, 1, 'valid'); // (B, T, 1, D)
  const sum = layer.bias ? tf.add(mixed, weights.tensor(layer.bias)) : mixed;
  return tf.reshape(sum, [batch, tokens, channels]);
}

/** u [B, T, H] → [B, T, H]. */
export function runMamba(run: ForwardRun, layer: Mamba, u: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const { innerSize, stateSize, stepRank, dtProj, skip } = layer;
  const [input, residual] = split(tf, run.apply(layer.inProj, u), [innerSize, innerSize]);
  const x = activate(tf, 'silu', run.apply(layer.conv, input)); // (B, T, D)
  const projected = run.apply(layer.xProj, x);
  const [low, b, c] = split(tf, projected, [stepRank, stateSize, stateSize]);
  const biased = run.apply(dtProj, low);
  // The bias is added a second time, as in the original.
  const step: Tensor3D = tf.softplus(
    dtProj.bias ? tf.add(biased, weights.tensor(dtProj.bias)) : biased,
  );
  const scanned = scan(run, layer, { step, x, b, c });
  const y = tf.add(scanned, tf.mul(x, weights.tensor(skip)));
  return run.apply(layer.outProj, tf.mul(y, activate(tf, 'silu', residual)));
}

interface ScanTensors {
  /** [B, T, D] */
  readonly step: Tensor3D;
  readonly x: Tensor3D;
  /** [B, T, N] */
  readonly b: Tensor3D;
  readonly c: Tensor3D;
}

/** Runs the scan on plain values, from the state of the previous run. */
function scan(run: ForwardRun, layer: Mamba, { step, x, b, c }: ScanTensors): Tensor3D {
  const { tf, weights, batch, tokens, decoding } = run;
  const { innerSize, stateSize } = layer;
  const before = decoding?.before.scans.get(layer);
  const state = before?.slice() ?? new Float32Array(batch * innerSize * stateSize);
  const output = selectiveScan({
    sizes: { batch, tokens, inner: innerSize, state: stateSize },
    step: readValues(step),
    x: readValues(x),
    b: readValues(b),
    c: readValues(c),
    rates: weights.rates(layer.stateLog),
    state,
  });
  decoding?.after.scans.set(layer, state);
  return tf.tensor3d(output, [batch, tokens, innerSize]);
}

/** Splits the last axis into parts of these sizes. */
function split<const Sizes extends readonly number[]>(tf: Tf, x: Tensor3D, sizes: Sizes) {
  return tf.split(x, [...sizes], 2) as { [Part in keyof Sizes]: Tensor3D };
}
