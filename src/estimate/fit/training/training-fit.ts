/** Result types of fitting a training: memory, time and remedies. */
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Bounds, Figure, Quantity } from '../../../model/budget/figure.js';
import type { ActivationBudget } from '../../../model/budget/saved-activations.js';
import type { SystemMemory } from '../../hardware/system-memory.js';
import type { Parallelism, Stage } from '../parallelism/parallelism.js';
import type { PublishedRange } from '../published-range.js';
import type { TrainingFitSetting, TrainingOffloadPart } from './training-setting.js';

/** Parts of exactly counted memory. */
export type StatePart = 'weights' | 'gradients' | 'optimizer' | 'buffers' | 'activations';

/** Memory of each GPU of a pipeline stage. */
export interface StageMemory {
  /** Stage of the pipeline, from 0. @count */
  readonly stage: number;
  /** Index of the first block, and the index after the last. @count */
  readonly blocks: readonly [from: number, to: number];
  /** Parameters with weights on a GPU: its part of each tensor. */
  readonly parameters: Figure;
  /** Parts of the state. */
  readonly parts: readonly { readonly part: StatePart; readonly bytes: Figure }[];
  /** Details of the activations of all micro-batches in flight. */
  readonly activations: ActivationBudget;
  readonly exactBytes: Figure;
}

/** Memory of a stage with its workspace. */
export interface StageFit extends StageMemory {
  readonly total: Bounds;
}

export type FitVerdict = 'fits' | 'may fit' | 'does not fit';

export type TrainingLimit = 'compute' | 'memory' | 'communication';

/** State of a training in system memory. */
export interface HostMemory {
  /** The part. */
  readonly part: TrainingOffloadPart;
  /** The system memory. */
  readonly memory: SystemMemory;
  /** Memory of all GPUs together. */
  readonly bytes: Bounds;
  /** Whether the installed memory is enough; `fits` where its size is unknown. */
  readonly verdict: FitVerdict;
}

/** Inputs of a step: model, setting and parallelism. */
export interface StepInputs {
  readonly model: LanguageModel;
  readonly setting: TrainingFitSetting;
  readonly parallelism: Parallelism;
  readonly stages: readonly Stage[];
  readonly memory: readonly StageMemory[];
  /** Whether the weights of the model are frozen, and adapters are trained. */
  readonly isFrozen?: boolean;
  /** Stages with the parameters that replicas reduce; default: all. */
  readonly reduced?: readonly Stage[] | undefined;
}

/** Time of an optimizer step. */
export interface StepTime {
  readonly seconds: Bounds;
  /** MFU that follows from the expected time. */
  readonly mfu: Quantity;
  /** MFU set by the user or reached by others: the result if no limit takes longer. */
  readonly assumedMfu: Quantity;
  /** Reason for the expected time: the utilisation, a limit that takes longer, or the state in system memory. */
  readonly decidedBy: TrainingLimit | 'utilisation' | 'host';
  /** Copies to system memory and the update there, which are part of the time; absent without `--offload`. */
  readonly host?: Bounds;
  /** Range of published speeds; null with a utilisation that the user set, and with a part in system memory. */
  readonly published: PublishedRange | null;
  /** Lower bound: all at peak, and overlapped. */
  readonly roofline: Quantity;
  /** Possible limits of a step; `memory` includes launches. */
  readonly limits: readonly {
    /** Resource that limits the step. */
    readonly limit: TrainingLimit;
    readonly seconds: Bounds;
  }[];
  /** Largest limit in the lower bound. */
  readonly limitedBy: TrainingLimit;
  /** Text about communication without a known link, which is not counted; null if all is. */
  readonly withoutLink: string | null;
  /** Tokens of a step, with formula. */
  readonly tokens: Quantity;
  readonly tokensPerSecond: Quantity;
}

export interface TrainingTime {
  readonly steps: Quantity;
  readonly stepSeconds: Bounds;
  readonly totalSeconds: Bounds;
  /** Seconds of all steps at the speeds of published runs; null where those of a step have no range. */
  readonly published: PublishedRange | null;
  readonly mfu: Quantity;
  readonly roofline: Quantity;
  /** Resource that limits the training. */
  readonly limitedBy: TrainingLimit;
}

/** Change of the setting, with the resulting memory. */
export interface Remedy {
  /** Text for the user. */
  readonly change: string;
  /** Settings that change. */
  readonly flags: Partial<TrainingFitSetting>;
  /** Total as in `TrainingMemoryFit`. */
  readonly total: Bounds;
  /** System memory of all GPUs together; absent where nothing is there. */
  readonly host?: Bounds;
  /** Expected tokens per second of all GPUs together; null if no peak is known, or no link. */
  readonly tokensPerSecond: Quantity | null;
}

export interface TrainingMemoryFit {
  /** The state in system memory; absent without `--offload`. */
  readonly host?: HostMemory;
  /** Stages of the pipeline. @minItems 1 */
  readonly stages: readonly StageFit[];
  /** Index of the fullest stage by the estimate; parts and workspace are of its GPUs. @count */
  readonly fullest: number;
  /** Correction for parts of `exactBytes` that are never in memory at once, zero or negative, on the fullest GPU. */
  readonly apart: Bounds | null;
  /** Workspace of the fullest GPU. */
  readonly workspace: Bounds;
  /** Parts of the workspace. */
  readonly workspaceParts: readonly {
    /** Name of the part. */
    readonly part: string;
    readonly bytes: Bounds;
  }[];
  /** Total with workspace; each bound is of the GPUs that are fullest by it. */
  readonly total: Bounds;
  readonly capacity: Quantity;
  /** `fits`: by the upper bound; `may fit`: by the estimate; `does not fit`: not by the estimate. */
  readonly verdict: FitVerdict;
}

export interface TrainingFit extends TrainingMemoryFit {
  /** Time of a step, if the GPU's peak is known, and a link between the GPUs. */
  readonly step?: StepTime;
  /** Reason why the training has no speed; null if it has one. */
  readonly withoutSpeed: string | null;
  /** Time of the training, if its tokens are known too. */
  readonly time?: TrainingTime;
  /**
   * Fewest GPUs on which it fits by the upper bound, by doubling, with changes that keep the training the same; null if no
   * number does whose links are known.
   * @integer @minimum 1
   */
  readonly gpus: number | null;
  /** Fewest changes that make the training fit; if it fits, the room left. */
  readonly remedies: readonly Remedy[];
}

export type { TrainingFitSetting };
