/** Whether a training fits into the memory of its GPUs, how long it takes, and what would make it fit. */
import type { LanguageModel } from '../../architecture/layer.js';
import type { ActivationBudget } from '../../budget/activations.js';
import type { Figure } from '../../budget/figure.js';
import type { Bounds, Quantity } from '../../budget/quantity.js';
import type { Parallelism, Stage } from '../parallelism/parallelism.js';
import type { TrainingFitSetting } from './training-setting.js';

/** Parts of what a GPU holds exactly. */
export type StatePart = 'weights' | 'gradients' | 'optimizer' | 'buffers' | 'activations';

/** What each GPU of one pipeline stage holds. */
export interface StageMemory {
  readonly stage: number;
  /** The first of its blocks, and the one after the last. */
  readonly blocks: readonly [from: number, to: number];
  /** Those of which a GPU has weights: its part of each tensor. */
  readonly parameters: Figure;
  readonly parts: readonly { readonly part: StatePart; readonly bytes: Figure }[];
  /** The activations in detail: of all micro-batches that it keeps. */
  readonly activations: ActivationBudget;
  readonly exactBytes: Figure;
}

/** … and with its workspace. */
export interface StageFit extends StageMemory {
  readonly total: Bounds;
}

export type Verdict = 'fits' | 'may fit' | 'does not fit';

export type StepLimit = 'compute' | 'memory' | 'communication';

/** What a step is of, and how it is spread. */
export interface StepSituation {
  readonly model: LanguageModel;
  readonly setting: TrainingFitSetting;
  readonly parallelism: Parallelism;
  readonly stages: readonly Stage[];
  readonly memory: readonly StageMemory[];
}

/** A step of the optimizer. */
export interface StepTime {
  readonly seconds: Bounds;
  /** What comes of the time that is expected. */
  readonly mfu: Quantity;
  /** What would, if nothing took longer: as stated, or what others reached. */
  readonly assumedMfu: Quantity;
  /** Of the time that is expected: that utilisation, or what takes longer. */
  readonly decidedBy: StepLimit | 'utilisation';
  /** The best case: all at peak, and overlapped. */
  readonly roofline: Quantity;
  /** What it consists of: each could be the limit. Memory has the launches, too. */
  readonly limits: readonly { readonly limit: StepLimit; readonly seconds: Bounds }[];
  /** Of the best case. */
  readonly limitedBy: StepLimit;
  /** What of communication is not counted, as nobody knows a link for it; null where all is. */
  readonly withoutLink: string | null;
  /** Tokens of a step, and how they are made up. */
  readonly tokens: Quantity;
  readonly tokensPerSecond: Quantity;
}

/** A whole training. */
export interface TrainingTime {
  readonly steps: Quantity;
  readonly stepSeconds: Bounds;
  readonly totalSeconds: Bounds;
  readonly mfu: Quantity;
  readonly roofline: Quantity;
  readonly limitedBy: StepLimit;
}

/** A change of the setting, with what it makes of the memory. */
export interface Remedy {
  /** In words. */
  readonly change: string;
  readonly flags: Partial<TrainingFitSetting>;
  /** As `TrainingMemoryFit` has it. */
  readonly total: Bounds;
  /** Of all GPUs together, as expected; null where no peak is known. */
  readonly tokensPerSecond: Quantity | null;
}

/** Memory alone. */
export interface TrainingMemoryFit {
  readonly stages: readonly StageFit[];
  /** Index of the stage whose GPUs are the fullest as expected: of those, parts and workspace are told. */
  readonly fullest: number;
  /** What of `exactBytes` is never there at once: nothing, or less, on the fullest GPU. */
  readonly apart: Bounds | null;
  /** What comes on top of it, on the fullest GPU. */
  readonly workspace: Bounds;
  /** … and what it consists of. */
  readonly workspaceParts: readonly { readonly part: string; readonly bytes: Bounds }[];
  /** Workspace included; each bound is that of the GPUs that are the fullest by it. */
  readonly total: Bounds;
  readonly capacity: Quantity;
  readonly verdict: Verdict;
}

export interface TrainingFit extends TrainingMemoryFit {
  /** Where the GPU's peak is known. */
  readonly step?: StepTime;
  /** … and it is known how many tokens there are. */
  readonly time?: TrainingTime;
  /** The fewest changes that make it fit; of one that fits, how far it could be taken. */
  readonly remedies: readonly Remedy[];
}

export type { TrainingFitSetting };
