/** Latent attention: the keys and values of all heads come from a cached latent. */
import type { LatentAttention } from '../../../model/architecture/layer.js';
import type { Tensor2D, Tensor3D, Tensor4D, Tf } from '../packages.js';
import type { ForwardRun } from '../run.js';
import { rowsAfter } from '../run.js';
import { attend, type HeadGroup, selectionFor, splitHeads } from './attend.js';
import { runRotary } from './basic.js';
import { temperatureScaled } from './run-attention.js';
import { type IndexerInputs, runIndexer } from './run-indexer.js';
/** u [B, T, H] → [B, T, H]. Keys and values of all heads are recomputed from the cache in every run. */
export function runLatentAttention(run: ForwardRun, layer: LatentAttention, u: Tensor3D): Tensor3D {
  const { tf } = run;
  const { latentRank, nopeDim, valueDim, rotary, sharedDim } = layer;
  const { made, latent: queryLatent } = latentQueries(run, layer, u);
  const queries = splitHeads(tf, queriesOf(run, layer, made), nopeDim + sharedDim);
  const selection = latentSelection(run, layer, { input: u, latent: queryLatent });
  const down = run.apply(layer.keyValueDown, u);
  const [latent, sharedKey] = splitAt(tf, down, latentRank, 2);
  const { latentScale = 1 } = layer;
  const normed = run.apply(layer.latentNorm, latent);
  const { latents, keys } = latentsSoFar(run, layer, {
    latents: latentScale === 1 ? normed : tf.mul(normed, latentScale),
    keys: rotary ? runRotary(run, rotary, sharedKey) : sharedKey,
  });
  const shared = splitHeads(tf, keys, sharedDim); // (S, rotated) of each sequence
  const heads = splitHeads(tf, run.apply(layer.keyValueUp, latents), nopeDim + valueDim);
  const groups = heads.map((head, index): HeadGroup => {
    const [own, values] = splitAt(tf, head, nopeDim, 1);
    const key = tf.concat([own, shared[Math.floor(index / layer.heads)] as Tensor2D], 1);
    return {
      first: 0,
      keys: tf.transpose(key),
      values,
      queries: [queries[index] as Tensor2D],
      selection: selectionFor(run, selection, {
        sequence: Math.floor(index / layer.heads),
        heads: 1,
        from: 0,
        to: 1,
      }),
    };
  });
  const sequences = shared.map((_, sequence) =>
    groups.slice(sequence * layer.heads, (sequence + 1) * layer.heads),
  );
  return run.apply(layer.out, attend(run, sequences, { window: undefined }));
}

/** Queries, and the latent of which they are made where an indexer reads it. */
function latentQueries(
  run: ForwardRun,
  { query, selection }: LatentAttention,
  u: Tensor3D,
): { made: Tensor3D; latent: Tensor3D } {
  if (!selection || query.kind === 'linear') return { made: run.apply(query, u), latent: u };
  const [down, norm, up] = query.layers;
  const latent = run.apply(norm, run.apply(down, u));
  return { made: run.apply(up, latent), latent };
}

/** The layer's own choice of keys, which later layers may take, or that of another, [B, 1, T, S]. */
function latentSelection(
  run: ForwardRun,
  { name, selection }: LatentAttention,
  inputs: IndexerInputs,
): Tensor4D | undefined {
  if (!selection) return undefined;
  if ('kind' in selection) {
    return run.once(`${name}.selection`, () => runIndexer(run, selection, inputs));
  }
  const { tf, batch, tokens, start } = run;
  return run.once(
    `${selection.from}.selection`,
    (): Tensor4D => tf.zeros([batch, 1, tokens, start + tokens]),
  );
}

/**
 * Scaled queries with the end of each head rotated: [B, T, heads · (nopeDim + rotated)].
 * @param made Queries as the products give them, of the same width.
 */
function queriesOf(run: ForwardRun, layer: LatentAttention, made: Tensor3D): Tensor3D {
  const { tf, batch, tokens } = run;
  const { heads, nopeDim, rotary, sharedDim: rotated } = layer;
  const perHead: Tensor3D = tf.reshape(made, [-1, heads, nopeDim + rotated]);
  const [own, end] = splitAt(tf, perHead, nopeDim, 2);
  const ends: Tensor3D = tf.reshape(end, [batch, tokens, heads * rotated]);
  const rotatedEnds = rotary ? runRotary(run, rotary, ends) : ends;
  const joined = tf.concat([own, tf.reshape(rotatedEnds, [-1, heads, rotated])], 2);
  const queries: Tensor3D = tf.reshape(tf.mul(joined, layer.scale), [batch, tokens, -1]);
  return temperatureScaled(run, layer.temperature, queries);
}

/** Splits in two along an axis, the first `width` wide. */
function splitAt<T extends Tensor2D | Tensor3D>(tf: Tf, x: T, width: number, axis: number): [T, T] {
  return tf.split(x, [width, (x.shape[axis] ?? 0) - width], axis) as [T, T];
}

interface LatentCache {
  /** [B, S, latentRank], normed */
  readonly latents: Tensor3D;
  /** [B, S, sharedDim], rotated */
  readonly keys: Tensor3D;
}

/** Cached latents and keys followed by those of this run. */
function latentsSoFar(
  { tf, decoding }: ForwardRun,
  layer: LatentAttention,
  now: LatentCache,
): LatentCache {
  if (!decoding) return now;
  const before = decoding.before.latents.get(layer);
  const latents = rowsAfter(before?.latents, now.latents);
  const keys = rowsAfter(before?.keys, now.keys);
  decoding.after.latents.set(layer, { latents, keys });
  const tensorOf = (rows: readonly Float32Array[], width: number) =>
    tf.stack(rows.map((each) => tf.tensor2d(each, [each.length / width, width]))) as Tensor3D;
  return {
    latents: tensorOf(latents, layer.latentRank),
    keys: tensorOf(keys, layer.sharedDim),
  };
}
