/** Constructors of layers that carry a state or the last tokens. */
import type {
  ActivationName,
  CausalConv,
  GatedConv,
  GatedDelta,
  GatedRmsNorm,
  HeadedMamba,
  Mamba,
  RmsNorm,
  StateSpaceDual,
} from '../layer.js';
import { param } from '../param.js';
import { type LinearOptions, linear } from './basic-layers.js';

interface ConvOptions extends Pick<LinearOptions, 'bias'> {
  /** Default: kernel − 1. */
  readonly cached?: number;
}

/** @param kernel Tokens that the convolution sees, the token itself included. */
export function causalConv(
  name: string,
  channels: number,
  kernel: number,
  { bias = true, cached = kernel - 1 }: ConvOptions = {},
): CausalConv {
  return {
    kind: 'causalConv',
    name,
    weight: param(`${name}.weight`, [channels, 1, kernel]),
    bias: bias ? param(`${name}.bias`, [channels]) : undefined,
    cached,
  };
}

interface MambaSizes {
  readonly hidden: number;
  readonly inner: number;
  readonly state: number;
  readonly kernel: number;
  readonly stepRank: number;
}

interface MambaOptions {
  /** Biases of in_proj and out_proj. Default: true. */
  readonly bias?: boolean;
  readonly conv?: ConvOptions;
  readonly activation?: ActivationName;
  /** Default: none. */
  readonly innerNorms?: readonly RmsNorm[];
  readonly innerNormEps?: number;
  readonly float32State?: boolean;
  readonly doubledStepBias?: boolean;
}

/** A single bias of the steps, no norms inside and SiLU by default. */
export function mambaLayer(name: string, sizes: MambaSizes, options: MambaOptions = {}): Mamba {
  const { hidden, inner, state, kernel, stepRank } = sizes;
  const { bias = true, innerNorms = [], innerNormEps, activation: fn = 'silu' } = options;
  return {
    kind: 'mamba',
    name,
    component: 'mamba',
    stateLog: param(`${name}.A_log`, [inner, state]),
    skip: param(`${name}.D`, [inner]),
    inProj: linear(`${name}.in_proj`, hidden, 2 * inner, { bias }),
    conv: causalConv(`${name}.conv1d`, inner, kernel, options.conv),
    xProj: linear(`${name}.x_proj`, inner, stepRank + 2 * state, { bias: false }),
    dtProj: linear(`${name}.dt_proj`, stepRank, inner),
    innerNorms,
    innerNormEps,
    outProj: linear(`${name}.out_proj`, inner, hidden, { bias }),
    innerSize: inner,
    stateSize: state,
    stepRank,
    activation: fn,
    float32State: options.float32State ?? false,
    doubledStepBias: options.doubledStepBias ?? false,
  };
}

interface HeadedMambaSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly headDim: number;
  readonly state: number;
  readonly kernel: number;
  readonly stepRank: number;
}

/** No biases of in_proj and out_proj by default. */
export function headedMamba(
  name: string,
  sizes: HeadedMambaSizes,
  options: Pick<MambaOptions, 'bias' | 'conv' | 'activation' | 'float32State'> = {},
): HeadedMamba {
  const { hidden, heads, headDim, state, kernel, stepRank } = sizes;
  const { bias = false, activation: fn = 'silu', float32State = false } = options;
  const inner = heads * headDim;
  return {
    kind: 'headedMamba',
    name,
    component: 'mamba',
    xProj: param(`${name}.x_proj_weight`, [heads, stepRank + 2 * state, headDim]),
    stepProj: param(`${name}.dt_proj_weight`, [heads, headDim, stepRank]),
    stepBias: param(`${name}.dt_proj_bias`, [heads, headDim]),
    stateLog: param(`${name}.A_log`, [heads, headDim, state]),
    skip: param(`${name}.D`, [heads, headDim]),
    conv: causalConv(`${name}.conv1d`, inner, kernel, options.conv),
    inProj: linear(`${name}.in_proj`, hidden, 2 * inner, { bias }),
    outProj: linear(`${name}.out_proj`, inner, hidden, { bias }),
    heads,
    headDim,
    stateSize: state,
    stepRank,
    activation: fn,
    float32State,
  };
}

interface StateSpaceDualSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly headDim: number;
  readonly state: number;
  readonly groups: number;
  readonly kernel: number;
}

interface StateSpaceDualOptions {
  /** Bias of in_proj. Default: false. */
  readonly bias?: boolean;
  /** Default: as in_proj. */
  readonly outBias?: boolean;
  readonly conv?: ConvOptions;
  readonly norm?: GatedRmsNorm | undefined;
  readonly activation?: ActivationName;
  /** Default: 0 and infinity. */
  readonly stepLimits?: StateSpaceDual['stepLimits'];
  readonly inputScales?: StateSpaceDual['inputScales'];
}

/** No norm and SiLU by default. */
export function stateSpaceDual(
  name: string,
  sizes: StateSpaceDualSizes,
  options: StateSpaceDualOptions = {},
): StateSpaceDual {
  const { hidden, heads, headDim, state, groups, kernel } = sizes;
  const { bias = false, outBias = bias, activation: fn = 'silu' } = options;
  const { stepLimits = [0, Number.POSITIVE_INFINITY] } = options;
  const inner = heads * headDim;
  const channels = inner + 2 * groups * state;
  return {
    kind: 'stateSpaceDual',
    name,
    component: 'mamba',
    stepBias: param(`${name}.dt_bias`, [heads]),
    stateLog: param(`${name}.A_log`, [heads]),
    skip: param(`${name}.D`, [heads]),
    conv: causalConv(`${name}.conv1d`, channels, kernel, options.conv),
    inProj: linear(`${name}.in_proj`, hidden, inner + channels + heads, { bias }),
    norm: options.norm,
    outProj: linear(`${name}.out_proj`, inner, hidden, { bias: outBias }),
    heads,
    headDim,
    stateSize: state,
    groups,
    activation: fn,
    stepLimits,
    inputScales: options.inputScales,
  };
}

interface GatedDeltaParts
  extends Omit<GatedDelta, 'kind' | 'name' | 'component' | 'stepBias' | 'stateLog'> {
  /** Name of the layer's own tensors; default: the layer's. */
  readonly tensors?: string;
}

export function gatedDelta(name: string, parts: GatedDeltaParts): GatedDelta {
  const { tensors = name, convs, inputs, norm, outProj, ...rest } = parts;
  const { valueHeads } = rest;
  return {
    kind: 'gatedDelta',
    name,
    component: 'deltaNet',
    stepBias: param(`${tensors}.dt_bias`, [valueHeads]),
    stateLog: param(`${tensors}.A_log`, [valueHeads]),
    convs,
    inputs,
    norm,
    outProj,
    ...rest,
  };
}

/**
 * No biases by default.
 * @param kernel Tokens that the convolution sees, the token itself included.
 */
export function gatedConv(
  name: string,
  hidden: number,
  kernel: number,
  { bias = false, cached }: ConvOptions = {},
): GatedConv {
  return {
    kind: 'gatedConv',
    name,
    component: 'shortConvolution',
    conv: causalConv(`${name}.conv`, hidden, kernel, { bias, ...(cached && { cached }) }),
    inProj: linear(`${name}.in_proj`, hidden, 3 * hidden, { bias }),
    outProj: linear(`${name}.out_proj`, hidden, hidden, { bias }),
  };
}
