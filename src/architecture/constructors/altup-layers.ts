/** Constructors of the layers of Gemma 3n: inputs of each layer, and the streams of AltUp. */
import type { AltUpBlock, Linear, PerLayerBranch, PerLayerInputs } from '../layer.js';
import { param } from '../param.js';
import { linear, rmsNormLayer } from './basic-layers.js';

export function perLayerInputs(
  name: string,
  parts: Omit<PerLayerInputs, 'kind' | 'name' | 'component'>,
): PerLayerInputs {
  return { kind: 'perLayerInputs', name, component: 'perLayerInputs', ...parts };
}

interface PerLayerParts extends Pick<PerLayerBranch, 'activation' | 'inputs' | 'index'> {
  readonly hidden: number;
}

/** `per_layer_input_gate` and `per_layer_projection`. */
export function perLayerBranch(
  name: string,
  block: string,
  { hidden, inputs, ...rest }: PerLayerParts,
): PerLayerBranch {
  return {
    kind: 'perLayerBranch',
    name,
    component: 'perLayerInputs',
    gate: linear(`${block}.per_layer_input_gate`, hidden, inputs.width, { bias: false }),
    projection: linear(`${block}.per_layer_projection`, inputs.width, hidden, { bias: false }),
    inputs,
    ...rest,
  };
}

/** The ends of AltUp: from one value to its streams, and back. */
export function altUpEnd<Kind extends 'altUpSplit' | 'altUpMerge'>(
  kind: Kind,
  name: string,
  hidden: number,
  streams: number,
): { kind: Kind; name: string; component: 'altUp'; projections: Linear[] } {
  const projections = Array.from({ length: streams - 1 }, (_, index) =>
    linear(`${name}.${index}`, hidden, hidden, { bias: false }),
  );
  return { kind, name, component: 'altUp', projections };
}

interface AltUpParts extends Pick<AltUpBlock, 'active' | 'isScaled' | 'inner' | 'perLayer'> {
  readonly hidden: number;
  readonly streams: number;
  readonly eps: number;
}

/** The tensors of a block's `altup`. */
export function altUpBlock(name: string, parts: AltUpParts): AltUpBlock {
  const { hidden, streams, eps, active, isScaled, inner, perLayer } = parts;
  const own = `${name}.altup`;
  const product = (leaf: string, from: number, to: number) =>
    linear(`${own}.${leaf}`, from, to, { bias: false, component: 'altUp' });
  return {
    kind: 'altUpBlock',
    name,
    outputScale: param(`${own}.correct_output_scale`, [hidden]),
    correction: product('correction_coefs', streams, streams),
    prediction: product('prediction_coefs', streams, streams ** 2),
    router: product('modality_router', hidden, streams),
    routerNorm: rmsNormLayer(`${own}.router_norm`, hidden, eps),
    isScaled,
    active,
    inner,
    perLayer,
  };
}
