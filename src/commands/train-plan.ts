import * as Flags from '@oclif/core/flags';
import type { FlagsOf } from '../cli/base-command.js';
import { details, modelArgument, modelFlags, pictureFlags, sourceOf } from '../cli/flags/flags.js';
import {
  refuseTwoLengths,
  type TrainPlanFlags,
  trainPlanFlags,
} from '../cli/flags/train-plan-flags.js';
import {
  MOST_ROWS,
  refuseUnused,
  trainPlanNotes,
  trainPlanRequest,
} from '../cli/flags/train-plan-request.js';
import { planProgramFlags } from '../cli/flags/training-config-flags.js';
import { TrainingCommand } from '../cli/training-config/training-command.js';
import { idleZero } from '../estimate/fit/idle-options.js';
import { dividersOf } from '../estimate/fit/parallelism/parallelism.js';
import type { TrainPlanResult } from '../estimate/training/plan-training.js';
import {
  planParallelism,
  planTraining,
  ratePoints,
  shownPlan,
} from '../estimate/training/plan-training.js';
import type { AskedAdapters } from '../estimate/training/planned-fit.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { asWhole } from '../input/model-input/whole-model.js';
import { requirePositions } from '../model/budget/profile-model.js';
import { configText } from '../report/profile/setting-notes.js';
import { trainPlanReport } from '../report/train-plan-report.js';

export default class TrainPlanCommand extends TrainingCommand {
  static override summary = 'Plan a training: steps, learning rate, memory, mistakes.';
  static override description =
    'Reads the training: section of the file and the flags. Shows optimizer steps, micro-steps and epochs, the ' +
    'learning rate, the groups of AdamW, checkpoints, memory, and with --gpu time and cost. --data counts the tokens of ' +
    'files, for epochs, padding and ids. Checks the settings for mistakes that ruin a run, each with what to write. --format csv has the learning rate of each step. Exit code 1 ' +
    'with --check if there is a mistake.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> minimind2-small --tokens 10B --batch 32 --accumulation 8 --lr 5e-4 --warmup 1%',
    '<%= config.bin %> <%= command.id %> minimind2 --tokens 2B --schedule wsd --decay 20% --gpu h100 --gpus 8 --price 2.50',
    '<%= config.bin %> <%= command.id %> minimind2-small --epochs 2 --data-tokens 400M',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --steps 1000 --schedule minimind --format csv',
  ];

  static override args = {
    file: modelArgument(),
  };
  static override flags = {
    ...modelFlags,
    details,
    check: Flags.boolean({ description: 'exit with 1 if there is a mistake' }),
    ...trainPlanFlags,
    ...planProgramFlags,
  };

  /** @throws UserError for two lengths. */
  protected override checkFlags(flags: TrainPlanFlags): void {
    refuseTwoLengths(flags);
  }

  protected override async checkModel(
    flags: FlagsOf<typeof TrainPlanCommand>,
    args: { readonly file?: string },
  ) {
    const { context } = flags;
    if (context === undefined) return;
    const { modelOfLine } = await import('../cli/model-check.js');
    const loaded = await modelOfLine(args, sourceOf(flags));
    if (loaded !== undefined) requirePositions(context, loaded.model.positions);
  }

  async run() {
    const { args, flags } = await this.parse(TrainPlanCommand);
    const file = await this.modelGiven(flags, args.file, 'minimind2-small --tokens 10B');
    const source = await openModelSource(file, sourceOf(flags));
    const loaded = asWhole(await source.model(flags.set));
    if (loaded.checkpoint) this.note(flags, configText(loaded.checkpoint.config));
    await this.warnAbout(flags, loaded.warnings);
    const { model, file: name } = loaded;
    const asked = await trainPlanRequest(loaded, flags, (text) => this.note(flags, text));
    const settings = { ...asked.settings, placeOf: this.placesIn(asked.settings) };
    const request = { ...asked, settings, adapters: this.#adapters() };
    const dividers = dividersOf(planParallelism(model, request));
    this.mention(flags, name, idleZero(flags.zero, dividers));
    const plan = planTraining(model, request);
    refuseUnused(flags, plan);
    for (const text of trainPlanNotes(flags, plan)) this.note(flags, text);
    if (flags.check && plan.mistakes.length > 0) process.exitCode = 1;
    const result: TrainPlanResult = {
      schema: 'minimind/train-plan@1',
      file: name,
      family: loaded.family.name,
      ...shownPlan(plan),
    };
    const report = (each: TrainPlanResult) =>
      trainPlanReport(each, {
        rates: () => ratePoints(plan, MOST_ROWS),
        isLong: flags.details,
        argv: this.argv,
      });
    if (flags.emit === undefined) return this.answer(flags, result, report);
    const isOfEpochs = this.training?.counted.has('epochs') ?? false;
    const facts = { model: name, division: flags.zero, isOfEpochs, ...this.emittedConfig };
    const { emittedOfPlan } = await import('../cli/training-config/emit-answer.js');
    const emitted = await emittedOfPlan(flags.emit, result, {
      ...request,
      document: loaded.document,
      facts,
      argv: this.argv,
      values: settings.values,
    });
    return this.answerEmitted(flags, result, emitted, report);
  }

  /** The adapters of a config, as `fit` counts them; undefined for a training of all weights. */
  #adapters(): AskedAdapters | undefined {
    const { kind = 'training', rank, targets } = this.training?.config.run ?? {};
    if (kind === 'training') return undefined;
    return { kind, rank, targets: targets?.[0] === 'all' ? undefined : targets };
  }
}
