/** Layers that depend only on a token or its position. Shapes: B batch, T tokens, R = B·T rows, H hidden. */
import type {
  Embedding,
  EmbeddingJoin,
  LearnedPositions,
  PerLayerBranch,
  PerLayerInputs,
  Rotary,
  SinusoidalPositions,
  SrteLowRank,
  SrteSincos,
  SrteTable,
} from '../../../model/architecture/layer.js';
import { cosinesOf } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import {
  amplitudeOf,
  dependsOnLength,
  hasLongAmplitude,
  rotaryFrequencies,
} from '../../../model/architecture/rotary-scaling.js';
import type { Context } from '../context.js';
import {
  feedPositions,
  flattened,
  scaledBy,
  sizeNames,
  swapped,
  unflattenedRows,
  weightOf,
  weightRows,
} from '../context.js';
import type { GraphValue } from '../graph.js';
import { LEFT_OUT } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { quantizedLookup } from '../quantized-products.js';
import { activated } from './elementwise.js';

/** Token ids [B, T] → [R, H]. */
export function emitEmbedding(
  context: Context,
  { weight }: Embedding,
  ids: GraphValue,
): GraphValue {
  const { graph, sizes } = context;
  const rows = graph.op('Reshape', [ids, graph.ints(-1)]);
  const indices = graph.sized(rows, [sizeNames(sizes).rows], 'i32');
  const quantized = context.quantized(weight);
  return quantized
    ? quantizedLookup(context, quantized, indices)
    : weightRows(context, weight, indices);
}

/** x [R, H] → [R, 2 · H]. */
export function emitEmbeddingJoin(
  { graph, apply, once, feed }: Context,
  { embedding }: EmbeddingJoin,
  x: GraphValue,
): GraphValue {
  const rows = once(embedding, () => apply(embedding, feed('ids', { kind: 'ids' })));
  return graph.joined([x, rows]);
}

/** Token ids [B, T] → the values of every block, [R, layers · width]. */
export function emitPerLayerInputs(
  context: Context,
  layer: PerLayerInputs,
  ids: GraphValue,
): GraphValue {
  const { graph, apply, sizes } = context;
  const { layers, width } = layer;
  const { rows } = sizeNames(sizes);
  const embedded = scaledBy(context, apply(layer.embedding, ids), layer.embeddingScale);
  const projected = scaledBy(context, apply(layer.projection, embedded), layer.projectionScale);
  const parts = graph.sized(graph.op('Reshape', [projected, graph.ints(-1, width)]), [
    `${rows}·${layers}`,
    width,
  ]);
  const normed = graph.op('Reshape', [apply(layer.norm, parts), graph.ints(-1, layers * width)]);
  const own = scaledBy(context, apply(layer.table, ids), layer.tableScale);
  const sum = graph.op('Add', [graph.sized(normed, [rows, layers * width]), own]);
  return scaledBy(context, sum, layer.scale);
}

/** x [R, H] → [R, H]. */
export function emitPerLayerBranch(
  context: Context,
  { inputs, index, gate, projection, activation }: PerLayerBranch,
  x: GraphValue,
): GraphValue {
  const { graph, apply, once, feed } = context;
  const parts = once(inputs, () =>
    graph.split(
      apply(inputs, feed('ids', { kind: 'ids' })),
      new Array<number>(inputs.layers).fill(inputs.width),
    ),
  );
  const opened = activated(context, activation, apply(gate, x));
  return apply(projection, graph.op('Mul', [opened, parts[index] ?? LEFT_OUT]));
}

/** x [R, H] plus the position's row for each token. */
export const emitLearnedPositions = (
  context: Context,
  { weight, offset }: LearnedPositions,
  x: GraphValue,
): GraphValue => {
  const { graph } = context;
  const positions = feedPositions(context);
  // Positions that the graph itself computes are int64.
  const rows =
    offset === 0 ? positions : graph.op('Add', [graph.cast(positions, 'i32'), graph.int32(offset)]);
  return withPositions(context, x, weightRows(context, weight, rows));
};

/** x [R, H] plus sines and cosines of the position of each token. */
export const emitSinusoidalPositions = (
  context: Context,
  layer: SinusoidalPositions,
  x: GraphValue,
): GraphValue => {
  const { graph, sizes } = context;
  const { name, frequencies, size, offset, zeroAt } = layer;
  const numbered = graph.op('Unsqueeze', [
    graph.op('Add', [graph.cast(feedPositions(context), 'f32'), graph.float(offset)]),
    graph.ints(1),
  ]); // [T, 1]
  const columns = (op: string, count: number) => {
    const values = Float32Array.from(frequencies.slice(0, count));
    const angles = graph.op('Mul', [numbered, graph.floats(`${name}.${op}`, values)]);
    return graph.op(op, [angles]); // [T, count]
  };
  const cosines = cosinesOf(layer);
  const parts = [
    columns('Sin', frequencies.length),
    ...(cosines > 0 ? [columns('Cos', cosines)] : []),
  ];
  const joined = graph.op('Concat', parts, { attributes: { axis: 1 } });
  const missing = size - frequencies.length - cosines;
  const padded = missing > 0 ? graph.op('Pad', [joined, graph.ints(0, 0, 0, missing)]) : joined;
  const isUsed =
    zeroAt === undefined
      ? undefined
      : graph.op('Not', [graph.op('Equal', [numbered, graph.float(zeroAt)])]);
  const rows = isUsed ? graph.op('Mul', [padded, graph.cast(isUsed, 'f32')]) : padded;
  return withPositions(context, x, graph.sized(rows, [sizeNames(sizes).tokens, size]));
};

/** x [R, H] plus the same rows [T, H] for every sequence. */
export const withPositions = (context: Context, x: GraphValue, rows: GraphValue): GraphValue =>
  flattened(context, context.graph.op('Add', [unflattenedRows(context, x, -1), rows]));

// Rows of the time encoding at the positions of a call, [T, H].

export const emitSrteTable = (context: Context, { table }: SrteTable): GraphValue =>
  rowsAtPositions(context, table);

export const emitSrteLowRank = (
  context: Context,
  { lowRank, projection }: SrteLowRank,
): GraphValue => context.apply(projection, rowsAtPositions(context, lowRank));

/** Rows of a table [1, rows, n] at the positions of the call, [T, n]. */
function rowsAtPositions(context: Context, table: Param): GraphValue {
  return weightRows(context, table, feedPositions(context));
}

/** Sines in the even columns, cosines in the odd ones. */
export function emitSrteSincos(context: Context, { inverseFrequencies }: SrteSincos): GraphValue {
  const { graph, sizes } = context;
  const t = graph.op('Unsqueeze', [graph.cast(feedPositions(context), 'f32'), graph.ints(1)]);
  const angles = graph.op('Mul', [t, weightOf(context, inverseFrequencies)]); // [T, H / 2]
  const columns = ['Sin', 'Cos'].map((op) =>
    graph.op('Unsqueeze', [graph.op(op, [angles]), graph.ints(2)]),
  );
  const pairs = graph.op('Concat', columns, { attributes: { axis: 2 } }); // [T, H / 2, 2]
  const width = 2 * inverseFrequencies.elements;
  const rows = graph.op('Reshape', [pairs, graph.ints(-1, width)]);
  return graph.sized(rows, [sizeNames(sizes).tokens, width]);
}

/** Pairing of columns, as an attribute of `RotaryEmbedding`. */
const INTERLEAVED = { halves: 0, neighbours: 1 } as const satisfies Record<Rotary['pairs'], 0 | 1>;

/** Rotates each head's pairs of columns by the angle of their position, [B, T, heads · d] → the same. */
export function emitRotary(
  context: Context,
  layer: Rotary,
  x: GraphValue,
  heads: number,
): GraphValue {
  const { graph } = context;
  const { headDim, rotatedDim, pairs } = layer;
  const { cos, sin } = context.once(`turns:${rotationKey(layer)}`, () => tables(context, layer));
  const part = rotatedDim < headDim ? { num_heads: heads, rotary_embedding_dim: rotatedDim } : {};
  // The tables have a row for each token of the call, so positions begin at 0.
  return graph.op('RotaryEmbedding', [x, graph.ints(0), cos, sin], {
    domain: MICROSOFT,
    attributes: { interleaved: INTERLEAVED[pairs], ...part },
  });
}

/** Rotation as a separate layer, on rows of any number of heads [R, heads · d]: each head is its own sequence. */
export function rotaryAlone(context: Context, layer: Rotary, x: GraphValue): GraphValue {
  const { graph } = context;
  const byHead = swapped(context, unflattenedRows(context, x, -1, layer.headDim)); // [B, heads, T, d]
  const tokens = graph.op('Shape', [byHead], { attributes: { start: 2 } }); // T, d
  const sequences = graph.op('Concat', [graph.ints(-1), tokens], { attributes: { axis: 0 } });
  const rotated = emitRotary(context, layer, graph.op('Reshape', [byHead, sequences]), 1);
  const result = graph.op('Reshape', [rotated, graph.op('Shape', [byHead])]);
  return flattened(context, swapped(context, result));
}

/** Cache key of rotations by the same angles. */
const rotationKey = ({ base, rotatedDim, scaling, isBackwards }: Rotary): string =>
  JSON.stringify([base, rotatedDim, scaling, isBackwards]);

/** Cosine and sine of position · frequency, [T, rotatedDim / 2] each. */
function tables(context: Context, layer: Rotary): { cos: GraphValue; sin: GraphValue } {
  const { graph, feed } = context;
  const t = graph.op('Unsqueeze', [graph.cast(feedPositions(context), 'f32'), graph.ints(1)]);
  const angles = graph.op('Mul', [t, frequencies(context, layer)]);
  const scaled = (wave: GraphValue) =>
    hasLongAmplitude(layer)
      ? graph.op('Mul', [
          wave,
          feed(`amplitude:${rotationKey(layer)}`, { kind: 'amplitude', rotary: layer }),
        ])
      : scaledBy(context, wave, amplitudeOf(layer));
  const table = (op: 'Cos' | 'Sin') => scaled(graph.op(op, [angles]));
  return { cos: table('Cos'), sin: table('Sin') };
}

function frequencies({ graph, feed }: Context, layer: Rotary): GraphValue {
  const name = `frequencies:${rotationKey(layer)}`;
  return dependsOnLength(layer)
    ? feed(name, { kind: 'frequencies', rotary: layer })
    : graph.floats(name, rotaryFrequencies(layer));
}
