/** At what batch, length and precision a model is profiled, and who says so. */
import type { TrainingHints } from '../architecture/family.js';
import { UserError } from '../errors.js';
import type { Dtype } from '../tensor/dtype.js';
import type { Recompute } from './flops.js';
import type { ProfileSetting } from './profile.js';
import type { Optimizer } from './training.js';

/** What the user asks for; undefined leaves it to the file, or to the default. */
export interface ProfileWish {
  readonly batch?: number | undefined;
  readonly context?: number | undefined;
  readonly dtype: Dtype;
  readonly causal: boolean;
  readonly precision?: 'mixed' | 'float32' | undefined;
  readonly optimizer: Optimizer;
  readonly recompute?: Recompute | undefined;
}

/**
 * `flag`: the command line; `file`: the document; `default`: neither; `longest`: neither, and the
 * default is all that the model takes.
 */
export type Origin = 'flag' | 'file' | 'default' | 'longest';

export interface ResolvedSetting extends ProfileSetting {
  readonly origins: {
    readonly inferenceBatch: Origin;
    readonly trainingBatch: Origin;
    readonly context: Origin;
    readonly precision: Origin;
    readonly recompute: Origin;
  };
  /** What the file asks for and the budget of one device does not count. */
  readonly beyondOneDevice: readonly string[];
}

/** Tokens when nobody says how many; never more than the model takes. */
const DEFAULT_CONTEXT = 2048;

/**
 * The flag before the file before the default. The batch of the file is that of training alone.
 * @param positions The longest input of the model.
 * @throws UserError when the context is longer than the model's positions.
 */
export function resolveSetting(
  wish: ProfileWish,
  hints: TrainingHints,
  positions: number,
): ResolvedSetting {
  const context = first(wish.context, hints.context, Math.min(DEFAULT_CONTEXT, positions));
  requirePositions(context.value, positions);
  const inferenceBatch = first(wish.batch, undefined, 1);
  const trainingBatch = first(wish.batch, hints.batch, 1);
  const precision = first(wish.precision, hints.precision, 'mixed' as const);
  const hinted = hints.recompute === undefined ? undefined : hints.recompute ? 'full' : 'none';
  const recompute = first<Recompute>(wish.recompute, hinted, 'none');
  const { dtype, causal, optimizer } = wish;
  return {
    inference: { batch: inferenceBatch.value, context: context.value, dtype, causal },
    training: {
      batch: trainingBatch.value,
      context: context.value,
      precision: precision.value,
      optimizer,
      recompute: recompute.value,
    },
    origins: {
      inferenceBatch: inferenceBatch.origin,
      trainingBatch: trainingBatch.origin,
      context:
        context.origin === 'default' && context.value === positions ? 'longest' : context.origin,
      precision: precision.origin,
      recompute: recompute.origin,
    },
    beyondOneDevice: hints.beyondOneDevice ?? [],
  };
}

/** @throws UserError when a context is longer than the model's positions. */
export function requirePositions(context: number, positions: number): void {
  if (context <= positions) return;
  throw new UserError(
    'usage',
    `--context: ${context} tokens are more than the ${positions} positions of the model`,
    { suggestion: `ask for at most ${positions}` },
  );
}

function first<T>(
  flag: T | undefined,
  file: T | undefined,
  fallback: T,
): { readonly value: T; readonly origin: Origin } {
  if (flag !== undefined) return { value: flag, origin: 'flag' };
  if (file !== undefined) return { value: file, origin: 'file' };
  return { value: fallback, origin: 'default' };
}
