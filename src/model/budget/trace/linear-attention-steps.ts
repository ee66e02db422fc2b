/** Steps of layers with a state that are neither Mamba nor a gated delta rule. */
import type { KimiDelta, LightningAttention } from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import { projectionLayers } from '../../architecture/walk.js';
import type { StepBuilder, UnplacedStep } from './step-builder.js';

export function lightningSteps(layer: LightningAttention, build: StepBuilder): UnplacedStep[] {
  const { name, inputs, norm, outProj, slopes, headDim, activation } = layer;
  const inner = slopes.length * headDim;
  return [
    ...projectionLayers(inputs).flatMap((each) => build.steps(each, 0)),
    build.between(`${name}.activation`, `q, k and v: ${ACTIVATIONS[activation]}`, 3 * inner),
    build.between(
      `${name}.scan`,
      `S = a · S + k ⊗ v; y = q · S, a fixed for each head, state [${build.batch}, ${slopes.length}, ${headDim}, ${headDim}]`,
      inner,
    ),
    ...build.steps(norm, inner),
    build.linear(outProj),
  ];
}

export function kimiDeltaSteps(layer: KimiDelta, build: StepBuilder): UnplacedStep[] {
  const { name, inputs, convs, forget, beta, gate, norm, outProj, heads, headDim } = layer;
  const inner = heads * headDim;
  const scan = build.between(
    `${name}.scan`,
    `S = diag(a) · S; S = S + k ⊗ β · (v − k · S); y = q · S, state [${build.batch}, ${heads}, ${headDim}, ${headDim}]`,
    inner,
  );
  return [
    ...inputs.map((each) => build.linear(each)),
    ...convs.map((conv) =>
      build.step(
        conv,
        `causal convolution, ${conv.weight.shape[2]} wide; ${ACTIVATIONS[layer.activation]}`,
        conv.weight.shape[0] ?? 0,
      ),
    ),
    build.between(`${name}.lengths`, `q and k divided by their length, q by √${headDim}`, inner),
    ...forget.layers.map((each) => build.linear(each)),
    build.linear(beta),
    { ...scan, parameters: build.countNew([layer.stepBias, layer.stateLog]) },
    ...gate.layers.map((each) => build.linear(each)),
    ...build.steps(norm, inner),
    build.linear(outProj),
  ];
}
