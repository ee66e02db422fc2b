/**
 * The scan where `Scan` has no kernel, computed as linear attention over chunks of tokens whose decays one operation
 * can bind. Shapes: B batch, T tokens, D inner, N state, n chunks of c tokens.
 */
import type { Mamba } from '../../../architecture/layer.js';
import type { Context } from '../context.js';
import { folded, mostElements, unfoldedRows } from '../context.js';
import { GraphBuilder, type GraphValue, LEFT_OUT } from '../graph.js';
import { type GraphProto, MICROSOFT } from '../proto.js';
import { decay, type ScanInputs, startingState } from './scan.js';

/** Bytes of a chunk's decays, at most: a small part of the memory. */
const CHUNK_BYTES = 2 ** 27;

/** The same as `scan` of scan.ts. Its state is [B, D, N, 1]. */
export function chunkedScan(
  context: Context,
  layer: Mamba,
  { step, x, b, c }: ScanInputs,
): GraphValue {
  const { graph, outputs } = context;
  const { name, innerSize: inner, stateSize: state } = layer;
  const largest = Math.min(
    mostElements(context.target),
    CHUNK_BYTES / Float32Array.BYTES_PER_ELEMENT,
  );
  const most = Math.max(1, Math.floor(largest / (inner * state))); // tokens of all sequences
  const chunks = chunksOf(context, `${most} in all`, (batch) => {
    return graph.op('Max', [graph.op('Div', [graph.ints(most), batch]), graph.ints(1)]);
  });
  const inputs = {
    step: chunked(context, chunks, step, inner),
    u: chunked(context, chunks, graph.op('Mul', [step, x]), inner),
    b: chunked(context, chunks, b, state),
    c: chunked(context, chunks, c, state),
  };
  const before = startingState(context, layer, [inner, state, 1]);
  const body = chunk(layer, inputs, decay(context, layer), `${name}/`);
  const [after, y] = graph.pair('Loop', [chunks.count, LEFT_OUT, before], { attributes: { body } });
  outputs.states?.set(`${name}.scan`, graph.output(after));
  return joinedChunks(context, y, inner);
}

export interface ScanChunks {
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
): ScanChunks {
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

/** Rows [B · T, width] → [B, n, c, width], padded with zeros after the last token, which leave a state unchanged. */
export function chunked(
  context: Context,
  chunks: ScanChunks,
  rows: GraphValue,
  width: number,
): GraphValue {
  const { graph } = context;
  const { count, length, missing } = chunks;
  const pads = graph.op('Concat', [graph.ints(0, 0, 0, 0), missing, graph.ints(0)], {
    attributes: { axis: 0 },
  });
  const padded = graph.op('Pad', [unfoldedRows(context, rows, width), pads]);
  const shape = graph.op('Concat', [graph.ints(0), count, length, graph.ints(width)], {
    attributes: { axis: 0 },
  });
  return graph.op('Reshape', [padded, shape]);
}

/** y [n, B, c, D] → rows [B · T, D]. */
function joinedChunks(context: Context, y: GraphValue, inner: number): GraphValue {
  const { graph, sizes } = context;
  const bySequence = graph.op('Transpose', [y], { attributes: { perm: [1, 0, 2, 3] } });
  const flat = graph.op('Reshape', [bySequence, graph.ints(0, -1, inner)]);
  const tokens = graph.op('Gather', [sizes, graph.ints(1)]);
  return folded(context, graph.op('Slice', [flat, graph.ints(0), tokens, graph.ints(1)]));
}

/** Graph of one chunk. @param inputs Inputs from the outer graph. @param decays [D, N], from the outer graph. */
function chunk(
  { innerSize: inner, stateSize: state }: Mamba,
  inputs: ScanInputsOfChunks,
  decays: GraphValue,
  prefix: string,
): GraphProto {
  const graph = new GraphBuilder(prefix);
  const index = graph.input('index', 'i64', []);
  const goesOn = graph.input('goes_on', 'bool', []);
  const before = graph.input('h', 'f32', ['B', 'D', 'N', 1]);
  const own = (value: GraphValue) =>
    graph.op('Gather', [value, index], { attributes: { axis: 1 } });
  const step = graph.op('Unsqueeze', [own(inputs.step), graph.ints(3)]); // [B, c, D, 1]
  const log = graph.op('Reshape', [
    graph.op('Mul', [step, decays]),
    graph.ints(0, 0, inner * state),
  ]);
  const [y, after] = graph.pair(
    'LinearAttention',
    [own(inputs.c), own(inputs.b), own(inputs.u), before, log],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated',
        q_num_heads: 1,
        kv_num_heads: inner,
        scale: { float: 1 },
      },
    },
  );
  graph.output(goesOn);
  graph.output(after);
  graph.output(y);
  return graph.build('chunk');
}

/** [B, n, c, ·] each. */
interface ScanInputsOfChunks {
  readonly step: GraphValue;
  readonly u: GraphValue;
  readonly b: GraphValue;
  readonly c: GraphValue;
}
