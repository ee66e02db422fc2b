import { type Problem, usageError } from '../base/errors.js';
import type { QuickTestAnswer } from '../check/quick-test-result.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { modelArgument, modelWords, pictureFlags, sourceOf } from '../cli/flags/flags.js';
import { type QuickTestFlags, quickTestFlags } from '../cli/flags/quick-test-flags.js';
import {
  checksRequest,
  comparisonRequest,
  exceededLoss,
  trainingRequest,
} from '../cli/flags/quick-test-request.js';
import { exceededLogits } from '../cli/flags/thresholds.js';
import { progressDisplay } from '../cli/progress.js';
import type { ComparedModel } from '../engine/compare/compare-outputs.js';
import {
  checkpointAsConfig,
  checkpointWarnings,
  openFlaggedCheckpoint,
} from '../input/model-input/checkpoint/checkpoint-config.js';
import { configFirst, configOf } from '../input/model-input/checkpoint/required-config.js';
import { verifiedModel } from '../input/model-input/checkpoint/verify-checkpoint.js';
import { locateModel } from '../input/model-input/locate.js';
import type { ModelFile } from '../input/model-input/model-file.js';
import { modelOf } from '../input/model-input/model-file.js';
import { loadModelFile } from '../input/model-input/read-model-file.js';
import { againstReport } from '../report/quick-test/against.js';
import { overfitReport } from '../report/quick-test/overfit-report.js';
import { quickTestReport, traceReport } from '../report/quick-test/quick-test-report.js';

export default class QuickTest extends BaseCommand {
  static override summary = 'Run a model and check that it works.';
  static override description =
    'Builds the model with random weights or those of a checkpoint, runs it and checks: logits are finite and of the ' +
    'right shape, shared tensors are shared, no token sees a later one, sequences of a batch are independent, two ' +
    'runs are equal, and decoding with a cache equals the full forward pass. Then it measures the speed. A model that ' +
    'is too large for this machine runs as a scaled-down proxy, or with --full layer by layer. Exit code 1 when a ' +
    'check fails. --weights runs with matrices of 8 or 4 bits, and reports the loss against float32. --against compares ' +
    'two models instead. --overfit trains the model, or a scaled-down proxy, on one batch: the loss must fall.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'config' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/tiny',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --only cache,cross-check --context 48',
    '<%= config.bin %> <%= command.id %> hybrid/original --trace',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --overfit --lr 3e-3',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --weights int4 --max-kl 0.5',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --against tfjs',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --set model.window_size=64 --against hybrid/tiny',
    '<%= config.bin %> export hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> convert-checkpoint tiny.onnx tiny',
    '<%= config.bin %> <%= command.id %> tiny --save logits.safetensors',
  ];

  static override args = {
    config: modelArgument(),
  };
  static override flags = quickTestFlags;

  async run() {
    const { args, flags, metadata } = await this.parse(QuickTest);
    this.refuseMissingPicture(flags, flags.overfit);
    const isSeedGiven = metadata.flags.seed?.setFromDefault !== true;
    const place = locateModel(await this.modelGiven(flags, args.config, 'hybrid/tiny'));
    const own = checkpointAsConfig(place, sourceOf(flags));
    try {
      const described = own
        ? await modelOf((await configOf(own, undefined, configFirst)).document, flags)
        : await loadModelFile(place, flags);
      await this.warnAbout(flags, described.warnings);
      if (flags.trace) return await this.#trace(flags, described);
      return await this.#run(described, own, flags, isSeedGiven);
    } finally {
      own?.close();
    }
  }

  async #trace(flags: QuickTestFlags, described: ModelFile): Promise<QuickTestAnswer> {
    const { traceModel } = await import('../check/test-forms.js');
    const { ids, batch, context } = flags;
    const result = await traceModel(described, { ids, batch, context });
    const asked = { ...isFlat(flags), modelWords: modelWords(flags) };
    return this.answer(flags, result, (each) => traceReport(each, asked));
  }

  /** @param own The checkpoint that includes the config. */
  async #run(
    described: ModelFile,
    own: Checkpoint | undefined,
    flags: QuickTestFlags,
    isSeedGiven: boolean,
  ): Promise<QuickTestAnswer> {
    await this.refuseUnwritable(flags);
    const checkpoint = own ?? openFlaggedCheckpoint(sourceOf(flags));
    if (checkpoint === undefined && flags['state-dict'] !== undefined) throw dictOfNothing();
    try {
      const held =
        checkpoint && (await verifiedModel(described, checkpoint, progressDisplay(flags)));
      if (held) await this.warnAbout(flags, [...checkpointWarnings(checkpoint), ...held.warnings]);
      const side = { loaded: held?.loaded ?? described, checkpoint };
      if (flags.overfit) return await this.#train(side, flags);
      if (flags.against === undefined) return await this.#check(side, flags, isSeedGiven);
      return await this.#compare(side, flags.against, flags, isSeedGiven);
    } finally {
      if (checkpoint !== own) checkpoint?.close();
    }
  }

  async #check(
    side: ComparedModel,
    flags: QuickTestFlags,
    isSeedGiven: boolean,
  ): Promise<QuickTestAnswer> {
    const { checkModel } = await import('../check/test-forms.js');
    const request = checksRequest(flags, isSeedGiven);
    const { result, output } = await checkModel(side, request, this.#messages(flags));
    if (!result.passed) process.exitCode = 1;
    if (flags.save !== undefined && output) {
      const { saveOutput } = await import('../check/run-quick-test.js');
      await saveOutput(flags.save, flags.force, output);
      this.note(flags, `wrote ${flags.save}`);
    }
    await this.answer(flags, result, (each) => quickTestReport(each, isFlat(flags)));
    this.exceeded(exceededLoss(flags, result));
    return result;
  }

  async #compare(
    side: ComparedModel,
    source: string,
    flags: QuickTestFlags,
    isSeedGiven: boolean,
  ): Promise<QuickTestAnswer> {
    const { compareModel } = await import('../check/test-forms.js');
    const request = comparisonRequest(source, flags, isSeedGiven);
    const result = await compareModel(side, request, this.#messages(flags));
    await this.answer(flags, result, (each) => againstReport(each.against, isFlat(flags)));
    this.exceeded(exceededLogits(flags, result.against.logits));
    return result;
  }

  async #train(side: ComparedModel, flags: QuickTestFlags): Promise<QuickTestAnswer> {
    const { trainModel } = await import('../check/test-forms.js');
    const result = await trainModel(side, trainingRequest(flags), progressDisplay(flags));
    if (!result.overfit.passed) process.exitCode = 1;
    return this.answer(flags, result, overfitReport);
  }

  #messages(flags: QuickTestFlags) {
    const warn = (warnings: readonly Problem[]) => this.warnAbout(flags, warnings);
    return { display: progressDisplay(flags), warn };
  }
}

const isFlat = (flags: QuickTestFlags) => ({ flat: formatOf(flags) === 'csv' });

const dictOfNothing = () =>
  usageError(
    '--state-dict requires a checkpoint',
    'write --checkpoint PATH, or leave --state-dict out',
  );
