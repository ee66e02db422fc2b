/** Kernels that are launched when a model is passed through once. */
import type { Layer } from '../../architecture/layer.js';
import { remembered } from '../../architecture/memoize.js';
import { primitivesOf } from '../../operations/lower.js';

/** Launches of one pass through some layers. */
export interface Launches {
  /** Launches of all layers, one after the other. */
  readonly layers: number;
  /** Launches of attention and scan alone, which selective recomputation launches again. */
  readonly kernels: number;
}

export const launchesOf = (layers: readonly Layer[]): Launches =>
  layers
    .map(launchesIn)
    .reduce(
      (sum, each) => ({ layers: sum.layers + each.layers, kernels: sum.kernels + each.kernels }),
      { layers: 0, kernels: 0 },
    );

const launchesIn = remembered((layer: Layer): Launches => {
  // Layers that blocks share are launched in each block, and once where the model holds them.
  const shared = layer.kind === 'languageModel' ? layer.shared : [];
  const primitives = [...shared, layer].flatMap((each) => primitivesOf(each));
  const sum = (all: typeof primitives) => all.reduce((total, { launches }) => total + launches, 0);
  return {
    layers: sum(primitives),
    kernels: sum(primitives.filter(({ kind }) => kind === 'scores' || kind === 'scan')),
  };
});
