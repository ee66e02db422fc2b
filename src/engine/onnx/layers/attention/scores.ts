/** Softmax attention over given queries, keys and values. Shapes: T queries, S keys, G = heads / keyValueHeads. */
import type { Window } from '../../../../model/architecture/layer.js';
import { windowKey } from '../../../../model/architecture/masks.js';
import type { Param } from '../../../../model/architecture/param.js';
import type { Context, Target } from '../../context.js';
import { headsAtATime, parts, scaledBy, sizeNames, swapped, weightOf } from '../../context.js';
import type { GraphValue } from '../../graph.js';
import { LEFT_OUT } from '../../graph.js';
import { MICROSOFT } from '../../proto.js';
import type { Attended, AttendedAtOnce, ScoreHeads } from './attended.js';
import { type HeadRange, positionBias } from './masks.js';
import { attendInBlocks, runsInBlocks } from './query-blocks.js';

/** State between calls, as far back as `window` reaches. */
export interface PastValues {
  readonly name: string;
  readonly width: number;
  readonly window: Window | undefined;
}

/** Values [B, T, width] after those of former calls, [B, S, width]. */
export function withPast(
  context: Context,
  { name, width, window }: PastValues,
  now: GraphValue,
): GraphValue {
  const { graph, outputs, sizes } = context;
  if (!outputs.states) return now;
  const past = context.feed(name, { kind: 'state', shape: [0, width] });
  const all = graph.sized(graph.op('Concat', [past, now], { attributes: { axis: 1 } }), [
    sizeNames(sizes).batch,
    `S.${windowKey(window)}:${sizes}`,
    width,
  ]);
  const dropped = context.feed(`dropped.${windowKey(window)}`, { kind: 'droppedKeys', window });
  const rest = [dropped, graph.ints(Number.MAX_SAFE_INTEGER), graph.ints(1)];
  outputs.states.set(name, graph.output(graph.op('Slice', [all, ...rest])));
  return all;
}

/** → [B, T, heads · valueDim] */
export function attend(context: Context, all: ScoreHeads, attended: Attended): GraphValue {
  const { bias } = attended;
  if (typeof bias !== 'function') {
    if (runsInBlocks(context)) {
      const sinks = attended.sinks?.({ first: 0, heads: all.heads });
      return attendInBlocks(context, all, attended, bias, (block, own) =>
        attendAtOnce(block, all, { ...own, sinks }),
      );
    }
    return attend(context, all, {
      ...attended,
      bias: (heads) => positionBias(context, bias, heads),
    });
  }
  const { graph } = context;
  const { keyDim, valueDim } = all;
  const groups = scoreGroups(all, headsAtATime(context.target, all.heads));
  const widths = (of: readonly number[], dim: number) => of.map((heads) => heads * dim);
  const queries = graph.split(
    attended.queries,
    widths(
      groups.map(({ heads }) => heads),
      keyDim,
    ),
  );
  // Groups that share a key also share its part.
  const shared = groups.filter(({ isFirst }) => isFirst).map(({ keyValueHeads }) => keyValueHeads);
  const keys = graph.split(attended.keys, widths(shared, keyDim));
  const values = graph.split(attended.values, widths(shared, valueDim));
  let part = -1;
  const results = groups.map((group, index) => {
    if (group.isFirst) part++;
    return attendAtOnce(
      context,
      { ...all, heads: group.heads, keyValueHeads: group.keyValueHeads },
      {
        queries: queries[index] ?? LEFT_OUT,
        keys: keys[part] ?? LEFT_OUT,
        values: values[part] ?? LEFT_OUT,
        bias: bias(group),
        sinks: attended.sinks?.(group),
      },
    );
  });
  return graph.joined(results);
}

/** Heads with scores that are computed together. */
interface ScoreGroup extends HeadRange {
  readonly keyValueHeads: number;
  /** Whether it is the first group of its keys and values. */
  readonly isFirst: boolean;
}

/** Groups of at most `most` heads: whole sets of heads that share a key, or a part of one set. */
function scoreGroups({ heads, keyValueHeads }: ScoreHeads, most: number): ScoreGroup[] {
  const sharing = heads / keyValueHeads;
  if (most < sharing) {
    return Array.from({ length: keyValueHeads }, (_, index) =>
      ranges(index * sharing, sharing, most).map((range, at) => ({
        ...range,
        keyValueHeads: 1,
        isFirst: at === 0,
      })),
    ).flat();
  }
  return ranges(0, keyValueHeads, Math.floor(most / sharing)).map((range) => ({
    first: range.first * sharing,
    heads: range.heads * sharing,
    keyValueHeads: range.heads,
    isFirst: true,
  }));
}

function ranges(start: number, count: number, most: number): HeadRange[] {
  let first = start;
  return parts(count, most).map((heads) => {
    const range = { first, heads };
    first += heads;
    return range;
  });
}

/** Attention of one group of heads, fused if possible. In float16 only the products use it, not the masked scores. */
function attendAtOnce(
  context: Context,
  heads: ScoreHeads,
  { sinks, ...attended }: AttendedAtOnce,
): GraphValue {
  const { compute, provider } = context.target;
  const isFused = heads.softcap === undefined && compute === 'f32' && FUSES[provider];
  const all = sinks ? withSinks(context, sinks, attended) : attended;
  return (isFused ? fused : stepByStep)(context, heads, all);
}

/**
 * Attention sinks as one more key for all queries: its values are zero, and its score is that of each head.
 * @param sinks [1, heads, 1, 1]
 */
function withSinks(
  { graph }: Context,
  sinks: GraphValue,
  { queries, keys, values, bias }: AttendedAtOnce,
): AttendedAtOnce {
  const extended = (rows: GraphValue) => graph.op('Pad', [rows, graph.ints(0, 0, 0, 0, 1, 0)]);
  const count = graph.op('Shape', [bias], { attributes: { start: 3, end: 4 } });
  const before = graph.op('Concat', [graph.ints(0, 0, 0), count, graph.ints(0, 0, 0, 0)], {
    attributes: { axis: 0 },
  });
  const padded = graph.op('Pad', [bias, graph.ints(0, 0, 0, 0, 0, 0, 0, 1)]);
  return {
    queries,
    keys: extended(keys),
    values: extended(values),
    bias: graph.op('Add', [padded, graph.op('Pad', [sinks, before])]), // [1, heads, 1, S + 1] added
  };
}

/** Scores of the sinks of some heads, [1, heads, 1, 1]. */
export function sinkScores(
  context: Context,
  sinks: Param,
  { first, heads }: HeadRange,
): GraphValue {
  const { graph } = context;
  const own = graph.op('Slice', [
    weightOf(context, sinks),
    graph.ints(first),
    graph.ints(first + heads),
  ]);
  return graph.op('Reshape', [own, graph.ints(1, heads, 1, 1)]);
}

/**
 * Providers with a reliable `MultiHeadAttention`. On WebGPU it uses another kernel from 32 tokens on, with silently
 * wrong results on llvmpipe (0.07 off, ONNX Runtime 1.30).
 */
const FUSES = {
  cpu: true,
  cuda: true,
  webgpu: false,
  dml: true,
  coreml: true,
} as const satisfies Record<Target['provider'], boolean>;

/** Attention in one operation, which requires a key and value for every query head. */
function fused(
  context: Context,
  each: ScoreHeads,
  { queries, keys, values, bias }: AttendedAtOnce,
): GraphValue {
  const { heads, keyDim, valueDim, scale } = each;
  const inputs = [
    queries,
    forEachHead(context, each, keys, keyDim),
    forEachHead(context, each, values, valueDim),
    LEFT_OUT,
    LEFT_OUT,
    bias,
  ];
  return context.graph.op('MultiHeadAttention', inputs, {
    domain: MICROSOFT,
    attributes: { num_heads: heads, scale: { float: scale } },
  });
}

/** Keys or values [B, S, keyValueHeads · d] → [B, S, heads · d], repeated for the query heads that share them. */
export function forEachHead(
  { graph }: Context,
  { heads, keyValueHeads }: Pick<ScoreHeads, 'heads' | 'keyValueHeads'>,
  rows: GraphValue,
  dim: number,
): GraphValue {
  if (heads === keyValueHeads) return rows;
  const single = graph.op('Reshape', [rows, graph.ints(0, 0, keyValueHeads, dim)]);
  const repeated = graph.op('Tile', [single, graph.ints(1, 1, 1, heads / keyValueHeads)]);
  return graph.op('Reshape', [repeated, graph.ints(0, 0, heads * dim)]);
}

/**
 * Attention in separate steps, so that steps can be inserted between scores and softmax. Queries that share their keys
 * are rows of one product.
 */
function stepByStep(
  context: Context,
  layer: ScoreHeads,
  { queries, keys, values, bias }: AttendedAtOnce,
): GraphValue {
  const { graph, sizes } = context;
  const { heads, keyValueHeads, keyDim, valueDim, softcap } = layer;
  const { tokens } = sizeNames(sizes);
  const together = heads === keyValueHeads ? tokens : `${tokens}·${heads / keyValueHeads}`;
  const shared = graph.ints(0, keyValueHeads, -1, 0); // To [B, keyValueHeads, G · T, ·].
  const each = graph.ints(0, heads, -1, 0); // To [B, heads, T, ·].
  const grouped = (value: GraphValue) =>
    graph.sized(graph.op('Reshape', [value, shared]), ['', keyValueHeads, together, '']);
  const single = (value: GraphValue) =>
    graph.sized(graph.op('Reshape', [value, each]), ['', heads, tokens, '']);
  const q = grouped(byHead(context, queries, heads, keyDim));
  const products = productsOf(context, layer, q, keys);
  const capped =
    softcap === undefined ? products : scaledBy(context, graph.op('Tanh', [products]), softcap);
  const scores = single(capped); // [B, heads, T, S]
  const probabilities = graph.op('Softmax', [graph.op('Add', [scores, bias])]);
  const results = graph.op('MatMul', [
    grouped(probabilities),
    byHead(context, values, keyValueHeads, valueDim),
  ]);
  return graph.op('Reshape', [
    swapped(context, single(results)),
    graph.ints(0, 0, heads * valueDim),
  ]);
}

/**
 * Scaled scores, divided by the cap if there is one, [B, keyValueHeads, G · T, S]. @param q [B, keyValueHeads, G · T,
 * d]
 */
function productsOf(
  context: Context,
  layer: ScoreHeads,
  q: GraphValue,
  keys: GraphValue,
): GraphValue {
  const { graph, target } = context;
  const { keyValueHeads, keyDim, scale, softcap = 1 } = layer;
  if (target.provider === 'cpu') {
    return graph.op('FusedMatMul', [q, byHead(context, keys, keyValueHeads, keyDim)], {
      domain: MICROSOFT,
      attributes: { transB: 1, alpha: { float: scale / softcap } },
    });
  }
  const single = graph.op('Reshape', [keys, graph.ints(0, 0, keyValueHeads, keyDim)]);
  const transposed = graph.op('Transpose', [single], { attributes: { perm: [0, 2, 3, 1] } });
  return graph.op('MatMul', [scaledBy(context, q, scale / softcap), transposed]);
}

/** [B, T, heads · d] → [B, heads, T, d] */
function byHead(context: Context, value: GraphValue, heads: number, dim: number): GraphValue {
  const { graph } = context;
  return swapped(context, graph.op('Reshape', [value, graph.ints(0, 0, heads, dim)]));
}
