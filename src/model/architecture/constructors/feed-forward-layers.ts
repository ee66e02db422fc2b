/** Constructors of gated networks, routers and experts. */
import type {
  ActivationName,
  ClampedExperts,
  Component,
  GatedMlp,
  GateLimits,
  MixtureOfExperts,
  PackedExperts,
  Projections,
  Router,
  RouterGroups,
} from '../layer.js';
import type { Param } from '../param.js';
import { param } from '../param.js';

interface GatedMlpParts {
  readonly inputs: Projections;
  readonly activation: ActivationName;
  readonly down: GatedMlp['down'];
  readonly component?: Component;
  /** Factor of the gate before its activation. */
  readonly gateScale?: number;
  readonly limits?: GateLimits | undefined;
  readonly cutoffDeviations?: number | undefined;
}

export function gatedMlp(name: string, parts: GatedMlpParts): GatedMlp {
  const { inputs, activation: fn, down, component = 'feedForward', gateScale = 1 } = parts;
  const { cutoffDeviations: deviations, limits } = parts;
  return {
    kind: 'gatedMlp',
    name,
    component,
    inputs,
    activation: fn,
    down,
    ...(gateScale !== 1 && { gateScale }),
    ...(deviations !== undefined && { cutoffDeviations: deviations }),
    ...(limits && { limits }),
  };
}

interface RouterParts {
  readonly experts: number;
  readonly expertsPerToken: number;
  readonly scoring: Router['scoring'];
  readonly nearness?: number;
  readonly softcap?: number | undefined;
  /** Default: none. */
  readonly bias?: boolean;
  /** `e_score_correction_bias`, or the file's name for it. */
  readonly correction?: Param | undefined;
  readonly groups?: RouterGroups | undefined;
  readonly renormalised?: Router['renormalised'];
  readonly scale?: number;
  readonly steps?: Router['steps'];
  /** Name of the factors of the experts' weights. */
  readonly expertScales?: string;
}

export function router(name: string, hidden: number, parts: RouterParts): Router {
  const { experts, expertsPerToken, scoring, correction, groups, renormalised } = parts;
  const weight = param(`${name}.weight`, [experts, hidden]);
  return {
    kind: 'router',
    name,
    component: 'router',
    ...(parts.steps && { steps: parts.steps }),
    weight,
    ...(parts.bias && { bias: param(`${name}.bias`, [experts]) }),
    correction,
    scoring,
    ...(parts.nearness !== undefined && { nearness: parts.nearness }),
    ...(parts.softcap !== undefined && { softcap: parts.softcap }),
    expertsPerToken,
    groups,
    renormalised,
    scale: parts.scale ?? 1,
    ...(parts.expertScales && { expertScales: param(parts.expertScales, [experts]) }),
  };
}

interface PackedSizes {
  readonly experts: number;
  readonly hidden: number;
  readonly inner: number;
}

interface PackedOptions {
  /** Names of the two tensors; transformers' have no `.weight`. */
  readonly leaves?: readonly [gateUp: string, down: string];
  /** Default: true. */
  readonly gated?: boolean;
  readonly isTransposed?: boolean;
  readonly limits?: GateLimits | undefined;
}

export function packedExperts(
  name: string,
  { experts, hidden, inner }: PackedSizes,
  fn: ActivationName,
  {
    leaves = ['gate_up_proj', 'down_proj'],
    gated = true,
    isTransposed = false,
    limits,
  }: PackedOptions = {},
): PackedExperts {
  const matrix = (leaf: string, to: number, from: number) =>
    param(`${name}.${leaf}`, [experts, ...(isTransposed ? [from, to] : [to, from])]);
  return {
    kind: 'packedExperts',
    name,
    component: 'experts',
    gateUp: matrix(leaves[0], (gated ? 2 : 1) * inner, hidden),
    down: matrix(leaves[1], hidden, inner),
    activation: fn,
    ...(isTransposed && { isTransposed }),
    ...(limits && { limits }),
  };
}

/** Gate, up and down of all experts below each other, in three tensors. */
export function stackedExperts(
  name: string,
  { experts, hidden, inner }: PackedSizes,
  fn: ActivationName,
  [gate, up, down]: readonly [gate: string, up: string, down: string],
): PackedExperts {
  const matrices = (leaf: string) => param(`${name}.${leaf}`, [experts * inner, hidden]);
  return {
    kind: 'packedExperts',
    name,
    component: 'experts',
    gateUp: matrices(gate),
    up: matrices(up),
    down: matrices(down),
    activation: fn,
    stacked: experts,
  };
}

/** `gate_up_proj`, `gate_up_proj_bias`, `down_proj` and `down_proj_bias`. */
export function clampedExperts(
  name: string,
  { experts, hidden, inner }: PackedSizes,
  fn: ActivationName,
  limit: number,
): ClampedExperts {
  return {
    kind: 'clampedExperts',
    name,
    component: 'experts',
    gateUp: param(`${name}.gate_up_proj`, [experts, hidden, 2 * inner]),
    gateUpBias: param(`${name}.gate_up_proj_bias`, [experts, 2 * inner]),
    down: param(`${name}.down_proj`, [experts, inner, hidden]),
    downBias: param(`${name}.down_proj_bias`, [experts, hidden]),
    activation: fn,
    limit,
  };
}

export function mixtureOfExperts(
  name: string,
  parts: Pick<MixtureOfExperts, 'router' | 'experts'> &
    Partial<
      Pick<
        MixtureOfExperts,
        'weighsInputs' | 'expertNorm' | 'zeroExperts' | 'shared' | 'sharedGate' | 'latent'
      >
    >,
): MixtureOfExperts {
  return {
    kind: 'mixtureOfExperts',
    name,
    component: 'feedForward',
    router: parts.router,
    ...(parts.weighsInputs && { weighsInputs: true }),
    ...(parts.expertNorm && { expertNorm: parts.expertNorm }),
    experts: parts.experts,
    ...(parts.zeroExperts && { zeroExperts: parts.zeroExperts }),
    shared: parts.shared ?? [],
    sharedGate: parts.sharedGate,
    latent: parts.latent ?? [],
  };
}
