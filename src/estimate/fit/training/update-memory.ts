/** Temporary memory of the optimizer's update. Its formulas need no rates of a GPU, so `profile` loads none. */

import { div, type Input, inputs, max, mul, sub } from '../../../model/budget/expression.js';
import type { Bounds } from '../../../model/budget/figure.js';
import type { Optimizer } from '../../../model/budget/optimizers.js';
import { OPTIMIZERS } from '../../../model/budget/optimizers.js';
import { boundsOf, NOT_REQUIRED } from '../bounds.js';
import type { Parallelism } from '../parallelism/parallelism.js';
import type { TrainingFitSetting } from './training-setting.js';
import { DIVIDED_FROM } from './training-setting.js';

/** Number of GPUs that divide the optimizer state. */
export const optimizerReplicas = (
  { zero }: Pick<TrainingFitSetting, 'zero'>,
  { shards }: Pick<Parallelism, 'shards'>,
): number => (zero >= DIVIDED_FROM.optimizer ? shards : 1);

/** Inputs of an update, including memory that is free when it begins. */
export interface UpdateSetting {
  readonly optimizer: Optimizer;
  /** Bytes per gradient value. */
  readonly gradientBytes: number;
  readonly parameters: number | bigint;
  /** Number of GPUs that divide the optimizer state. */
  readonly replicas: number;
  readonly activations: number | bigint;
  /** Other memory of the backward pass, by bound. */
  readonly temporary: Readonly<Record<'expected' | 'upper', number>>;
}

/** Temporary memory of an update, by bound. */
export function updateTemporary(
  which: 'expected' | 'upper',
  {
    optimizer,
    gradientBytes,
    parameters,
    replicas,
  }: Pick<UpdateSetting, 'optimizer' | 'gradientBytes' | 'parameters' | 'replicas'>,
): number {
  const cast = which === 'upper' ? castBytes(gradientBytes) : 0;
  return ((OPTIMIZERS[optimizer].update[which].bytes + cast) * Number(parameters)) / replicas;
}

/** Bytes per gradient of the float32 copies made for the update. */
const castBytes = (gradientBytes: number) => (gradientBytes < 4 ? 4 : 0);

/**
 * Memory of the update beyond what the backward pass has freed. A GPU is fullest either in the backward pass or in the
 * update; adding this value to the former gives the larger of the two. The upper bound of the backward pass can be
 * larger, so its remainder can be less than the estimate.
 */
export function updateBytes(setting: UpdateSetting): Bounds {
  const { optimizer, gradientBytes, parameters, replicas, activations, temporary } = setting;
  const { expected, upper } = OPTIMIZERS[optimizer].update;
  const cast = castBytes(gradientBytes);
  const beyond = 'beyond the activations and temporary values of the backward pass, which are gone';
  const of = inputs({
    bytes: expected.bytes,
    most_bytes: upper.bytes + cast,
    parameters,
    replicas,
    activations,
    temporary: temporary.expected,
    most_temporary: temporary.upper,
  });
  const beyondBackward = (bytes: Input, temporary: Input) =>
    max(0, sub(div(mul(bytes, of.parameters), of.replicas), of.activations, temporary));
  return boundsOf(
    { label: 'the update of the weights', unit: 'bytes', inputs: of },
    {
      lower: NOT_REQUIRED,
      expected: {
        formula: beyondBackward(of.bytes, of.temporary),
        source: `${expected.source}; ${beyond}`,
      },
      upper: {
        formula: beyondBackward(of.most_bytes, of.most_temporary),
        source: `${upper.source}${cast > 0 ? ', and all gradients in float32' : ''}; ${beyond}`,
      },
    },
  );
}
