/** Mistakes in the settings of a training, whatever program it is for. */
import type { Problem } from '../../base/errors.js';
import { formatInteger } from '../../base/text/units.js';
import { asNumber, present } from '../../base/values.js';
import { LARGEST_CLUSTER } from '../../model/architecture/training-section.js';
import type { TrainingProgramName } from './programs/index.js';
import type { TrainingConfig } from './training-config.js';
import { FIELD_TITLES, type RunField, type TrainingRun } from './training-run.js';

type PlaceOf = TrainingConfig['placeOf'];

/** Replicas of a run; undefined where it does not say. */
export function runReplicas(run: TrainingRun): number | undefined {
  const { gpus, tensorParallel = 1, pipelineParallel = 1, contextParallel = 1 } = run;
  if (run.dataParallel !== undefined) return run.dataParallel;
  if (gpus === undefined) return undefined;
  const each = tensorParallel * pipelineParallel * contextParallel;
  return gpus % each === 0 ? gpus / each : undefined;
}

/** GPUs of a run: the given ones, or those of all degrees. */
export function runGpus(run: TrainingRun): number | undefined {
  if (run.gpus !== undefined) return run.gpus;
  if (run.dataParallel === undefined) return undefined;
  const { tensorParallel = 1, pipelineParallel = 1, contextParallel = 1 } = run;
  return run.dataParallel * tensorParallel * pipelineParallel * contextParallel;
}

/** GPUs of a run, or the fewest that its degrees need; undefined where one is enough. */
export function gpusNeeded(run: TrainingRun): number | undefined {
  const given = runGpus(run);
  const least = runGpus({ ...run, dataParallel: 1 });
  return given ?? (least === 1 ? undefined : least);
}

/** Optimizer steps of a run, where it says so. */
const optimizerSteps = ({ steps, samples, globalBatch }: TrainingRun): number | undefined =>
  steps ?? (samples !== undefined && globalBatch ? Math.floor(samples / globalBatch) : undefined);

/** @param given The settings of the file, without defaults. */
export function runProblems(
  run: TrainingRun,
  given: TrainingRun,
  program: TrainingProgramName,
  placeOf: PlaceOf,
): Problem[] {
  const error = (field: RunField, message: string, suggestion: string): Problem => ({
    severity: 'error',
    ...placeOf(field),
    message,
    suggestion,
  });
  const { microBatch, accumulation, globalBatch } = given;
  const replicas = runReplicas(given);
  const each = (run.tensorParallel ?? 1) * (run.pipelineParallel ?? 1) * (run.contextParallel ?? 1);
  const steps = optimizerSteps(run);
  return present<Problem>([
    given.bf16 === true &&
      given.fp16 === true &&
      error('fp16', 'bf16 and fp16 are both on', 'leave one of them on'),
    given.gpus !== undefined &&
      given.gpus > LARGEST_CLUSTER &&
      error(
        'gpus',
        `expected at most ${formatInteger(LARGEST_CLUSTER)} GPUs, found ${formatInteger(given.gpus)}`,
        'correct it, or leave it out',
      ),
    given.gpus !== undefined &&
      given.gpus % each !== 0 &&
      error(
        given.tensorParallel === undefined ? 'gpus' : 'tensorParallel',
        `${given.gpus} GPUs cannot be divided into replicas of ${each}: tensor × pipeline × context parallelism`,
        `use a multiple of ${each} GPUs`,
      ),
    globalBatch !== undefined &&
      microBatch !== undefined &&
      batchProblem(globalBatch, microBatch, accumulation, replicas, error),
    // DeepSpeed's pipeline accepts up to stage 1 (runtime/pipe/engine.py).
    (given.division === '2' || given.division === '3') &&
      (given.pipelineParallel ?? 1) > 1 &&
      program !== 'torchtitan' &&
      error(
        'division',
        `ZeRO-${given.division} divides what pipeline parallelism of ${given.pipelineParallel} keeps on each stage`,
        'use stage 1 with a pipeline',
      ),
    steps !== undefined &&
      given.warmupSteps !== undefined &&
      given.warmupSteps > steps &&
      error(
        'warmupSteps',
        `the warm-up of ${formatInteger(given.warmupSteps)} steps is longer than the run of ${formatInteger(steps)}`,
        `use fewer than ${formatInteger(steps)} steps of warm-up`,
      ),
    (given.warmupRatio ?? 0) > 1 &&
      error('warmupRatio', 'the warm-up is longer than the run', 'use a share below 1'),
    given.warmupSteps !== undefined &&
      given.warmupSteps > 0 &&
      given.warmupRatio !== undefined &&
      given.warmupRatio > 0 && {
        ...error(
          'warmupRatio',
          'both a number of warm-up steps and a share are set',
          'leave one of them out',
        ),
        severity: 'warning',
      },
    given.minLearningRate !== undefined &&
      given.learningRate !== undefined &&
      given.minLearningRate > given.learningRate &&
      error('minLearningRate', 'the learning rate at the end is above the highest one', 'lower it'),
    given.sequenceParallel === true &&
      (run.tensorParallel ?? 1) === 1 &&
      placeOf('sequenceParallel').line !== undefined &&
      program === 'megatron' && {
        ...error(
          'sequenceParallel',
          'sequence parallelism has no effect without tensor parallelism',
          'use tensor parallelism of 2 or more, or leave it out',
        ),
        severity: 'warning',
      },
    headsProblem(run, error),
    run.sizes !== undefined && positionsProblem(run, error),
  ]);
}

type AsError = (field: RunField, message: string, suggestion: string) => Problem;

function batchProblem(
  globalBatch: number,
  microBatch: number,
  accumulation: number | undefined,
  replicas: number | undefined,
  error: AsError,
): Problem | undefined {
  if (replicas === undefined) {
    const multiple = microBatch * (accumulation ?? 1);
    return globalBatch % multiple === 0
      ? undefined
      : error(
          'globalBatch',
          `the global batch of ${globalBatch} is not a multiple of ${multiple}: micro-batch ${microBatch}${accumulation === undefined ? '' : ` × accumulation ${accumulation}`}`,
          `use a multiple of ${multiple}`,
        );
  }
  const made = microBatch * replicas * (accumulation ?? 1);
  if (accumulation === undefined ? globalBatch % made === 0 : globalBatch === made)
    return undefined;
  return error(
    'globalBatch',
    `the global batch of ${globalBatch} is not ${accumulation === undefined ? 'a multiple of ' : ''}micro-batch ${microBatch}${accumulation === undefined ? '' : ` × accumulation ${accumulation}`} × ${replicas} replicas = ${made}`,
    `use ${accumulation === undefined ? 'a multiple of ' : ''}${made}`,
  );
}

function headsProblem(
  { sizes, tensorParallel = 1 }: TrainingRun,
  error: AsError,
): Problem | undefined {
  const heads = asNumber(sizes?.num_attention_heads ?? sizes?.n_head);
  return Number.isSafeInteger(heads) ? headsNotDivided(heads, tensorParallel, error) : undefined;
}

/** @param error The problem at the place of the setting. */
export function headsNotDivided(
  heads: number,
  tensorParallel: number,
  error: AsError,
): Problem | undefined {
  if (heads % tensorParallel === 0) return undefined;
  return error(
    'tensorParallel',
    `tensor parallelism of ${tensorParallel} does not divide ${heads} attention heads`,
    `use a divisor of ${heads}`,
  );
}

function positionsProblem({ sizes, context }: TrainingRun, error: AsError): Problem | undefined {
  const positions = asNumber(sizes?.max_position_embeddings ?? sizes?.n_positions);
  if (context === undefined || !Number.isSafeInteger(positions) || context <= positions) {
    return undefined;
  }
  return error(
    'context',
    `sequences of ${formatInteger(context)} tokens are longer than the ${formatInteger(positions)} positions of the model`,
    `use at most ${formatInteger(positions)}`,
  );
}

/** Settings that DeepSpeed refuses where its file and its trainer differ (transformers, integrations/deepspeed.py). */
const SHARED = [
  ...(['microBatch', 'accumulation', 'gradientClip', 'learningRate', 'weightDecay'] as const),
  ...(['warmupSteps', 'bf16', 'fp16', 'beta1', 'beta2', 'epsilon'] as const),
];

/** Settings that a file of DeepSpeed and the config of its trainer give with different values. */
export function contradictionsWith(
  { given, file, placeOf: placeIn }: TrainingConfig,
  run: TrainingRun,
  placeOf: PlaceOf,
): Problem[] {
  return SHARED.flatMap((field): Problem[] => {
    const [own, other] = [run[field], given[field]];
    if (own === undefined || other === undefined || own === other) return [];
    const { line } = placeIn(field);
    return [
      {
        severity: 'error',
        ...placeOf(field),
        message: `${FIELD_TITLES[field]} is ${own} here, and ${other} in ${file}${line === undefined ? '' : `:${line}`}`,
        suggestion: 'write the same value, or "auto" in the file of DeepSpeed',
      },
    ];
  });
}
