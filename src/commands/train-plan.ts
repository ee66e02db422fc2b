import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { formatInteger } from '../base/text/units.js';
import { counted as countedText } from '../base/text/words.js';
import { type FlagsOf, formatOf } from '../cli/base-command.js';
import { details, modelArgument, modelFlags, pictureFlags, sourceOf } from '../cli/flags/flags.js';
import { hardwareOf } from '../cli/flags/hardware-flags.js';
import {
  axesOf,
  givenSettingsOf,
  refuseTwoLengths,
  type TrainPlanFlags,
  trainPlanFlags,
} from '../cli/flags/train-plan-flags.js';
import { planProgramFlags } from '../cli/flags/training-config-flags.js';
import { progressDisplay } from '../cli/progress.js';
import { TrainingCommand } from '../cli/training-config/training-command.js';
import { shardingOf } from '../estimate/fit/fit-request.js';
import { idleZero } from '../estimate/fit/idle-options.js';
import { dividersOf } from '../estimate/fit/parallelism/parallelism.js';
import { countGradients } from '../estimate/training/count-gradients.js';
import type { TrainPlanResult } from '../estimate/training/plan-training.js';
import {
  type AskedAdapters,
  type CountedData,
  contextOf,
  lossScaleOf,
  planParallelism,
  planTraining,
  ratePoints,
  shownPlan,
} from '../estimate/training/plan-training.js';
import type { GivenSettings, TrainingSettings } from '../estimate/training/training-settings.js';
import { trainingSettings } from '../estimate/training/training-settings.js';
import { FIRST_SCALE } from '../estimate/training/underflow.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { readGradients } from '../input/model-input/read-gradients.js';
import { asWhole } from '../input/model-input/whole-model.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import { hintsOf } from '../model/architecture/training-hints.js';
import { requirePositions } from '../model/budget/profile-model.js';
import { configText } from '../report/profile/setting-notes.js';
import { trainPlanReport } from '../report/train-plan-report.js';

/** Maximum rows of CSV: a spreadsheet has 1,048,576. */
const MOST_ROWS = 1_000_000;

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
    const { settings: found, data } = await this.#withData(flags, model, loaded.document);
    const settings = { ...found, placeOf: this.placesIn(found) };
    const cluster = await this.#cluster(flags, settings);
    const axes = axesOf(flags, cluster?.gpus ?? settings.values.gpus ?? 1);
    const request = {
      settings,
      context: flags.context,
      cluster,
      price: flags.price,
      mfu: flags.mfu,
      recompute: flags.recompute,
      sharding: shardingOf(flags, hintsOf(loaded)),
      axes,
      convention: flags.convention,
      adapters: this.#adapters(),
      data,
      gradients: await gradientsOf(flags.gradients, model, settings),
    };
    const dividers = dividersOf(planParallelism(model, request));
    this.mention(flags, name, idleZero(flags.zero, dividers));
    const plan = planTraining(model, request);
    const { mistakes, size, gradients } = plan;
    if (flags['loss-scale'] !== undefined && plan.underflow === null) throw SCALE_OF_FP16;
    if (gradients && gradients.missing > 0) {
      this.note(
        flags,
        `--gradients: ${countedText(gradients.missing, 'tensor')} of the model without a gradient`,
      );
    }
    if (flags.epochs !== undefined && size.length !== 'epochs') throw EPOCHS_OF_DATA;
    const result: TrainPlanResult = {
      schema: 'minimind/train-plan@1',
      file: loaded.file,
      family: loaded.family.name,
      ...shownPlan(plan),
    };
    if (flags.check && mistakes.length > 0) {
      process.exitCode = 1;
      this.note(
        flags,
        `--check: ${mistakes.map(({ place, title }) => `${place}: ${title}`).join('; ')}`,
      );
    }
    if (formatOf(flags) === 'csv' && size.steps > MOST_ROWS) {
      this.note(
        flags,
        `${formatInteger(MOST_ROWS)} of ${formatInteger(size.steps)} steps are listed, evenly spaced`,
      );
    }
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
      document: loaded.document,
      cluster,
      facts,
      argv: this.argv,
      values: settings.values,
      recompute: flags.recompute,
      axes,
    });
    return this.answerEmitted(flags, result, emitted, report);
  }

  /** The adapters of a config, as `fit` counts them; undefined for a training of all weights. */
  #adapters(): AskedAdapters | undefined {
    const { kind = 'training', rank, targets } = this.training?.config.run ?? {};
    if (kind === 'training') return undefined;
    return { kind, rank, targets: targets?.[0] === 'all' ? undefined : targets };
  }

  /** The settings, completed from the data and its tokenizer. Samples have the length of the plan's sequences. */
  async #withData(
    flags: FlagsOf<typeof TrainPlanCommand>,
    model: LanguageModel,
    document: unknown,
  ): Promise<{ settings: TrainingSettings; data?: CountedData }> {
    const given = givenSettingsOf(flags);
    const { data: files, tokenizer } = flags;
    if (files === undefined) {
      const size = tokenizer === undefined ? undefined : await tokenizerSize(tokenizer);
      return { settings: trainingSettings(document, { ...given, ...sizeFlags(size) }) };
    }
    const settings = trainingSettings(document, given);
    const context = contextOf(model, { settings, context: flags.context });
    const { countTokens } = await import('../language/data/read-data.js');
    const found = await countTokens(
      { files, as: flags.as, key: flags.key, tokenizer, context, recipe: 'minimind3' },
      progressDisplay(flags),
    );
    const { samples, counted, longest, highestId, invalidLines, vocabulary } = found;
    if (invalidLines > 0) {
      this.note(flags, `--data: ${countedText(invalidLines, 'invalid line')} left out`);
    }
    const isPacked = settings.values.packing === true;
    const tokens = isPacked ? found.uncut : found.tokens;
    if (tokens === 0) {
      throw usageError(
        `--data: expected samples, found none in ${files.join(', ')}`,
        'see what is in the files: minimind data FILE',
      );
    }
    return {
      settings: trainingSettings(document, {
        ...given,
        ...sizeFlags(vocabulary ?? undefined),
        dataset_tokens: { setting: 'data', value: tokens },
        longest_sample: { setting: 'data', value: longest },
      }),
      data: {
        samples,
        tokens,
        counted,
        positions: isPacked ? tokens : found.positions,
        longest,
        highestId,
        isPacked,
      },
    };
  }

  /** The GPUs; their number is the flag's, else the file's. */
  async #cluster(flags: FlagsOf<typeof TrainPlanCommand>, { values }: TrainingSettings) {
    const { gpu, gpus, hardware, reserve } = flags;
    if (gpu === undefined && hardware === undefined) return undefined;
    const asked = { gpu, gpus: gpus ?? values.gpus, hardware, reserve, quiet: flags.quiet };
    return hardwareOf(
      { ...asked, 'this-machine': false, profile: undefined, remeasure: false } as Parameters<
        typeof hardwareOf
      >[0],
      (choice) => this.note(flags, choice),
    );
  }
}

const SCALE_OF_FP16 = usageError(
  '--loss-scale requires fp16',
  'write --set training.fp16=true, or leave --loss-scale out',
);

const EPOCHS_OF_DATA = usageError(
  '--epochs requires the number of tokens of the data',
  'write --data FILE or --data-tokens 1B',
);

async function tokenizerSize(file: string): Promise<number> {
  const { TextTokenizer } = await import('../language/tokenizer/tokenizer.js');
  return (await TextTokenizer.open(file, { isPlain: true })).vocabulary;
}

const sizeFlags = (size: number | undefined): GivenSettings =>
  size === undefined ? {} : { tokenizer_size: { setting: 'tokenizer', value: size } };

/** Counts of gradients without a scale, at the scale of the settings, and at the first scale of GradScaler. */
function gradientsOf(file: string | undefined, model: LanguageModel, { values }: TrainingSettings) {
  const scales = [...new Set([1, lossScaleOf(values), FIRST_SCALE])];
  if (file === undefined) return undefined;
  return countGradients(file, scales, (take) => readGradients(file, model, take));
}
