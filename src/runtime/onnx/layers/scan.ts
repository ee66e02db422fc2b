import type { Mamba } from '../../../architecture/layer.js';
import { type Context, folded, unfolded, weightOf } from '../context.js';
import { GraphBuilder, type Value } from '../graph.js';
import type { GraphProto } from '../proto.js';

/** What a scan goes over: the step and x [R, D], B and C [R, N]. */
interface ScanInputs {
  readonly step: Value;
  readonly x: Value;
  readonly b: Value;
  readonly c: Value;
}

/** h = h · exp(step ⊗ A) + (step · x) ⊗ B; y = C · h. From zero, or from the state. Gives y [R, D]. */
export function scan(context: Context, layer: Mamba, { step, x, b, c }: ScanInputs): Value {
  const { graph, outputs } = context;
  const { name, innerSize: inner, stateSize: state } = layer;
  const shape = [state, inner]; // the inner values lie together: 4 times as fast as [D, N]
  const before = outputs.states
    ? context.feed(`${name}.scan`, { kind: 'state', shape })
    : zeros(context, shape);
  const [after, y] = graph.pair(
    'Scan',
    [
      before,
      unfolded(context, step, 1, inner),
      unfolded(context, graph.op('Mul', [step, x]), 1, inner),
      unfolded(context, b, state, 1),
      unfolded(context, c, 1, state),
    ],
    {
      attributes: {
        body: body(decay(context, layer), `${name}/`),
        num_scan_inputs: 4,
        scan_input_axes: [1, 1, 1, 1],
        scan_output_axes: [1],
      },
    },
  );
  outputs.states?.set(`${name}.scan`, graph.output(after));
  return folded(context, y); // from [B, T, 1, D]
}

/** A = −exp(A_log), [N, D]. */
function decay(context: Context, { stateLog }: Mamba): Value {
  const { graph } = context;
  const log = graph.op('Transpose', [weightOf(context, stateLog)], {
    attributes: { perm: [1, 0] },
  });
  return graph.op('Neg', [graph.op('Exp', [log])]);
}

/** [B, …shape] */
function zeros({ graph, sizes }: Context, shape: readonly number[]): Value {
  const batch = graph.op('Gather', [sizes, graph.ints(0)]);
  const whole = graph.op('Concat', [batch, graph.ints(...shape)], { attributes: { axis: 0 } });
  return graph.op('ConstantOfShape', [whole]);
}

/** One step of the scan. @param decay [N, D], of the graph around it. */
function body(decay: Value, prefix: string): GraphProto {
  const graph = new GraphBuilder(prefix);
  const h = graph.input('h', 'f32', ['B', 'N', 'D']);
  const step = graph.input('step', 'f32', ['B', 1, 'D']);
  const u = graph.input('u', 'f32', ['B', 1, 'D']);
  const b = graph.input('b', 'f32', ['B', 'N', 1]);
  const c = graph.input('c', 'f32', ['B', 1, 'N']);
  const kept = graph.op('Mul', [h, graph.op('Exp', [graph.op('Mul', [step, decay])])]);
  const next = graph.op('Add', [kept, graph.op('Mul', [b, u])]);
  graph.output(next);
  graph.output(graph.op('MatMul', [c, next]));
  return graph.build('step');
}
