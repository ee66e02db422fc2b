import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import { joined } from '../../base/text/words.js';
import { BaseCommand } from '../../cli/base-command.js';
import { details, pictureFlags, seed, threads } from '../../cli/flags/flags.js';
import {
  count,
  dropouts,
  learningRate,
  positive,
  tokens,
  widthRatios,
} from '../../cli/flags/value-flags.js';
import { livePlot, progressDisplay } from '../../cli/progress.js';
import type { Changes } from '../../convert/kv-projector/ablations.js';
import { ACTIVATION_NAMES, PUBLISHED_CHANGES } from '../../convert/kv-projector/ablations.js';
import type { ByAdapter } from '../../convert/kv-projector/projector.js';
import type { DataKind } from '../../convert/kv-projector/verify-adapters.js';
import { DATA, OPTIMIZER, STEPS } from '../../convert/kv-projector/verify-adapters.js';
import type { TrainedActivation } from '../../engine/trainer.js';
import {
  ablationsReport,
  lossPlot,
  verifyProjectorsReport,
} from '../../report/kv-projector/kv-projector-verify.js';

const ABLATIONS = { helpGroup: 'ABLATIONS' };

/** Default number of seeds of an ablation. */
const SEEDS = 3;

export default class KvProjectorVerify extends BaseCommand {
  static override summary = 'Train a linear and an elastic adapter and compare their losses.';
  static override description =
    'Repeats the published comparison of both adapter kinds: same data, AdamW, mean squared error, both losses at each ' +
    'step, the steps that each needs to the last loss of the other, and the time of a step. Elastic wins on the published data, linear with --data linear. The published widths take minutes on most ' +
    'machines; without --full, the widths are a quarter or less if training would take over a minute. ' +
    'With a flag of ABLATIONS, it trains the elastic adapter and variants that differ in one part each, with several ' +
    'seeds, at 640 → 192 and 1 × 64 tokens unless other sizes are given.';
  static override baseFlags = pictureFlags;
  static override examples = [
    '<%= config.bin %> <%= command.id %> --teacher-width 320 --student 96',
    '<%= config.bin %> <%= command.id %> --data linear --teacher-width 640 --student 96 --batch 1',
    '<%= config.bin %> <%= command.id %> --data shifted --teacher-width 320 --student 96 --format csv',
    '<%= config.bin %> <%= command.id %> --teacher-width 320 --student 96 --linear-lr 5e-5 --elastic-lr 1e-3 --target-loss 0.5',
    '<%= config.bin %> <%= command.id %> --no-norm',
    '<%= config.bin %> <%= command.id %> --no-norm --activation relu,gelu --ratio 0.5,2 --dropout 0 --teacher-width 160 --student 48 --seeds 2',
  ];

  static override flags = {
    data: Flags.option({
      options: Object.keys(DATA) as DataKind[],
      default: 'published',
      description:
        'training data: published, X = 3·randn + 1.5 and Y = tanh(randn); linear, X = randn and Y = X·W + ' +
        '0.1·randn; shifted, as published with X = 6·randn + 3',
    } as const)(),
    'teacher-width': count({
      description: 'width of X [default: 5120 or a quarter, 640 for ablations]',
    }),
    student: count({ description: 'width of Y [default: 1536 or a quarter, 192 for ablations]' }),
    batch: count({ description: 'sequences [default: 4, 1 for ablations]' }),
    context: tokens({ description: 'tokens of a sequence [default: 64]' }),
    steps: count({ default: STEPS, description: 'training steps' }),
    lr: learningRate({
      description: `learning rate of all adapters [default: ${OPTIMIZER.learningRate}]`,
    }),
    'linear-lr': learningRate({
      description: 'learning rate of linear, as in 5e-5 [default: that of --lr]',
    }),
    'elastic-lr': learningRate({
      description: 'learning rate of elastic, as in 1e-3 [default: that of --lr]',
    }),
    'target-loss': positive({
      description: 'count the steps to this loss, too, as in 0.5',
    }),
    full: Flags.boolean({
      description: 'use the published widths',
      exclusive: ['teacher-width', 'student'],
    }),
    'no-norm': Flags.boolean({ ...ABLATIONS, description: 'train without the norm' }),
    activation: Flags.option({
      ...ABLATIONS,
      options: ACTIVATION_NAMES,
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
      description: 'activations to train, as in relu,gelu',
    } as const)(),
    ratio: widthRatios({ ...ABLATIONS, description: 'hidden width ÷ teacher width, as in 0.5,2' }),
    dropout: dropouts({ ...ABLATIONS, description: 'probabilities of dropout, as in 0,0.2' }),
    teacher: Flags.string({
      ...ABLATIONS,
      helpValue: 'TEACHER',
      description:
        'teacher whose width X has, as NAME:WIDTH or a config; or a .safetensors or .pt file, whose keys are X',
      exclusive: ['teacher-width'],
    }),
    seeds: count({
      ...ABLATIONS,
      description: `number of seeds, from --seed on [default: ${SEEDS}]`,
    }),
    details,
    seed,
    threads: threads(),
  };

  async run() {
    const { flags } = await this.parse(KvProjectorVerify);
    await this.refuseUnwritable(flags);
    const { batch, context, student: studentWidth } = flags;
    const size = { batch, context, studentWidth, teacherWidth: flags['teacher-width'] };
    const changes = changesOf(flags);
    const isAblation = changes !== undefined || flags.teacher !== undefined;
    if (isAblation || flags.seeds !== undefined) {
      refuseFull(flags.full);
      refuseLinearRate(flags['linear-lr']);
      refuseIdleRate(flags.lr, { '--elastic-lr': flags['elastic-lr'] });
      const { verifyAblations } = await import('../../convert/kv-projector/verify-projectors.js');
      const request = {
        ...{ data: flags.data, size, steps: flags.steps, teacher: flags.teacher, seed: flags.seed },
        ...{ count: flags.seeds ?? SEEDS, threads: flags.threads },
        changes: changes ?? PUBLISHED_CHANGES,
        ...{ learningRate: flags['elastic-lr'] ?? flags.lr, targetLoss: flags['target-loss'] },
      };
      const result = await verifyAblations(request, {
        ...progressDisplay(flags),
        warn: (warnings) => this.warnAbout(flags, warnings),
      });
      return this.answer(flags, result, (each) => ablationsReport(each, DATA[each.data]));
    }
    refuseIdleRate(flags.lr, {
      '--linear-lr': flags['linear-lr'],
      '--elastic-lr': flags['elastic-lr'],
    });
    const { verifyProjectors } = await import('../../convert/kv-projector/verify-projectors.js');
    const plot = livePlot({ quiet: flags.quiet, noColor: flags['no-color'] });
    const result = await verifyProjectors(
      { ...flags, size, learningRates: ratesOf(flags), targetLoss: flags['target-loss'] },
      { ...plot, show: (steps, status) => plot.show(lossPlot(steps), status) },
    );
    return this.answer(flags, result, (each) => verifyProjectorsReport(each, DATA[each.data]));
  }
}

/** Learning rates that the flags name. */
function ratesOf(flags: {
  readonly lr?: number | undefined;
  readonly 'linear-lr'?: number | undefined;
  readonly 'elastic-lr'?: number | undefined;
}): Partial<ByAdapter<number>> {
  const { lr, 'linear-lr': linear = lr, 'elastic-lr': elastic = lr } = flags;
  return {
    ...(linear !== undefined && { linear }),
    ...(elastic !== undefined && { elastic }),
  };
}

/** @throws UserError for a learning rate of the linear adapter, which ablations do not train. */
function refuseLinearRate(rate: number | undefined): void {
  if (rate === undefined) return;
  throw usageError(
    '--linear-lr does not apply to ablations',
    `for the elastic adapters, write --lr ${rate}`,
  );
}

/** @throws UserError for --lr if each adapter has its own rate. */
function refuseIdleRate(
  rate: number | undefined,
  own: Readonly<Record<string, number | undefined>>,
): void {
  if (rate === undefined || Object.values(own).includes(undefined)) return;
  const names = joined(Object.keys(own));
  throw usageError(`--lr has no effect beside ${names}`, `leave out --lr, or ${names}`);
}

/** Changes that the flags name; undefined for none. */
function changesOf(flags: {
  readonly ratio?: readonly number[] | undefined;
  readonly dropout?: readonly number[] | undefined;
  readonly activation?: readonly TrainedActivation[] | undefined;
  readonly 'no-norm': boolean;
}): Changes | undefined {
  const { ratio: ratiosGiven, dropout: dropoutsGiven, activation } = flags;
  // oclif leaves a missing switch undefined, although its type is boolean.
  const withoutNorm = Boolean(flags['no-norm']);
  if (!ratiosGiven && !dropoutsGiven && !activation && !withoutNorm) return undefined;
  return {
    ratios: ratiosGiven ?? [],
    dropouts: dropoutsGiven ?? [],
    activations: activation ?? [],
    withoutNorm,
  };
}

/** @throws UserError for the full size: ablations train many times. */
function refuseFull(isFull: boolean): void {
  if (!isFull) return;
  throw usageError(
    '--full does not apply to ablations',
    'for the published widths, write --teacher-width 5120 --student 1536',
  );
}
