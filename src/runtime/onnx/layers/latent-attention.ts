/** Shapes: B batch, T tokens of the call, S keys, R = B·T rows. */
import type { LatentAttention } from '../../../architecture/layer.js';
import { type Context, folded, unfoldedRows } from '../context.js';
import type { GraphValue } from '../graph.js';
import { mask, withPast } from './mask.js';
import { emitRotary } from './rotary.js';
import { attend } from './scores.js';

/** u [R, H] → [R, H]. */
export function emitLatentAttention(
  context: Context,
  layer: LatentAttention,
  u: GraphValue,
): GraphValue {
  const { heads, nopeDim, valueDim, scale, rotary: turning } = layer;
  const keyDim = nopeDim + turning.headDim;
  const { keys, values } = keysAndValues(context, layer, u);
  const results = attend(
    context,
    { heads, keyValueHeads: heads, keyDim, valueDim, scale, softcap: undefined },
    { queries: queriesOf(context, layer, u), keys, values, bias: () => mask(context, undefined) },
  );
  return context.apply(layer.out, folded(context, results));
}

/** Queries with the last columns of each head rotated, [B, T, heads · (nopeDim + d)]. */
function queriesOf(context: Context, layer: LatentAttention, u: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { heads, nopeDim, rotary: turning } = layer;
  const byHead = graph.op('Reshape', [
    unfoldedRows(context, apply(layer.query, u), heads * (nopeDim + turning.headDim)),
    graph.ints(0, 0, heads, nopeDim + turning.headDim),
  ]);
  const [still, moving] = graph.split(byHead, [nopeDim, turning.headDim]);
  const flat = graph.op('Reshape', [moving, graph.ints(0, 0, heads * turning.headDim)]);
  const turned = emitRotary(context, turning, flat, heads);
  return headsOf(context, layer, [
    still,
    graph.op('Reshape', [turned, graph.ints(0, 0, heads, turning.headDim)]),
  ]);
}

/** Joins parts of each head [B, S, heads, ·] to [B, S, heads · width]. */
function headsOf(
  { graph }: Context,
  { heads, nopeDim, rotary }: LatentAttention,
  parts: GraphValue[],
) {
  const width = heads * (nopeDim + rotary.headDim);
  return graph.op('Reshape', [graph.joined(parts), graph.ints(0, 0, width)]);
}

/** Keys and values from the cached latents and the key that all heads share. */
function keysAndValues(context: Context, layer: LatentAttention, u: GraphValue) {
  const { graph, apply } = context;
  const { name, heads, latentRank, nopeDim, valueDim, rotary: turning } = layer;
  const [down, moving] = graph.split(apply(layer.keyValueDown, u), [latentRank, turning.headDim]);
  const latents = withPast(
    context,
    { name: `${name}.latents`, width: latentRank, window: undefined },
    unfoldedRows(context, apply(layer.latentNorm, down), latentRank),
  );
  const sharedKeys = withPast(
    context,
    { name: `${name}.keys`, width: turning.headDim, window: undefined },
    emitRotary(context, turning, unfoldedRows(context, moving, turning.headDim), 1),
  );
  const known = context.withSizes(
    graph.op('Shape', [latents], { attributes: { start: 0, end: 2 } }), // B and S
  );
  const up = known.apply(layer.keyValueUp, folded(known, latents));
  const [still, values] = graph.split(unfoldedRows(known, up, heads, nopeDim + valueDim), [
    nopeDim,
    valueDim,
  ]);
  const shared = graph.op('Expand', [
    graph.op('Unsqueeze', [sharedKeys, graph.ints(2)]),
    graph.ints(1, 1, heads, 1),
  ]);
  return {
    keys: headsOf(context, layer, [still, shared]),
    values: graph.op('Reshape', [values, graph.ints(0, 0, heads * valueDim)]),
  };
}
