/** What the update of the weights makes besides what it keeps, and in how many tensors an optimizer keeps its state. */
import type { Bounds } from '../../budget/quantity.js';
import type { Optimizer } from '../../budget/training.js';
import { boundsOf } from '../bounds.js';
import type { Parallelism } from '../parallelism/parallelism.js';
import { DIVIDED_FROM, type TrainingFitSetting } from './training-setting.js';

interface Temporary {
  /** Of each parameter. */
  readonly bytes: number;
  readonly source: string;
}

interface Update {
  readonly expected: Temporary;
  readonly upper: Temporary;
  /** Tensors for each weight, as bytes of a value of it: besides the float32 copy of mixed precision. */
  readonly state: readonly number[];
}

const ROOTS: Temporary = {
  bytes: 4,
  source:
    'the root of the second moments, of all weights at once (PyTorch, AdamW with foreach, as by default on CUDA)',
};

const PLAIN_SGD: Temporary = {
  bytes: 0,
  source: 'the gradients are added to the weights in place (PyTorch, SGD with foreach)',
};

const DECAYED_SGD: Temporary = {
  bytes: 4,
  source: 'with weight decay a copy of the gradients (PyTorch, SGD with foreach)',
};

const IN_PLACE: Temporary = {
  bytes: 0,
  source: 'a kernel updates weights and moments in place, block by block (bitsandbytes, AdamW8bit)',
};

/** The sizes of PyTorch's are as measured of PyTorch 2.13. */
export const UPDATES = {
  adamw: { expected: ROOTS, upper: ROOTS, state: [4, 4] },
  // A float32 scale for each 256 values.
  'adamw-8bit': { expected: IN_PLACE, upper: IN_PLACE, state: [1, 1, 4 / 256, 4 / 256] },
  sgd: { expected: PLAIN_SGD, upper: DECAYED_SGD, state: [] },
  'sgd-momentum': { expected: PLAIN_SGD, upper: DECAYED_SGD, state: [4] },
} as const satisfies Record<Optimizer, Update>;

/** Among how many GPUs the optimizer is divided. */
export const optimizerReplicas = (
  { zero }: Pick<TrainingFitSetting, 'zero'>,
  { replicas }: Pick<Parallelism, 'replicas'>,
): number => (zero >= DIVIDED_FROM.optimizer ? replicas : 1);

/** What an update is of, and what is gone when it begins. */
export interface UpdateSetting {
  readonly optimizer: Optimizer;
  /** Of a value. */
  readonly gradientBytes: number;
  readonly parameters: number | bigint;
  /** That share the optimizer. */
  readonly replicas: number;
  readonly activations: number | bigint;
  /** What the backward pass has besides them, by each bound. */
  readonly temporary: Readonly<Record<'expected' | 'upper', number>>;
}

/** What an update makes besides what is kept, by one of the bounds. */
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
  return ((UPDATES[optimizer][which].bytes + cast) * Number(parameters)) / replicas;
}

/** Of gradients that are copied in float32 for the update. */
const castBytes = (gradientBytes: number) => (gradientBytes < 4 ? 4 : 0);

/**
 * What the update needs beyond what the backward pass left free. A GPU is fullest either in the backward pass, with
 * activations and temporary values, or in the update, with temporary values of its own: with this, what is counted is
 * the larger of the two. Where a backward pass has more by the upper bound, less than expected can be left over.
 */
export function updateBytes(setting: UpdateSetting): Bounds {
  const { optimizer, gradientBytes, parameters, replicas, activations, temporary } = setting;
  const { expected, upper } = UPDATES[optimizer];
  const cast = castBytes(gradientBytes);
  const beyond = 'beyond the activations and temporary values of the backward pass, which are gone';
  return boundsOf(
    {
      label: 'the update of the weights',
      unit: 'bytes',
      inputs: {
        bytes: expected.bytes,
        most_bytes: upper.bytes + cast,
        parameters,
        replicas,
        activations,
        temporary: temporary.expected,
        most_temporary: temporary.upper,
      },
    },
    {
      lower: { formula: '0', source: 'an implementation may do without' },
      expected: {
        formula: 'max(0, bytes * parameters / replicas - activations - temporary)',
        source: `${expected.source}; ${beyond}`,
      },
      upper: {
        formula: 'max(0, most_bytes * parameters / replicas - activations - most_temporary)',
        source: `${upper.source}${cast > 0 ? ', and all gradients in float32' : ''}; ${beyond}`,
      },
    },
  );
}
