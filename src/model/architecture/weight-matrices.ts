/** Matrices of a model that can have fewer bits; other tensors stay floats. */
import type { Layer } from './layer.js';
import type { Param } from './param.js';
import { outputWidth, productsOf, walk } from './walk.js';

/** A weight as one matrix [rows, columns], with a row for each output. */
export interface WeightMatrix {
  readonly tensor: Param;
  /** Outputs, of all experts together. */
  readonly rows: number;
  /** Inputs. */
  readonly columns: number;
  /** Whether the tensor is [columns, rows]. */
  readonly isTransposed: boolean;
}

/**
 * Matrices of a layer that are quantized: those of products, of the head and of the embedding. Convolutions, norms,
 * routers and the gate of shared experts, tables of positions and of SRTE stay in float32, and so do the two small
 * products of Mamba that determine the step: its scan multiplies their errors over all tokens.
 */
export function quantizedMatrices(layer: Layer): ReadonlyMap<Param, WeightMatrix> {
  const matrices = new Map<Param, WeightMatrix>();
  const kept: Param[] = [];
  for (const { layer: each } of walk(layer)) {
    for (const matrix of matricesOf(each)) matrices.set(matrix.tensor, matrix);
    kept.push(...keptBy(each));
  }
  for (const tensor of kept) matrices.delete(tensor);
  return matrices;
}

function matricesOf(layer: Layer): WeightMatrix[] {
  switch (layer.kind) {
    case 'linear':
    case 'embedding':
      return [matrixOf(layer.weight)];
    case 'transposedLinear':
      return [matrixOf(layer.weight, true)];
    case 'packedExperts':
      return layer.isTransposed || layer.stacked
        ? []
        : [matrixOf(layer.gateUp), matrixOf(layer.down)];
    default:
      return [];
  }
}

function matrixOf(tensor: Param, isTransposed = false): WeightMatrix {
  const last = tensor.shape.at(-1) ?? 1;
  const others = tensor.elements / last;
  return isTransposed
    ? { tensor, rows: last, columns: others, isTransposed }
    : { tensor, rows: others, columns: last, isTransposed };
}

/** Weights of products inside a layer that stay in float32. */
function keptBy(layer: Layer): Param[] {
  switch (layer.kind) {
    case 'mamba':
      return [layer.xProj.weight, layer.dtProj.weight];
    case 'gatedDelta':
      // β and the step, in one product or two.
      return productsOf(layer.inputs)
        .filter((product) => outputWidth(product) <= 2 * layer.valueHeads)
        .map(({ weight }) => weight);
    case 'kimiDelta':
      return [...layer.forget.layers, layer.beta].map(({ weight }) => weight);
    case 'mixtureOfExperts':
      return [layer.router.weight, ...(layer.sharedGate ? [layer.sharedGate.weight] : [])];
    case 'srteLowRank':
      return [layer.projection.weight];
    default:
      return [];
  }
}
