/** Softmax attention over given queries, keys and values. Shapes: T queries, S keys, G = heads / keyValueHeads. */
import type { Context, Target } from '../context.js';
import { headsAtATime, parts, scaled, swapped } from '../context.js';
import { LEFT_OUT, type Value } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import type { HeadRange } from './mask.js';

export interface Heads {
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
  readonly queries: Value;
  /** [B, S, keyValueHeads · keyDim] */
  readonly keys: Value;
  /** [B, S, keyValueHeads · valueDim] */
  readonly values: Value;
  /** What is added to the scores of some of the heads, [1, 1 or heads, T, S]. */
  readonly bias: (heads: HeadRange) => Value;
}

/** → [B, T, heads · valueDim] */
export function attend(context: Context, all: Heads, attended: Attended): Value {
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
  // Groups that share a key share a part.
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
interface Group extends HeadRange {
  readonly keyValueHeads: number;
  /** Whether it is the first of its keys and values. */
  readonly isFirst: boolean;
}

/** At most so many heads together: of several keys and values all that share them, or some of those of one. */
function groupsOf({ heads, keyValueHeads }: Heads, most: number): Group[] {
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

/** One group, with the bias of its own. */
type AttendedAtOnce = Omit<Attended, 'bias'> & { readonly bias: Value };

/** In float16 are products alone, and not the scores with their mask. */
const attendAtOnce = (context: Context, heads: Heads, attended: AttendedAtOnce): Value =>
  heads.softcap === undefined && context.target.compute === 'f32' && FUSES[context.target.provider]
    ? fused(context, heads, attended)
    : stepByStep(context, heads, attended);

/**
 * Whether `MultiHeadAttention` can be relied on. That of WebGPU takes another way from 32 tokens on, and on
 * llvmpipe its results are wrong there without a word (0.07 off, ONNX Runtime 1.30).
 */
const FUSES = {
  cpu: true,
  cuda: true,
  webgpu: false,
  dml: true,
  coreml: true,
} as const satisfies Record<Target['provider'], boolean>;

/** In one operation, which wants a key and value for every query. */
function fused(
  context: Context,
  each: Heads,
  { queries, keys, values, bias }: AttendedAtOnce,
): Value {
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

/** Keys or values [B, S, keyValueHeads · d] → [B, S, heads · d]: each for the query heads that share it. */
export function forEachHead(
  { graph }: Context,
  { heads, keyValueHeads }: Pick<Heads, 'heads' | 'keyValueHeads'>,
  rows: Value,
  dim: number,
): Value {
  if (heads === keyValueHeads) return rows;
  const single = graph.op('Reshape', [rows, graph.ints(0, 0, keyValueHeads, dim)]);
  const repeated = graph.op('Tile', [single, graph.ints(1, 1, 1, heads / keyValueHeads)]);
  return graph.op('Reshape', [repeated, graph.ints(0, 0, heads * dim)]);
}

/** Each step by itself, so that there can be one between scores and softmax. Queries that share their keys are rows of one product. */
function stepByStep(
  context: Context,
  layer: Heads,
  { queries, keys, values, bias }: AttendedAtOnce,
): Value {
  const { graph } = context;
  const { heads, keyValueHeads, keyDim, valueDim, softcap } = layer;
  const shared = graph.ints(0, keyValueHeads, -1, 0); // of [B, keyValueHeads, G · T, ·]
  const each = graph.ints(0, heads, -1, 0); // of [B, heads, T, ·]
  const q = graph.op('Reshape', [byHead(context, queries, heads, keyDim), shared]);
  const products = productsOf(context, layer, q, keys);
  const capped =
    softcap === undefined ? products : scaled(context, graph.op('Tanh', [products]), softcap);
  const scores = graph.op('Reshape', [capped, each]); // [B, heads, T, S]
  const probabilities = graph.op('Softmax', [graph.op('Add', [scores, bias])]);
  const results = graph.op('MatMul', [
    graph.op('Reshape', [probabilities, shared]),
    byHead(context, values, keyValueHeads, valueDim),
  ]);
  const together = swapped(context, graph.op('Reshape', [results, each]));
  return graph.op('Reshape', [together, graph.ints(0, 0, heads * valueDim)]);
}

/** Scaled, and for a cap divided by it, [B, keyValueHeads, G · T, S]. @param q [B, keyValueHeads, G · T, d] */
function productsOf(context: Context, layer: Heads, q: Value, keys: Value): Value {
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
  return graph.op('MatMul', [scaled(context, q, scale / softcap), turned]);
}

/** [B, T, heads · d] → [B, heads, T, d] */
function byHead(context: Context, value: Value, heads: number, dim: number): Value {
  const { graph } = context;
  return swapped(context, graph.op('Reshape', [value, graph.ints(0, 0, heads, dim)]));
}
