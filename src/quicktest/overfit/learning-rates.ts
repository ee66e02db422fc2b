/** Learning rate range test: Smith, arXiv 1506.01186, with a learning rate that grows by a constant factor. */
import type { ModelTraining } from '../../runtime/trainer.js';

/** First and last learning rate of a sweep. */
const RANGE = { from: 1e-5, to: 1 } as const;
/** Steps of a sweep: five and two for each power of ten. */
export const SWEEP_STEPS = 26;
const FEWEST_STEPS = 11;
/** A loss this many times the first ends a sweep. */
const DIVERGED = 2;
/** Share of the first loss by which the loss must rise above its lowest value to count as a rise. */
const RISE = 0.05;

export interface LearningRatePoint {
  readonly learningRate: number;
  /** Loss after an update with this learning rate, and those before it. */
  readonly loss: number;
}

export interface LearningRateSweep {
  readonly points: readonly LearningRatePoint[];
  /** Learning rate after which the loss was lowest. */
  readonly lowestAt: number;
  /** A tenth of that, the usual choice. */
  readonly suggested: number;
  /** The first learning rate beyond that after which the loss rises; null when it never does. */
  readonly risesFrom: number | null;
}

/**
 * Trains with a learning rate that grows in each step, until the loss diverges.
 * @param steps Number of steps that there is time for. @param pause Called before each step, with the number of all.
 * @returns Null without time, or when the first steps fail.
 */
export async function sweepLearningRates(
  training: ModelTraining,
  steps: number,
  pause: (step: number, count: number) => Promise<void>,
): Promise<LearningRateSweep | null> {
  if (steps < FEWEST_STEPS) return null;
  const count = Math.min(Math.floor(steps), SWEEP_STEPS);
  const factor = (RANGE.to / RANGE.from) ** (1 / (count - 1));
  const losses: number[] = [];
  for (let step = 0; step < count; step++) {
    await pause(step + 1, count);
    const { loss, nonFinite } = await training.step(RANGE.from * factor ** step);
    losses.push(loss);
    if (nonFinite || !(loss <= DIVERGED * (losses[0] ?? 0))) break;
  }
  const [first = Number.NaN, ...after] = losses;
  const points = after.map((loss, step) => ({ learningRate: RANGE.from * factor ** step, loss }));
  return points.length < 2 ? null : summary(first, points);
}

export function summary(first: number, points: readonly LearningRatePoint[]): LearningRateSweep {
  const lowest = points.reduce((best, each) => (each.loss < best.loss ? each : best));
  const rise = points
    .slice(points.indexOf(lowest) + 1)
    .find(({ loss }) => !(loss <= lowest.loss + RISE * first));
  return {
    points,
    lowestAt: lowest.learningRate,
    suggested: lowest.learningRate / 10,
    risesFrom: rise?.learningRate ?? null,
  };
}
