/** How a training is spread over GPUs, and what is asked of it. */
import type {
  ActivationSetting,
  AttentionKernel,
  LossKernel,
} from '../../budget/kernel-activations.js';
import { bytesIn, type TrainedState, type TrainingSetting } from '../../budget/training.js';
import type { Cluster } from '../../hardware/gpu.js';

/** What the data-parallel replicas split among themselves: nothing; optimizer; and gradients; and weights. */
export type ZeroStage = 0 | 1 | 2 | 3;

/** From which stage of ZeRO on each is divided among the replicas. */
export const DIVIDED_FROM = { optimizer: 1, gradients: 2, weights: 3 } as const satisfies Record<
  keyof TrainedState,
  number
>;

/** In what type gradients are kept: the two conventions of counting training memory. */
export const CONVENTIONS = {
  zero: {
    gradientBytes: undefined,
    source: 'gradients in the type of the weights: 2 + 2 + 12 bytes (ZeRO, arXiv 1910.02054)',
  },
  megatron: {
    gradientBytes: 4,
    source: 'gradients in float32: 2 + 4 + 12 bytes (Megatron-LM, distributed optimizer)',
  },
} as const satisfies Record<string, { gradientBytes: number | undefined; source: string }>;

export type Convention = keyof typeof CONVENTIONS;

/** Of `TrainingSetting`, `batch` is told as `microBatch`. */
export interface TrainingFitSetting extends Omit<TrainingSetting, 'batch'> {
  readonly cluster: Cluster;
  /** Sequences that one replica computes at a time. */
  readonly microBatch: number;
  /** Fused kernels keep neither scores nor scan states. */
  readonly attention: AttentionKernel;
  /** In chunks, or fused with the head, the loss needs no more than some logits at a time. */
  readonly loss: LossKernel;
  /** Count what dropout keeps. */
  readonly dropout?: boolean | undefined;
  readonly zero: ZeroStage;
  readonly convention: Convention;
  /** GPUs that share each layer. */
  readonly tensorParallel: number;
  /** Stages of consecutive blocks. */
  readonly pipelineParallel: number;
  /** Split the residual stream by tokens among the GPUs that share a layer. */
  readonly sequenceParallel: boolean;
  /** Tokens of a step of the optimizer; undefined: as many micro-batches as there are stages. */
  readonly globalBatchTokens?: number | undefined;
  /** Of the whole training; without it, there is no time of it. */
  readonly trainTokens?: number | undefined;
  /** Model FLOPs utilisation that is expected, a share of one. */
  readonly mfu?: number | undefined;
}

/** Bytes of a gradient. */
export const gradientBytesOf = ({
  precision,
  convention,
}: Pick<TrainingFitSetting, 'precision' | 'convention'>): number =>
  CONVENTIONS[convention].gradientBytes ?? bytesIn(precision);

/** Of one micro-batch of the whole model. */
export const activationSetting = (setting: TrainingFitSetting): ActivationSetting => ({
  batch: setting.microBatch,
  context: setting.context,
  bytesPerValue: bytesIn(setting.precision),
  recompute: setting.recompute,
  attention: setting.attention,
  loss: setting.loss,
  dropout: setting.dropout,
  tensor: setting.tensorParallel,
  sequence: setting.sequenceParallel,
});
