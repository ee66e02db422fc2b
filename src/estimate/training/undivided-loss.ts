/** Effect of adding the losses of an accumulation without dividing them by the number of micro-steps. */
import type { RunSize } from './run-size.js';

/**
 * Gradients of micro-steps add up. Divided losses give the mean of the step; undivided ones N times that. SGD then
 * steps N times as far. The update of Adam, m / (√v + ε), does not depend on the scale of the gradients
 * (arXiv 1412.6980, 2.1); clipping and the range of fp16 do.
 */
export interface UndividedLoss {
  /** Gradient of a step over the one of divided losses: N. @integer */
  readonly gradientFactor: number;
  /** Learning rate with which SGD takes the same steps on divided losses. */
  readonly sgdLearningRate: number;
  /** Steps of Adam over those on divided losses. */
  readonly adamFactor: 1;
  /** Norm of a divided gradient above which clipping shortens the undivided one; null without clipping. */
  readonly clippedAbove: number | null;
}

/** Null without accumulation. */
export function undividedLossOf(
  { accumulation }: Pick<RunSize, 'accumulation'>,
  learningRate: number,
  maxGradNorm: number | undefined,
): UndividedLoss | null {
  if (accumulation === 1) return null;
  return {
    gradientFactor: accumulation,
    sgdLearningRate: accumulation * learningRate,
    adamFactor: 1,
    clippedAbove: maxGradNorm ? maxGradNorm / accumulation : null,
  };
}
