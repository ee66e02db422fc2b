/** The settings of a training as flags of `fit` and `train-plan`. */

import { shortCount } from '../../base/text/units.js';
import { SHARDINGS } from '../../estimate/fit/training/training-setting.js';
import { parseSchedule } from '../../estimate/training/schedules.js';
import { gpusNeeded, runGpus, runReplicas } from '../../input/training-config/findings.js';
import type { TrainingConfig } from '../../input/training-config/training-config.js';
import type {
  RunField,
  StateDivision,
  TrainingRun,
} from '../../input/training-config/training-run.js';
import type { Precision } from '../../model/budget/optimizers.js';

/** Commands that count a training. */
export type TrainingCommandName = 'fit' | 'train-plan';

/** A flag with its value, and the settings that it counts. */
export interface TrainingWord {
  readonly flag: string;
  /** Undefined for a flag without a value. */
  readonly value?: string;
  readonly of: readonly RunField[];
}

/** Flags of which one that is given leaves out the others. */
const EXCLUSIVE: readonly (readonly string[])[] = [
  ['global-batch', 'accumulation'],
  ['tokens', 'steps', 'epochs'],
  ['batch', 'users'],
];

/** Flags of `fit` that count only on named hardware. */
const OF_HARDWARE: ReadonlySet<string> = new Set([
  ...['gpus', 'tensor-parallel', 'pipeline-parallel', 'sequence-parallel', 'zero'],
  ...['context-parallel', 'expert-parallel', 'expert-tensor-parallel'],
  ...['global-batch', 'accumulation', 'train-tokens', 'offload'],
]);

/** Settings of the command line, next to those of the config. */
export interface LineFacts {
  /** Names of its flags. */
  readonly given: ReadonlySet<string>;
  /** Whether it names hardware. */
  readonly hasHardware: boolean;
  /** Its number of GPUs; undefined where the config decides. */
  readonly gpus: number | undefined;
  /** Value of a flag as it is written; undefined without the flag. */
  readonly textOf: (flag: string) => string | undefined;
}

/** Flags whose settings the batch and the length of a training are made of. */
const OF_LENGTH = {
  context: 'context',
  'micro-batch': 'microBatch',
  batch: 'microBatch',
  accumulation: 'accumulation',
  'tensor-parallel': 'tensorParallel',
  'pipeline-parallel': 'pipelineParallel',
  'context-parallel': 'contextParallel',
} as const satisfies Record<string, RunField>;

/** A whole number as flags read it: `4096`, `32k`. */
function wholeNumber(text: string): number | undefined {
  const [, digits, isThousands] = /^(\d+)(k?)$/i.exec(text.replaceAll('_', '')) ?? [];
  return digits === undefined ? undefined : Number(digits) * (isThousands ? 1024 : 1);
}

/** Precision of a run; undefined where the config does not say. */
function precisionOf({ bf16, fp16, fp8, pureBf16 }: TrainingRun): Precision | undefined {
  if (fp8) return 'fp8';
  if (pureBf16) return 'bf16';
  if (bf16 || fp16) return 'mixed';
  return 'float32';
}

/** The flags of a config that a command line does not have itself. */
export function trainingWordsOf(
  command: TrainingCommandName,
  config: TrainingConfig,
  line: LineFacts,
): TrainingWord[] {
  const words = command === 'fit' ? fitWords(config, line) : planWords(config, line);
  return words.filter(({ flag }) => {
    if (flag === 'set') return true;
    const row = EXCLUSIVE.find((each) => each.includes(flag)) ?? [flag];
    if (row.some((each) => line.given.has(each))) return false;
    return line.hasHardware || command !== 'fit' || !OF_HARDWARE.has(flag);
  });
}

/** The run on the GPUs of the command line, with its batch, sequence length and degrees of parallelism. */
function onLine(whole: TrainingRun, { gpus, textOf: written }: LineFacts): TrainingRun {
  const run: Record<string, unknown> = { ...whole };
  for (const [flag, field] of Object.entries(OF_LENGTH)) {
    const text = written(flag);
    if (text === undefined) continue;
    run[field] = wholeNumber(text);
    if (field === 'accumulation') delete run.globalBatch;
  }
  if (gpus === undefined) return run as TrainingRun;
  delete run.dataParallel;
  return { ...(run as TrainingRun), gpus };
}

type Word = TrainingWord | undefined;

const word = (flag: string, value: string | number | undefined, ...of: RunField[]): Word =>
  value === undefined ? undefined : { flag, value: String(value), of };

const present = (words: readonly Word[]): TrainingWord[] =>
  words.filter((each) => each !== undefined);

/** Programs whose configs leave batch, precision and recomputing to the trainer. */
const LAUNCHERS: ReadonlySet<string> = new Set(['accelerate', 'deepspeed']);

function fitWords({ run: whole, given, name }: TrainingConfig, line: LineFacts): TrainingWord[] {
  const run = onLine(whole, line);
  const { kind: own = 'training', context } = run;
  const kind = line.textOf('for') ?? own;
  const isAdapter = kind !== 'training';
  const isLauncher = LAUNCHERS.has(name);
  const { targets } = run;
  const gpus = line.gpus === undefined ? runGpus(run) : undefined;
  const tokens = trainTokensOf(run);
  return present([
    word('for', own, 'kind'),
    word('micro-batch', run.microBatch, 'microBatch'),
    word('context', context, 'context'),
    isLauncher && given.bf16 === undefined && given.fp16 === undefined
      ? undefined
      : word('precision', precisionOf(run), 'bf16', 'fp16', 'fp8', 'pureBf16'),
    word('optimizer', run.optimizer, 'optimizer'),
    // Adapters recompute by default here, so that no recomputing is said too.
    word('recompute', run.recompute, 'recompute'),
    isAdapter ? word('rank', run.rank, 'rank') : undefined,
    isAdapter && targets && targets[0] !== 'all'
      ? word('targets', targets.join(','), 'targets')
      : undefined,
    // Adapters are divided by default here, so that no division is said too.
    isAdapter && !isLauncher
      ? word('zero', run.division ?? '0', 'division')
      : word('zero', run.division === '0' ? undefined : run.division, 'division'),
    isAdapter ? undefined : offloadWord(run, line),
    ...axesWords(run, isAdapter),
    run.accumulation !== undefined
      ? word('accumulation', run.accumulation, 'accumulation')
      : run.globalBatch !== undefined && context !== undefined
        ? word('global-batch', run.globalBatch * context, 'globalBatch')
        : undefined,
    word('gpus', gpus, 'gpus', 'dataParallel'),
    isAdapter ? undefined : word('train-tokens', tokens, 'steps', 'tokens', 'samples'),
  ]);
}

/** Degrees of parallelism above 1, and the type of the gradients. */
function axesWords(run: TrainingRun, isAdapter: boolean): Word[] {
  const { tensorParallel = 1, expertParallel = 1 } = run;
  const degree = (flag: string, of: 'tensorParallel' | 'pipelineParallel' | 'contextParallel') =>
    (run[of] ?? 1) > 1 ? word(flag, run[of], of) : undefined;
  const hasExperts = !isAdapter && expertParallel > 1;
  return [
    degree('tensor-parallel', 'tensorParallel'),
    degree('pipeline-parallel', 'pipelineParallel'),
    degree('context-parallel', 'contextParallel'),
    hasExperts ? word('expert-parallel', expertParallel, 'expertParallel') : undefined,
    hasExperts
      ? word('expert-tensor-parallel', run.expertTensorParallel, 'expertTensorParallel')
      : undefined,
    run.sequenceParallel && tensorParallel > 1
      ? { flag: 'sequence-parallel', of: ['sequenceParallel'] }
      : undefined,
    run.float32Gradients ? word('convention', 'megatron', 'float32Gradients') : undefined,
  ];
}

/**
 * Parts in system memory, where the division of the line allows it: ZeRO-Offload is for divided state. Parameters there
 * have their optimizer there too.
 */
function offloadWord(run: TrainingRun, { textOf, gpus = runGpus(run) }: LineFacts): Word {
  const { offloadOptimizer, offloadParameters, division = '0' } = run;
  if (!offloadOptimizer) return undefined;
  const { zero } = SHARDINGS[(textOf('zero') ?? division) as StateDivision] ?? SHARDINGS[0];
  const isAlone = (gpus ?? 1) === 1;
  if (offloadParameters && (isAlone || zero === 3)) {
    return word('offload', 'parameters', 'offloadOptimizer', 'offloadParameters');
  }
  return isAlone || zero > 0 ? word('offload', 'optimizer', 'offloadOptimizer') : undefined;
}

/** Sequences of an optimizer step on all GPUs; undefined where their number is not known. */
function sequencesOf(run: TrainingRun): number | undefined {
  if (run.globalBatch !== undefined) return run.globalBatch;
  const replicas = runReplicas(run);
  if (replicas === undefined || run.microBatch === undefined) return undefined;
  return run.microBatch * (run.accumulation ?? 1) * replicas;
}

function trainTokensOf(run: TrainingRun): number | undefined {
  if (run.tokens !== undefined) return run.tokens;
  const { steps, samples, context } = run;
  if (context === undefined) return undefined;
  if (steps === undefined) return samples === undefined ? undefined : samples * context;
  const sequences = sequencesOf(run);
  return sequences === undefined ? undefined : steps * sequences * context;
}

function planWords({ run: whole, given, name }: TrainingConfig, line: LineFacts): TrainingWord[] {
  const run = onLine(whole, line);
  const { learningRate, warmupRatio, context } = run;
  const replicas = runReplicas(run);
  const sequences = run.globalBatch;
  const accumulation =
    run.accumulation ??
    (sequences !== undefined && run.microBatch !== undefined
      ? Math.max(1, Math.round(sequences / run.microBatch / (replicas ?? 1)))
      : undefined);
  const schedule =
    run.schedule !== undefined && parseSchedule(run.schedule) !== undefined
      ? run.schedule
      : undefined;
  const floor =
    run.minLearningRate ??
    (run.minLearningRateRatio !== undefined && learningRate !== undefined
      ? run.minLearningRateRatio * learningRate
      : undefined);
  const hasDecay = schedule === 'wsd' || schedule === 'torchtitan';
  const isLauncher = LAUNCHERS.has(name);
  // Epochs need the tokens of the data, which a config does not have.
  const hasData = line.given.has('data') || line.given.has('data-tokens');
  const { kind = 'training' } = run;
  const isAdapter = kind !== 'training';
  const set = (key: string, value: unknown, ...of: RunField[]): Word =>
    value === undefined ? undefined : { flag: 'set', value: `training.${key}=${value}`, of };
  return present([
    // The training of a preset is another one.
    { flag: 'set', value: 'training={}', of: isAdapter ? ['kind', 'rank', 'targets'] : [] },
    ...lengthWords(run, hasData),
    word('batch', run.microBatch, 'microBatch'),
    word('accumulation', accumulation, 'accumulation', 'globalBatch'),
    word('context', context, 'context'),
    word('schedule', schedule, 'schedule'),
    word('lr', learningRate, 'learningRate'),
    hasFloor(schedule)
      ? word('min-lr', floor, 'minLearningRate', 'minLearningRateRatio')
      : undefined,
    run.warmupSteps !== undefined
      ? word('warmup', run.warmupSteps, 'warmupSteps')
      : word('warmup', warmupRatio && `${plainNumber(warmupRatio * 100)}%`, 'warmupRatio'),
    hasDecay
      ? run.decayRatio !== undefined
        ? word('decay', `${plainNumber(run.decayRatio * 100)}%`, 'decayRatio')
        : word('decay', run.decaySteps, 'decaySteps')
      : undefined,
    hasDecay && ['linear', 'cosine', '1-sqrt'].includes(run.decayType ?? '')
      ? word('decay-type', run.decayType, 'decayType')
      : undefined,
    word('weight-decay', run.weightDecay, 'weightDecay'),
    word('gpus', line.gpus === undefined ? gpusNeeded(run) : undefined, 'gpus', 'dataParallel'),
    word('recompute', run.recompute, 'recompute'),
    word('zero', run.division === '0' ? undefined : run.division, 'division'),
    ...axesWords(run, false),
    ...(isLauncher ? [] : [set('bf16', run.bf16 ?? false, 'bf16')]),
    run.fp16 ? set('fp16', true, 'fp16') : undefined,
    run.bf16 || !run.fp16 ? undefined : set('grad_scaler', true),
    set('beta1', run.beta1, 'beta1'),
    set('beta2', run.beta2, 'beta2'),
    set('eps', run.epsilon, 'epsilon'),
    set('max_grad_norm', run.gradientClip, 'gradientClip'),
    set('optimizer', run.optimizer, 'optimizer'),
    set('packing', given.packing, 'packing'),
    set('schedule_steps', run.scheduleSteps, 'scheduleSteps'),
    run.isFineTuning ? set('stage', 'sft', 'isFineTuning') : undefined,
  ]);
}

/** A number without an exponent and without the noise of binary fractions. */
const plainNumber = (value: number): string => String(Number(value.toPrecision(12)));

/** Schedules that end above 0. */
const FLOORLESS: ReadonlySet<string> = new Set([
  ...['constant', 'constant_with_warmup', 'inverse_sqrt', 'cosine_with_restarts', 'minimind'],
]);

const hasFloor = (schedule: string | undefined): boolean =>
  schedule === undefined || !FLOORLESS.has(parseSchedule(schedule) ?? '');

/** Tokens of the data of a fine-tuning whose config does not say: 20,000 samples of 500 tokens. */
const FINE_TUNING_TOKENS = 10_000_000;

/** The length of the training: as the config has it. */
function lengthWords(run: TrainingRun, hasData: boolean): Word[] {
  if (run.steps !== undefined) return [word('steps', run.steps, 'steps')];
  if (run.tokens !== undefined) return [word('tokens', run.tokens, 'tokens')];
  if (run.samples !== undefined && run.context !== undefined) {
    return [word('tokens', run.samples * run.context, 'samples')];
  }
  if (hasData) return [word('epochs', run.epochs, 'epochs')];
  // A fine-tuning is far shorter than the training of a model.
  const isOfData = run.isFineTuning || (run.kind ?? 'training') !== 'training';
  return isOfData ? [word('tokens', (run.epochs ?? 1) * FINE_TUNING_TOKENS, 'epochs')] : [];
}

/** The note on a length that the config does not have. */
export const assumedLengthNote = (words: readonly TrainingWord[]): string | undefined =>
  words.some(({ flag, of }) => flag === 'tokens' && of.includes('epochs'))
    ? `the config does not say how large the data is: ${shortCount(FINE_TUNING_TOKENS)} tokens are assumed; write --data-tokens N, or --data FILE`
    : undefined;
