/** Layers of a model on several GPUs, as llama.cpp divides them. */
import { sumOf } from '../../../base/values.js';

/**
 * Layers on each GPU in proportion to their weights: by default the free memory, else `--tensor-split` (llama.cpp,
 * src/llama-model.cpp: splits, `upper_bound`).
 * @param gpuLayers Layers on all GPUs.
 */
export function proportionalLayers(gpuLayers: number, weights: readonly number[]): number[] {
  const total = sumOf(weights, (weight) => weight);
  const layers = weights.map(() => 0);
  for (let at = 0; at < gpuLayers; at++) {
    let ends = 0;
    const found = weights.findIndex((weight) => {
      ends += weight;
      return ends / total > at / gpuLayers;
    });
    const card = found < 0 ? weights.length - 1 : found;
    layers[card] = (layers[card] ?? 0) + 1;
  }
  return layers;
}

/** A division with a layer more on one GPU and a layer less on another; undefined where that has none. */
function moved(layers: readonly number[], from: number, to: number): readonly number[] | undefined {
  if ((layers[from] ?? 0) === 0 || to < 0 || to >= layers.length) return undefined;
  return layers.map((count, card) => count + (card === to ? 1 : 0) - (card === from ? 1 : 0));
}

/**
 * The division with the least cost that single moves of a layer lead to.
 * @param costOf Cost of a division.
 */
export function improved(
  layers: readonly number[],
  costOf: (layers: readonly number[]) => number,
): readonly number[] {
  let [best, cost] = [layers, costOf(layers)];
  // Each step moves a layer, so that there are at most as many steps as layers and pairs of GPUs.
  for (let steps = sumOf(layers, (count) => count) * layers.length; steps > 0; steps--) {
    const next = neighbours(best)
      .map((each) => ({ each, cost: costOf(each) }))
      .sort((a, b) => a.cost - b.cost)[0];
    if (next === undefined || next.cost >= cost) return best;
    [best, cost] = [next.each, next.cost];
  }
  return best;
}

/** Divisions in which a GPU gives a layer to the one before or after it. */
const neighbours = (layers: readonly number[]): (readonly number[])[] =>
  layers
    .flatMap((_, from) => [moved(layers, from, from - 1), moved(layers, from, from + 1)])
    .filter((each) => each !== undefined);
