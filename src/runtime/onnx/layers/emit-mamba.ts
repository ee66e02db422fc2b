/** The selective state space. Shapes: B batch, T tokens, R = B·T rows, D inner, N state, K kernel. */
import type { CausalConv, Mamba } from '../../../architecture/layer.js';
import type { Context, Target } from '../context.js';
import { folded, sizeNames, unfoldedRows, weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';
import { LEFT_OUT } from '../graph.js';
import { chunkedScan } from './chunked-scan.js';
import { activated, emitSilu, softplus, unweightedRmsNorm } from './elementwise.js';
import { scan } from './scan.js';

/** Uses `Scan` where it has a kernel: without one, values would be copied back and forth for every token. */
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

/** x [R, D]: Σ_k weight[:, 0, k] · x at K − 1 − k tokens before, and the bias. */
export function emitCausalConv(context: Context, layer: CausalConv, x: GraphValue): GraphValue {
  const { graph, sizes } = context;
  const { batch, tokens } = sizeNames(sizes);
  const [inner = 0, , kernel = 0] = layer.weight.shape;
  const padded = withPast(context, layer, unfoldedRows(context, x, inner)); // [B, K − 1 + T, D]
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
  return folded(context, sum ?? padded);
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
