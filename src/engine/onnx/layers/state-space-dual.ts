/**
 * The state space dual (Mamba-2). Shapes: B batch, T tokens, R = B·T rows, H heads of P values in G groups, N state,
 * n chunks of c tokens.
 */
import type { StateSpaceDual } from '../../../model/architecture/layer.js';
import { columnFactors } from '../../../model/architecture/walk.js';
import type { Context } from '../context.js';
import { flattened, unflattenedRows, weightOf } from '../context.js';
import { GraphBuilder, type GraphValue, LEFT_OUT } from '../graph.js';
import { type GraphProto, MICROSOFT } from '../proto.js';
import { type Chunks, chunked, chunksOf } from './chunks.js';
import { activated, emitSilu, softplus } from './elementwise.js';
import { startingState } from './scan.js';

/**
 * Maximum tokens of a chunk. A chunk of c tokens needs products of c² and c³ in addition to those with the state.
 * Smaller chunks need more operations.
 */
const CHUNK = 64;

/** u [R, hidden] → [R, hidden]. */
export function emitStateSpaceDual(
  context: Context,
  layer: StateSpaceDual,
  u: GraphValue,
): GraphValue {
  const { graph, apply } = context;
  const { heads, headDim, stateSize, groups, activation, norm } = layer;
  const [inner, shared] = [heads * headDim, groups * stateSize];
  const projected = scaledParts(context, layer, apply(layer.inProj, u));
  const [gate, input, low] = graph.split(projected, [inner, inner + 2 * shared, heads]);
  const mixed = activated(context, activation, apply(layer.conv, input));
  const [x, b, c] = graph.split(mixed, [inner, shared, shared]);
  const step = limited(context, layer, graph.op('Add', [low, weightOf(context, layer.stepBias)]));
  const isFused = context.target.provider === 'cpu' && !context.isForOthers;
  const y = (isFused ? linearAttention : dualScan)(context, layer, { step, x, b, c });
  const ofHeads = graph.op('Reshape', [x, graph.ints(-1, heads, headDim)]);
  const skip = graph.op('Unsqueeze', [weightOf(context, layer.skip), graph.ints(1)]); // [H, 1]
  const skipped = graph.op('Reshape', [graph.op('Mul', [ofHeads, skip]), graph.ints(-1, inner)]);
  const sum = graph.op('Add', [y, skipped]);
  const gated = norm ? apply(norm, sum, gate) : graph.op('Mul', [sum, emitSilu(context, gate)]);
  return apply(layer.outProj, gated);
}

function scaledParts(context: Context, layer: StateSpaceDual, projected: GraphValue): GraphValue {
  const factors = columnFactors(layer);
  if (!factors) return projected;
  const { graph } = context;
  return graph.op('Mul', [projected, graph.floats(`${layer.name}.scales`, factors)]);
}

/** softplus, clamped to the smallest and the largest step. */
function limited(
  context: Context,
  { stepLimits: [least, most] }: StateSpaceDual,
  low: GraphValue,
): GraphValue {
  const { graph } = context;
  const step = softplus(context, low);
  const raised = least > 0 ? graph.op('Max', [step, graph.float(least)]) : step;
  return most < Infinity ? graph.op('Min', [raised, graph.float(most)]) : raised;
}

interface DualInputs {
  /** [R, H] */
  readonly step: GraphValue;
  /** [R, H·P] */
  readonly x: GraphValue;
  /** [R, G·N] */
  readonly b: GraphValue;
  readonly c: GraphValue;
}

/** Logarithms of the decays, [R, H]. */
function logDecays(context: Context, { stateLog }: StateSpaceDual, step: GraphValue): GraphValue {
  const { graph } = context;
  const rate = graph.op('Neg', [graph.op('Exp', [weightOf(context, stateLog)])]);
  return graph.op('Mul', [step, rate]);
}

/** step · x, [R, H·P]. */
function steppedInput(
  { graph }: Context,
  { heads, headDim }: StateSpaceDual,
  { step, x }: Pick<DualInputs, 'step' | 'x'>,
): GraphValue {
  const stepped = graph.op('Mul', [
    graph.op('Reshape', [x, graph.ints(-1, heads, headDim)]),
    graph.op('Unsqueeze', [step, graph.ints(2)]),
  ]);
  return graph.op('Reshape', [stepped, graph.ints(-1, heads * headDim)]);
}

/**
 * The whole recurrence in one operation. On the CPU it takes as long as products over chunks for a long input, and half
 * as long for one token.
 */
function linearAttention(
  context: Context,
  layer: StateSpaceDual,
  { step, x, b, c }: DualInputs,
): GraphValue {
  const { graph, outputs } = context;
  const { name, heads, headDim, stateSize: state, groups } = layer;
  const sequences = (rows: GraphValue, width: number) => unflattenedRows(context, rows, width);
  const [y, after] = graph.pair(
    'LinearAttention',
    [
      sequences(c, groups * state),
      sequences(b, groups * state),
      sequences(steppedInput(context, layer, { step, x }), heads * headDim),
      startingState(context, layer, [heads, state, headDim]),
      sequences(logDecays(context, layer, step), heads),
    ],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated',
        q_num_heads: groups,
        kv_num_heads: heads,
        scale: { float: 1 },
      },
    },
  );
  outputs.states?.set(`${name}.scan`, graph.output(after));
  return flattened(context, y);
}

/** Inputs of all chunks, with chunks first. */
interface ChunkInputs {
  /** Logarithms of the decays, [n, B, G, H / G, c, 1]. */
  readonly log: GraphValue;
  /** step · x, [n, B, G, H / G, c, P]. */
  readonly x: GraphValue;
  /** [n, B, G, 1, c, N] */
  readonly b: GraphValue;
  readonly c: GraphValue;
}

/**
 * The dual form of the scan. Within a chunk, outputs are products as in attention, with decays instead of a softmax.
 * The state carries the tokens before the chunk. A loop over chunks bounds the memory. Returns y [R, H·P].
 */
function dualScan(
  context: Context,
  layer: StateSpaceDual,
  { step, x, b, c }: DualInputs,
): GraphValue {
  const { graph, once, sizes, outputs } = context;
  const { name, heads, headDim, stateSize: state, groups } = layer;
  const chunks = chunksOf(context, `${CHUNK}`, () => graph.ints(CHUNK));
  const split = (rows: GraphValue, inGroup: number, width: number) => {
    const columns = groups * inGroup * width;
    const flat = chunked(context, chunks, unflattenedRows(context, rows, columns), columns); // [B, n, c, ·]
    const apart = graph.op('Reshape', [flat, graph.ints(0, 0, 0, groups, inGroup, width)]);
    return graph.op('Transpose', [apart], { attributes: { perm: [1, 0, 3, 4, 2, 5] } });
  };
  const inGroup = heads / groups;
  const inputs: ChunkInputs = {
    log: split(logDecays(context, layer, step), inGroup, 1),
    x: split(steppedInput(context, layer, { step, x }), inGroup, headDim),
    b: split(b, 1, state),
    c: split(c, 1, state),
  };
  const masks = once(`chunk masks:${sizes}`, () => masksOf(context, chunks));
  const before = startingState(context, layer, [groups, inGroup, state, headDim]);
  const body = chunk(inputs, masks, `${name}/`);
  const [after, y] = graph.pair('Loop', [chunks.count, LEFT_OUT, before], { attributes: { body } });
  outputs.states?.set(`${name}.scan`, graph.output(after));
  // From [n, B, G, H / G, c, P].
  const inOrder = graph.op('Transpose', [y], { attributes: { perm: [1, 0, 4, 2, 3, 5] } });
  const flat = graph.op('Reshape', [inOrder, graph.ints(0, -1, heads * headDim)]);
  const tokens = graph.op('Gather', [sizes, graph.ints(1)]);
  return flattened(context, graph.op('Slice', [flat, graph.ints(0), tokens, graph.ints(1)]));
}

/** Masks of the tokens of a chunk, as floats. */
interface Masks {
  /** 1 where token k is not after token i, [c, c]. */
  readonly sums: GraphValue;
  /** 1 where token k is not before start j, [c, 1 + c]: start 0 is that of the chunk, start j + 1 is after token j. */
  readonly starts: GraphValue;
  /** 1 where start j is not after the end of token i, [c, 1 + c]. */
  readonly past: GraphValue;
}

function masksOf({ graph }: Context, { length }: Chunks): Masks {
  const scalar = graph.op('Squeeze', [length]);
  const range = (to: GraphValue) => graph.op('Range', [graph.int(0), to, graph.int(1)]);
  const tokens = graph.op('Unsqueeze', [range(scalar), graph.ints(1)]); // [c, 1]
  const starts = range(graph.op('Add', [scalar, graph.int(1)])); // [1 + c]
  const mask = (a: GraphValue, b: GraphValue) =>
    graph.cast(graph.op('GreaterOrEqual', [a, b]), 'f32');
  return {
    sums: mask(tokens, range(scalar)),
    starts: mask(tokens, starts),
    past: mask(graph.op('Add', [tokens, graph.ints(1)]), starts),
  };
}

/** Graph of one chunk. @param inputs Inputs from the outer graph. */
function chunk(inputs: ChunkInputs, masks: Masks, prefix: string): GraphProto {
  const graph = new GraphBuilder(prefix);
  const index = graph.input('index', 'i64', []);
  const goesOn = graph.input('goes_on', 'bool', []);
  const before = graph.input('h', 'f32', ['B', 'G', 'H/G', 'N', 'P']);
  const own = (value: GraphValue) => graph.op('Gather', [value, index]);
  const [log, x, b, c] = [own(inputs.log), own(inputs.x), own(inputs.b), own(inputs.c)];
  const transposed = (value: GraphValue) =>
    graph.op('Transpose', [value], { attributes: { perm: [0, 1, 2, 4, 3] } });
  const slice = (value: GraphValue, axis: number, from: number, to = Number.MAX_SAFE_INTEGER) =>
    graph.op('Slice', [value, graph.ints(from), graph.ints(to), graph.ints(axis)]);

  // Each sum of logarithms from a start to a token is computed separately: differences of sums over the chunk would
  // lose the digits of small values after large ones.
  const sums = graph.op('MatMul', [masks.sums, graph.op('Mul', [log, masks.starts])]);
  const decays = graph.op('Mul', [graph.op('Exp', [sums]), masks.past]); // [B, G, H / G, c, 1 + c]
  const fromStart = slice(decays, 4, 0, 1); // [B, G, H / G, c, 1]
  const between = slice(decays, 4, 1); // [B, G, H / G, c, c]
  const atEnd = (value: GraphValue) => slice(value, 3, -1); // Value of the last token of the chunk.

  const keys = transposed(b); // [B, G, 1, N, c]
  const scores = graph.op('Mul', [graph.op('MatMul', [c, keys]), between]);
  const seen = graph.op('Mul', [graph.op('MatMul', [c, before]), fromStart]);
  const y = graph.op('Add', [graph.op('MatMul', [scores, x]), seen]);
  const added = graph.op('MatMul', [keys, graph.op('Mul', [x, transposed(atEnd(between))])]);
  const after = graph.op('Add', [graph.op('Mul', [before, atEnd(fromStart)]), added]);

  graph.output(goesOn);
  graph.output(after);
  graph.output(y);
  return graph.build('chunk');
}
