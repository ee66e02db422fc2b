/** Tokens in chunks of equal length, for loops that bound the memory. Shapes: B batch, T tokens, n chunks of c tokens. */
import type { Context } from '../context.js';
import type { GraphValue } from '../graph.js';

export interface Chunks {
  /** n, [1] */
  readonly count: GraphValue;
  /** c, [1] */
  readonly length: GraphValue;
  /** n · c − T, [1] */
  readonly missing: GraphValue;
}

/**
 * The fewest chunks, of equal length.
 * @param key Names the choice of `most`.
 * @param most Tokens of a chunk of one sequence, at most, [1], for a batch [1].
 */
export function chunksOf(
  context: Context,
  key: string,
  most: (batch: GraphValue) => GraphValue,
): Chunks {
  const { graph, once, sizes } = context;
  return once(`chunks:${key}:${sizes}`, () => {
    const [batch, tokens] = [0, 1].map((at) => graph.op('Gather', [sizes, graph.ints(at)])) as [
      GraphValue,
      GraphValue,
    ];
    const one = graph.ints(1);
    const quotient = (a: GraphValue, divisor: GraphValue) => graph.op('Div', [a, divisor]);
    const less = graph.op('Sub', [tokens, one]);
    const count = graph.op('Add', [quotient(less, most(batch)), one]);
    const length = graph.op('Add', [quotient(less, count), one]);
    const missing = graph.op('Sub', [graph.op('Mul', [count, length]), tokens]);
    return { count, length, missing };
  });
}

/** Values [B, T, width] → [B, n, c, width], padded with zeros after the last token, which leave a state unchanged. */
export function chunked(
  { graph }: Context,
  { count, length, missing }: Chunks,
  values: GraphValue,
  width: number,
): GraphValue {
  const pads = graph.op('Concat', [graph.ints(0, 0, 0, 0), missing, graph.ints(0)], {
    attributes: { axis: 0 },
  });
  const padded = graph.op('Pad', [values, pads]);
  const shape = graph.op('Concat', [graph.ints(0), count, length, graph.ints(width)], {
    attributes: { axis: 0 },
  });
  return graph.op('Reshape', [padded, shape]);
}

/** y [n, B, c, width] → [B, T, width]. */
export function joinedChunks({ graph, sizes }: Context, y: GraphValue, width: number): GraphValue {
  const bySequence = graph.op('Transpose', [y], { attributes: { perm: [1, 0, 2, 3] } });
  const flat = graph.op('Reshape', [bySequence, graph.ints(0, -1, width)]);
  const tokens = graph.op('Gather', [sizes, graph.ints(1)]);
  return graph.op('Slice', [flat, graph.ints(0), tokens, graph.ints(1)]);
}
