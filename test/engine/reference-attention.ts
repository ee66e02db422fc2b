/** Attention of the reference engine, number by number. Shapes: B batch, T tokens, S keys, d width of a head. */
import type { Rotary } from '../../src/model/architecture/layer.js';
import { amplitudeOf, rotaryFrequencies } from '../../src/model/architecture/rotary-scaling.js';
import type { Tensor } from './reference-values.js';
import { each, sumOf } from './reference-values.js';

/** Rotary positions of each head of x [B, T, heads · d]. @param length Tokens of the whole input. */
export function rotate(x: Tensor, layer: Rotary, start: number, length: number): Tensor {
  const { headDim, rotatedDim, pairs } = layer;
  const [, tokens = 0, width = 0] = x.shape;
  const half = rotatedDim / 2;
  const frequencies = rotaryFrequencies(layer, length);
  const amplitude = amplitudeOf(layer, length);
  return each(x, (value, at) => {
    const column = at % width;
    const place = column % headDim;
    if (place >= rotatedDim) return value;
    const [pair, isFirst, distance] =
      pairs === 'halves'
        ? [place % half, place < half, half]
        : [Math.floor(place / 2), place % 2 === 0, 1];
    const position = start + (Math.floor(at / width) % tokens);
    const angle = position * (frequencies[pair] ?? 0);
    const other = isFirst ? -(x.data[at + distance] ?? 0) : (x.data[at - distance] ?? 0);
    return amplitude * (value * Math.cos(angle) + other * Math.sin(angle));
  });
}

/** A head with its shared key and value head. */
export interface Attended {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  /** Widths of a key and of a value. */
  readonly key: number;
  readonly value: number;
  readonly heads: number;
  readonly head: number;
  readonly keyHeads: number;
  readonly shared: number;
  readonly scale: number;
  readonly softcap: number | undefined;
  /** Addition to the score of the key at a position. */
  readonly bonus: (position: number) => number;
  /** A score without a value. */
  readonly sink: number | undefined;
  /** Keys that the query of a token sees, as rows of `k`; all when absent. */
  readonly seen?: (row: number, t: number) => ReadonlySet<number> | undefined;
}

interface Query extends Attended {
  readonly row: number;
  readonly t: number;
  /** First and last key, as rows of `k`, and the number of rows before this call. */
  readonly from: number;
  readonly to: number;
  readonly offset: number;
}

/** Adds the output of one query of one head to `into`. */
export function attend(query: Query, into: Float64Array): void {
  const { q, k, v, key, value, heads, head, keyHeads, shared, row, t, from, to } = query;
  const tokens = q.shape[1] ?? 0;
  const rows = k.shape[1] ?? 0;
  const own = ((row * tokens + t) * heads + head) * key;
  const { scale, softcap, bonus, offset, sink = Number.NEGATIVE_INFINITY } = query;
  const scores = new Float64Array(to - from + 1);
  let largest = sink;
  for (let s = from; s <= to; s++) {
    const at = ((row * rows + s) * keyHeads + shared) * key;
    let sum = 0;
    for (let i = 0; i < key; i++) sum += (q.data[own + i] ?? 0) * (k.data[at + i] ?? 0);
    const isSeen = query.seen?.(row, t)?.has(s) ?? true;
    const score = isSeen
      ? capped(sum * scale, softcap) + bonus(s) - bonus(t + offset)
      : Number.NEGATIVE_INFINITY;
    scores[s - from] = score;
    largest = Math.max(largest, score);
  }
  const weights = scores.map((score) => Math.exp(score - largest));
  const total = sumOf(weights) + Math.exp(sink - largest);
  const result = ((row * tokens + t) * heads + head) * value;
  for (let s = from; s <= to; s++) {
    const at = ((row * rows + s) * keyHeads + shared) * value;
    const weight = (weights[s - from] ?? 0) / total;
    for (let i = 0; i < value; i++) {
      into[result + i] = (into[result + i] ?? 0) + weight * (v.data[at + i] ?? 0);
    }
  }
}

const capped = (score: number, cap: number | undefined) =>
  cap === undefined ? score : cap * Math.tanh(score / cap);

/** x [B, T, heads · (a + b)] → [B, T, heads · a] and [B, T, heads · b]. */
export function splitHeads(x: Tensor, [a, b]: readonly [number, number]): [Tensor, Tensor] {
  const heads = (x.shape.at(-1) ?? 0) / (a + b);
  const part = (from: number, size: number): Tensor => ({
    shape: x.shape.with(-1, heads * size),
    data: Float64Array.from(
      { length: (x.data.length / (a + b)) * size },
      (_, at) => x.data[Math.floor(at / size) * (a + b) + from + (at % size)] ?? 0,
    ),
  });
  return [part(0, a), part(a, b)];
}

/** Reverses `splitHeads`. */
export function joinedHeads(x: Tensor, y: Tensor, [a, b]: readonly [number, number]): Tensor {
  const data = Float64Array.from({ length: x.data.length + y.data.length }, (_, at) => {
    const [head, place] = [Math.floor(at / (a + b)), at % (a + b)];
    return (place < a ? x.data[head * a + place] : y.data[head * b + place - a]) ?? 0;
  });
  return { shape: x.shape.with(-1, (x.shape.at(-1) ?? 0) + (y.shape.at(-1) ?? 0)), data };
}

/** x [B, S, d] → [B, S, heads · d]. */
export function repeated(x: Tensor, heads: number): Tensor {
  const size = x.shape.at(-1) ?? 0;
  const data = Float64Array.from(
    { length: heads * x.data.length },
    (_, at) => x.data[Math.floor(at / (heads * size)) * size + (at % size)] ?? 0,
  );
  return { shape: x.shape.with(-1, heads * size), data };
}
