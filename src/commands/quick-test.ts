import os from 'node:os';
import * as Flags from '@oclif/core/flags';
import { type Problem, usageError } from '../base/errors.js';
import { readText } from '../base/files/read-file.js';
import type { CheckSetting } from '../check/checks.js';
import { CHECK_NAMES, checksFor, isRandomCheck, readersOf } from '../check/checks.js';
import type {
  AgainstResult,
  OverfitResult,
  QuickTestAnswer,
  QuickTestResult,
  TraceResult,
} from '../check/quick-test-result.js';
import type { QuickTest as QuickTestData, QuickTestRun } from '../check/run-quick-test.js';
import type { TestedModel } from '../check/test-context.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { FlagsOf } from '../cli/base-command.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import {
  compute,
  DEVICE_CHOICES,
  details,
  device,
  ENGINE_CHOICES,
  modelArgument,
  offline,
  readAs,
  savedFile,
  seed,
  set,
  sourceOf,
  stateDict,
  threads,
} from '../cli/flags/flags.js';
import { exceededLogits, logitLimits } from '../cli/flags/thresholds.js';
import { count, LIST, learningRate, tokens, weightForm } from '../cli/flags/value-flags.js';
import { progressDisplay } from '../cli/progress.js';
import type { ComparedModel, EngineTarget } from '../engine/compare/compare-outputs.js';
import type { TokenIds } from '../engine/engine.js';
import {
  checkpointAsConfig,
  checkpointWarnings,
  configFirst,
  configOf,
  openFlaggedCheckpoint,
} from '../input/model-input/checkpoint-config.js';
import type { ModelFile } from '../input/model-input/model-file.js';
import { loadModelFile, modelOf } from '../input/model-input/model-file.js';
import { verifiedModel } from '../input/model-input/verify-checkpoint.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import { againstReport } from '../report/quick-test/against.js';
import { overfitReport } from '../report/quick-test/overfit-report.js';
import { quickTestReport, traceReport } from '../report/quick-test/quick-test-report.js';

const OF_CHECKS = ['only', 'cross-check', 'repeat', 'output-tokens'];
const OF_ENGINES = ['engine', 'device', 'compute'];

/** Flags of a run, unused by --trace. */
const NOT_TRACED = [
  ...['checkpoint', 'state-dict', ...OF_CHECKS, 'seed', ...OF_ENGINES],
  ...['threads', 'full', 'save', 'against', 'weights'],
];

/** Flags unused by --overfit, which trains in float32 on the CPU. */
const NOT_TRAINED = [...OF_CHECKS, ...OF_ENGINES, 'save', 'against', 'weights', 'trace'];

/** Flags unused by --against. */
const NOT_COMPARED = [...OF_CHECKS, 'save', 'trace', 'weights'];

/** Defaults of --overfit. */
const STEPS = 40;
const SECONDS = 20;

export default class QuickTest extends BaseCommand {
  static override summary = 'Run a model and check that it works.';
  static override description =
    'Builds the model with random weights or those of a checkpoint, runs it and checks: logits are finite and of the ' +
    'right shape, shared tensors are shared, no token sees a later one, sequences of a batch are independent, two ' +
    'runs are equal, and decoding with a cache equals the full forward pass. Then it measures the speed. A model that ' +
    'is too large for this machine runs as a scaled-down proxy, or with --full layer by layer. Exit code 1 when a ' +
    'check fails. --weights runs with matrices of 8 or 4 bits, and reports the loss against float32. --against compares ' +
    'two models instead. --overfit trains the model, or a scaled-down proxy, on one batch: the loss must fall.';
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
  static override flags = {
    set,
    family: readAs,
    offline,
    checkpoint: Flags.string({
      helpValue: 'PATH',
      description: 'a file, an index or a folder with the weights [default: random weights]',
    }),
    'state-dict': stateDict,
    batch: count({ description: 'sequences at a time [default: 1]' }),
    context: tokens({ description: 'tokens of a sequence [default: 512, or all positions]' }),
    ids: Flags.string({
      helpValue: 'IDS',
      description: 'token ids: 1,2,3, or a JSON file [[5, 17, 3], …] [default: random ids]',
    }),
    seed,
    only: Flags.option({
      options: CHECK_NAMES,
      ...LIST,
      description: 'run only these checks',
    } as const)(),
    'cross-check': Flags.boolean({ description: 'also compare with the other engine' }),
    'output-tokens': tokens({
      description:
        'last tokens of --context to generate one by one, with a cache and without [default: 32, at most half]',
    }),
    repeat: count({ description: 'timed runs [default: those of half a second]' }),
    engine: Flags.option({
      options: ENGINE_CHOICES,
      default: 'auto',
      description:
        'engine that runs the model; auto takes the first that passes its self-check: onnx, then tfjs with ' +
        'tfjs-node-gpu, tfjs-node, WebAssembly, JavaScript',
    } as const)(),
    device: device(),
    compute: compute('type of matrix products; with f16 the error against f32 is reported'),
    weights: weightForm(),
    threads: threads(),
    full: Flags.boolean({ description: 'run the whole model layer by layer, at any size' }),
    details,
    save: savedFile({
      description: 'write logits and the output of every block to a safetensors file',
      example: 'logits.safetensors',
    }),
    against: Flags.string({
      helpValue: 'OTHER',
      description:
        'compare with a checkpoint, a config, or the same model in float32 on another engine (tfjs, onnx) or ' +
        'device (cpu, cuda, webgpu, …)',
      exclusive: NOT_COMPARED,
    }),
    ...logitLimits('against', 'weights'),
    overfit: Flags.boolean({
      description:
        'train on one batch for some seconds on the CPU, with the training section of the file: the loss must fall',
      exclusive: NOT_TRAINED,
    }),
    steps: count({
      description: 'with --overfit: training steps [default: 40]',
      dependsOn: ['overfit'],
    }),
    seconds: count({
      description: 'with --overfit: most seconds of training [default: 20]',
      dependsOn: ['overfit'],
    }),
    lr: learningRate({
      description: 'with --overfit: instead of that of the file [default: 0.001]',
      dependsOn: ['overfit'],
    }),
    trace: Flags.boolean({
      description: 'print the shape of every step and run nothing',
      exclusive: NOT_TRACED,
    }),
  };

  /** Whether the command line has --seed. */
  #isSeeded = false;

  async run() {
    const { args, flags, metadata } = await this.parse(QuickTest);
    this.#isSeeded = metadata.flags.seed?.setFromDefault !== true;
    const config = await this.modelGiven(flags, args.config, 'hybrid/tiny');
    const own = checkpointAsConfig(config, sourceOf(flags));
    try {
      const described = own
        ? await modelOf((await configOf(own, undefined, configFirst(own))).document, flags)
        : await loadModelFile(config, flags);
      await this.warnAbout(flags, described.warnings);
      if (flags.trace) return await this.#trace(flags, described);
      return await this.#test(described, own, flags);
    } finally {
      own?.close();
    }
  }

  /** @param own The checkpoint that includes the config. */
  async #test(
    described: ModelFile,
    own: Checkpoint | undefined,
    flags: TestFlags,
  ): Promise<QuickTestAnswer> {
    await this.refuseUnwritable(flags);
    const checkpoint = own ?? openFlaggedCheckpoint(sourceOf(flags));
    if (checkpoint === undefined && flags['state-dict'] !== undefined) throw DICT_OF_CHECKPOINT;
    try {
      const held =
        checkpoint && (await verifiedModel(described, checkpoint, progressDisplay(flags)));
      if (held) await this.warnAbout(flags, [...checkpointWarnings(checkpoint), ...held.warnings]);
      const loaded = held?.loaded ?? described;
      if (this.#isSeeded && checkpoint && flags.against === undefined && isSettled(flags)) {
        await this.warnAbout(flags, [idleSeed(loaded)]);
      }
      if (flags.overfit) return await this.#overfit(flags, loaded, checkpoint);
      if (flags.against !== undefined) {
        return await this.#compare(flags, { loaded, checkpoint }, flags.against);
      }
      const { test, output } = await tested(loaded, checkpoint, flags);
      if (!test.passed) process.exitCode = 1;
      if (flags.save !== undefined && output) await this.#save(flags, flags.save, output);
      const result: QuickTestResult = {
        schema: 'minimind/quick-test@1',
        file: loaded.file,
        family: loaded.family.name,
        checkpoint: checkpoint?.path ?? null,
        ...test,
      };
      await this.answer(flags, result, (each) =>
        quickTestReport(each, { flat: formatOf(flags) === 'csv' }),
      );
      this.exceeded(exceededLoss(flags, test));
      return result;
    } finally {
      if (checkpoint !== own) checkpoint?.close();
    }
  }

  async #compare(flags: TestFlags, own: ComparedModel, source: string): Promise<QuickTestAnswer> {
    const otherWay = wayOf(source, flags);
    const { compareTwoModels, openComparedModel } = await import(
      '../engine/compare/compare-outputs.js'
    );
    const display = progressDisplay(flags);
    const opened = otherWay ? undefined : await openComparedModel(source, own, display);
    try {
      const other = opened ?? own;
      await this.warnAbout(flags, opened?.warnings ?? []);
      if (this.#isSeeded && flags.ids !== undefined && own.checkpoint && other.checkpoint) {
        await this.warnAbout(flags, [idleSeed(own.loaded)]);
      }
      const { shorterContext } = await import('../engine/compare/compare-outputs.js');
      const ids = await idsOf(flags, shorterContext(own.loaded.model, other.loaded.model));
      const wishes = { ...flags, device: flags.device ?? 'auto', ids, otherWay } as const;
      const against = await compareTwoModels(own, other, wishes, display);
      const { file, family, checkpoint } = against.own;
      const { batch, context } = against;
      const result: AgainstResult = {
        schema: 'minimind/quick-test@1',
        ...{ file, family, checkpoint, batch, context, against },
      };
      await this.answer(flags, result, (each) =>
        againstReport(each.against, { flat: formatOf(flags) === 'csv' }),
      );
      this.exceeded(exceededLogits(flags, against.logits));
      return result;
    } finally {
      opened?.checkpoint?.close();
    }
  }

  async #overfit(
    flags: TestFlags,
    loaded: ModelFile,
    checkpoint: Checkpoint | undefined,
  ): Promise<QuickTestAnswer> {
    const { overfit } = await import('../check/overfit/overfit.js');
    const shown = progressDisplay(flags).steps();
    try {
      const trained = await overfit({
        ...(await testedModel(loaded, checkpoint, flags)),
        steps: flags.steps ?? STEPS,
        seconds: flags.seconds ?? SECONDS,
        learningRate: flags.lr,
        full: flags.full,
        threads: flags.threads ?? os.availableParallelism(),
        watch: shown.doing,
      });
      const { batch, context } = trained;
      const result: OverfitResult = {
        schema: 'minimind/quick-test@1',
        file: loaded.file,
        family: loaded.family.name,
        checkpoint: checkpoint?.path ?? null,
        batch,
        context,
        overfit: trained,
      };
      shown.end();
      if (!result.overfit.passed) process.exitCode = 1;
      await this.answer(flags, result, overfitReport);
      return result;
    } finally {
      shown.end();
    }
  }

  async #trace(flags: TestFlags, { file, family, model }: ModelFile) {
    const { inputSize } = await import('../engine/token-ids.js');
    const { traceOf } = await import('../model/budget/trace/trace.js');
    const { lossStepsOf } = await import('../model/budget/trace/loss-steps.js');
    const size = inputSize({ ...flags, ids: await idsOf(flags, model) }, model);
    const result: TraceResult = {
      schema: 'minimind/quick-test@1',
      file,
      family: family.name,
      batch: size.batch,
      context: size.tokens,
      trace: traceOf(model, size),
      loss: lossStepsOf(model, size),
    };
    return this.answer(flags, result, (each) =>
      traceReport(each, { flat: formatOf(flags) === 'csv' }),
    );
  }

  async #save(
    flags: TestFlags,
    file: string,
    output: NonNullable<QuickTestRun['output']>,
  ): Promise<void> {
    const { saveOutput } = await import('../check/run-quick-test.js');
    await saveOutput(file, flags.force, output);
    this.note(flags, `wrote ${file}`);
  }
}

const DICT_OF_CHECKPOINT = usageError(
  '--state-dict requires a checkpoint',
  'write --checkpoint PATH, or leave --state-dict out',
);

type TestFlags = FlagsOf<typeof QuickTest>;

/** Whether nothing random is left in a test of the weights of a checkpoint. */
const isSettled = ({ ids, only, overfit }: TestFlags): boolean =>
  ids !== undefined && !overfit && only !== undefined && !only.some(isRandomCheck);

/** Scripts write --seed for all models. */
const idleSeed = ({ file }: ModelFile): Problem => ({
  severity: 'warning',
  file,
  message:
    '--seed is not used: the weights are those of the checkpoint, and the tokens those of --ids',
});

/** Another engine or device for the same model, in float32; undefined when `source` is a file. */
function wayOf(source: string, { engine }: TestFlags): EngineTarget | undefined {
  const isOne = <T extends string>(names: readonly T[]) => names.find((each) => each === source);
  const name = isOne(ENGINE_CHOICES.filter((each) => each !== 'auto'));
  if (name) return { engine: name, device: 'auto', compute: 'f32' };
  const kind = isOne(DEVICE_CHOICES.filter((each) => each !== 'auto'));
  return kind && { engine, device: kind, compute: 'f32' };
}

/** Lines about the limits that the loss of quantized weights exceeds. A loss that was not measured meets no limit. */
function exceededLoss(flags: TestFlags, { checks }: QuickTestData): string[] {
  if (flags.weights === undefined) return [];
  const loss = checks.find(({ details }) => details?.quantized)?.details?.quantized?.logits;
  const unmeasured = {
    klDivergence: Number.NaN,
    topAgreement: Number.NaN,
    relativeDifference: Number.NaN,
  };
  return exceededLogits(flags, loss ?? unmeasured);
}

/** The model, its weights and its input, as tests and trainings need them. */
async function testedModel(
  { family, document, model }: ModelFile,
  checkpoint: Checkpoint | undefined,
  flags: TestFlags,
): Promise<TestedModel> {
  const { checkpointWeights } = await import('../engine/weights/weights.js');
  const { batch, context, seed } = flags;
  const weights = checkpoint && checkpointWeights(model, checkpoint);
  return { family, document, model, weights, ids: await idsOf(flags, model), batch, context, seed };
}

/** Loads the code that runs models. */
async function tested(
  loaded: ModelFile,
  checkpoint: Checkpoint | undefined,
  flags: TestFlags,
): Promise<QuickTestRun> {
  refuseIdle(flags);
  const { quickTest } = await import('../check/run-quick-test.js');
  const shown = progressDisplay(flags).steps();
  try {
    return await quickTest({
      ...(await testedModel(loaded, checkpoint, flags)),
      repeats: flags.repeat,
      outputTokens: flags['output-tokens'],
      checks: checksFor({
        only: flags.only,
        isCrossChecked: flags['cross-check'],
        isReduced: flags.compute !== 'f32',
        isQuantized: flags.weights !== undefined,
      }),
      full: flags.full,
      keepsOutput: flags.save !== undefined,
      engine: flags.engine,
      // Quantized products have been measured on the CPU only.
      device: flags.device ?? (flags.weights ? 'cpu' : 'auto'),
      compute: flags.compute,
      weightForm: flags.weights,
      threads: flags.threads ?? os.availableParallelism(),
      watch: shown.doing,
      notice: shown.say,
    });
  } finally {
    shown.end();
  }
}

/** More than any test uses: two million ids or more. */
const IDS_READ = { most: 16_000_000, suggestion: 'give fewer sequences' };

/** Ids from the command line, or from the given file. */
async function idsOf(
  { ids }: Pick<TestFlags, 'ids'>,
  model: LanguageModel,
): Promise<TokenIds | undefined> {
  if (ids === undefined) return undefined;
  const { idLimitsOf, listedIds, parseIds } = await import('../engine/token-ids.js');
  const limits = idLimitsOf(model);
  const listed = listedIds(ids, limits.vocabulary);
  if (listed) return parseIds(JSON.stringify([listed]), '--ids', limits);
  return parseIds(await readText(ids, IDS_READ), ids, limits);
}

/** Flags that only some checks read. */
const FLAGS_OF_CHECKS = {
  'output-tokens': 'outputTokens',
  repeat: 'repeats',
} as const satisfies Record<string, CheckSetting>;

/** @throws UserError for a flag of a check that does not run. */
function refuseIdle({ only, ...flags }: TestFlags): void {
  if (only === undefined) return;
  for (const [name, setting] of Object.entries(FLAGS_OF_CHECKS)) {
    if (flags[name as keyof typeof FLAGS_OF_CHECKS] === undefined) continue;
    const readers = readersOf(setting);
    if (readers.some((check) => only.includes(check))) continue;
    throw usageError(
      `--${name} requires the check ${readers.join(' or ')}`,
      `write --only ${[...only, 'timing'].join(',')}, or leave --${name} out`,
    );
  }
}
