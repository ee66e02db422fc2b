/** AltUp. Shapes: B batch, T tokens, N streams, H hidden. */
import type { AltUpBlock, AltUpMerge, AltUpSplit } from '../../architecture/layer.js';
import { ALTUP_LEAST } from '../../architecture/layer.js';
import { inputWidth } from '../../architecture/walk.js';
import type { Tensor3D } from './packages.js';
import type { ForwardRun } from './run.js';

/** Each product with the root mean square of `like`. */
function scaledLike({ tf }: ForwardRun, products: readonly Tensor3D[], like: Tensor3D): Tensor3D[] {
  const meanSquare = (x: Tensor3D) => tf.mean(tf.square(x), 2, true);
  const wanted = tf.sqrt(meanSquare(like));
  return products.map((x): Tensor3D => {
    const found = tf.sqrt(tf.maximum(meanSquare(x), ALTUP_LEAST));
    return tf.mul(x, tf.div(wanted, found));
  });
}

/** x [B, T, H] → [B, T, N · H]. */
export function runAltUpSplit(run: ForwardRun, layer: AltUpSplit, x: Tensor3D): Tensor3D {
  const products = layer.projections.map((each) => run.apply(each, x));
  return run.tf.concat([x, ...scaledLike(run, products, x)], 2);
}

/** x [B, T, N · H] → [B, T, H]. */
export function runAltUpMerge(run: ForwardRun, { projections }: AltUpMerge, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const count = projections.length + 1;
  const [own, ...others] = tf.split(x, count, 2) as [Tensor3D, ...Tensor3D[]];
  const products = projections.map((each, index) => run.apply(each, others[index] as Tensor3D));
  const sum = scaledLike(run, products, own).reduce((a, b): Tensor3D => tf.add(a, b), own);
  return tf.mul(sum, 1 / count);
}

/** x [B, T, N · H] → the same. */
export function runAltUpBlock(run: ForwardRun, layer: AltUpBlock, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const { router, routerNorm, active } = layer;
  const hidden = inputWidth(router);
  const count = inputWidth(layer.correction);
  /** Coefficients of the streams, [B, T, N]. */
  const routed = (value: Tensor3D): Tensor3D =>
    tf.tanh(run.apply(router, tf.mul(run.apply(routerNorm, value), 1 / hidden)));
  const streams = tf.split(x, count, 2) as Tensor3D[];
  const mixing = run.apply(layer.prediction, routed(streams[active] as Tensor3D)); // (B, T, N · N)
  const columns = tf.split(mixing, count * count, 2) as Tensor3D[];
  const predicted = streams.map((stream, to) =>
    streams.reduce(
      (sum, from, index): Tensor3D =>
        tf.add(sum, tf.mul(from, columns[to * count + index] as Tensor3D)),
      stream,
    ),
  );
  const own = predicted[active] as Tensor3D;
  const computed = run.apply(layer.inner, own);
  const change: Tensor3D = tf.sub(computed, own);
  const shares = tf.split(
    tf.add(run.apply(layer.correction, routed(computed)), 1),
    count,
    2,
  ) as Tensor3D[];
  const corrected = predicted.map(
    (stream, index): Tensor3D => tf.add(stream, tf.mul(change, shares[index] as Tensor3D)),
  );
  const chosen = corrected[active] as Tensor3D;
  const given: Tensor3D = layer.isScaled
    ? tf.mul(chosen, run.weights.tensor(layer.outputScale))
    : chosen;
  const added = run.apply(layer.perLayer, given);
  return tf.concat(
    corrected.map((stream, index): Tensor3D => (index === 0 ? stream : tf.add(stream, added))),
    2,
  );
}
