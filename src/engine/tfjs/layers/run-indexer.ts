/**
 * Indexers: they choose the keys that a query sees. The choice is read from the backend, so no gradient passes it, as in
 * the originals. Shapes: B batch, T tokens, S keys, N heads of the indexer, d width of a key, G groups of heads of the
 * attention with a choice each.
 */
import type { BlockIndexer, Indexer } from '../../../model/architecture/layer.js';
import type { Tensor2D, Tensor3D, Tensor4D } from '../packages.js';
import type { ForwardRun } from '../run.js';
import { readValues, rowsAfter } from '../run.js';
import { runRotary } from './basic.js';

/** Inputs of an indexer: that of the attention, and for some the normed latent of its queries, [B, T, ·]. */
export interface IndexerInputs {
  readonly input: Tensor3D;
  readonly latent?: Tensor3D;
}

/** Rows of scores in memory at a time. */
const ROWS_AT_ONCE = 512;

/** 0 for a key that a query sees, −∞ for another: [B, G, T, S], G = 1 for one choice for all heads. */
export function runIndexer(
  run: ForwardRun,
  layer: Indexer,
  { input, latent = input }: IndexerInputs,
): Tensor4D {
  const { tf, batch, tokens, start } = run;
  const isWeighted = layer.kind === 'tokenIndexer';
  const groups = isWeighted ? 1 : layer.heads;
  const queries = runRotary(
    run,
    layer.rotary,
    indexQueries(run, layer, isWeighted ? latent : input),
  );
  const weights = isWeighted ? run.apply(layer.weights, input) : undefined; // (B, T, N)
  const keys = keysSoFar(run, layer, indexKeys(run, layer, input));
  const atOnce = Math.max(1, Math.floor(ROWS_AT_ONCE / layer.heads));
  const count = start + tokens;
  const chosen = new Float32Array(batch * groups * tokens * count).fill(Number.NEGATIVE_INFINITY);
  for (let sequence = 0; sequence < batch; sequence++) {
    for (let from = 0; from < tokens; from += atOnce) {
      const rows = Math.min(atOnce, tokens - from);
      const scores = tf.tidy(() => {
        const of = (x: Tensor3D): Tensor3D => tf.slice(x, [sequence, from, 0], [1, rows, -1]);
        const own = keys[sequence] as Tensor2D;
        return readValues(indexerScores(run, layer, of(queries), own, weights && of(weights)));
      });
      for (let row = 0; row < rows; row++) {
        const position = start + from + row;
        for (let group = 0; group < groups; group++) {
          const at = (row * groups + group) * count;
          const first = ((sequence * groups + group) * tokens + from + row) * count;
          choose(layer, scores.subarray(at, at + position + 1), (key) => {
            chosen[first + key] = 0;
          });
        }
      }
    }
  }
  return tf.tensor4d(chosen, [batch, groups, tokens, count]);
}

function indexQueries(run: ForwardRun, layer: Indexer, x: Tensor3D): Tensor3D {
  const queries = run.apply(layer.query, x);
  return layer.kind === 'tokenIndexer' ? queries : run.apply(layer.queryNorm, queries);
}

const indexKeys = (run: ForwardRun, layer: Indexer, x: Tensor3D): Tensor3D =>
  runRotary(run, layer.rotary, run.apply(layer.keyNorm, run.apply(layer.key, x)));

/** Cached keys of each sequence followed by those of this run, [S, d]. */
function keysSoFar({ tf, decoding }: ForwardRun, { name }: Indexer, now: Tensor3D): Tensor2D[] {
  const [, , width] = now.shape;
  const rows = rowsAfter(decoding?.before.indexes.get(name), now);
  decoding?.after.indexes.set(name, rows);
  return rows.map((each) => tf.tensor2d(each, [each.length / width, width]));
}

/** Scores of some queries of one sequence, q [1, T, N · d], [T · N, S], or summed over the heads, [T, S]. */
function indexerScores(
  { tf }: ForwardRun,
  layer: Indexer,
  q: Tensor3D,
  keys: Tensor2D,
  weights: Tensor3D | undefined,
): Tensor2D {
  const [, tokens, width] = q.shape;
  const byHead: Tensor2D = tf.reshape(q, [tokens * layer.heads, width / layer.heads]);
  const products: Tensor2D = tf.matMul(byHead, tf.transpose(keys));
  if (layer.kind === 'blockIndexer' || !weights) return products;
  const positive = tf.relu(tf.mul(products, layer.scale));
  const ofHeads: Tensor3D = tf.reshape(positive, [tokens, layer.heads, -1]);
  const factors = tf.reshape(weights, [tokens, layer.heads, 1]);
  return tf.sum(tf.mul(ofHeads, factors), 1);
}

/** Calls back with each key that a query sees. @param scores Scores of the keys up to the query. */
const choose = (layer: Indexer, scores: Float32Array, see: (key: number) => void): void =>
  layer.kind === 'tokenIndexer'
    ? bestOf(scores, layer.kept).forEach(see)
    : blocksSeen(layer, scores).forEach(see);

/** Indices of the largest values. */
function bestOf(values: Float32Array, count: number): number[] {
  const all = Array.from(values.keys());
  if (values.length <= count) return all;
  return all.sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0)).slice(0, count);
}

function blocksSeen({ size, kept, local }: BlockIndexer, scores: Float32Array): number[] {
  const blocks = Math.ceil(scores.length / size);
  const best = Float32Array.from({ length: blocks }, (_, block) =>
    // The last blocks up to that of the query come first.
    block >= blocks - local
      ? Number.POSITIVE_INFINITY
      : scores.subarray(block * size, (block + 1) * size).reduce((a, b) => Math.max(a, b)),
  );
  return bestOf(best, kept).flatMap((block) =>
    Array.from(
      { length: Math.min(size, scores.length - block * size) },
      (_, key) => block * size + key,
    ),
  );
}
