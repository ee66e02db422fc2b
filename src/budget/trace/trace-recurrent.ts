/** Steps of layers with a state: Mamba, Mamba-2, the gated delta rule, short convolutions. */
import type { GatedConv, GatedDelta, Mamba, StateSpaceDual } from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import { formatInteger } from '../../text/units.js';
import { counted } from '../../text/words.js';
import { rmsText } from './operation-text.js';
import type { StepBuilder, UnplacedStep } from './step-builder.js';

export function mambaSteps(layer: Mamba, build: StepBuilder): UnplacedStep[] {
  const { name, innerSize: inner, stateSize: state, stepRank } = layer;
  const scan = build.between(
    `${name}.scan`,
    `h = h · exp(Δ · A) + Δ · B · x; y = C · h + D · x, state [${build.batch}, ${inner}, ${state}]`,
    inner,
  );
  return [
    build.linear(layer.inProj),
    build.between(`${name}.split`, `x and residual, ${formatInteger(inner)} each`, inner),
    ...build.steps(layer.conv, inner),
    build.linear(layer.xProj),
    build.between(`${name}.split`, `step ${stepRank}, B ${state}, C ${state}`, stepRank),
    ...layer.innerNorms.map((norm) => build.step(norm, rmsText(norm), norm.size)),
    ...(layer.innerNormEps === undefined
      ? []
      : [
          build.between(
            `${name}.norms`,
            `RMSNorm without weights of step, B and C, eps ${layer.innerNormEps}`,
            stepRank,
          ),
        ]),
    build.linear(layer.dtProj),
    build.between(
      `${name}.step`,
      layer.doubledStepBias ? 'Δ = softplus(dt_proj + its bias again)' : 'Δ = softplus(dt_proj)',
      inner,
    ),
    { ...scan, parameters: build.countNew([layer.stateLog, layer.skip]) },
    build.between(`${name}.gated`, 'y · SiLU(residual)', inner),
    build.linear(layer.outProj),
  ];
}

export function stateSpaceDualSteps(layer: StateSpaceDual, build: StepBuilder): UnplacedStep[] {
  const { name, heads, headDim, stateSize: state, groups, norm, activation } = layer;
  const [least, most] = layer.stepLimits;
  const inner = heads * headDim;
  const shared = `${groups} × ${state}`;
  const limits = least > 0 || most < Infinity ? `, from ${least} to ${most}` : '';
  const f = ACTIVATIONS[activation];
  return [
    build.linear(layer.inProj),
    build.between(
      `${name}.split`,
      `gate and x ${formatInteger(inner)}, B and C ${shared}, a step for each of ${counted(heads, 'head')}` +
        (layer.inputScales ? `, · ${layer.inputScales.join(', ')}` : ''),
      inner,
    ),
    build.step(
      layer.conv,
      `causal convolution of x, B and C, ${layer.conv.weight.shape[2]} wide; ${f}`,
      inner + 2 * groups * state,
    ),
    build.between(`${name}.step`, `Δ = softplus(step + dt_bias)${limits}`, heads),
    {
      ...build.between(
        `${name}.scan`,
        `h = h · exp(Δ · A) + Δ · B ⊗ x; y = C · h + D · x, state [${build.batch}, ${heads}, ${headDim}, ${state}]`,
        inner,
      ),
      parameters: build.countNew([layer.stepBias, layer.stateLog, layer.skip]),
    },
    ...(norm
      ? build.steps(norm, inner)
      : [build.between(`${name}.gated`, 'y · SiLU(gate)', inner)]),
    build.linear(layer.outProj),
  ];
}

export function gatedDeltaSteps(layer: GatedDelta, build: StepBuilder): UnplacedStep[] {
  const { name, inputs, convs, norm, outProj, keyHeads, keyDim, valueHeads, valueDim } = layer;
  const inner = valueHeads * valueDim;
  const scan = build.between(
    `${name}.scan`,
    `S = a · S; S = S + k ⊗ β · (v − k · S); y = q · S, state [${build.batch}, ${valueHeads}, ${keyDim}, ${valueDim}]`,
    inner,
  );
  return [
    ...inputs.flatMap((each) => build.steps(each, 0)),
    ...convs.map((conv) =>
      build.step(
        conv,
        `causal convolution, ${conv.weight.shape[2]} wide; ${ACTIVATIONS[layer.activation]}`,
        conv.weight.shape[0] ?? 0,
      ),
    ),
    build.between(
      `${name}.lengths`,
      `q and k of ${counted(keyHeads, 'head')} divided by their length, q by √${keyDim}`,
      keyHeads * keyDim,
    ),
    { ...scan, parameters: build.countNew([layer.stepBias, layer.stateLog]) },
    ...build.steps(norm, inner),
    build.linear(outProj),
  ];
}

export const gatedConvSteps = (
  layer: GatedConv,
  size: number,
  build: StepBuilder,
): UnplacedStep[] => [
  build.linear(layer.inProj),
  build.between(`${layer.name}.gated`, 'B · x', size),
  build.step(layer.conv, `causal convolution, ${layer.conv.weight.shape[2]} wide`, size),
  build.between(`${layer.name}.mixed`, 'C · convolution', size),
  build.linear(layer.outProj),
];
