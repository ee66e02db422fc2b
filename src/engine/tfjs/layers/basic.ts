import type {
  AltUpBlock,
  AltUpMerge,
  AltUpSplit,
  Embedding,
  FusedProjection,
  GatedMlp,
  GatedRmsNorm,
  HeadNorms,
  LayerNorm,
  LearnedPositions,
  Linear,
  PerLayerInputs,
  Projections,
  RmsNorm,
  Rotary,
  SinusoidalPositions,
  Srte,
  TransposedLinear,
} from '../../../model/architecture/layer.js';
import { ALTUP_LEAST, cosinesOf, valuesInTurn } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import {
  amplitudeOf,
  dependsOnLength,
  rotaryFrequencies,
} from '../../../model/architecture/rotary-scaling.js';
import { inputWidth, normWidth, projectionLayers } from '../../../model/architecture/walk.js';
import { activate, normalized } from '../differentiable.js';
import type { Tensor, Tensor2D, Tensor3D, Tensor4D, Tf } from '../packages.js';
import type { ForwardRun } from '../run.js';

/** Embedding rows of the ids, [B, T, H]. */
export function runEmbedding(
  { tf, weights, ids, batch, tokens }: ForwardRun,
  { weight }: Embedding,
): Tensor3D {
  const [, hidden = 0] = weight.shape;
  const rows = tf.tensor1d(ids?.data ?? new Int32Array(batch * tokens), 'int32');
  const found = tf.gather(weights.tensor(weight), rows); // (B·T, H)
  return tf.reshape(found, [batch, tokens, hidden]);
}

/** The values of every block, [B, T, layers · width]. */
export function runPerLayerInputs(run: ForwardRun, layer: PerLayerInputs): Tensor3D {
  const { tf } = run;
  const embedded: Tensor3D = tf.mul(run.apply(layer.embedding), layer.embeddingScale);
  const projected: Tensor3D = tf.mul(run.apply(layer.projection, embedded), layer.projectionScale);
  const own: Tensor3D = tf.mul(run.apply(layer.table), layer.tableScale);
  return tf.mul(tf.add(run.apply(layer.norm, projected), own), layer.scale);
}

/** x [B, T, in] → [B, T, out]. */
export function runLinear(run: ForwardRun, { weight, bias }: Linear, x: Tensor3D): Tensor3D {
  return matrixProduct(run, x, run.weights.transposed(weight), bias);
}

/** x [B, T, in] → [B, T, out]. */
export function runTransposedLinear(
  run: ForwardRun,
  { weight, bias }: TransposedLinear,
  x: Tensor3D,
): Tensor3D {
  return matrixProduct(run, x, run.weights.factor(weight), bias);
}

/**
 * Product of two matrices, neither transposed: the wasm backend is 10 to 20 times slower otherwise.
 * @param factor [in, out]
 */
export function matrixProduct(
  { tf, weights }: ForwardRun,
  x: Tensor3D,
  factor: Tensor2D,
  bias: Param | undefined,
): Tensor3D {
  const [batch, tokens] = x.shape;
  const result = tf.matMul(asRows(tf, x), factor); // (B·T, out)
  return tf.reshape(bias ? tf.add(result, weights.tensor(bias)) : result, [batch, tokens, -1]);
}

/** x [B, T, in] → [B·T, in]. */
export function asRows(tf: Tf, x: Tensor3D): Tensor2D {
  const [batch, tokens, width] = x.shape;
  return tf.reshape(x, [batch * tokens, width]);
}

/** Normalises every `size` values: the last dimension, or parts of it. */
export function runLayerNorm({ tf, weights }: ForwardRun, layer: LayerNorm, x: Tensor3D): Tensor3D {
  const { weight, bias, eps, offset, size } = layer;
  const rows: Tensor3D = tf.reshape(x, [-1, (weight?.elements ?? size) / size, size]);
  const normed = normalized(tf, rows, eps);
  const factor = weight && weights.tensor(weight);
  const scaled = factor ? tf.mul(normed, offset === 0 ? factor : tf.add(factor, offset)) : normed;
  const moved = bias ? tf.add(scaled, weights.tensor(bias)) : scaled;
  return tf.reshape(moved, x.shape);
}

/** Norms the heads of x [B, T, heads · d], each with its own norm. */
export function runHeadNorms(run: ForwardRun, { norms }: HeadNorms, x: Tensor3D): Tensor3D {
  const parts = run.tf.split(x, norms.map(normWidth), 2);
  return run.tf.concat(
    norms.map((norm, index) => run.apply(norm, parts[index] as Tensor3D)),
    2,
  );
}

/** Normalises each part of the last dimension with the size of the norm: each head, or all of it. */
export function runRmsNorm({ tf, weights }: ForwardRun, layer: RmsNorm, x: Tensor3D): Tensor3D {
  const parts = normedParts(tf, x, layer.size, layer.eps);
  if (!layer.weight) return tf.reshape(parts, x.shape);
  const weight = weights.tensor(layer.weight);
  const scaled = tf.mul(parts, layer.offset === 0 ? weight : tf.add(weight, layer.offset));
  return tf.reshape(scaled, x.shape);
}

/** x and gate [B, T, W] → [B, T, W]. */
export function runGatedRmsNorm(
  { tf, weights }: ForwardRun,
  layer: GatedRmsNorm,
  x: Tensor3D,
  gate: Tensor3D,
): Tensor3D {
  const opened = activate(tf, layer.activation, gate);
  const input: Tensor3D = layer.gated === 'before' ? tf.mul(x, opened) : x;
  const weight = weights.tensor(layer.weight);
  const parts = normedParts(tf, input, layer.width / layer.groups, layer.eps);
  const normed: Tensor3D = tf.reshape(
    tf.mul(tf.reshape(parts, [-1, layer.weight.elements]), weight),
    x.shape,
  );
  return layer.gated === 'after' ? tf.mul(normed, opened) : normed;
}

/** The parts of `size` values, each with a root mean square of 1. */
export function normedParts(tf: Tf, x: Tensor3D, size: number, eps: number): Tensor2D {
  const parts: Tensor2D = tf.reshape(x, [-1, size]);
  const meanSquare = tf.mean(tf.square(parts), -1, true);
  return tf.mul(parts, tf.rsqrt(tf.add(meanSquare, eps)));
}

/** x [B, T, H] plus the rows of the positions of this run. */
export function runLearnedPositions(
  { tf, weights, start, tokens }: ForwardRun,
  { weight, offset }: LearnedPositions,
  x: Tensor3D,
): Tensor3D {
  const table = weights.tensor(weight) as Tensor2D;
  return tf.add(x, tf.slice(table, [offset + start, 0], [tokens, -1]));
}

/** x [B, T, H] plus sines and cosines of the positions of this run. */
export function runSinusoidalPositions(
  { tf, start, tokens }: ForwardRun,
  layer: SinusoidalPositions,
  x: Tensor3D,
): Tensor3D {
  const { frequencies, size, offset, zeroAt } = layer;
  const rows = new Float32Array(tokens * size);
  for (let token = 0; token < tokens; token++) {
    const position = start + token + offset;
    if (position === zeroAt) continue;
    const angles = frequencies.map((frequency) => Math.fround(position * Math.fround(frequency)));
    const columns = [
      ...angles.map((angle) => Math.sin(angle)),
      ...angles.slice(0, cosinesOf(layer)).map((angle) => Math.cos(angle)),
    ];
    rows.set(columns, token * size);
  }
  return tf.add(x, tf.tensor2d(rows, [tokens, size]));
}

/** cap · tanh(x / cap) */
export function applySoftcap<T extends Tensor>(tf: Tf, x: T, cap: number): T {
  return tf.mul(tf.tanh(tf.div(x, cap)), cap);
}

/** The rows of the positions of this run, [1, T, H]; once for all blocks that share them. */
export function runSrte(run: ForwardRun, layer: Srte): Tensor3D {
  return run.once(layer, () => srteRows(run, layer));
}

function srteRows(run: ForwardRun, layer: Srte): Tensor3D {
  const { tf, weights, start, tokens } = run;
  switch (layer.kind) {
    case 'srteTable': {
      const table = weights.tensor(layer.table) as Tensor3D;
      return tf.slice(table, [0, start, 0], [1, tokens, -1]);
    }
    case 'srteLowRank': {
      const table = weights.tensor(layer.lowRank) as Tensor3D;
      return run.apply(layer.projection, tf.slice(table, [0, start, 0], [1, tokens, -1]));
    }
    case 'srteSincos': {
      const positions: Tensor2D = tf.reshape(tf.range(start, start + tokens), [tokens, 1]);
      const angles: Tensor2D = tf.mul(positions, weights.tensor(layer.inverseFrequencies));
      const pairs = tf.stack([tf.sin(angles), tf.cos(angles)], 2); // (T, H / 2, 2)
      return tf.reshape(pairs, [1, tokens, 2 * layer.inverseFrequencies.elements]);
    }
  }
}

/** Projections of x [B, T, in], each [B, T, its width]. */
export function runProjections(run: ForwardRun, inputs: Projections, x: Tensor3D): Tensor3D[] {
  return projectionLayers(inputs).flatMap((each) =>
    each.kind === 'fusedProjection' ? runFusedProjection(run, each, x) : [run.apply(each, x)],
  );
}

/** One product, split into its values. */
export function runFusedProjection(
  run: ForwardRun,
  layer: FusedProjection,
  x: Tensor3D,
): Tensor3D[] {
  const { tf } = run;
  const [batch, tokens] = x.shape;
  const { projection, widths, groups } = layer;
  const product = run.apply(projection, x);
  const columns = widths.reduce((sum, width) => sum + width, 0);
  const grouped: Tensor3D = tf.reshape(product, [-1, groups, columns / groups]);
  let from = 0;
  const values = widths.map((width): Tensor3D => {
    const part = tf.slice(grouped, [0, 0, from], [-1, groups, width / groups]);
    from += width / groups;
    return tf.reshape(part, [batch, tokens, width]);
  });
  return valuesInTurn(layer, values);
}

/** x [B, T, H] → [B, T, H]. */
export function runGatedMlp(run: ForwardRun, layer: GatedMlp, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const [gate, up] = runProjections(run, layer.inputs, x) as [Tensor3D, Tensor3D];
  const { gateScale = 1 } = layer;
  const scaled: Tensor3D = gateScale === 1 ? gate : tf.mul(gate, gateScale);
  const inner = gatedValues(tf, layer, aboveCutoff(tf, layer, scaled), up);
  return run.apply(layer.down, inner);
}

/** activation(gate) · up, within limits if there are any. */
export function gatedValues<T extends Tensor2D | Tensor3D>(
  tf: Tf,
  { activation, limits }: Pick<GatedMlp, 'activation' | 'limits'>,
  gate: T,
  up: T,
): T {
  if (!limits) return tf.mul(activate(tf, activation, gate), up);
  const { limit, sharpness, raise } = limits;
  const opened = activate(tf, activation, tf.mul(tf.minimum(gate, limit), sharpness) as T);
  const raised = tf.add(tf.clipByValue(up, -limit, limit), raise);
  return tf.mul(tf.div(opened, sharpness), raised);
}

/** max(gate − cutoff, 0), see `GatedMlp`. */
function aboveCutoff(tf: Tf, { cutoffDeviations }: GatedMlp, gate: Tensor3D): Tensor3D {
  if (cutoffDeviations === undefined) return gate;
  const apart: Tensor3D = tf.sub(gate, tf.mean(gate, 2, true));
  const deviation = tf.sqrt(tf.mean(tf.square(apart), 2, true));
  return tf.relu(tf.sub(apart, tf.mul(deviation, cutoffDeviations)));
}

/** Rotates each head of x, [B, T, heads · headDim], by the angles of the positions of this run. */
export function runRotary(run: ForwardRun, layer: Rotary, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const { headDim, rotatedDim } = layer;
  const [batch, tokens, width] = x.shape;
  const heads: Tensor4D = tf.reshape(x, [batch, tokens, width / headDim, headDim]);
  const [front, back] =
    rotatedDim === headDim ? [heads] : tf.split(heads, [rotatedDim, headDim - rotatedDim], 3);
  const [cos, sin] = tablesOf(run, layer);
  const rotatedHalf = quarterTurn(run, layer, front as Tensor4D);
  const rotated = tf.add(tf.mul(front as Tensor4D, cos), tf.mul(rotatedHalf, sin));
  return tf.reshape(back ? tf.concat([rotated, back], 3) : rotated, [batch, tokens, width]);
}

/** Rotates each pair (a, b) to (−b, a); x [B, T, heads, rotatedDim]. */
function quarterTurn({ tf }: ForwardRun, { rotatedDim, pairs }: Rotary, x: Tensor4D): Tensor4D {
  const half = rotatedDim / 2;
  const isHalves = pairs === 'halves';
  const axis = isHalves ? 1 : 2;
  const parts: Tensor3D = tf.reshape(x, isHalves ? [-1, 2, half] : [-1, half, 2]);
  const [a, b] = tf.split(parts, 2, axis) as [Tensor3D, Tensor3D];
  return tf.reshape(tf.concat([tf.neg(b), a], axis), x.shape);
}

/** Cosine and sine of each position and frequency, for both elements of a pair: [T, 1, rotatedDim]. */
function tablesOf(run: ForwardRun, layer: Rotary): [Tensor, Tensor] {
  const { base, rotatedDim, pairs, scaling } = layer;
  const { start, tokens, decoding } = run;
  const length = dependsOnLength(layer) ? (decoding?.totalTokens ?? start + tokens) : 0;
  const key = JSON.stringify([base, rotatedDim, pairs, scaling]);
  const table = (name: string, wave: (angle: number) => number) =>
    run.once(`${name} ${key}`, () => {
      const frequencies = rotaryFrequencies(layer, length);
      const amplitude = amplitudeOf(layer, length);
      const frequencyOf = (column: number) =>
        frequencies[pairs === 'halves' ? column % frequencies.length : column >> 1] ?? Number.NaN;
      const values = Float32Array.from({ length: tokens * rotatedDim }, (_, index) => {
        const position = start + Math.floor(index / rotatedDim);
        return amplitude * wave(Math.fround(position * frequencyOf(index % rotatedDim)));
      });
      return run.tf.tensor3d(values, [tokens, 1, rotatedDim]);
    });
  return [table('cos', Math.cos), table('sin', Math.sin)];
}

// AltUp. Shapes: B batch, T tokens, N streams, H hidden.

/** Products scaled to the root mean square of `like`. */
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
