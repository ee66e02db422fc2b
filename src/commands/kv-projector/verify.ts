import os from 'node:os';
import * as Flags from '@oclif/core/flags';
import { BaseCommand, formatOf, type OutputFlags } from '../../cli/base-command.js';
import { count, seed, threads } from '../../cli/flags.js';
import { livePlot } from '../../cli/live-plot.js';
import { estimate, reduced, STEPS, type Step, sizeOf, verify } from '../../kv-projector/verify.js';
import { DATA, type DataKind, type VerifySize } from '../../kv-projector/verify-data.js';
import { manualSeed } from '../../random/index.js';
import {
  lossPlot,
  type VerifyProjectorsResult,
  verifyProjectorsReport,
} from '../../report/kv-projector-verify.js';
import { formatDuration } from '../../report/units.js';
import type { Trainer } from '../../runtime/trainer.js';

/** Seconds: what is estimated to take longer runs reduced, unless it is asked for. */
const PATIENCE = 60;

export default class KvProjectorVerify extends BaseCommand {
  static override summary = 'Train a linear and an elastic adapter side by side.';
  static override description =
    'The published comparison of how fast the two kinds of adapters learn: the same data, AdamW and mean squared ' +
    'error, the losses of both at each step. On the published data the elastic one wins; --data linear shows where the ' +
    'linear one does. With the published widths, which take minutes on most machines, it shows the published losses ' +
    'beside; without --full, widths are a quarter of that when they would take over a minute.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> --teacher-width 320 --student 96',
    '<%= config.bin %> <%= command.id %> --data linear --teacher-width 640 --student 96 --batch 1',
    '<%= config.bin %> <%= command.id %> --data shifted --teacher-width 320 --student 96 --format csv',
  ];

  static override flags = {
    data: Flags.option({
      options: Object.keys(DATA) as DataKind[],
      default: 'published',
      description:
        'what is learned: published, X = 3·randn + 1.5 and Y = tanh(randn); linear, X = randn and Y = X·W + ' +
        '0.1·randn; shifted, as published with X = 6·randn + 3',
    } as const)(),
    'teacher-width': count({ description: 'width of X [default: 5120, or a quarter]' }),
    student: count({ description: 'width of Y [default: 1536, or a quarter]' }),
    batch: count({ description: 'sequences [default: 4]' }),
    context: count({ description: 'tokens of a sequence [default: 64]' }),
    steps: count({ default: STEPS, description: 'how often both learn' }),
    full: Flags.boolean({
      description: 'the published widths, however long they take',
      exclusive: ['teacher-width', 'student'],
    }),
    seed,
    threads: threads(),
  };

  async run() {
    const { flags } = await this.parse(KvProjectorVerify);
    await this.refuseUnwritable(flags);
    const result = {
      schema: 'minimind/kv-projector-verify@1',
      ...(await verified(flags)),
    } as const;
    return this.answer(flags, result, (each) =>
      verifyProjectorsReport(each, { flat: formatOf(flags) === 'csv' }),
    );
  }
}

interface VerifyFlags extends Pick<OutputFlags, 'quiet' | 'no-color'> {
  readonly data: DataKind;
  readonly 'teacher-width': number | undefined;
  readonly student: number | undefined;
  readonly batch: number | undefined;
  readonly context: number | undefined;
  readonly steps: number;
  readonly full: boolean;
  readonly seed: number;
  readonly threads: number | undefined;
}

async function verified(flags: VerifyFlags): Promise<VerifyProjectorsResult> {
  const { chooseTrainer } = await import('../../runtime/training.js');
  const shown = livePlot({ quiet: flags.quiet, noColor: flags['no-color'] });
  try {
    await shown.show(null, 'starting TensorFlow.js');
    const { trainer } = await chooseTrainer(flags.threads ?? os.availableParallelism());
    await shown.show(null, 'estimating how long it takes');
    const { size, reduced } = await chosenSize(flags, trainer);
    await shown.show(null, 'making data and adapters');
    const start = performance.now();
    const verification = await verify(trainer, {
      ...{ data: flags.data, size, steps: flags.steps, random: manualSeed(flags.seed) },
      watch: (done) => {
        const seconds = (performance.now() - start) / 1000;
        return shown.show(
          lossPlot(done),
          `${statusOf(done, flags.steps, seconds)}${toldOf(reduced)}`,
        );
      },
    });
    return { ...verification, seed: flags.seed, reduced };
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

/** The published widths where they take no longer than a minute, or were asked for. */
async function chosenSize(
  flags: VerifyFlags,
  trainer: Trainer,
): Promise<Pick<VerifyProjectorsResult, 'reduced'> & { readonly size: VerifySize }> {
  const { 'teacher-width': teacherWidth, student: studentWidth, batch, context } = flags;
  const size = sizeOf({
    ...(teacherWidth !== undefined && { teacherWidth }),
    ...(studentWidth !== undefined && { studentWidth }),
    ...(batch !== undefined && { batch }),
    ...(context !== undefined && { context }),
  });
  const isChosen = flags.full || teacherWidth !== undefined || studentWidth !== undefined;
  if (isChosen) return { size, reduced: null };
  const seconds = await estimate(trainer, size, flags.steps, manualSeed(flags.seed));
  if (seconds <= PATIENCE) return { size, reduced: null };
  return {
    size: reduced(size),
    reduced: {
      fromTeacherWidth: size.teacherWidth,
      fromStudentWidth: size.studentWidth,
      estimatedSeconds: seconds,
    },
  };
}
