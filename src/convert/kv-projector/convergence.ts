/** Steps and time until a training reaches a loss. */
import type { AdapterKind, ByAdapter } from './projector.js';
import { ADAPTER_KINDS } from './projector.js';

/** First step, counted from 1, with at most this loss; null if there is none. */
export function stepsTo(losses: readonly number[], target: number): number | null {
  const at = losses.findIndex((loss) => loss <= target);
  return at < 0 ? null : at + 1;
}

type Measured = ByAdapter<number | null>;

/** Steps and time of both adapters to one loss; null where an adapter does not reach it. */
export interface LossTarget {
  /** Mean squared error before the update of the step. @real */
  readonly loss: number;
  /** Adapter whose last loss it is, or `given`. */
  readonly from: AdapterKind | 'given';
  /** First step with at most this loss; null if there is none. @integer */
  readonly steps: Measured;
  /** Steps × time per step. */
  readonly seconds: Measured;
  /** Steps and seconds of linear divided by those of elastic; null unless both reach the loss. */
  readonly fewerSteps: number | null;
  /** Seconds of linear ÷ those of elastic; null unless both reach the loss. */
  readonly lessTime: number | null;
}

/**
 * Steps to the last loss of each adapter, and to a given one.
 * @param secondsPerStep Time of a step of each adapter.
 */
export function lossTargets(
  losses: ByAdapter<readonly number[]>,
  secondsPerStep: ByAdapter<number>,
  given: number | undefined,
): LossTarget[] {
  const both = (of: (kind: AdapterKind) => number | null): Measured => ({
    linear: of('linear'),
    elastic: of('elastic'),
  });
  const ratio = ({ linear, elastic }: Measured) =>
    linear === null || elastic === null ? null : linear / elastic;
  const target = (loss: number, from: LossTarget['from']): LossTarget => {
    const steps = both((kind) => stepsTo(losses[kind], loss));
    const seconds = both((kind) => {
      const count = steps[kind];
      return count === null ? null : count * secondsPerStep[kind];
    });
    return { loss, from, steps, seconds, fewerSteps: ratio(steps), lessTime: ratio(seconds) };
  };
  return [
    ...(given === undefined ? [] : [target(given, 'given')]),
    ...ADAPTER_KINDS.flatMap((kind) => {
      const loss = losses[kind].at(-1);
      return loss === undefined || Number.isNaN(loss) ? [] : [target(loss, kind)];
    }),
  ];
}
