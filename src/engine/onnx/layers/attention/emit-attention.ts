/** Shapes: B batch, T tokens of the call, S keys, R = B·T rows, d width of a head. */

import type {
  Attention,
  AttentionCore,
  HeadSpan,
  LatentAttention,
  Temperature,
} from '../../../../model/architecture/layer.js';
import { gateWidth, normWidth, valueWidth } from '../../../../model/architecture/walk.js';
import type { Context } from '../../context.js';
import {
  cachesInPlace,
  feedPositions,
  flattened,
  scaledBy,
  sizeNames,
  swapped,
  unflattenedRows,
  weightOf,
} from '../../context.js';
import type { GraphValue } from '../../graph.js';
import { LEFT_OUT } from '../../graph.js';
import { MICROSOFT } from '../../proto.js';
import { activated, clipped } from '../elementwise.js';
import { emitRotary } from '../embeddings.js';
import { emitProjections } from '../projections.js';
import { attendWithCache, cached } from './attend-with-cache.js';
import { asCached } from './cache-rounding.js';
import { emitIndexer } from './indexer.js';
import { type HeadRange, mask, positionBias } from './masks.js';
import { attend, forEachHead, sinkScores, withPast } from './scores.js';

/**
 * u [R, H] → [R, H].
 * @param scoreBias What the scores gain in place of the mask, of values [B, T, keyValueHeads · d].
 */
export function emitAttention(
  context: Context,
  layer: Attention,
  u: GraphValue,
  scoreBias?: (values: GraphValue) => WindowHeads['bias'],
): GraphValue {
  const { graph, apply } = context;
  const { heads, keyValueHeads, headDim, queryNorm, keyNorm, clip } = layer;
  const projected = emitProjections(context, layer.inputs, u);
  const [gate] = layer.gate ? projected.splice(1, 1) : [];
  const [q = LEFT_OUT, k = LEFT_OUT, v = layer.valuesAreKeys ? k : LEFT_OUT] = projected;
  const clamped = (x: GraphValue) => (clip === undefined ? x : clipped(graph, x, -clip, clip));
  const prepared = (norm: typeof queryNorm, x: GraphValue, count: number) => {
    const width = count * headDim;
    if (!layer.normsAfterRotation) {
      return rotatedHeads(context, layer, clamped(normed(context, norm, x, width)), count);
    }
    const rotated = flattened(context, rotatedHeads(context, layer, clamped(x), count));
    return unflattenedRows(context, normed(context, norm, rotated, width), width);
  };
  const given = {
    queries: temperatureScaled(context, layer.temperature, prepared(queryNorm, q, heads)),
    ...(typeof layer.sharing === 'object'
      ? { keys: LEFT_OUT, values: LEFT_OUT }
      : {
          keys: prepared(keyNorm, k, keyValueHeads),
          values: unflattenedRows(
            context,
            clamped(normed(context, layer.valueNorm, v, keyValueHeads * valueWidth(layer))),
            keyValueHeads * valueWidth(layer),
          ),
        }),
  };
  const bias = scoreBias?.(given.values);
  const { selection } = layer;
  const choice = selection && {
    groups: selection.heads,
    chosen: emitIndexer(context, selection, { input: u, latent: u }),
  };
  const results = windowHeads(context, layer, given).map((part) =>
    attendPart(context, layer, bias ? { ...part, bias } : part, choice),
  );
  const result = flattened(context, graph.joined(results));
  return apply(layer.out, gate ? gatedHeads(context, layer, result, gate) : result);
}

/** Output of the heads [R, heads · width] times their gate [R, heads · gateDim]. */
function gatedHeads(
  context: Context,
  layer: Attention,
  result: GraphValue,
  gate: GraphValue,
): GraphValue {
  const { graph, sizes } = context;
  const factors = activated(context, layer.gate ?? 'identity', gate);
  const [values, gates] = [valueWidth(layer), gateWidth(layer)];
  if (values === gates) return graph.op('Mul', [result, factors]);
  const byHead = graph.op('Mul', [
    graph.op('Reshape', [result, graph.ints(0, layer.heads, values)]),
    graph.op('Reshape', [factors, graph.ints(0, layer.heads, gates)]),
  ]);
  const width = layer.heads * values;
  return graph.sized(graph.op('Reshape', [byHead, graph.ints(-1, width)]), [
    sizeNames(sizes).rows,
    width,
  ]);
}

/** Norm of each head of x [R, heads · d], or of all heads together when the weight is that wide. */
function normed(
  { graph, apply, sizes }: Context,
  norm: Attention['queryNorm'],
  x: GraphValue,
  width: number,
) {
  if (!norm) return x;
  const elements = normWidth(norm);
  if (elements === width) return apply(norm, x);
  const { rows } = sizeNames(sizes);
  const perHead = graph.sized(graph.op('Reshape', [x, graph.ints(-1, elements)]), [
    `${rows}·${width / elements}`,
    elements,
  ]);
  const together = graph.op('Reshape', [apply(norm, perHead), graph.ints(-1, width)]);
  return graph.sized(together, [rows, width]);
}

/** Rotates the heads of x [R, heads · d] → [B, T, heads · d]. */
function rotatedHeads(
  context: Context,
  layer: Attention,
  x: GraphValue,
  heads: number,
): GraphValue {
  const rows = unflattenedRows(context, x, heads * layer.headDim);
  return layer.rotary ? emitRotary(context, layer.rotary, rows, heads) : rows;
}

/** Queries [B, T, ·] multiplied by the temperature of their position. */
function temperatureScaled(
  context: Context,
  temperature: Temperature | undefined,
  queries: GraphValue,
): GraphValue {
  if (!temperature) return queries;
  const { graph, once } = context;
  const { tokens, strength, offset } = temperature;
  const factors = once(`temperature:${tokens}:${strength}:${offset}`, () => {
    const positions = graph.cast(feedPositions(context), 'f32');
    const steps = graph.op('Floor', [
      graph.op('Div', [graph.op('Add', [positions, graph.float(offset)]), graph.float(tokens)]),
    ]);
    const logs = graph.op('Log', [graph.op('Add', [steps, graph.float(1)])]);
    const all = graph.op('Add', [scaledBy(context, logs, strength), graph.float(1)]);
    return graph.op('Unsqueeze', [all, graph.ints(1)]); // [T, 1]
  });
  return graph.op('Mul', [queries, factors]);
}

/** Queries, keys and values of heads with the same window, [B, T, ·]. */
interface WindowHeads extends HeadRange, Pick<HeadSpan, 'window'>, Given {
  /** Name of its state between calls, or of that of the layer whose keys it reads. */
  readonly name: string;
  readonly keyValueHeads: number;
  readonly valueForm?: ValueForm;
  /** Value added to the scores of some heads in place of the mask, [1 or B, heads, T, S]. */
  readonly bias?: (heads: HeadRange) => GraphValue;
}

/** Values that heads see in place of the cached ones: of rows [·, ·, keyValueHeads, headDim], as wide as `width`. */
interface ValueForm {
  readonly width: number;
  readonly of: (rows: GraphValue) => GraphValue;
}

interface Given {
  readonly queries: GraphValue;
  readonly keys: GraphValue;
  readonly values: GraphValue;
}

/** Groups of heads by window, each with its own keys and values. */
function windowHeads(context: Context, layer: Attention, given: Given): WindowHeads[] {
  const { keyValueHeads, headDim } = layer;
  const name = typeof layer.sharing === 'object' ? layer.sharing.from : layer.name;
  const spans = spansOf(layer);
  const [only, ...others] = spans;
  if (only && others.length === 0) {
    return [{ ...only, ...given, name: `${name}.0`, keyValueHeads }];
  }
  const valueDim = valueWidth(layer);
  const split = (value: GraphValue, width: number) =>
    context.graph.split(
      value,
      spans.map(({ heads }) => heads * width),
    );
  const queries = split(given.queries, headDim);
  const keys = split(forEachHead(context, layer, given.keys, headDim), headDim);
  const values = split(forEachHead(context, layer, given.values, valueDim), valueDim);
  return spans.map((span, index) => ({
    ...span,
    name: `${name}.${index}`,
    keyValueHeads: span.heads,
    queries: queries[index] ?? LEFT_OUT,
    keys: keys[index] ?? LEFT_OUT,
    values: values[index] ?? LEFT_OUT,
  }));
}

function spansOf({ spans }: Attention): (HeadSpan & HeadRange)[] {
  let end = 0;
  return spans
    .filter(({ heads }) => heads > 0)
    .map((span) => {
      const first = end;
      end += span.heads;
      return { ...span, first };
    });
}

/** Zeros for keys or values, [B, T, K · d]: the layer runs without the layer that provides them. */
function zerosLike({ graph }: Context, { queries }: WindowHeads, width: number) {
  const first = graph.op('Slice', [queries, graph.ints(0), graph.ints(1), graph.ints(2)]);
  return graph.op('Expand', [graph.op('Mul', [first, graph.float(0)]), graph.ints(1, 1, width)]);
}

/** Bias of some heads of an attention with a choice of keys, [B, 1 or heads, T, S]. @param chosen [B, G, T, S] */
function chosenFor(
  { graph }: Context,
  heads: number,
  { groups, chosen }: KeyChoice,
  range: HeadRange,
): GraphValue {
  const places = Array.from({ length: range.heads }, (_, head) =>
    Math.floor(((range.first + head) * groups) / heads),
  );
  return graph.op('Gather', [chosen, graph.ints(...places)], { attributes: { axis: 1 } });
}

/** Keys that groups of heads may see. */
interface KeyChoice {
  readonly groups: number;
  /** 0 for a chosen key, −∞ for another, [B, G, T, S]. */
  readonly chosen: GraphValue;
}

/** Attention of heads with the same window → [B, T, heads · d], d the width of a value. */
export function attendPart(
  context: Context,
  layer: AttentionCore,
  part: WindowHeads,
  choice?: KeyChoice,
): GraphValue {
  const { headDim, scale, softcap, alibi, sinks } = layer;
  const { name, window, keyValueHeads } = part;
  const { graph } = context;
  const { valueForm } = part;
  const ownDim = valueWidth(layer);
  const valueDim = valueForm?.width ?? ownDim;
  const heads = { ...part, keyDim: headDim, valueDim, scale, softcap };
  const widthOf = (leaf: 'keys' | 'values') => (leaf === 'keys' ? headDim : ownDim);
  const byPosition = { window, alibi, from: part.first };
  const ofLayer = (range: HeadRange) => ({ ...range, first: part.first + range.first });
  const bias = (range: HeadRange) => {
    const own = part.bias?.(ofLayer(range)) ?? positionBias(context, byPosition, range);
    return choice
      ? graph.op('Add', [own, chosenFor(context, layer.heads, choice, ofLayer(range))])
      : own;
  };
  /** Keys or values after those of earlier calls, computed at their first use. */
  const kept = <Made>(leaf: 'keys' | 'values', make: (name: string, now: GraphValue) => Made) =>
    context.once(`kept:${name}.${leaf}`, () => {
      const now =
        part[leaf] === LEFT_OUT
          ? zerosLike(context, part, keyValueHeads * widthOf(leaf))
          : part[leaf];
      return make(`${name}.${leaf}`, asCached(context, now));
    });
  if (cachesInPlace(context)) {
    const memory = { groups: keyValueHeads, window };
    const rows = (leaf: 'keys' | 'values') =>
      kept(leaf, (own, now) =>
        cached(context, { ...memory, width: widthOf(leaf), name: own }, now),
      );
    const values = rows('values');
    return attendWithCache(context, heads, {
      queries: part.queries,
      keys: rows('keys'),
      values: valueForm
        ? { past: valueForm.of(values.past), now: valueForm.of(values.now) }
        : values,
      bias: bias({ first: 0, heads: part.heads }),
      sinks: sinks && sinkScores(context, sinks, part),
    });
  }
  const all = (leaf: 'keys' | 'values') =>
    kept(leaf, (own, now) =>
      withPast(context, { width: keyValueHeads * widthOf(leaf), window, name: own }, now),
    );
  const formed = (values: GraphValue) => {
    if (!valueForm) return values;
    const byHead = graph.op('Reshape', [values, graph.ints(0, 0, keyValueHeads, ownDim)]);
    return graph.op('Reshape', [valueForm.of(byHead), graph.ints(0, 0, keyValueHeads * valueDim)]);
  };
  return attend(context, heads, {
    queries: part.queries,
    keys: all('keys'),
    values: formed(all('values')),
    bias: part.bias || choice ? bias : byPosition,
    sinks: sinks && ((range) => sinkScores(context, sinks, ofLayer(range))),
  });
}

// Shapes: B batch, T tokens of the call, S keys, R = B·T rows.

/** u [R, H] → [R, H]. */
export function emitLatentAttention(
  context: Context,
  layer: LatentAttention,
  u: GraphValue,
): GraphValue {
  const results = cachesInPlace(context)
    ? attendToLatents(context, layer, u)
    : attendToKeys(context, layer, u);
  return context.apply(layer.out, flattened(context, results));
}

/** Attention to keys and values made from the latents of all tokens, [B, T, heads · valueDim]. */
function attendToKeys(context: Context, layer: LatentAttention, u: GraphValue): GraphValue {
  const { heads, nopeDim, valueDim, scale, sharedDim } = layer;
  const keyDim = nopeDim + sharedDim;
  const { made, chosen } = latentQueries(context, layer, u);
  const { keys, values } = keysAndValues(context, layer, u);
  return attend(
    context,
    { heads, keyValueHeads: heads, keyDim, valueDim, scale, softcap: undefined },
    {
      queries: headsOf(context, layer, queriesOf(context, layer, made)),
      keys,
      values,
      bias: chosen ? () => chosen : { window: undefined, alibi: undefined, from: 0 },
    },
  );
}

/**
 * The same in the absorbed form: the projection of the latents is applied to the queries and to the results, q · (W l)
 * = (Wᵀ q) · l. Cached latents are then used directly, as one key and value that all heads share.
 */
function attendToLatents(context: Context, layer: LatentAttention, u: GraphValue): GraphValue {
  const { graph } = context;
  const { name, heads, latentRank, nopeDim, valueDim, scale, sharedDim } = layer;
  const width = latentRank + sharedDim;
  const up = graph.op('Reshape', [
    weightOf(context, layer.keyValueUp.weight),
    graph.ints(heads, nopeDim + valueDim, latentRank),
  ]);
  const rowsOfUp = (from: number, to: number) =>
    graph.op('Slice', [up, graph.ints(from), graph.ints(to), graph.ints(1)]);
  const { made, chosen = mask(context, undefined) } = latentQueries(context, layer, u);
  const [nope, rope] = queriesOf(context, layer, made);
  const absorbed = graph.op('MatMul', [swapped(context, nope), rowsOfUp(0, nopeDim)]);
  const { latents, keys } = latentsOf(context, layer, u);
  const rows = cached(
    context,
    { name: `${name}.latents`, window: undefined, groups: 1, width },
    graph.joined([latents, keys]),
  );
  const attended = attendWithCache(
    context,
    {
      heads,
      keyValueHeads: 1,
      keyDim: width,
      valueDim: width,
      scale,
      softcap: undefined,
      window: undefined,
    },
    {
      queries: graph.op('Reshape', [
        graph.joined([swapped(context, absorbed), rope]),
        graph.ints(0, 0, heads * width),
      ]),
      keys: rows,
      values: rows,
      bias: chosen,
    },
  );
  const byHead = graph.op('Reshape', [attended, graph.ints(0, 0, heads, width)]);
  const [results] = graph.split(byHead, [latentRank, sharedDim]);
  const values = graph.op(
    'FusedMatMul',
    [swapped(context, results), rowsOfUp(nopeDim, nopeDim + valueDim)],
    { domain: MICROSOFT, attributes: { transB: 1 } },
  );
  return graph.op('Reshape', [swapped(context, values), graph.ints(0, 0, heads * valueDim)]);
}

/** Queries as the products give them [R, ·], and the choice of the keys that they see [B, 1, T, S] where there is one. */
function latentQueries(
  context: Context,
  { name, query, selection }: LatentAttention,
  u: GraphValue,
): { made: GraphValue; chosen?: GraphValue } {
  const { apply, once } = context;
  if (!selection || query.kind === 'linear') return { made: apply(query, u) };
  const [down, norm, up] = query.layers;
  const latent = apply(norm, apply(down, u));
  const chosen =
    'kind' in selection
      ? once(`selection:${name}`, () => emitIndexer(context, selection, { input: u, latent }))
      : once(`selection:${selection.from}`, () => mask(context, undefined));
  return { made: apply(up, latent), chosen };
}

/** Queries of each head and their rotated columns, [B, T, heads, nopeDim] and [B, T, heads, d]. @param made [R, ·] */
function queriesOf(
  context: Context,
  layer: LatentAttention,
  made: GraphValue,
): [GraphValue, GraphValue] {
  const { graph } = context;
  const { heads, nopeDim, rotary, sharedDim } = layer;
  const queries = unflattenedRows(context, made, heads * (nopeDim + sharedDim));
  const byHead = graph.op('Reshape', [
    temperatureScaled(context, layer.temperature, queries),
    graph.ints(0, 0, heads, nopeDim + sharedDim),
  ]);
  const [nope, rope] = graph.split(byHead, [nopeDim, sharedDim]);
  const flat = graph.op('Reshape', [rope, graph.ints(0, 0, heads * sharedDim)]);
  const rotated = rotary ? emitRotary(context, rotary, flat, heads) : flat;
  return [nope, graph.op('Reshape', [rotated, graph.ints(0, 0, heads, sharedDim)])];
}

/** Latents [B, T, latentRank] and the rotated key that all heads share [B, T, d], of the call's tokens. */
function latentsOf(context: Context, layer: LatentAttention, u: GraphValue) {
  const { graph, apply } = context;
  const { latentRank, rotary, sharedDim, latentScale = 1 } = layer;
  const [down, rope] = graph.split(apply(layer.keyValueDown, u), [latentRank, sharedDim]);
  const normedLatents = apply(layer.latentNorm, down);
  const latents = latentScale === 1 ? normedLatents : scaledBy(context, normedLatents, latentScale);
  const shared = unflattenedRows(context, rope, sharedDim);
  return {
    latents: unflattenedRows(context, latents, latentRank),
    keys: rotary ? emitRotary(context, rotary, shared, 1) : shared,
  };
}

/** Joins parts of each head [B, S, heads, ·] to [B, S, heads · width]. */
function headsOf(
  { graph }: Context,
  { heads, nopeDim, sharedDim }: LatentAttention,
  parts: GraphValue[],
) {
  const width = heads * (nopeDim + sharedDim);
  return graph.op('Reshape', [graph.joined(parts), graph.ints(0, 0, width)]);
}

/** Keys and values from the cached latents and the key that all heads share. */
function keysAndValues(context: Context, layer: LatentAttention, u: GraphValue) {
  const { graph } = context;
  const { name, heads, latentRank, nopeDim, valueDim, sharedDim } = layer;
  const now = latentsOf(context, layer, u);
  const latents = withPast(
    context,
    { name: `${name}.latents`, width: latentRank, window: undefined },
    now.latents,
  );
  const sharedKeys = withPast(
    context,
    { name: `${name}.keys`, width: sharedDim, window: undefined },
    now.keys,
  );
  const known = context.withSizes(
    graph.op('Shape', [latents], { attributes: { start: 0, end: 2 } }), // B and S
  );
  const up = known.apply(layer.keyValueUp, flattened(known, latents));
  const [nope, values] = graph.split(unflattenedRows(known, up, heads, nopeDim + valueDim), [
    nopeDim,
    valueDim,
  ]);
  const shared = graph.op('Expand', [
    graph.op('Unsqueeze', [sharedKeys, graph.ints(2)]),
    graph.ints(1, 1, heads, 1),
  ]);
  return {
    keys: headsOf(context, layer, [nope, shared]),
    values: graph.op('Reshape', [values, graph.ints(0, 0, heads * valueDim)]),
  };
}
