/** Runs of norms and SwiGLU. */
import {
  type BlockRun,
  type BlockSizes,
  CLOSE,
  done,
  Inputs,
  mapped,
  onesLike,
  same,
} from './block-run.js';
import { groupRmsNorm, layerNorm, rmsNorm, swiglu } from './norms-and-activations.js';
import { cast, type Tensor, toFloat32 } from './tensor.js';

function normInputs(sizes: BlockSizes, names: readonly string[]) {
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const x = inputs.randn('x', [sizes.batch, sizes.tokens, sizes.hidden]);
  inputs.seed(sizes.initSeed);
  const [gamma, beta] = names.map((name) => inputs.uniform(name, sizes.hidden, sizes.initRange));
  if (gamma === undefined) throw new Error('a norm has a γ');
  return { inputs, x, gamma, beta, close: CLOSE[sizes.dtype] };
}

export function runGroupRmsNorm(sizes: BlockSizes): BlockRun {
  const { group, eps, hidden } = sizes;
  const { inputs, x, gamma, close } = normInputs(sizes, ['gamma']);
  const y = groupRmsNorm(x, gamma, group, eps);
  inputs.output('y', y);
  const rows = { ...x, shape: [...x.shape.slice(0, -1), hidden / group, group] } as Tensor;
  const alone = rmsNorm(cast(rows, 'f32'), onesLike(cast(x, 'f32'), [group]), eps);
  const scales = toFloat32(gamma);
  const scaled = mapped(
    { ...alone, shape: x.shape } as Tensor,
    (value, at) => value * (scales[at % hidden] ?? 0),
  );
  return done(inputs, [
    same('each group alone, as RMSNorm, times γ', y, cast(scaled, sizes.dtype), close),
    same(
      'one group of the whole width is RMSNorm',
      groupRmsNorm(x, gamma, hidden, eps),
      rmsNorm(x, gamma, eps),
      0,
    ),
  ]);
}

export function runRmsNorm(sizes: BlockSizes): BlockRun {
  const { inputs, x, gamma, close } = normInputs(sizes, ['gamma']);
  const y = rmsNorm(x, gamma, sizes.eps);
  inputs.output('y', y);
  const doubled = rmsNorm(
    mapped(x, (value) => 2 * value),
    gamma,
    4 * sizes.eps,
  );
  return done(inputs, [
    same('twice the input, 4 times eps: the same', y, doubled, close),
    same('one group of the whole width', y, groupRmsNorm(x, gamma, sizes.hidden, sizes.eps), 0),
  ]);
}

export function runLayerNorm(sizes: BlockSizes): BlockRun {
  const { eps, hidden } = sizes;
  const { inputs, x, gamma, beta, close } = normInputs(sizes, ['gamma', 'beta']);
  const y = layerNorm(x, gamma, beta, eps);
  inputs.output('y', y);
  const wide = cast(x, 'f32');
  const values = toFloat32(x);
  const centred = mapped(wide, (value, at) => {
    const row = at - (at % hidden);
    return value - values.subarray(row, row + hidden).reduce((a, b) => a + b, 0) / hidden;
  });
  const shifts = beta ? toFloat32(beta) : [];
  const normed = mapped(
    rmsNorm(centred, cast(gamma, 'f32'), eps),
    (value, at) => value + (shifts[at % hidden] ?? 0),
  );
  return done(inputs, [same('RMSNorm of x − mean, plus β', y, cast(normed, sizes.dtype), close)]);
}

export function runSwiglu(sizes: BlockSizes): BlockRun {
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const shape = [sizes.batch, sizes.tokens, sizes.hidden];
  const [gate, up] = [inputs.randn('gate', shape), inputs.randn('up', shape)];
  inputs.output('y', swiglu(gate, up));
  const [wide, one] = [cast(gate, 'f32'), onesLike(cast(gate, 'f32'))];
  const negative = toFloat32(
    swiglu(
      mapped(wide, (value) => -value),
      one,
    ),
  );
  const odd = mapped(swiglu(wide, one), (value, at) => value - (negative[at] ?? 0));
  return done(inputs, [
    same('silu(x) − silu(−x) = x', odd, wide, CLOSE.f32),
    same(
      'a gate of zeros gives zeros',
      swiglu(
        mapped(gate, () => 0),
        up,
      ),
      mapped(gate, () => 0),
      0,
    ),
  ]);
}
