/** Operations of RMSNorm and LayerNorm on one vector, counted one by one. */
import { add, mul, v } from './expression.js';
import { type Figure, figure } from './figure.js';

interface NormCount {
  /** Additions, subtractions, multiplications, and one division and root each, for a vector. */
  readonly operations: Figure;
  /** Sums over the vector, each of which waits for the one before. @integer @minimum 1 */
  readonly reductions: number;
}

export interface NormOperations {
  /** Values of the vector. @integer @minimum 1 */
  readonly width: number;
  /** Operations of LayerNorm. */
  readonly layerNorm: NormCount;
  /** Operations of RMSNorm. */
  readonly rmsNorm: NormCount;
  /** Share of LayerNorm's operations that RMSNorm does not have. */
  readonly saved: number;
}

/** Steps of each norm that touch every value once; a sum takes an addition for each. */
const STEPS = {
  layerNorm: ['sum', 'x − mean', 'square', 'sum of squares', '· 1 / deviation', '· γ', '+ β'],
  rmsNorm: ['square', 'sum of squares', '· 1 / root', '· γ'],
} as const;

export function normOperations(width: number): NormOperations {
  const [layerNorm, rmsNorm] = [
    normCount('LayerNorm', STEPS.layerNorm, width, 2),
    normCount('RMSNorm', STEPS.rmsNorm, width, 1),
  ];
  const saved = 1 - Number(rmsNorm.operations.value) / Number(layerNorm.operations.value);
  return { width, layerNorm, rmsNorm, saved };
}

/** A sum of h values has h − 1 additions; the division by h makes it h. Then + eps and the inverse root. */
const normCount = (
  label: string,
  steps: readonly string[],
  width: number,
  reductions: number,
): NormCount => ({
  reductions,
  operations: figure({
    label: `${label}, one vector`,
    unit: 'FLOP',
    formula: add(mul(v({ operations_per_value: steps.length }), v({ width })), 2),
    source: `per value: ${steps.join(', ')}; per vector: + eps and the inverse root; ${reductions === 1 ? '1 reduction' : `${reductions} reductions`}`,
  }),
});
