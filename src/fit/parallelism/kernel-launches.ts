/** How many layers are started when a model is passed through once. */
import type { Layer } from '../../architecture/layer.js';
import { remembered } from '../../architecture/memoize.js';
import { expertLayers, walk } from '../../architecture/walk.js';

/** What a pass through some layers starts. */
export interface Launches {
  /** Layers, one after the other. */
  readonly layers: number;
  /** Attention and scan alone, which selective recomputation starts again. */
  readonly kernels: number;
}

const sumOf = (all: readonly Launches[]): Launches =>
  all.reduce(
    (sum, each) => ({ layers: sum.layers + each.layers, kernels: sum.kernels + each.kernels }),
    NOTHING,
  );

export const launchesOf = (layers: readonly Layer[]): Launches => sumOf(layers.map(launchesIn));

const launchesIn = remembered((whole: Layer): Launches => {
  const inside = walk(whole).map(({ layer }) => layer);
  // Only the chosen experts are computed, and those together.
  const routed = inside.flatMap((layer) =>
    layer.kind === 'mixtureOfExperts' ? expertLayers(layer.experts).flatMap(walk) : [],
  );
  const others = new Set(routed.map(({ layer }) => layer));
  return sumOf(inside.filter((layer) => !others.has(layer)).map(({ kind }) => STARTED[kind]));
});

const NOTHING: Launches = { layers: 0, kernels: 0 };
const LAYER: Launches = { layers: 1, kernels: 0 };
const KERNEL: Launches = { layers: 1, kernels: 1 };

/** Kernels in which a mixture computes its chosen experts: into the inner width, activation, and back. */
const EXPERT_LAUNCHES = 3;

/** What a layer starts itself, besides those that it holds; nothing where it is no more than an order of others. */
const STARTED: Readonly<Record<Layer['kind'], Launches>> = {
  languageModel: NOTHING,
  hybridBlock: NOTHING,
  sequence: NOTHING,
  residual: NOTHING,
  fusedProjection: NOTHING,
  attention: KERNEL,
  latentAttention: KERNEL,
  mamba: KERNEL,
  // The sum of the experts by their weights, and the experts.
  mixtureOfExperts: { layers: 1 + EXPERT_LAUNCHES, kernels: 0 },
  // Started by the mixture that holds them.
  packedExperts: NOTHING,
  embedding: LAYER,
  linear: LAYER,
  transposedLinear: LAYER,
  layerNorm: LAYER,
  rmsNorm: LAYER,
  activation: LAYER,
  scale: LAYER,
  softcap: LAYER,
  learnedPositions: LAYER,
  gatedMlp: LAYER,
  router: LAYER,
  causalConv: LAYER,
  rotary: LAYER,
  alibi: LAYER,
  srteTable: LAYER,
  srteLowRank: LAYER,
  srteSincos: LAYER,
  alignment: LAYER,
  gate: LAYER,
};
