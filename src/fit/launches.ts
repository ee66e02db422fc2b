/** How many layers are started, and how many sums are made over GPUs, when a model is passed through once. */
import type { Layer } from '../architecture/layer.js';
import { walk } from '../architecture/walk.js';
import { remembered } from '../budget/remember.js';

/** What a pass through some layers starts. */
export interface Launches {
  /** Layers, one after the other. */
  readonly layers: number;
  /** Attention and scan alone, which selective recomputation starts again. */
  readonly kernels: number;
  /** All-reduces of GPUs that share them. */
  readonly reductions: number;
}

export const launchesOf = (layers: readonly Layer[]): Launches => {
  const all = layers.map(launchesIn);
  const sum = (of: (each: Launches) => number) => all.reduce((total, each) => total + of(each), 0);
  return {
    layers: sum((each) => each.layers),
    kernels: sum((each) => each.kernels),
    reductions: sum((each) => each.reductions),
  };
};

const launchesIn = remembered((whole: Layer): Launches => {
  const inside = walk(whole).map(({ layer }) => layer);
  const sum = (of: (layer: Layer) => number) =>
    inside.reduce((total, layer) => total + of(layer), 0);
  return {
    layers: sum(startedBy),
    kernels: inside.filter(({ kind }) => KERNELS.includes(kind)).length,
    reductions: sum(reductionsIn),
  };
});

const KERNELS: readonly Layer['kind'][] = ['attention', 'latentAttention', 'mamba'];

/** Layers that are no more than an order of others. */
const STRUCTURE: readonly Layer['kind'][] = [
  'languageModel',
  'hybridBlock',
  'sequence',
  'residual',
  'fusedProjection',
];

/** Kernels in which a mixture computes its chosen experts: into the inner width, activation, and back. */
const EXPERT_LAUNCHES = 3;

/** What the branches add to the residual stream is reduced together; a hybrid block's parts one by one. */
function reductionsIn(layer: Layer): number {
  if (layer.kind === 'residual') return 1;
  // x_proj and the output of Mamba, attention, alignment, fusion, MLP.
  return layer.kind === 'hybridBlock' ? HYBRID_REDUCTIONS : 0;
}

const HYBRID_REDUCTIONS = 6;

function startedBy(layer: Layer): number {
  if (STRUCTURE.includes(layer.kind)) return 0;
  return layer.kind === 'mixtureOfExperts' ? 1 + EXPERT_LAUNCHES - expertLaunches(layer) : 1;
}

/** As many as the walk counts of experts. */
function expertLaunches({ experts }: Extract<Layer, { kind: 'mixtureOfExperts' }>): number {
  if ('kind' in experts) return 1;
  return experts.flatMap(walk).filter(({ layer }) => !STRUCTURE.includes(layer.kind)).length;
}
