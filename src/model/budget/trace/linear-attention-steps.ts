/** Steps of layers with a state that are neither Mamba nor a gated delta rule. */
import type { LightningAttention } from '../../architecture/layer.js';
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
