/** Softmax attention over given queries, keys and values. Shapes: T queries, S keys, G = heads / keyValueHeads. */
import type { Context, Target } from '../context.js';
import { headsAtATime, parts, scaledBy, sizeNames, swapped } from '../context.js';
import { type GraphValue, LEFT_OUT } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import type { HeadRange } from './mask.js';

export interface ScoreHeads {
  readonly heads: number;
  readonly keyValueHeads: number;
  /** Width of a query and key. */
  readonly keyDim: number;
  readonly valueDim: number;
  readonly scale: number;
  readonly softcap: number | undefined;
}

export interface Attended {
  /** [B, T, heads · keyDim] */
  readonly queries: GraphValue;
  /** [B, S, keyValueHeads · keyDim] */
  readonly keys: GraphValue;
  /** [B, S, keyValueHeads · valueDim] */
  readonly values: GraphValue;
  /** Value added to the scores of some heads, [1, 1 or heads, T, S]. */
  readonly bias: (heads: HeadRange) => GraphValue;
}

/** → [B, T, heads · valueDim] */
export function attend(context: Context, all: ScoreHeads, attended: Attended): GraphValue {
  const { graph } = context;
  const { keyDim, valueDim } = all;
  const groups = groupsOf(all, headsAtATime(context.target, all.heads));
  const widths = (of: readonly number[], dim: number) => of.map((heads) => heads * dim);
  const queries = graph.split(
    attended.queries,
    widths(
      groups.map(({ heads }) => heads),
      keyDim,
    ),
  );
  // Groups that share a key share its part.
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
        bias: attended.bias(group),
      },
    );
  });
  return graph.joined(results);
}

/** Heads whose scores are computed together. */
interface ScoreGroup extends HeadRange {
  readonly keyValueHeads: number;
  /** Whether it is the first group of its keys and values. */
  readonly isFirst: boolean;
}

/** Groups of at most `most` heads: whole sets of heads that share a key, or a part of one set. */
function groupsOf({ heads, keyValueHeads }: ScoreHeads, most: number): ScoreGroup[] {
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

/** One group with its own bias. */
type AttendedAtOnce = Omit<Attended, 'bias'> & { readonly bias: GraphValue };

/** Only the products use float16, not the masked scores. */
const attendAtOnce = (context: Context, heads: ScoreHeads, attended: AttendedAtOnce): GraphValue =>
  heads.softcap === undefined && context.target.compute === 'f32' && FUSES[context.target.provider]
    ? fused(context, heads, attended)
    : stepByStep(context, heads, attended);

/**
 * Whether `MultiHeadAttention` is reliable. WebGPU's uses another kernel from 32 tokens on, whose results are silently
 * wrong on llvmpipe (0.07 off, ONNX Runtime 1.30).
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
  const shared = graph.ints(0, keyValueHeads, -1, 0); // of [B, keyValueHeads, G · T, ·]
  const each = graph.ints(0, heads, -1, 0); // of [B, heads, T, ·]
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
  const turned = graph.op('Transpose', [single], { attributes: { perm: [0, 2, 3, 1] } });
  return graph.op('MatMul', [scaledBy(context, q, scale / softcap), turned]);
}

/** [B, T, heads · d] → [B, heads, T, d] */
function byHead(context: Context, value: GraphValue, heads: number, dim: number): GraphValue {
  const { graph } = context;
  return swapped(context, graph.op('Reshape', [value, graph.ints(0, 0, heads, dim)]));
}
