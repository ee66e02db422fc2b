/** Mamba, the gated delta rule and the gated short convolution. Shapes: B batch, T tokens, R = B·T rows, D inner, N state, K kernel. */
import type {
  CausalConv,
  GatedConv,
  GatedDelta,
  Mamba,
} from '../../../model/architecture/layer.js';
import { jointChannels, LENGTH_EPS } from '../../../model/architecture/layer.js';
import { inputWidth } from '../../../model/architecture/walk.js';
import type { Context, Target } from '../context.js';
import { flattened, scaledBy, sizeNames, unflattenedRows, weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';
import { LEFT_OUT } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { activated, emitSilu, l2Normalized, softplus, unweightedRmsNorm } from './elementwise.js';
import { emitProjections } from './projections.js';
import { chunkedScan, scan, startingState } from './scan.js';

/** Providers that have a kernel of `Scan`. Without one, values would be copied between devices for every token. */
const SCANS = {
  cpu: scan,
  cuda: scan,
  webgpu: chunkedScan,
  dml: chunkedScan,
  coreml: chunkedScan,
} as const satisfies Record<Target['provider'], typeof scan>;

/** u [R, H] → [R, H]. */
export function emitMamba(context: Context, layer: Mamba, u: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { innerSize, stateSize, stepRank, activation } = layer;
  const [x0, residual] = graph.split(apply(layer.inProj, u), [innerSize, innerSize]);
  const x = activated(context, activation, apply(layer.conv, x0)); // [R, D]
  const parts = graph.split(apply(layer.xProj, x), [stepRank, stateSize, stateSize]);
  const [low = LEFT_OUT, b = LEFT_OUT, c = LEFT_OUT] = parts.map((part, index) => {
    const norm = layer.innerNorms[index];
    if (norm) return apply(norm, part);
    return layer.innerNormEps === undefined
      ? part
      : unweightedRmsNorm(context, part, index === 0 ? stepRank : stateSize, layer.innerNormEps);
  });
  const step = softplus(context, projectedStep(context, layer, low)); // [R, D]
  const scanned = SCANS[context.target.provider](context, layer, { step, x, b, c });
  const skipped = graph.op('Mul', [x, weightOf(context, layer.skip)]);
  const y = graph.op('Add', [scanned, skipped]);
  return apply(layer.outProj, graph.op('Mul', [y, emitSilu(context, residual)]));
}

function projectedStep(
  context: Context,
  { dtProj, doubledStepBias }: Mamba,
  low: GraphValue,
): GraphValue {
  const once = context.apply(dtProj, low);
  return doubledStepBias && dtProj.bias
    ? context.graph.op('Add', [once, weightOf(context, dtProj.bias)])
    : once;
}

/** Causal convolution of x [R, D]: the bias plus Σ_k weight[:, 0, k] · x of K − 1 − k tokens before. */
export function emitCausalConv(context: Context, layer: CausalConv, x: GraphValue): GraphValue {
  const { graph, sizes } = context;
  const { batch, tokens } = sizeNames(sizes);
  const [inner = 0, , kernel = 0] = layer.weight.shape;
  const padded = withPast(context, layer, unflattenedRows(context, x, inner)); // [B, K − 1 + T, D]
  const flat = graph.op('Reshape', [weightOf(context, layer.weight), graph.ints(inner, kernel)]);
  const taps = graph.op('Transpose', [flat], { attributes: { perm: [1, 0] } }); // [K, D]
  let sum = layer.bias && weightOf(context, layer.bias);
  for (let k = 0; k < kernel; k++) {
    const end = k - kernel + 1 || Number.MAX_SAFE_INTEGER;
    const part = graph.sized(
      graph.op('Slice', [padded, graph.ints(k), graph.ints(end), graph.ints(1)]),
      [batch, tokens, inner],
    );
    const tap = graph.op('Gather', [taps, graph.int(k)]); // [D]
    const term = graph.op('Mul', [part, tap]);
    sum = sum === undefined ? term : graph.op('Add', [term, sum]);
  }
  return flattened(context, sum ?? padded);
}

/** x [B, T, D] after the K − 1 previous inputs, or zeros. */
function withPast(context: Context, { name, weight }: CausalConv, x: GraphValue): GraphValue {
  const { graph, outputs, sizes } = context;
  const [inner = 0, , kernel = 0] = weight.shape;
  const reach = kernel - 1;
  if (reach === 0) return x;
  const { batch, tokens } = sizeNames(sizes);
  const shape = [batch, `${tokens}+${reach}`, inner];
  if (!outputs.states) {
    return graph.sized(graph.op('Pad', [x, graph.ints(0, reach, 0, 0, 0, 0)]), shape);
  }
  const input = `${name}.past`;
  const past = context.feed(input, { kind: 'state', shape: [reach, inner] });
  const both = graph.sized(graph.op('Concat', [past, x], { attributes: { axis: 1 } }), shape);
  const last = [graph.ints(-reach), graph.ints(Number.MAX_SAFE_INTEGER), graph.ints(1)];
  outputs.states.set(input, graph.output(graph.op('Slice', [both, ...last])));
  return both;
}

// The gated delta rule, and the gated short convolution. Shapes: B batch, T tokens, R = B·T rows.

/** u [R, H] → [R, H]. */
export function emitGatedDelta(context: Context, layer: GatedDelta, u: GraphValue): GraphValue {
  const { graph, apply } = context;
  const { activation, keyHeads, keyDim, valueHeads, valueDim } = layer;
  const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
  const [q0, k0, v0, gate, low, steps] = emitProjections(context, layer.inputs, u) as SixValues;
  const joint = jointChannels(layer);
  const given = joint ? graph.split(graph.joined([q0, k0, v0]), joint) : [q0, k0, v0];
  const convolved = layer.convs.map((conv, index) => apply(conv, given[index] ?? LEFT_OUT));
  const mixed = activated(context, activation, graph.joined(convolved));
  const [q, k, v] = graph.split(mixed, [keys, keys, inner]);
  const step = softplus(context, graph.op('Add', [steps, weightOf(context, layer.stepBias)]));
  const rate = graph.op('Neg', [graph.op('Exp', [weightOf(context, layer.stateLog)])]);
  const y = deltaRule(context, layer, {
    queries: unitHeads(context, layer, q),
    keys: unitHeads(context, layer, k),
    values: v,
    beta: scaledBy(context, graph.op('Sigmoid', [low]), layer.betaScale),
    log: graph.op('Mul', [step, rate]),
  });
  return apply(layer.outProj, apply(layer.norm, y, gate));
}

type SixValues = [GraphValue, GraphValue, GraphValue, GraphValue, GraphValue, GraphValue];

/** Each head of x [R, keyHeads · keyDim] divided by its L2 norm. */
export function unitHeads(
  context: Context,
  { keyHeads, keyDim }: Pick<GatedDelta, 'keyHeads' | 'keyDim'>,
  x: GraphValue,
): GraphValue {
  const { graph, sizes } = context;
  const { rows } = sizeNames(sizes);
  const heads = graph.sized(graph.op('Reshape', [x, graph.ints(-1, keyDim)]), [
    `${rows}·${keyHeads}`,
    keyDim,
  ]);
  const width = keyHeads * keyDim;
  const unit = l2Normalized(context, heads, keyDim, LENGTH_EPS);
  return graph.sized(graph.op('Reshape', [unit, graph.ints(-1, width)]), [rows, width]);
}

interface DeltaInputs {
  /** [R, keyHeads · keyDim] */
  readonly queries: GraphValue;
  readonly keys: GraphValue;
  /** [R, valueHeads · valueDim] */
  readonly values: GraphValue;
  /** [R, valueHeads] */
  readonly beta: GraphValue;
  /** Logarithms of the decays, [R, valueHeads]. */
  readonly log: GraphValue;
}

/** The gated delta rule → [R, valueHeads · valueDim]. `LinearAttention` splits the tokens into chunks itself. */
function deltaRule(context: Context, layer: GatedDelta, inputs: DeltaInputs): GraphValue {
  const { graph, outputs } = context;
  const { name, keyHeads, keyDim, valueHeads, valueDim } = layer;
  const rows = (value: GraphValue, width: number) => unflattenedRows(context, value, width);
  const before = startingState(context, layer, [valueHeads, keyDim, valueDim]);
  const [y, after] = graph.pair(
    'LinearAttention',
    [
      rows(inputs.queries, keyHeads * keyDim),
      rows(inputs.keys, keyHeads * keyDim),
      rows(inputs.values, valueHeads * valueDim),
      before,
      rows(inputs.log, valueHeads),
      rows(inputs.beta, valueHeads),
    ],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated_delta',
        q_num_heads: keyHeads,
        kv_num_heads: valueHeads,
        scale: { float: 1 / Math.sqrt(keyDim) },
      },
    },
  );
  outputs.states?.set(`${name}.scan`, graph.output(after));
  return flattened(context, y);
}

/** x [R, H] → [R, H]. */
export function emitGatedConv(
  { graph, apply }: Context,
  layer: GatedConv,
  x: GraphValue,
): GraphValue {
  const hidden = inputWidth(layer.inProj);
  const [b, c, input] = graph.split(apply(layer.inProj, x), [hidden, hidden, hidden]);
  const mixed = apply(layer.conv, graph.op('Mul', [b, input]));
  return apply(layer.outProj, graph.op('Mul', [c, mixed]));
}
