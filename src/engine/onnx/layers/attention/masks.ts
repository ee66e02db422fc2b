/** Masks and biases that positions add to the scores of attention. Shapes: T queries, S keys. */
import type { Alibi, Window } from '../../../../model/architecture/layer.js';
import { toBfloat16, windowKey } from '../../../../model/architecture/masks.js';
import type { Context } from '../../context.js';
import { cachesInPlace, feedPositions } from '../../context.js';
import type { GraphBuilder, GraphValue } from '../../graph.js';

/** Some of an attention's heads. */
export interface HeadRange {
  readonly first: number;
  readonly heads: number;
}

/** Keys that queries can see. */
export interface Sight {
  /** Positions of the queries, [T]. */
  readonly queries: GraphValue;
  /** First position that each query sees, [T]. */
  readonly first: GraphValue;
  /** Positions of the keys, [S]. */
  readonly keys: GraphValue;
}

/** Keys that all tokens of a call see. */
export const sightOf = (context: Context, window: Window | undefined): Sight => ({
  queries: feedPositions(context),
  first: context.feed(`first.${windowKey(window)}`, { kind: 'firstKeys', window }),
  keys: keyPositions(context, window),
});

/** [S]; a cache in place has a row before the first position where it is empty. */
export const keyPositions = (context: Context, window: Window | undefined): GraphValue =>
  context.feed(`keys.${windowKey(window)}`, {
    kind: 'keyPositions',
    window,
    isCached: cachesInPlace(context),
  });

/** Additive mask of the scores of a call's tokens: 0 where a token sees a key, else −∞. [1, 1, T, S] */
export const mask = (context: Context, window: Window | undefined): GraphValue =>
  context.once(`mask:${windowKey(window)}`, () => maskOf(context.graph, sightOf(context, window)));

/** A bias of the scores that only positions decide. */
export interface PositionBias {
  readonly window: Window | undefined;
  /** Slopes of all heads of the layer. */
  readonly alibi: Alibi | undefined;
  /** First of the layer's heads that it is for. */
  readonly from: number;
}

/** Addend of the scores of some heads in a call, [1, 1 or heads, T, S]. */
export function positionBias(context: Context, bias: PositionBias, heads: HeadRange): GraphValue {
  const { window, alibi, from } = bias;
  if (!alibi) return mask(context, window);
  const { slopes, bfloat16Factor } = alibi;
  const key = [windowKey(window), slopes, bfloat16Factor, from + heads.first, heads.heads];
  return context.once(`alibi:${key.join(':')}`, () => {
    const penalties = penaltiesOf(context.graph, sightOf(context, window), bias, heads);
    return context.graph.op('Add', [penalties, mask(context, window)]);
  });
}

/** The same for queries that see something else. */
export function seenBias(
  graph: GraphBuilder,
  sight: Sight,
  bias: PositionBias,
  heads: HeadRange,
): GraphValue {
  const own = maskOf(graph, sight);
  return bias.alibi ? graph.op('Add', [penaltiesOf(graph, sight, bias, heads), own]) : own;
}

/** 0 where a query sees a key, else −∞. [1, 1, T, S] */
function maskOf(graph: GraphBuilder, { queries, first, keys }: Sight): GraphValue {
  const visible = graph.op('And', [
    graph.op('LessOrEqual', [keys, column(graph, queries)]),
    graph.op('GreaterOrEqual', [keys, column(graph, first)]),
  ]);
  const hidden = graph.float(Number.NEGATIVE_INFINITY);
  const scores = graph.op('Where', [visible, graph.float(0), hidden]);
  return graph.op('Unsqueeze', [scores, graph.ints(0, 1)]);
}

/** ALiBi's distance penalty of each head, [heads, T, S]; positive where the key is masked. */
function penaltiesOf(
  graph: GraphBuilder,
  sight: Sight,
  { alibi, from }: PositionBias,
  { first, heads }: HeadRange,
): GraphValue {
  const { slopes = [], bfloat16Factor } = alibi ?? {};
  const some = slopes.slice(from + first, from + first + heads);
  if (bfloat16Factor !== undefined) return roundedPenalties(graph, sight, some, bfloat16Factor);
  const ahead = graph.op('Sub', [sight.keys, column(graph, sight.queries)]); // [T, S]
  return graph.op('Mul', [graph.cast(ahead, 'f32'), perHead(graph, Float32Array.from(some))]);
}

/** Penalties whose products are rounded to bfloat16 by the position of the key, [heads, T, S]. */
function roundedPenalties(
  graph: GraphBuilder,
  { keys, queries }: Sight,
  slopes: readonly number[],
  factor: number,
): GraphValue {
  const round = (value: GraphValue) => graph.cast(graph.cast(value, 'bf16'), 'f32');
  const each = perHead(graph, Float32Array.from(slopes, toBfloat16));
  const scoreAt = (positions: GraphValue) =>
    round(graph.op('Mul', [round(graph.cast(positions, 'f32')), each]));
  // Subtracts the penalty at the query's own position, which is the same for all keys: large positions would lose
  // digits.
  const ahead = graph.op('Sub', [scoreAt(keys), scoreAt(column(graph, queries))]);
  return graph.op('Mul', [ahead, graph.float(factor)]);
}

/** [heads, 1, 1] */
const perHead = (graph: GraphBuilder, slopes: Float32Array): GraphValue =>
  graph.op('Unsqueeze', [graph.floats(`slopes:${slopes}`, slopes), graph.ints(1, 2)]);

const column = (graph: GraphBuilder, values: GraphValue): GraphValue =>
  graph.op('Unsqueeze', [values, graph.ints(1)]);
