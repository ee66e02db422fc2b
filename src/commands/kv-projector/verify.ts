import * as Flags from '@oclif/core/flags';
import { BaseCommand, formatOf } from '../../cli/base-command.js';
import { count, seed, threads, tokens } from '../../cli/flags.js';
import type { DataKind } from '../../kv-projector/verify-adapters.js';
import { DATA, STEPS } from '../../kv-projector/verify-adapters.js';
import { lossPlot, verifyProjectorsReport } from '../../report/kv-projector/kv-projector-verify.js';

export default class KvProjectorVerify extends BaseCommand {
  static override summary = 'Train a linear and an elastic adapter side by side.';
  static override description =
    'The published comparison of how fast the two kinds of adapters learn: the same data, AdamW and mean squared ' +
    'error, the losses of both at each step. On the published data the elastic one wins; --data linear shows where the ' +
    'linear one does. With the published widths, which take minutes on most machines, it shows the published losses ' +
    'beside; without --full, widths are a quarter of that, or less, when they would take over a minute.';
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
    context: tokens({ description: 'tokens of a sequence [default: 64]' }),
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
    const { verifyProjectors } = await import('../../kv-projector/verify-projectors.js');
    const { livePlot } = await import('../../cli/progress.js');
    const plot = livePlot({ quiet: flags.quiet, noColor: flags['no-color'] });
    const { batch, context, student: studentWidth } = flags;
    const size = { batch, context, studentWidth, teacherWidth: flags['teacher-width'] };
    const result = await verifyProjectors(
      { ...flags, size },
      { ...plot, show: (steps, status) => plot.show(lossPlot(steps), status) },
    );
    return this.answer(flags, result, (each) =>
      verifyProjectorsReport(each, { flat: formatOf(flags) === 'csv', about: DATA[each.data] }),
    );
  }
}
