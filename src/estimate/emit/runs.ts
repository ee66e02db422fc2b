/** Plans as settings of a training, under the names that all programs share. */
import type { StateDivision, TrainingRun } from '../../input/training-config/training-run.js';
import type { FitResult } from '../fit/fits.js';
import { type TrainingAxes, trainingReplicas } from '../fit/parallelism/training-axes.js';
import type { TrainPlanResult } from '../training/plan-training.js';
import type { TrainingValues } from '../training/training-settings.js';

/** Settings beside a plan that it does not have itself. */
export interface RunFacts {
  /** Model as the user or the config wrote it. */
  readonly model: string;
  /** How the state is divided, by the name that the user gave. */
  readonly division: StateDivision | undefined;
  /** Settings of the config that the plan was made of. */
  readonly config: TrainingRun | undefined;
  /** Whether the config gives the length in epochs. */
  readonly isOfEpochs?: boolean;
}

/** The degrees of a run, under the names that all programs share. */
const axesOfRun = ({
  tensorParallel,
  pipelineParallel,
  contextParallel = 1,
  expertParallel = 1,
  expertTensorParallel,
  sequenceParallel,
}: TrainingAxes): TrainingRun => ({
  tensorParallel,
  pipelineParallel,
  contextParallel,
  ...(expertParallel > 1 && {
    expertParallel,
    expertTensorParallel: expertTensorParallel ?? tensorParallel,
  }),
  sequenceParallel,
});

/** The run of a fit; undefined where no training was asked for. */
export function runOfFit(
  result: FitResult,
  { model, division, config }: RunFacts,
): TrainingRun | undefined {
  const { purpose } = result;
  const setting = result.adapters?.setting ?? result.training?.setting;
  if (setting === undefined || purpose === 'serving') return undefined;
  const { cluster, context, microBatch, pipelineParallel } = setting;
  const replicas = trainingReplicas({ ...setting, gpus: cluster.gpus });
  const stepTokens = microBatch * context * replicas;
  const accumulation =
    setting.globalBatchTokens === undefined
      ? pipelineParallel
      : Math.max(1, Math.round(setting.globalBatchTokens / stepTokens));
  const isAdapter = purpose !== 'training';
  const steps =
    setting.trainTokens === undefined
      ? undefined
      : Math.max(1, Math.round(setting.trainTokens / (accumulation * stepTokens)));
  const {
    dataParallel: _,
    globalBatch: __,
    accumulation: ___,
    rank,
    targets,
    ...others
  } = config ?? {};
  return {
    ...others,
    model,
    kind: purpose,
    ...precisionFields(setting.precision),
    microBatch,
    accumulation,
    context,
    gpus: cluster.gpus,
    ...axesOfRun(isAdapter ? { ...setting, expertParallel: 1 } : setting),
    division: division ?? (setting.hybrid ? 'hsdp' : (`${setting.zero}` as StateDivision)),
    offloadOptimizer: setting.offload !== undefined,
    offloadParameters: setting.offload?.part === 'parameters',
    recompute: setting.recompute,
    optimizer: setting.optimizer,
    ...(setting.convention === 'megatron' && { float32Gradients: true }),
    ...(steps !== undefined && others.epochs === undefined && { steps }),
    ...(isAdapter && {
      rank: setting.rank ?? rank ?? USUAL_RANK,
      targets: setting.targets ?? targets ?? ['all'],
    }),
  };
}

/** Rank of adapters where none is given. */
const USUAL_RANK = 16;

function precisionFields(precision: string): TrainingRun {
  switch (precision) {
    case 'mixed':
      return { bf16: true, pureBf16: false, fp8: false };
    case 'bf16':
      return { bf16: true, pureBf16: true, fp8: false };
    case 'fp8':
      return { bf16: true, pureBf16: false, fp8: true };
    default:
      return { bf16: false, fp16: false, pureBf16: false, fp8: false };
  }
}

/** The run of a plan. */
export function runOfPlan(
  { size, learningRate, optimizer, precision }: TrainPlanResult,
  { model, division, config, isOfEpochs = false }: RunFacts,
  values: Pick<TrainingValues, 'beta1' | 'beta2' | 'eps' | 'max_grad_norm'>,
  recompute: TrainingRun['recompute'],
  axes: TrainingAxes,
): TrainingRun {
  const { dataParallel: _, globalBatch: __, epochs, ...others } = config ?? {};
  return {
    kind: 'training',
    ...others,
    model,
    ...(precision === 'float32' ? { bf16: false } : { [precision]: true }),
    microBatch: size.microBatch,
    accumulation: size.accumulation,
    context: size.context,
    gpus: size.gpus,
    ...axesOfRun(axes),
    ...((size.length === 'epochs' || isOfEpochs) && epochs !== undefined
      ? { epochs }
      : { steps: size.steps }),
    learningRate: learningRate.peak,
    minLearningRate: learningRate.floor,
    schedule: learningRate.schedule,
    warmupSteps: learningRate.warmup,
    ...(learningRate.decay !== null && { decaySteps: learningRate.decay }),
    ...(learningRate.decayType !== null && { decayType: learningRate.decayType }),
    weightDecay: optimizer.weightDecay,
    optimizer: others.optimizer ?? 'adamw',
    ...(division !== undefined && { division }),
    ...(recompute !== undefined && { recompute }),
    ...(values.beta1 !== undefined && { beta1: values.beta1 }),
    ...(values.beta2 !== undefined && { beta2: values.beta2 }),
    ...(values.eps !== undefined && { epsilon: values.eps }),
    ...(values.max_grad_norm !== undefined && { gradientClip: values.max_grad_norm }),
  };
}
