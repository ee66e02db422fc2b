/** Steps from logits to the loss of a training: the next token of each position, and the mean of the counted ones. */

import { formatInteger } from '../../../base/text/units.js';
import type { LanguageModel } from '../../architecture/layer.js';
import type { TokenGrid, TraceStep } from './step-builder.js';

/** A sample of T + 1 ids has T positions: X = ids[:-1] and Y = ids[1:]. */
export function lossStepsOf(
  { head }: LanguageModel,
  { batch, tokens }: TokenGrid,
): readonly TraceStep[] {
  const [vocabulary = 0] = head.weight.shape;
  const rows = batch * tokens;
  const step = (name: string, operation: string, shape: readonly number[]): TraceStep => ({
    name,
    depth: 0,
    operation,
    shape,
    parameters: 0,
  });
  return [
    step(
      'targets',
      `Y: the next id of each position, from ${formatInteger(tokens + 1)} ids of a sample`,
      [batch, tokens],
    ),
    step('logits', 'a row for each position', [rows, vocabulary]),
    step(
      'cross entropy',
      `−log softmax(row)[target]; ln ${formatInteger(vocabulary)} = ${Math.log(vocabulary).toFixed(2)} if all tokens are equally likely`,
      [rows],
    ),
    step(
      'loss mask',
      '1 for a target that counts, 0 for padding and for a prompt that is not learned',
      [rows],
    ),
    step('loss', 'Σ cross entropy · mask / Σ mask; with no counted target this is 0 / 0, NaN', []),
  ];
}
