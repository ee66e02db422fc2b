/** The layers of RWKV-4. Shapes: B batch, T tokens of this run, H hidden, W width. */
import type { RwkvChannelMix, RwkvTimeMix } from '../../../model/architecture/layer.js';
import type { Tensor, Tensor2D, Tensor3D } from '../packages.js';
import { type ForwardRun, readValues } from '../run.js';

/** Exponent before the first token. */
const LEAST = -1e30;

/** Mixes of each token of x [B, T, H] with the one before it. */
function tokenMixes(
  { tf, weights, batch, tokens, decoding }: ForwardRun,
  layer: RwkvTimeMix | RwkvChannelMix,
  x: Tensor3D,
): Tensor3D[] {
  const { hidden } = layer;
  const known = decoding?.before.convolutions.get(layer);
  const first: Tensor3D = known
    ? tf.tensor3d(known, [batch, 1, hidden])
    : tf.zeros([batch, 1, hidden]);
  decoding?.after.convolutions.set(
    layer,
    readValues(tf.slice(x, [0, tokens - 1, 0], [batch, 1, hidden])).slice(),
  );
  const before: Tensor3D =
    tokens === 1
      ? first
      : tf.concat([first, tf.slice(x, [0, 0, 0], [batch, tokens - 1, hidden])], 1);
  return layer.mixes.map((mix): Tensor3D => {
    const weight = weights.tensor(mix);
    return tf.add(tf.mul(x, weight), tf.mul(before, tf.sub(1, weight)));
  });
}

/** x [B, T, H] → [B, T, H]. */
export function runRwkvTimeMix(run: ForwardRun, layer: RwkvTimeMix, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const [keys, values, receptances] = tokenMixes(run, layer, x) as [Tensor3D, Tensor3D, Tensor3D];
  const means = weightedMeans(
    run,
    layer,
    run.apply(layer.key, keys),
    run.apply(layer.value, values),
  );
  const gate = tf.sigmoid(run.apply(layer.receptance, receptances));
  return run.apply(layer.output, tf.mul(gate, means));
}

/** Means of the values, token by token; keys and values [B, T, W]. */
function weightedMeans(
  run: ForwardRun,
  layer: RwkvTimeMix,
  keys: Tensor3D,
  values: Tensor3D,
): Tensor3D {
  const { tf, weights, batch, decoding } = run;
  const width = keys.shape[2];
  const decay = tf.neg(tf.exp(weights.tensor(layer.timeDecay)));
  const first = weights.tensor(layer.timeFirst);
  const known = decoding?.before.scans.get(layer);
  let [numerator, denominator, most] = (
    known
      ? tf.split(tf.tensor2d(known, [batch, 3 * width]), 3, 1)
      : [tf.zeros([batch, width]), tf.zeros([batch, width]), tf.fill([batch, width], LEAST)]
  ) as [Tensor, Tensor, Tensor];
  const valuesOf = tf.unstack(values, 1);
  const means = tf.unstack(keys, 1).map((key, token): Tensor => {
    const value = valuesOf[token] as Tensor;
    const joined = (old: Tensor, own: Tensor) => {
      const larger = tf.maximum(old, own);
      const [e1, e2] = [tf.exp(tf.sub(old, larger)), tf.exp(tf.sub(own, larger))];
      return {
        larger,
        numerator: tf.add(tf.mul(e1, numerator), tf.mul(e2, value)),
        denominator: tf.add(tf.mul(e1, denominator), e2),
      };
    };
    const seen = joined(most, tf.add(key, first));
    const next = joined(tf.add(most, decay), key);
    [numerator, denominator, most] = [next.numerator, next.denominator, next.larger];
    return tf.div(seen.numerator, seen.denominator);
  });
  decoding?.after.scans.set(
    layer,
    readValues(tf.concat([numerator, denominator, most] as Tensor2D[], 1)).slice(),
  );
  return tf.stack(means, 1) as Tensor3D;
}

/** x [B, T, H] → [B, T, H]. */
export function runRwkvChannelMix(run: ForwardRun, layer: RwkvChannelMix, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const [keys, receptances] = tokenMixes(run, layer, x) as [Tensor3D, Tensor3D];
  const values = run.apply(layer.value, tf.square(tf.relu(run.apply(layer.key, keys))));
  return tf.mul(tf.sigmoid(run.apply(layer.receptance, receptances)), values);
}
