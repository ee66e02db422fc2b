/** Steps of layers with a state that are neither Mamba nor a gated delta rule. */
import type {
  GriffinRecurrence,
  KimiDelta,
  LightningAttention,
  RwkvChannelMix,
  RwkvTimeMix,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import { outputWidth, projectionLayers } from '../../architecture/walk.js';
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

export function griffinSteps(layer: GriffinRecurrence, build: StepBuilder): UnplacedStep[] {
  const { name, y, x, out, conv, decay, inputGate, recurrentGate, activation } = layer;
  const width = outputWidth(x);
  const scan = build.between(
    `${name}.scan`,
    `a = exp(−8 · r · softplus(decay)); h = a · h + √(1 − a²) · i · x, state [${build.batch}, ${width}]`,
    width,
  );
  return [
    build.linear(y),
    build.linear(x),
    build.step(conv, `causal convolution, ${conv.weight.shape[2]} wide`, width),
    ...[inputGate, recurrentGate].flatMap((each) => build.steps(each, width)),
    { ...scan, parameters: build.countNew([decay]) },
    build.between(`${name}.gated`, `f(y) · h, f = ${ACTIVATIONS[activation]}`, width),
    build.linear(out),
  ];
}

export function rwkvTimeSteps(layer: RwkvTimeMix, build: StepBuilder): UnplacedStep[] {
  const { name, mixes, hidden, key, value, receptance, output } = layer;
  const width = outputWidth(key);
  const mixed = build.between(`${name}.mixes`, 'three mixes with the token before', hidden);
  const scan = build.between(
    `${name}.scan`,
    `mean of v with weights exp(k), decayed, state [${build.batch}, ${width}, 3]`,
    width,
  );
  return [
    { ...mixed, parameters: build.countNew(mixes) },
    ...[key, value, receptance].map((each) => build.linear(each)),
    { ...scan, parameters: build.countNew([layer.timeDecay, layer.timeFirst]) },
    build.between(`${name}.gated`, 'σ(receptance) · mean', width),
    build.linear(output),
  ];
}

export function rwkvChannelSteps(layer: RwkvChannelMix, build: StepBuilder): UnplacedStep[] {
  const { name, mixes, hidden, key, value, receptance } = layer;
  const mixed = build.between(`${name}.mixes`, 'two mixes with the token before', hidden);
  return [
    { ...mixed, parameters: build.countNew(mixes) },
    build.linear(key),
    build.between(`${name}.square`, 'max(key, 0)²', outputWidth(key)),
    build.linear(value),
    build.linear(receptance),
    build.between(`${name}.gated`, 'σ(receptance) · values', hidden),
  ];
}
