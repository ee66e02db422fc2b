/** Gradients in a checkpoint file, counted in one pass without holding a tensor in memory. */
import { openCheckpoint } from '../checkpoint/open.js';
import { readInChunks } from '../checkpoint/view.js';
import { UserError } from '../errors.js';
import { decodeValues, numbersIn } from '../tensor/decode-values.js';
import type { MeasuredGradients } from '../training/train-plan.js';
import { MagnitudeCount } from '../training/underflow.js';

/**
 * Counts the values of all tensors that fp16 could not hold.
 * @param file A checkpoint whose tensors are gradients, in any format that minimind reads.
 * @param scales Scales of the loss at which to count.
 * @throws UserError if the file cannot be read, or has no value other than 0.
 */
export async function measureGradients(
  file: string,
  scales: readonly number[],
): Promise<MeasuredGradients> {
  const checkpoint = openCheckpoint(file);
  try {
    const count = new MagnitudeCount(scales);
    let target = new Float64Array(0);
    for (const tensor of checkpoint.tensors.values()) {
      for await (const bytes of readInChunks(tensor)) {
        const numbers = numbersIn(tensor.dtype, bytes.length);
        if (target.length < numbers) target = new Float64Array(numbers);
        count.add(target.subarray(0, decodeValues(tensor.dtype, bytes, target)));
      }
    }
    if (count.values === 0) {
      throw new UserError('refused-file', `--gradients: ${file} has no value other than 0`, {
        suggestion: 'save {name: p.grad} of a step, before the optimizer sets the gradients to 0',
      });
    }
    const { values, zeros, notFinite, largest } = count;
    return { file, values, zeros, notFinite, largest, scales: count.shares() };
  } finally {
    checkpoint.close();
  }
}
