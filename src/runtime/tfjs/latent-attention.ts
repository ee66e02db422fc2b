import type { LatentAttention } from '../../architecture/layer.js';
import type { HeadGroup } from './attention.js';
import { attend, concatenated, splitHeads } from './attention.js';
import type { Tensor2D, Tensor3D, Tf } from './library.js';
import { rotate } from './projections.js';
import { type Run, valuesOf } from './run.js';

/** u [B, T, H] → [B, T, H]. Keys and values of all heads are made of what is remembered, at every run. */
export function latentAttention(run: Run, layer: LatentAttention, u: Tensor3D): Tensor3D {
  const { tf } = run;
  const { latentRank, nopeDim, valueDim, rotary } = layer;
  const queries = splitHeads(tf, queriesOf(run, layer, u), nopeDim + rotary.headDim);
  const down = run.apply(layer.keyValueDown, u);
  const [latent, sharedKey] = cut(tf, down, latentRank, 2);
  const { latents, keys } = remembered(run, layer, {
    latents: run.apply(layer.latentNorm, latent),
    keys: rotate(run, rotary, sharedKey),
  });
  const shared = splitHeads(tf, keys, rotary.headDim); // (S, rotated) of each sequence
  const heads = splitHeads(tf, run.apply(layer.keyValueUp, latents), nopeDim + valueDim);
  const groups = heads.map((head, index): HeadGroup => {
    const [own, values] = cut(tf, head, nopeDim, 1);
    const key = tf.concat([own, shared[Math.floor(index / layer.heads)] as Tensor2D], 1);
    return {
      first: 0,
      keys: tf.transpose(key),
      values,
      queries: [queries[index] as Tensor2D],
    };
  });
  const sequences = shared.map((_, sequence) =>
    groups.slice(sequence * layer.heads, (sequence + 1) * layer.heads),
  );
  return run.apply(layer.out, attend(run, sequences, { window: undefined }));
}

/** The end of each head rotated, and all scaled: [B, T, heads · (nopeDim + rotated)]. */
function queriesOf(run: Run, layer: LatentAttention, u: Tensor3D): Tensor3D {
  const { tf, batch, tokens } = run;
  const { heads, nopeDim, rotary } = layer;
  const rotated = rotary.headDim;
  const perHead: Tensor3D = tf.reshape(run.apply(layer.query, u), [-1, heads, nopeDim + rotated]);
  const [own, end] = cut(tf, perHead, nopeDim, 2);
  const turned = rotate(run, rotary, tf.reshape(end, [batch, tokens, heads * rotated]));
  const joined = tf.concat([own, tf.reshape(turned, [-1, heads, rotated])], 2);
  return tf.reshape(tf.mul(joined, layer.scale), [batch, tokens, -1]);
}

/** In two along an axis, the first `width` wide. */
function cut<T extends Tensor2D | Tensor3D>(tf: Tf, x: T, width: number, axis: number): [T, T] {
  return tf.split(x, [width, (x.shape[axis] ?? 0) - width], axis) as [T, T];
}

interface Known {
  /** [B, S, latentRank], normed */
  readonly latents: Tensor3D;
  /** [B, S, rotary.headDim], rotated */
  readonly keys: Tensor3D;
}

/** What was known before the tokens of this run, and those. */
function remembered({ tf, decoding }: Run, layer: LatentAttention, now: Known): Known {
  if (!decoding) return now;
  const before = decoding.before.latents.get(layer);
  const latents = rowsAfter(before?.latents, now.latents);
  const keys = rowsAfter(before?.keys, now.keys);
  decoding.after.latents.set(layer, { latents, keys });
  const tensorOf = (rows: readonly Float32Array[], width: number) =>
    tf.stack(rows.map((each) => tf.tensor2d(each, [each.length / width, width]))) as Tensor3D;
  return {
    latents: tensorOf(latents, layer.latentRank),
    keys: tensorOf(keys, layer.rotary.headDim),
  };
}

/** Those of each sequence, after what was known of it. */
function rowsAfter(before: readonly Float32Array[] | undefined, now: Tensor3D): Float32Array[] {
  const values = valuesOf(now);
  const [batch] = now.shape;
  const size = values.length / batch;
  return Array.from({ length: batch }, (_, sequence) => {
    const own = values.slice(sequence * size, (sequence + 1) * size);
    const known = before?.[sequence];
    return known ? concatenated(known, own) : own;
  });
}
