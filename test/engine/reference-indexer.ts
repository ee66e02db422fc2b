/** Indexers of the reference engine, number by number. Shapes: B batch, T tokens, S keys, N heads of the indexer. */
import type { Indexer } from '../../src/model/architecture/layer.js';
import type { Tensor } from './reference-values.js';
import { sumOf } from './reference-values.js';

/** Which keys a query sees: of each sequence, group of heads, and token, the numbers of the keys. */
export type Choice = readonly (readonly (readonly ReadonlySet<number>[])[])[];

interface Indexed {
  /** [B, T, N · d] */
  readonly queries: Tensor;
  /** [B, S, d] */
  readonly keys: Tensor;
  /** [B, T, N] */
  readonly weights: Tensor | undefined;
}

export function chosenKeys(layer: Indexer, { queries, keys, weights }: Indexed): Choice {
  const [batch = 0, tokens = 0] = queries.shape;
  const [, count = 0, size = 1] = keys.shape;
  const numbers = (length: number) => Array.from({ length }, (_, index) => index);
  const product = (row: number, t: number, head: number, key: number) =>
    sumOf(
      numbers(size).map(
        (i) =>
          (queries.data[((row * tokens + t) * layer.heads + head) * size + i] ?? 0) *
          (keys.data[(row * count + key) * size + i] ?? 0),
      ),
    );
  return numbers(batch).map((row) =>
    numbers(layer.kind === 'tokenIndexer' ? 1 : layer.heads).map((group) =>
      numbers(tokens).map((t) => {
        const seen = numbers(count - tokens + t + 1);
        if (layer.kind === 'tokenIndexer') {
          const scores = seen.map((key) =>
            sumOf(
              numbers(layer.heads).map(
                (head) =>
                  (weights?.data[(row * tokens + t) * layer.heads + head] ?? 0) *
                  Math.max(0, layer.scale * product(row, t, head, key)),
              ),
            ),
          );
          return new Set(best(scores, layer.kept));
        }
        const own = Math.floor((seen.length - 1) / layer.size);
        const blocks = numbers(own + 1).map((block) => {
          const inside = seen.filter((key) => Math.floor(key / layer.size) === block);
          return block > own - layer.local
            ? Number.POSITIVE_INFINITY
            : Math.max(...inside.map((key) => product(row, t, group, key)));
        });
        const kept = new Set(best(blocks, layer.kept));
        return new Set(seen.filter((key) => kept.has(Math.floor(key / layer.size))));
      }),
    ),
  );
}

const best = (scores: readonly number[], count: number): number[] =>
  [...scores.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0)).slice(0, count);
