/** The published comparison of two adapters, at a size that somebody waits for. */

import os from 'node:os';
import type { LivePlot } from '../cli/live-plot.js';
import { livePlot } from '../cli/live-plot.js';
import { manualSeed } from '../random/index.js';
import type { VerifyProjectorsResult } from '../report/kv-projector/kv-projector-verify.js';
import { lossPlot } from '../report/kv-projector/kv-projector-verify.js';
import type { Trainer } from '../runtime/trainer.js';
import { formatDuration } from '../text/units.js';
import type { Step } from './verify.js';
import { estimator, reducedWithin, refuseTooLarge, sizeOf, verify } from './verify.js';
import type { DataKind, VerifySize } from './verify-data.js';

/** Seconds: what is estimated to take longer runs reduced, unless it is asked for. */
const PATIENCE = 60;

/** As the command parses them. */
export interface VerifyFlags {
  readonly data: DataKind;
  readonly 'teacher-width': number | undefined;
  readonly student: number | undefined;
  readonly batch: number | undefined;
  readonly context: number | undefined;
  readonly steps: number;
  readonly full: boolean;
  readonly seed: number;
  readonly threads: number | undefined;
  readonly quiet: boolean;
  readonly 'no-color': boolean;
}

/**
 * Trains both adapters, and shows their losses meanwhile.
 * @throws UserError when there is no room for them, or nothing to train them with.
 */
export async function verifyProjectors(flags: VerifyFlags) {
  const { chooseTrainer } = await import('../runtime/select/trainers.js');
  const shown = livePlot({ quiet: flags.quiet, noColor: flags['no-color'] });
  try {
    await shown.show(null, 'starting TensorFlow.js');
    const { trainer } = await chooseTrainer(flags.threads ?? os.availableParallelism());
    await shown.show(null, 'estimating how long it takes');
    const { size, reduced } = await chosenSize(flags, trainer, shown);
    await shown.show(null, 'making data and adapters');
    const start = performance.now();
    const verification = await verify(trainer, {
      ...{ data: flags.data, size, steps: flags.steps, random: manualSeed(flags.seed) },
      watch: (done) => {
        const seconds = (performance.now() - start) / 1000;
        const status = `${statusOf(done, flags.steps, seconds)}${toldOf(reduced)}`;
        return shown.show(lossPlot(done), status);
      },
    });
    return {
      schema: 'minimind/kv-projector-verify@1',
      ...verification,
      seed: flags.seed,
      reduced,
    } as const;
  } finally {
    shown.end();
  }
}

function statusOf(done: readonly Step[], steps: number, seconds: number): string {
  const rest = (seconds / done.length) * (steps - done.length);
  const { linear = Number.NaN, elastic = Number.NaN } = done.at(-1) ?? {};
  return (
    `step ${done.length} of ${steps}, ${formatDuration(rest)} left: ` +
    `linear ${linear.toPrecision(3)}, elastic ${elastic.toPrecision(3)}`
  );
}

const toldOf = (reduced: VerifyProjectorsResult['reduced']): string =>
  reduced ? ` (reduced: --full takes about ${formatDuration(reduced.estimatedSeconds)})` : '';

interface ChosenSize {
  readonly size: VerifySize;
  readonly reduced: VerifyProjectorsResult['reduced'];
}

/**
 * The published widths where they take no longer than a minute, else narrower ones that do. Widths that were asked for
 * stay, with a word on how long they take.
 */
async function chosenSize(
  flags: VerifyFlags,
  trainer: Trainer,
  shown: LivePlot,
): Promise<ChosenSize> {
  const { 'teacher-width': teacherWidth, student: studentWidth, batch, context } = flags;
  const size = sizeOf({
    ...(teacherWidth !== undefined && { teacherWidth }),
    ...(studentWidth !== undefined && { studentWidth }),
    ...(batch !== undefined && { batch }),
    ...(context !== undefined && { context }),
  });
  const isChosen = flags.full || teacherWidth !== undefined || studentWidth !== undefined;
  if (isChosen) refuseTooLarge(trainer, size);
  const secondsFor = await estimator(trainer, size, manualSeed(flags.seed));
  const seconds = secondsFor(size, flags.steps);
  if (seconds <= PATIENCE) return { size, reduced: null };
  const narrower = reducedWithin(size, PATIENCE, (each) => secondsFor(each, flags.steps));
  const taken = isChosen ? seconds : secondsFor(narrower, flags.steps);
  if (taken > PATIENCE) shown.say(`this takes about ${formatDuration(taken)}`);
  if (isChosen) return { size, reduced: null };
  const { teacherWidth: fromTeacherWidth, studentWidth: fromStudentWidth } = size;
  return {
    size: narrower,
    reduced: { fromTeacherWidth, fromStudentWidth, estimatedSeconds: seconds },
  };
}
