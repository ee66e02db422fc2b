/** Steps of feed-forward networks: gated ones, routers and mixtures of experts. */
import type { GatedMlp, MixtureOfExperts, Router } from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import {
  expertActivation,
  expertInner,
  expertLayers,
  expertWidth,
  inputWidth,
  projectionLayers,
  tensorsOf,
} from '../../architecture/walk.js';
import { formatInteger } from '../../text/units.js';
import { blocksText, counted } from '../../text/words.js';
import type { StepBuilder, UnplacedStep } from './step-builder.js';

export function gatedMlpSteps(
  { name, inputs, activation, down, ...rest }: GatedMlp,
  build: StepBuilder,
): UnplacedStep[] {
  const { gateScale, cutoffDeviations: deviations } = rest;
  const scaled = gateScale === undefined ? 'gate' : `${gateScale} · gate`;
  const gate =
    deviations === undefined
      ? scaled
      : `max(${scaled} − mean − ${deviations.toFixed(3)} · deviation, 0)`;
  return [
    ...projectionLayers(inputs).flatMap((each) => build.steps(each, 0)),
    build.between(
      `${name}.gated`,
      `f(${gate}) · up, f = ${ACTIVATIONS[activation]}`,
      inputWidth(down),
    ),
    build.linear(down),
  ];
}

export function routerSteps(layer: Router, build: StepBuilder): UnplacedStep[] {
  const { expertsPerToken, groups, scoring, nearness, renormalised, scale } = layer;
  const [experts = 0, size = 0] = layer.weight.shape;
  const operation = [
    `${scoring} of ${counted(experts, 'score')}${nearness === undefined ? '' : `, within ${nearness} of the best`}`,
    ...(groups ? [`${groups.kept} of ${groups.count} groups`] : []),
    `the best ${expertsPerToken}`,
    ...(renormalised ? ['divided by their sum'] : []),
    ...(scale === 1 ? [] : [`· ${scale}`]),
    ...(layer.expertScales ? ['· the factor of each'] : []),
  ];
  return [
    ...(layer.steps ?? []).flatMap((each) => build.steps(each, size)),
    build.step(layer, operation.join('; '), expertsPerToken),
  ];
}

/** Experts are equal, so one step covers all. */
export function mixtureSteps(
  layer: MixtureOfExperts,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const { name, router, experts, shared, sharedGate } = layer;
  const all = expertLayers(experts);
  const [fn] = all.map(expertActivation);
  const width = expertWidth(layer);
  const widths = [width, expertInner(layer), width].map(formatInteger).join(' → ');
  const routed: UnplacedStep = {
    name: 'kind' in experts ? experts.name : blocksText(all.map((each) => each.name)),
    operation: `${router.expertsPerToken} of ${formatInteger(router.weight.shape[0] ?? 0)} experts ${widths}, f = ${fn ? ACTIVATIONS[fn] : 'none'}`,
    shape: [...build.lead, router.expertsPerToken, width],
    parameters: all.reduce((sum, each) => sum + build.countNew(tensorsOf(each)), 0),
  };
  const gate = sharedGate ? [build.linear(sharedGate)] : [];
  const others = shared.length === 0 ? '' : sharedGate ? ' + σ(gate) · shared' : ' + shared';
  return [
    ...routerSteps(router, build),
    ...(layer.expertNorm ? build.steps(layer.expertNorm, size) : []),
    ...layer.latent.slice(0, 1).map((into) => build.linear(into)),
    routed,
    ...layer.latent.slice(1).map((outOf) => build.linear(outOf)),
    ...shared.flatMap((each) => build.steps(each, size)),
    ...gate,
    build.between(
      `${name}.sum`,
      layer.weighsInputs
        ? `experts, with their inputs by their weights${others}`
        : `experts by their weights${others}`,
      size,
    ),
  ];
}
