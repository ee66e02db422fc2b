/** Whether a model can be served by some GPUs, how fast, and how many a load needs. */

import type { Figure } from '../budget/figure.js';
import type { Bounds, Quantity } from '../budget/quantity.js';
import type { Dtype } from '../tensor/dtype.js';
import type { Cluster } from './hardware-setting.js';
import type { DecodeStep, Prefill } from './roofline.js';
import type { Verdict } from './training.js';

/** Element types that weights are served in. */
export type WeightDtype = 'f32' | 'bf16' | 'f16' | 'f8' | 'int8' | 'int4';

/** How weights are stored. */
export interface WeightFormat {
  readonly dtype: WeightDtype;
  /** Values of a row that share a scale; `row`: all of them. */
  readonly groupSize: number | 'row';
  readonly scaleDtype: Dtype;
  /** Whether each group has a zero point, in as many bits as a weight. */
  readonly zeroPoints: boolean;
}

/** Requests that come in. */
export interface LoadWish {
  readonly requestsPerSecond: number;
  /** 95 of 100 requests have their last token within so many seconds. */
  readonly p95Seconds: number;
}

export interface ServingFitSetting {
  readonly cluster: Cluster;
  readonly weights: WeightFormat;
  /** Of keys and values. */
  readonly cacheDtype: Dtype;
  /** Of the states of Mamba, and of the inputs that its convolution keeps. */
  readonly stateDtype: Dtype;
  /** Tokens of each sequence, prompt and output, for which there must be room. */
  readonly context: number;
  /** Sequences at a time. */
  readonly batch: number;
  /** Tokens that a request brings. */
  readonly prompt: number;
  /** Tokens that it gets. */
  readonly output: number;
  readonly load?: LoadWish | undefined;
  /** GPUs that share each layer. */
  readonly tensorParallel: number;
}

/** So many replicas meet the target. */
export interface LoadMet {
  readonly met: true;
  readonly gpus: Quantity;
  readonly replicas: Quantity;
  /** Sequences that a replica serves at a time, at most. */
  readonly batch: Quantity;
  readonly p95Seconds: Quantity;
  /** Of it: the time in service with all places taken. */
  readonly service: Quantity;
  /** … and the time before it that 95 of 100 wait at most. */
  readonly waiting: Quantity;
  /** Share of the places that are taken. */
  readonly utilisation: Quantity;
}

/** No number of GPUs meets the target. */
export interface LoadMissed {
  readonly met: false;
  /** What a request takes that is alone on its GPUs: the best that there is. */
  readonly best: Quantity;
}

export type LoadAnswer = LoadMet | LoadMissed;

/** How many GPUs a load needs at the speed of each bound. */
export interface ServingLoad {
  readonly lower: LoadAnswer;
  readonly expected: LoadAnswer;
  readonly upper: LoadAnswer;
  readonly assumption: string;
}

export interface ServingFit {
  /** What weighs on the fullest GPU, by what it is for. */
  readonly weightParts: readonly { readonly part: string; readonly bytes: Figure }[];
  /** With their scales, on the fullest GPU. */
  readonly weights: Figure;
  /** Of the whole model. */
  readonly wholeWeights: Figure;
  /** Keys and values of one sequence at the context, on one GPU. */
  readonly cachePerSequence: Figure;
  /** … and what one more token adds, while all windows have room. */
  readonly cachePerToken: Figure;
  /** Mamba's states of one sequence, on one GPU. */
  readonly state: Figure;
  readonly workspace: Bounds;
  readonly workspaceParts: readonly { readonly part: string; readonly bytes: Bounds }[];
  /** Of one GPU. */
  readonly total: Bounds;
  readonly capacity: Quantity;
  readonly verdict: Verdict;
  /** Of one prompt; missing where the GPU's peak is not known. */
  readonly prefill: Prefill;
  /** At the batch and context. */
  readonly decode: DecodeStep & { readonly tokensPerSecond: Bounds };
  /** That fits for certain (by the upper bound) at the context; null when not even one does. */
  readonly largestBatch: Quantity | null;
  /** … at the batch; null when not even one token does. */
  readonly largestContext: Quantity | null;
  readonly load?: ServingLoad;
}
