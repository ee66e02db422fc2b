import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../../cli/base-command.js';
import { count, details, seed, threads, tokens } from '../../cli/flags.js';
import type { DataKind } from '../../kv-projector/verify-adapters.js';
import { DATA, STEPS } from '../../kv-projector/verify-adapters.js';
import { lossPlot, verifyProjectorsReport } from '../../report/kv-projector/kv-projector-verify.js';

export default class KvProjectorVerify extends BaseCommand {
  static override summary = 'Train a linear and an elastic adapter and compare their losses.';
  static override description =
    'Repeats the published comparison of both adapter kinds: same data, AdamW, mean squared error, both losses at each ' +
    'step. Elastic wins on the published data, linear with --data linear. The published widths take minutes on most ' +
    'machines; without --full, the widths are a quarter or less if training would take over a minute.';
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
        'training data: published, X = 3·randn + 1.5 and Y = tanh(randn); linear, X = randn and Y = X·W + ' +
        '0.1·randn; shifted, as published with X = 6·randn + 3',
    } as const)(),
    'teacher-width': count({ description: 'width of X [default: 5120, or a quarter]' }),
    student: count({ description: 'width of Y [default: 1536, or a quarter]' }),
    batch: count({ description: 'sequences [default: 4]' }),
    context: tokens({ description: 'tokens of a sequence [default: 64]' }),
    steps: count({ default: STEPS, description: 'training steps' }),
    full: Flags.boolean({
      description: 'use the published widths',
      exclusive: ['teacher-width', 'student'],
    }),
    details,
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
    return this.answer(flags, result, (each) => verifyProjectorsReport(each, DATA[each.data]));
  }
}
