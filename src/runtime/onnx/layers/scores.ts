/** Softmax attention over given queries, keys and values. Shapes: T queries, S keys, G = heads / keyValueHeads. */
import { type Context, scaled, swapped } from '../context.js';
import { LEFT_OUT, type Value } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import type { Target } from '../target.js';

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
  /** What is added to the scores, [1, 1 or heads, T, S]. */
  readonly bias: Value;
}

/** → [B, T, heads · valueDim]. In float16 are products alone, and not the scores with their mask. */
export const attend = (context: Context, heads: Heads, attended: Attended): Value =>
  heads.softcap === undefined && context.target.compute === 'f32' && FUSES[context.target.provider]
    ? fused(context, heads, attended)
    : stepByStep(context, heads, attended);

/**
 * Whether `MultiHeadAttention` can be relied on. That of WebGPU goes by subgroups from 32 tokens on: with
 * those of llvmpipe, which are eight wide, ONNX Runtime 1.30 gives wrong results without a word.
 */
const FUSES = {
  cpu: true,
  cuda: true,
  webgpu: false,
  dml: true,
  coreml: true,
} as const satisfies Record<Target['provider'], boolean>;

/** In one operation, which wants a key and value for every query. */
function fused(context: Context, each: Heads, { queries, keys, values, bias }: Attended): Value {
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
  { queries, keys, values, bias }: Attended,
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
