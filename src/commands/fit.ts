import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { type FlagsOf, formatOf, givenFlags } from '../cli/base-command.js';
import { fitHardware, hasCard, refuseIdle } from '../cli/fit/fit-hardware.js';
import { isAllFitting, listedFits, listVariants } from '../cli/fit/fit-list.js';
import { fitWithFlags } from '../cli/fit/fit-with-flags.js';
import {
  modelToFit,
  requireTokensOfLine,
  storedTypeNote,
  withoutAdapter,
} from '../cli/fit/model-to-fit.js';
import { fitFlags, fitOptions } from '../cli/flags/fit-flags.js';
import { details, modelFlags, pictureFlags } from '../cli/flags/flags.js';
import {
  hardwareFlags,
  isHardware,
  listedHardware,
  reservedBytes,
} from '../cli/flags/hardware-flags.js';
import { fitProgramFlags } from '../cli/flags/training-config-flags.js';
import { refuseTokensAsFile } from '../cli/line/tokens-as-file.js';
import { TrainingCommand } from '../cli/training-config/training-command.js';
import type { FitLine } from '../cli/undescribed.js';
import { OF_HARDWARE, refuseContradictions } from '../estimate/fit/fit-request.js';
import type { FitResult } from '../estimate/fit/fits.js';
import { PURPOSES } from '../estimate/fit/purpose.js';
import { nameWithoutCount } from '../estimate/hardware/cluster-named.js';
import type { HardwareList } from '../estimate/hardware/gpu.js';
import type { LoadedModel } from '../input/model-input/checkpoint/checkpoint-model.js';
import { modelsIn } from '../input/model-input/locate.js';
import { fitOnCommonHardware } from '../library/fit.js';
import { fitReport, hardwareReport } from '../report/fit/fit-report.js';
import { fitTableReport } from '../report/fit/fit-table-report.js';
import { configText } from '../report/profile/setting-notes.js';

/** Flags of a model on hardware, which a list does not use. */
const NOT_LISTED = [modelFlags, fitFlags, hardwareFlags, fitProgramFlags]
  .flatMap((flags) => Object.keys(flags))
  .filter((name) => name !== 'hardware')
  .concat('for', 'explain', 'check');

export default class Fit extends TrainingCommand {
  static override summary = 'Check whether a model fits on a GPU, and how fast it runs.';
  static override description =
    'Without --gpu: the cards of this machine, or without one (and with --gpu all) a table of common GPUs and machines. With --gpu: the users it serves, the speed of serving and ' +
    'training, what limits them, and the smallest changes that make it fit, as flags. Memory and times have a lower ' +
    'bound, an estimate and an upper bound; --explain derives each. Nothing is run, except that --this-machine ' +
    'measures this machine.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/recommended',
    '<%= config.bin %> <%= command.id %> hybrid/recommended --gpu h100-80gb --users 50',
    '<%= config.bin %> <%= command.id %> hybrid/recommended --gpu h100-80gb --gpus 8',
    '<%= config.bin %> <%= command.id %> hybrid/bench-60m --gpu rtx-4090 --for training --micro-batch 8 --train-tokens 3e9',
    '<%= config.bin %> <%= command.id %> minimind2 --gpu l4 --for serving --qps 100 --prompt-tokens 200 --output-tokens 50 --p95 2s',
    '<%= config.bin %> <%= command.id %> minimind2 --gpu l4 --for serving --qps 100 --prompt-tokens 200 --output-tokens 30 --p95 500ms --token-time 8ms --prefill-time 3ms --batch 32 --price 0.80',
    '<%= config.bin %> <%= command.id %> --list-gpus',
  ];

  static override args = {
    file: Args.string({
      ignoreStdin: true,
      description:
        'a preset, a config, - for standard input, or a checkpoint [default: the model of this folder]; with ' +
        '--list-gpus, words to look for',
    }),
  };
  static override flags = {
    ...modelFlags,
    for: Flags.option({
      options: PURPOSES,
      description:
        'the question: verdict, proposals and --check are about it [default: serving, with a line on the others]',
    } as const)(),
    details,
    explain: Flags.boolean({ description: 'add formula, inputs and source of each figure' }),
    check: Flags.boolean({
      description:
        'exit with 1 unless it fits by the upper bounds, and the GPUs meet load and --min-speed by the estimate',
    }),
    'list-gpus': Flags.boolean({
      description:
        'list the GPUs and machines with a name; a word selects, as in fit --list-gpus 4090',
      exclusive: NOT_LISTED,
    }),
    accuracy: Flags.boolean({
      description: 'show how near the estimates are to published runs',
      exclusive: [...NOT_LISTED, 'hardware', 'list-gpus'],
    }),
    ...hardwareFlags,
    ...fitFlags,
    ...fitProgramFlags,
  };

  protected override async checkFlags(flags: FlagsOf<typeof Fit>, { file }: { file?: string }) {
    if (flags['list-gpus']) await listedHardware(file, flags.hardware);
    if (flags['list-gpus'] || flags.accuracy) return;
    refuseContradictions(fitOptions(flags), flags.gpu);
    refuseIdle(flags);
  }

  protected override async checkModel(flags: FlagsOf<typeof Fit>, args: { file?: string }) {
    if (flags['list-gpus'] || flags.accuracy) return;
    await requireTokensOfLine(args, flags, fitOptions(flags));
  }

  /** The model as the user wrote it. */
  #named: string | undefined;

  async run() {
    const variants = listVariants(this.argv);
    if (variants.length > 1) return this.#list(variants);
    const parsed = await this.parse(Fit);
    const { args, flags } = parsed;
    refuseTokensAsFile(flags.output, this.argv);
    if (flags.accuracy) {
      const { fitAccuracy } = await import('../estimate/fit/accuracy.js');
      const { accuracyReport } = await import('../report/fit/fit-accuracy-report.js');
      return this.answer(flags, fitAccuracy(args.file), accuracyReport);
    }
    if (flags['list-gpus']) {
      const known = await listedHardware(args.file, flags.hardware);
      const result: HardwareList = { schema: 'minimind/gpus@1', ...known };
      return this.answer(flags, result, hardwareReport);
    }
    if (args.file === undefined && isHardware(flags) && modelsIn('.').length === 0) {
      const { asksAboutAll } = await import('../cli/fit/largest-models.js');
      if (asksAboutAll(givenFlags(parsed))) return this.#largest(flags);
    }
    const given = await this.modelGiven(flags, args.file, 'minimind2-small --gpu h100');
    const file = await withoutAdapter(given, (text) => this.note(flags, text));
    this.#named = file;
    refuseIdle(flags);
    let loaded: LoadedModel;
    try {
      loaded = await modelToFit(file, flags);
    } catch (error) {
      return this.#ofWeights(error, file, [parsed]);
    }
    if (loaded.checkpoint) this.note(flags, configText(loaded.checkpoint.config));
    await this.warnAbout(flags, loaded.warnings);
    const typeNote = storedTypeNote(loaded, flags);
    if (typeNote !== undefined) this.note(flags, typeNote);
    if (!isHardware(flags)) {
      // Programs read an answer that does not depend on the machine.
      if (flags.gpu === undefined && formatOf(flags) === 'table' && (await hasCard())) {
        return this.#on(loaded, { ...flags, gpu: 'auto' }, [...this.argv, '--gpu', 'auto']);
      }
      const reserved = { ...fitOptions(flags), reserveBytes: reservedBytes(flags) };
      const result = fitOnCommonHardware(loaded, reserved);
      const words =
        args.file === undefined
          ? [loaded.file, ...this.argv]
          : this.argv.map((word) => (word === args.file ? loaded.file : word));
      return this.answer(flags, result, (each) => fitTableReport(each, words));
    }
    return this.#on(loaded, flags, this.argv);
  }

  /** A model on hardware that the flags name. @param argv Words of the command. */
  async #on(loaded: LoadedModel, flags: FlagsOf<typeof Fit>, argv: readonly string[]) {
    const { result, remarks, notes, hardware } = await fitWithFlags(loaded, flags, (choice) =>
      this.note(flags, choice),
    );
    for (const { problem, isNote } of remarks) {
      if (isNote) this.mention(flags, problem.file, problem.message);
      else await this.warnAbout(flags, [problem]);
    }
    for (const text of notes) this.note(flags, text);
    if (flags.check && result.doubts.length > 0) process.exitCode = 1;
    const gpuName = flags.gpu === undefined ? undefined : nameWithoutCount(flags.gpu, hardware);
    const report = (each: FitResult) =>
      fitReport(each, { explain: flags.explain, argv, gpuName, ofHardware: OF_HARDWARE });
    if (flags.emit === undefined) return this.answer(flags, result, report);
    const { document, file: model, model: layers } = loaded;
    const facts = { model: this.#named ?? model, division: flags.zero, ...this.emittedConfig };
    const { emittedOfFit } = await import('../cli/training-config/emit-answer.js');
    const emitted = await emittedOfFit(flags.emit, result, { document, layers, facts, argv });
    return this.answerEmitted(flags, result, emitted, report);
  }

  /** The largest models for the hardware. */
  async #largest(flags: FlagsOf<typeof Fit>) {
    const { largestOn } = await import('../cli/fit/largest-models.js');
    const { fitModelsReport } = await import('../report/fit/fit-models-report.js');
    const { hardware, options } = await fitHardware(flags, (text) => this.note(flags, text));
    const result = await largestOn(hardware, options, flags);
    return this.answer(flags, result, (each) => fitModelsReport(each, this.argv));
  }

  /**
   * The answer about a model that no family describes.
   * @param lines The flags, of a list those of each value.
   * @throws `error` for another reason.
   */
  async #ofWeights(error: unknown, file: string, lines: readonly ParsedFit[]) {
    const { fitOfWeights } = await import('../cli/undescribed.js');
    const { weightsFitReport } = await import('../report/weights-report.js');
    const [{ flags }] = lines as [ParsedFit];
    this.refuseEmit(flags, 'a model of a kind that is not described');
    const result = await fitOfWeights(error, file, lines, (text) => this.note(flags, text));
    const isCertain = result.rows.some(({ inference }) => inference === 'fits');
    if (flags.check && !isCertain) process.exitCode = 1;
    return this.answer(flags, result, weightsFitReport);
  }

  /** The same question for each value of a list. */
  async #list(variants: readonly (readonly string[])[]) {
    const parsed = [];
    const line = this.argv;
    for (const words of variants) parsed.push(await this.parse(Fit, [...words]));
    // A page and proposals name the line of the user, not its last variant.
    this.argv = line;
    const [{ args, flags }] = parsed as [(typeof parsed)[0]];
    const file = await this.modelGiven(flags, args.file, 'minimind2-small --gpu h100,a100');
    this.refuseEmit(flags, 'a list');
    const all = parsed.map((each) => each.flags);
    let loaded: LoadedModel;
    try {
      loaded = await modelToFit(file, flags);
    } catch (error) {
      return this.#ofWeights(error, file, parsed);
    }
    await this.warnAbout(flags, loaded.warnings);
    const { result, warnings } = await listedFits(loaded, all, (choice) =>
      this.note(flags, choice),
    );
    await this.warnAbout(flags, warnings);
    if (flags.check && !isAllFitting(result)) process.exitCode = 1;
    const { fitListReport } = await import('../report/fit/fit-list-report.js');
    return this.answer(flags, result, fitListReport);
  }
}

type ParsedFit = FitLine & { readonly flags: FlagsOf<typeof Fit> };
