/** Plain and tiled attention. Shapes: b batch, s queries, t keys, hd width of a head. */
import type { Tensor } from './tensor.js';
import {
  expectAxes,
  expectSameDtype,
  expectShape,
  expectWhole,
  mistake,
  numbersOf,
  roundedTensor,
} from './tensor.js';

export interface AttentionOptions {
  /**
   * Whether queries see only keys up to their own position. The last query aligns with the last key, so all
   * queries see the cached keys before them. (`is_causal` of PyTorch's function aligns the first ones instead.)
   */
  readonly causal?: boolean;
  /** Factor of the scores; default 1 / sqrt(hd). Negative factors reverse the order, as in PyTorch. */
  readonly scale?: number;
}

export interface TiledAttentionOptions extends AttentionOptions {
  /** Keys per tile, default 64. */
  readonly tile?: number;
}

/**
 * Grouped-query attention (arXiv 2305.13245): query head i uses key head floor(i · keyHeads / heads). Computes all
 * scores of a query, their softmax, and the weighted mean of the values.
 * @param q [b, s, heads, hd]
 * @param k [b, t, keyHeads, hd], where keyHeads divides heads: heads means plain attention, 1 multi-query.
 * @param v [b, t, keyHeads, width]
 * @returns [b, s, heads, width] in Q's dtype, rounded once at the end.
 * @throws UserError when shapes or dtypes do not fit.
 */
export function groupedQueryAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: AttentionOptions = {},
): Tensor {
  return attentionOutput('groupedQueryAttention', { q, k, v }, options, plainly);
}

/**
 * The same attention by tiles of keys, as in FlashAttention (arXiv 2205.14135, after arXiv 1805.02867): only one
 * tile of scores exists at a time. Each tile corrects a running maximum and sum, so the result equals that of the
 * whole softmax.
 * @param q [b, s, heads, hd]
 * @param k [b, t, keyHeads, hd]
 * @param v [b, t, keyHeads, width]
 * @returns [b, s, heads, width] in Q's dtype, rounded once at the end.
 * @throws UserError when shapes or dtypes do not fit, or the tile is not a number of keys.
 */
export function onlineSoftmaxAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  { tile = 64, ...options }: TiledAttentionOptions = {},
): Tensor {
  expectWhole('onlineSoftmaxAttention', 'the tile', tile, 1);
  return attentionOutput('onlineSoftmaxAttention', { q, k, v }, options, byTiles(tile));
}

/** Running values after a tile of keys. */
export interface SoftmaxStep {
  /** First key of the tile, and their number. @count */
  readonly firstKey: number;
  /** Keys of the tile. @integer @minimum 1 */
  readonly keys: number;
  /** Scores of the keys. */
  readonly scores: readonly number[];
  /** Largest score so far, m. */
  readonly max: number;
  /** e^(m before − m), which the sum and the output so far are multiplied by. */
  readonly correction: number;
  /** Sum of e^(score − m) so far, ℓ. */
  readonly sum: number;
  /** Weighted mean of the values so far: [width]. */
  readonly output: readonly number[];
}

/** One row of the scores. */
export interface QueryPlace {
  readonly batch: number;
  readonly position: number;
  readonly head: number;
}

/**
 * The tiles of `onlineSoftmaxAttention` for one query, with the running maximum and sum after each.
 * @param q [b, s, heads, hd]
 * @param k [b, t, keyHeads, hd]
 * @param v [b, t, keyHeads, width]
 * @throws UserError as `onlineSoftmaxAttention`, and for a query that is not in Q.
 */
export function onlineSoftmaxSteps(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  { batch, position, head }: QueryPlace,
  { tile = 64, ...options }: TiledAttentionOptions = {},
): SoftmaxStep[] {
  const where = 'onlineSoftmaxSteps';
  expectWhole(where, 'the tile', tile, 1);
  const [batches = 0, queries = 0, heads = 0] = q.shape;
  const row = (batch * queries + position) * heads + head;
  const isWithin = (index: number, count: number) =>
    Number.isInteger(index) && index >= 0 && index < count;
  if (!(isWithin(batch, batches) && isWithin(position, queries) && isWithin(head, heads))) {
    throw mistake(
      where,
      `no query ${position} of head ${head} in sequence ${batch}`,
      `Q has ${batches} sequences of ${queries} queries and ${heads} heads, counted from 0`,
    );
  }
  const steps: SoftmaxStep[] = [];
  attentionOutput(where, { q, k, v }, options, (query, at) => {
    if (at !== row) return new Float64Array(query.width);
    for (const step of tilesOf(query, tile)) {
      const { scores, sums, ...running } = step;
      steps.push({
        ...running,
        scores: Array.from(scores),
        output: Array.from(sums, (sum) => sum / running.sum),
      });
    }
    return new Float64Array(query.width);
  });
  return steps;
}

/** One query, and the visible keys and values of its head. */
interface Query {
  /** Number of visible keys, from the first on. */
  readonly keys: number;
  readonly width: number;
  score(key: number): number;
  value(key: number, column: number): number;
}

/** Weighted mean of the values: [width]. `row` counts queries and heads. */
type Attend = (query: Query, row: number) => Float64Array;

const plainly: Attend = ({ keys, width, score, value }) => {
  const scores = Float64Array.from({ length: keys }, (_, key) => score(key));
  const highest = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const weights = scores.map((own) => Math.exp(own - highest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const mean = new Float64Array(width);
  for (const [key, weight] of weights.entries()) {
    for (let i = 0; i < width; i++) mean[i] = (mean[i] ?? 0) + (weight / total) * value(key, i);
  }
  return mean;
};

const byTiles =
  (tile: number): Attend =>
  (query) => {
    let last: TileState | undefined;
    for (const state of tilesOf(query, tile)) last = state;
    const { sums, sum } = last ?? { sums: new Float64Array(query.width), sum: 0 };
    return sums.map((each) => each / sum);
  };

interface TileState extends Omit<SoftmaxStep, 'scores' | 'output'> {
  /** Views of memory that the next tile reuses. */
  readonly scores: Float64Array;
  /** Weighted sums of the values, not yet divided. */
  readonly sums: Float64Array;
}

function* tilesOf({ keys, width, score, value }: Query, tile: number): Generator<TileState> {
  let max = Number.NEGATIVE_INFINITY;
  let sum = 0;
  const sums = new Float64Array(width);
  const buffer = new Float64Array(Math.min(tile, keys));
  for (let firstKey = 0; firstKey < keys; firstKey += tile) {
    const count = Math.min(tile, keys - firstKey);
    const scores = buffer.subarray(0, count);
    let top = max;
    for (let j = 0; j < count; j++) {
      const own = score(firstKey + j);
      scores[j] = own;
      top = Math.max(top, own);
    }
    // Earlier sums are relative to the previous maximum, which may be −∞ if all scores so far are.
    const correction = weightOf(max, top);
    sum *= correction;
    for (let i = 0; i < width; i++) sums[i] = (sums[i] ?? 0) * correction;
    for (let j = 0; j < count; j++) {
      const weight = weightOf(scores[j] ?? 0, top);
      sum += weight;
      for (let i = 0; i < width; i++) sums[i] = (sums[i] ?? 0) + weight * value(firstKey + j, i);
    }
    max = top;
    yield { firstKey, keys: count, scores, max, correction, sum, sums };
  }
}

/** e^(score − top). 0 for −∞, even without a higher score yet; 0 times an infinite value is NaN, as in PyTorch. */
const weightOf = (score: number, top: number): number =>
  score === Number.NEGATIVE_INFINITY ? 0 : Math.exp(score - top);

interface AttentionInputs {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
}

/** Applies `attend` to every query of every head. */
function attentionOutput(
  where: string,
  inputs: AttentionInputs,
  { causal = false, scale }: AttentionOptions,
  attend: Attend,
): Tensor {
  const sizes = attentionSizes(where, inputs, causal);
  const { batch, queries, keys, heads, keyHeads, headDim, width } = sizes;
  const factor = scale ?? headDim ** -0.5;
  if (!Number.isFinite(factor))
    throw mistake(where, `the scale is ${factor}`, 'give a finite number');
  const q = numbersOf(where, inputs.q);
  const k = numbersOf(where, inputs.k);
  const v = numbersOf(where, inputs.v);
  const shape = [batch, queries, heads, width];
  const data = new Float32Array(batch * queries * heads * width);
  for (let row = 0; row < batch * queries * heads; row++) {
    const head = row % heads;
    const query = Math.floor(row / heads) % queries;
    const sample = Math.floor(row / (heads * queries));
    const keyHead = Math.floor((head * keyHeads) / heads);
    const rowOf = (key: number) => (sample * keys + key) * keyHeads + keyHead;
    const own = q.subarray(row * headDim, (row + 1) * headDim);
    const mean = attend(
      {
        keys: causal ? keys - queries + query + 1 : keys,
        width,
        score: (key) => factor * dot(own, k, rowOf(key) * headDim),
        value: (key, column) => v[rowOf(key) * width + column] ?? 0,
      },
      row,
    );
    data.set(mean, row * width);
  }
  return roundedTensor(where, { dtype: 'f32', shape, data }, inputs.q.dtype);
}

function dot(a: Float32Array, b: Float32Array, from: number): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[from + i] ?? 0);
  return sum;
}

function attentionSizes(where: string, { q, k, v }: AttentionInputs, causal: boolean) {
  expectAxes(where, 'Q', q.shape, 'batch, queries, heads, width');
  expectAxes(where, 'K', k.shape, 'batch, keys, key heads, width');
  expectAxes(where, 'V', v.shape, 'batch, keys, key heads, width');
  expectSameDtype(where, { Q: q, K: k, V: v });
  const [batch = 0, queries = 0, heads = 0, headDim = 0] = q.shape;
  const [, keys = 0, keyHeads = 0] = k.shape;
  const width = v.shape[3] ?? 0;
  expectShape(where, 'K', k.shape, [batch, keys, keyHeads, headDim]);
  expectShape(where, 'V', v.shape, [batch, keys, keyHeads, width]);
  expectWhole(where, 'the width of a head', headDim, 1);
  expectWhole(where, 'the number of keys', keys, 1);
  if (keyHeads === 0 || heads % keyHeads !== 0) {
    throw mistake(
      where,
      `${keyHeads} key heads do not divide ${heads} heads`,
      'give a number of key heads that divides the number of heads',
    );
  }
  if (causal && queries > keys) {
    throw mistake(
      where,
      `${queries} queries and ${keys} keys: the first queries would see none`,
      'give as many keys as queries, or more',
    );
  }
  return { batch, queries, keys, heads, keyHeads, headDim, width };
}
