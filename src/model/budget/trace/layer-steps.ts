/** Steps of recurrent layers, feed-forward networks, the hybrid block and AltUp. */

import { formatInteger } from '../../../base/text/units.js';
import { blocksText, counted } from '../../../base/text/words.js';
import { sumOf } from '../../../base/values.js';
import type {
  Alignment,
  AltUpBlock,
  AltUpMerge,
  AltUpSplit,
  Cycles,
  Gate,
  GatedConv,
  GatedDelta,
  GatedMlp,
  HeadedMamba,
  HybridBlock,
  Mamba,
  MixtureOfExperts,
  PerLayerBranch,
  Router,
  Srte,
  StateSpaceDual,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import {
  closingProduct,
  expertActivation,
  expertInner,
  expertLayers,
  expertWidth,
  inputWidth,
  projectionLayers,
  tensorsOf,
} from '../../architecture/walk.js';
import type { StepBuilder, UnplacedStep } from './step-builder.js';
import { rmsText } from './step-builder.js';

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

export function headedMambaSteps(layer: HeadedMamba, build: StepBuilder): UnplacedStep[] {
  const { name, heads, headDim, stateSize: state, stepRank } = layer;
  const inner = heads * headDim;
  const products = build.between(
    `${name}.x_proj`,
    `products of ${heads} heads: step ${stepRank}, B ${state}, C ${state} each`,
    heads * (stepRank + 2 * state),
  );
  const step = build.between(`${name}.step`, 'Δ = softplus(dt_proj), for each head', inner);
  const scan = build.between(
    `${name}.scan`,
    `h = h · exp(Δ · A) + Δ · B · x; y = C · h + D · x, state [${build.batch}, ${heads}, ${headDim}, ${state}]`,
    inner,
  );
  return [
    build.linear(layer.inProj),
    build.between(`${name}.split`, `x and residual, ${formatInteger(inner)} each`, inner),
    ...build.steps(layer.conv, inner),
    { ...products, parameters: build.countNew([layer.xProj]) },
    { ...step, parameters: build.countNew([layer.stepProj, layer.stepBias]) },
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

// Steps of feed-forward networks: gated ones, routers and mixtures of experts

export function gatedMlpSteps(
  { name, inputs, activation, down, ...rest }: GatedMlp,
  build: StepBuilder,
): UnplacedStep[] {
  const { gateScale, cutoffDeviations: deviations, limits } = rest;
  const scaled = gateScale === undefined ? 'gate' : `${gateScale} · gate`;
  const gate =
    deviations === undefined
      ? scaled
      : `max(${scaled} − mean − ${deviations.toFixed(3)} · deviation, 0)`;
  return [
    ...projectionLayers(inputs).flatMap((each) => build.steps(each, 0)),
    build.between(
      `${name}.gated`,
      limits
        ? `f(α · min(gate, ${limits.limit})) / α · (up cut to ±${limits.limit} + ${limits.raise}), α = ${limits.sharpness}, f = ${ACTIVATIONS[activation]}`
        : `f(${gate}) · up, f = ${ACTIVATIONS[activation]}`,
      inputWidth(closingProduct(down)),
    ),
    ...build.steps(down, 0),
  ];
}

export function routerSteps(layer: Router, build: StepBuilder): UnplacedStep[] {
  const { expertsPerToken, groups, scoring, softcap, nearness, renormalised, scale } = layer;
  const [experts = 0, size = 0] = layer.weight.shape;
  const operation = [
    `${scoring} of ${counted(experts, 'score')}${softcap === undefined ? '' : ` capped at ±${softcap}`}${nearness === undefined ? '' : `, within ${nearness} of the best`}`,
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
    operation:
      `${router.expertsPerToken} of ${formatInteger(router.weight.shape[0] ?? 0)} experts ${widths}, f = ${fn ? ACTIVATIONS[fn] : 'none'}` +
      (layer.zeroExperts ? `; the last ${layer.zeroExperts} give their input` : ''),
    shape: [...build.lead, router.expertsPerToken, width],
    parameters: sumOf(all, (each) => build.countNew(tensorsOf(each))),
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

// Steps of the hybrid model's block and of its parts

export function hybridBlockSteps(
  block: HybridBlock,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const { name } = block;
  return [
    ...build.steps(block.inputNorm, size),
    ...build.steps(block.srte, size),
    build.between(`${name}.mamba`, 'ln_input + SRTE', size),
    ...build.steps(block.mamba, size),
    ...build.steps(block.attention, size),
    ...(block.alignment
      ? build.steps(block.alignment, size)
      : [build.between(`${name}.mean`, 'mean of Mamba and attention', size)]),
    ...build.steps(block.gate, size),
    build.between(`${name}.fused`, 'gate · Mamba + (1 − gate) · attention', size),
    ...build.steps(block.fusion, size),
    ...build.steps(block.mlp, size),
    build.between(`${name}.sum`, 'block input + fusion_proj + small_mlp', size),
    ...build.steps(block.outputNorm, size),
  ];
}

export function srteStep(layer: Srte, size: number, build: StepBuilder): UnplacedStep {
  const known = build.isListed(tensorsOf(layer));
  const rows = `rows 0 to ${build.tokens - 1}`;
  const operation = known ? `${rows} again` : `${rows}: ${srteText(layer)}`;
  return { ...build.step(layer, operation), shape: [1, build.tokens, size] };
}

function srteText(srte: Srte): string {
  switch (srte.kind) {
    case 'srteTable':
      return `a table of ${formatInteger(srte.table.shape[1] ?? 0)}`;
    case 'srteLowRank':
      return `${formatInteger(srte.lowRank.shape[1] ?? 0)} rows of rank ${srte.lowRank.shape[2]} · projection`;
    case 'srteSincos':
      return 'sines and cosines';
  }
}

export function alignmentSteps(
  { name, net, residual }: Alignment,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  return [
    build.between(`${name}.concat`, 'Mamba, attention', 2 * size),
    ...build.steps(net, size),
    build.linear(residual),
    build.between(`${name}.sum`, 'net + residual_proj', size),
  ];
}

export function gateSteps({ name, up, down }: Gate, build: StepBuilder): UnplacedStep[] {
  const [rank = 0, size = 0] = up.weight.shape;
  return [
    build.linear(up),
    build.between(`${name}.tanh`, 'tanh', rank),
    build.linear(down),
    build.between(`${name}.sigmoid`, 'sigmoid', size),
  ];
}

// Steps of AltUp and of the values that each layer of Gemma 3n gets

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

/** The first use of each stack in full, and the number of all. */
export function cycleSteps(
  { name, initial, stacks, lowPerHigh }: Cycles,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const [low, high] = [stacks[0], stacks[lowPerHigh]];
  const round = `${lowPerHigh} × the low stack, then the high one`;
  return [
    {
      name: `${name}.states`,
      operation: `low and high state; ${stacks.length / (lowPerHigh + 1)} × (${round})`,
      shape: [...build.lead, size],
      parameters: build.countNew([initial]),
    },
    ...[low, high].flatMap((stack) => (stack ? build.steps(stack, size) : [])),
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
