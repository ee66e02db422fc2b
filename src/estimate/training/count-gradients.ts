/** Gradients of a training step, counted by their magnitude. */
import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { MagnitudeCount, type Underflow } from './underflow.js';

export interface MeasuredGradients {
  /** Path of the gradients. */
  readonly file: string;
  /** Tensors of the model without a gradient, as frozen ones. @integer */
  readonly missing: number;
  /** Number of values. @integer */
  readonly values: number;
  /** Number of zeros. @integer */
  readonly zeros: number;
  /** Number of NaN values and infinities. @integer */
  readonly notFinite: number;
  /** Largest magnitude. */
  readonly largest: number;
  /** Shares at each scale. */
  readonly scales: readonly Underflow[];
}

/**
 * Counts the values that fp16 could not hold.
 * @param scales Scales of the loss at which to count.
 * @param read Passes on all values, and returns the number of tensors without a gradient.
 * @throws UserError if there is no value other than 0.
 */
export async function countGradients(
  file: string,
  scales: readonly number[],
  read: (take: (values: Float64Array) => void) => Promise<number>,
): Promise<MeasuredGradients> {
  const count = new MagnitudeCount(scales);
  const missing = await read((values) => count.add(values));
  if (count.values === 0) {
    throw new UserError(
      'refused-file',
      `${setting('gradients')}: ${file} has no value other than 0`,
      {
        suggestion: 'save {name: p.grad} of a step, before the optimizer sets the gradients to 0',
      },
    );
  }
  const { values, zeros, notFinite, largest } = count;
  return { file, missing, values, zeros, notFinite, largest, scales: count.shares() };
}
