import type { Rotary } from '../../../architecture/layer.js';
import {
  amplitudeOf,
  dependsOnLength,
  rotaryFrequencies,
} from '../../../architecture/rotary-scaling.js';
import {
  type Context,
  feedPositions,
  folded,
  scaledBy,
  swapped,
  unfoldedRows,
} from '../context.js';
import type { GraphValue } from '../graph.js';
import { MICROSOFT } from '../proto.js';

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
  const { cos, sin } = context.once(`turns:${turningOf(layer)}`, () => tables(context, layer));
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
  const byHead = swapped(context, unfoldedRows(context, x, -1, layer.headDim)); // [B, heads, T, d]
  const tokens = graph.op('Shape', [byHead], { attributes: { start: 2 } }); // T, d
  const sequences = graph.op('Concat', [graph.ints(-1), tokens], { attributes: { axis: 0 } });
  const turned = emitRotary(context, layer, graph.op('Reshape', [byHead, sequences]), 1);
  const result = graph.op('Reshape', [turned, graph.op('Shape', [byHead])]);
  return folded(context, swapped(context, result));
}

/** Cache key of rotations by the same angles. */
const turningOf = ({ base, rotatedDim, scaling }: Rotary): string =>
  JSON.stringify([base, rotatedDim, scaling]);

/** Cosine and sine of position · frequency, [T, rotatedDim / 2] each. */
function tables(context: Context, layer: Rotary): { cos: GraphValue; sin: GraphValue } {
  const { graph } = context;
  const t = graph.op('Unsqueeze', [graph.cast(feedPositions(context), 'f32'), graph.ints(1)]);
  const angles = graph.op('Mul', [t, frequencies(context, layer)]);
  const table = (op: 'Cos' | 'Sin') =>
    scaledBy(context, graph.op(op, [angles]), amplitudeOf(layer));
  return { cos: table('Cos'), sin: table('Sin') };
}

function frequencies({ graph, feed }: Context, layer: Rotary): GraphValue {
  const name = `frequencies:${turningOf(layer)}`;
  return dependsOnLength(layer)
    ? feed(name, { kind: 'frequencies', rotary: layer })
    : graph.floats(name, rotaryFrequencies(layer));
}
