import type { Mamba } from '../../../model/architecture/layer.js';
import type { Context } from '../context.js';
import { flattened, mostElements, parts, sizeNames, unflattenedRows } from '../context.js';
import type { GraphValue } from '../graph.js';
import { GraphBuilder, LEFT_OUT } from '../graph.js';
import type { GraphProto } from '../proto.js';
import { MICROSOFT } from '../proto.js';
import { chunked, chunksOf, joinedChunks } from './chunks.js';

/** Inputs of a scan: the step and x [R, D], B and C [R, N]. */
export interface ScanInputs {
  readonly step: GraphValue;
  readonly x: GraphValue;
  readonly b: GraphValue;
  readonly c: GraphValue;
  /** log(−A), [D, N] */
  readonly stateLog: GraphValue;
}

/** Sizes of a scan, and the name of its state. */
export type ScanLayer = Pick<Mamba, 'name' | 'innerSize' | 'stateSize'>;

/**
 * Maximum state values that one operation computes. For more, ONNX Runtime uses threads, which wait longer than they
 * compute in thousands of small operations: with two threads, N 64 and D 1024, a scan takes 1.5 times as long. Smaller
 * parts need too many operations.
 */
const PART = 2 ** 15;

/** h = h · exp(step ⊗ A) + (step · x) ⊗ B; y = C · h, from zero or from the state. Returns y [R, D]. */
export function scan(
  context: Context,
  layer: ScanLayer,
  { step, x, b, c, stateLog }: ScanInputs,
): GraphValue {
  const { graph, outputs } = context;
  const { name, innerSize: inner, stateSize: state } = layer;
  const shape = [state, inner]; // Contiguous inner values are 4 times as fast as [D, N].
  const before = startingState(context, layer, shape);
  const widths = parts(inner, Math.max(1, Math.floor(PART / state)));
  const log = decay(context, stateLog);
  const transposed = graph.op('Transpose', [log], { attributes: { perm: [1, 0] } });
  const decays = graph.split(transposed, widths);
  const inputs: Operands = [
    before,
    unflattenedRows(context, step, 1, inner),
    unflattenedRows(context, graph.op('Mul', [step, x]), 1, inner),
    unflattenedRows(context, b, state, 1),
    unflattenedRows(context, c, 1, state),
  ];
  const scanned = (within: GraphBuilder) =>
    within.pair('Scan', inputs, {
      attributes: { body: sequence(decays, widths, `${name}/`), num_scan_inputs: inputs.length },
    });
  const [after, y] = outputs.states
    ? stepOrScan(context, { name, inputs, decay: transposed }, scanned)
    : scanned(graph);
  outputs.states?.set(`${name}.scan`, graph.output(after));
  return flattened(context, y); // From [B, T, 1, D].
}

/** State before, [B, N, D]; step and step · x, [B, T, 1, D]; B, [B, T, N, 1]; C, [B, T, 1, N]. */
type Operands = readonly [GraphValue, GraphValue, GraphValue, GraphValue, GraphValue];

interface Step {
  /** Name of the layer. */
  readonly name: string;
  readonly inputs: Operands;
  /** A, [N, D] */
  readonly decay: GraphValue;
}

type StateAndOutput = [after: GraphValue, y: GraphValue];

/** The scan; for one token only its step, because `Scan` takes five times as long to start as the step takes. */
function stepOrScan(
  { graph, once, sizes }: Context,
  step: Step,
  scanned: (within: GraphBuilder) => StateAndOutput,
): StateAndOutput {
  const isStep = once('is step', () =>
    graph.op('Equal', [graph.op('Gather', [sizes, graph.int(1)]), graph.int(1)]),
  );
  const branch = (prefix: string, add: (within: GraphBuilder) => StateAndOutput) => {
    const within = new GraphBuilder(prefix);
    for (const value of add(within)) within.output(value);
    return within.build(prefix);
  };
  return graph.pair('If', [isStep], {
    attributes: {
      then_branch: branch(`${step.name}/step/`, (within) => singleStep(within, step)),
      else_branch: branch(`${step.name}/scan/`, scanned),
    },
  });
}

/** One token of each sequence, in a graph that sees the operands. */
function singleStep(graph: GraphBuilder, { inputs, decay }: Step): StateAndOutput {
  const [before, step, u, b, c] = inputs;
  const h = graph.op('Unsqueeze', [before, graph.ints(1)]); // [B, 1, N, D]
  const kept = graph.op('Mul', [h, graph.op('Exp', [graph.op('Mul', [step, decay])])]);
  const next = graph.op('Add', [kept, graph.op('Mul', [b, u])]);
  return [graph.op('Squeeze', [next, graph.ints(1)]), graph.op('MatMul', [c, next])];
}

/** A = −exp(A_log), [D, N]. */
const decay = ({ graph }: Context, stateLog: GraphValue): GraphValue =>
  graph.op('Neg', [graph.op('Exp', [stateLog])]);

/** State of the previous call, or zeros, [B, …shape]. */
export const startingState = (
  context: Context,
  { name }: Pick<Mamba, 'name'>,
  shape: readonly number[],
): GraphValue =>
  context.outputs.states
    ? context.feed(`${name}.scan`, { kind: 'state', shape })
    : zeroState(context, shape);

/** [B, …shape] */
function zeroState({ graph, sizes }: Context, shape: readonly number[]): GraphValue {
  const batch = graph.op('Gather', [sizes, graph.ints(0)]);
  const whole = graph.op('Concat', [batch, graph.ints(...shape)], { attributes: { axis: 0 } });
  return graph.sized(graph.op('ConstantOfShape', [whole]), [sizeNames(sizes).batch, ...shape]);
}

/** The scan over one sequence, in parts of the inner values. @param decays From the outer graph. */
function sequence(
  decays: readonly GraphValue[],
  widths: readonly number[],
  prefix: string,
): GraphProto {
  const graph = new GraphBuilder(prefix);
  const befores = graph.split(graph.input('h', 'f32', ['N', 'D']), widths);
  const steps = graph.split(graph.input('step', 'f32', ['T', 1, 'D']), widths);
  const us = graph.split(graph.input('u', 'f32', ['T', 1, 'D']), widths);
  const b = graph.input('b', 'f32', ['T', 'N', 1]);
  const c = graph.input('c', 'f32', ['T', 1, 'N']);
  const results = decays.map((decay, index) => {
    const [h = LEFT_OUT, step = LEFT_OUT, u = LEFT_OUT] = [befores, steps, us].map(
      (each) => each[index],
    );
    return graph.pair('Scan', [h, step, u, b, c], {
      attributes: { body: token(decay, `${prefix}${index}/`), num_scan_inputs: 4 },
    });
  });
  graph.output(graph.joined(results.map(([after]) => after)));
  graph.output(graph.joined(results.map(([, y]) => y)));
  return graph.build('sequence');
}

/** One step of the scan. @param decay [N, D], from the outer graph. */
function token(decay: GraphValue, prefix: string): GraphProto {
  const graph = new GraphBuilder(prefix);
  const h = graph.input('h', 'f32', ['N', 'D']);
  const step = graph.input('step', 'f32', [1, 'D']);
  const u = graph.input('u', 'f32', [1, 'D']);
  const b = graph.input('b', 'f32', ['N', 1]);
  const c = graph.input('c', 'f32', [1, 'N']);
  const kept = graph.op('Mul', [h, graph.op('Exp', [graph.op('Mul', [step, decay])])]);
  const next = graph.op('Gemm', [b, u, kept]); // Adds b · u in the same operation.
  graph.output(next);
  graph.output(graph.op('MatMul', [c, next]));
  return graph.build('token');
}

// The scan where `Scan` has no kernel, computed as linear attention over chunks of tokens whose decays one operation
// can bind. Shapes: B batch, T tokens, D inner, N state, n chunks of c tokens.

/** Bytes of a chunk's decays, at most: a small part of the memory. */
const CHUNK_BYTES = 2 ** 27;

/** The same as `scan` of scan.ts. Its state is [B, D, N, 1]. */
export function chunkedScan(
  context: Context,
  layer: ScanLayer,
  { step, x, b, c, stateLog }: ScanInputs,
): GraphValue {
  const { graph, outputs } = context;
  const { name, innerSize: inner, stateSize: state } = layer;
  const largest = Math.min(
    mostElements(context.target),
    CHUNK_BYTES / Float32Array.BYTES_PER_ELEMENT,
  );
  const most = Math.max(1, Math.floor(largest / (inner * state))); // Tokens of all sequences.
  const chunks = chunksOf(context, `${most} in all`, (batch) => {
    return graph.op('Max', [graph.op('Div', [graph.ints(most), batch]), graph.ints(1)]);
  });
  const inChunks = (rows: GraphValue, width: number) =>
    chunked(context, chunks, unflattenedRows(context, rows, width), width);
  const inputs = {
    step: inChunks(step, inner),
    u: inChunks(graph.op('Mul', [step, x]), inner),
    b: inChunks(b, state),
    c: inChunks(c, state),
  };
  const before = startingState(context, layer, [inner, state, 1]);
  const body = chunk(layer, inputs, decay(context, stateLog), `${name}/`);
  const [after, y] = graph.pair('Loop', [chunks.count, LEFT_OUT, before], { attributes: { body } });
  outputs.states?.set(`${name}.scan`, graph.output(after));
  return flattened(context, joinedChunks(context, y, inner));
}

/** Graph of one chunk. @param inputs Inputs from the outer graph. @param decays [D, N], from the outer graph. */
function chunk(
  { innerSize: inner, stateSize: state }: ScanLayer,
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
