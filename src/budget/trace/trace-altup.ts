/** Steps of AltUp and of the values that each layer of Gemma 3n gets. */
import type {
  AltUpBlock,
  AltUpMerge,
  AltUpSplit,
  PerLayerBranch,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import { inputWidth } from '../../architecture/walk.js';
import type { StepBuilder, UnplacedStep } from './step-builder.js';

/** Streams from a value, or a value from streams. */
export function altUpEndSteps(
  layer: AltUpSplit | AltUpMerge,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const [first] = layer.projections;
  const hidden = first ? inputWidth(first) : size;
  const streams = layer.projections.length + 1;
  const isSplit = layer.kind === 'altUpSplit';
  return [
    ...layer.projections.map((each) => build.linear(each)),
    build.between(
      `${layer.name}.scaled`,
      isSplit
        ? `${streams} streams: the value and its products, all of the same size`
        : `mean of ${streams} streams of the same size`,
      isSplit ? streams * hidden : hidden,
    ),
  ];
}

export function altUpBlockSteps(layer: AltUpBlock, build: StepBuilder): UnplacedStep[] {
  const { name, router, prediction, correction, active } = layer;
  const hidden = inputWidth(router);
  const all = inputWidth(correction) * hidden;
  return [
    ...build.steps(layer.routerNorm, hidden),
    build.linear(router),
    build.linear(prediction),
    build.between(`${name}.predicted`, 'each stream + a mix of all', all),
    ...build.steps(layer.inner, hidden),
    build.linear(correction),
    build.between(
      `${name}.corrected`,
      `each stream + (1 + coefficient) · change of stream ${active}`,
      all,
    ),
    ...build.steps(layer.perLayer, hidden),
    {
      ...build.between(`${name}.sum`, 'added to all streams but the first', all),
      parameters: layer.outputScale.elements,
    },
  ];
}

export const perLayerBranchSteps = (layer: PerLayerBranch, build: StepBuilder): UnplacedStep[] => [
  build.linear(layer.gate),
  build.between(
    `${layer.name}.gated`,
    `f(gate) · values of this layer, f = ${ACTIVATIONS[layer.activation]}`,
    layer.inputs.width,
  ),
  build.linear(layer.projection),
];
