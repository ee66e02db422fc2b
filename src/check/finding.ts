/** Results of a check. */

import type { Shape } from '../base/tensor/dtype.js';
import type { Statistics } from '../checkpoint/statistics.js';
import type { LogitDifference } from '../engine/compare/differences.js';
import type { Component } from '../model/architecture/layer.js';
import type { GenerationFlops } from '../model/budget/flops.js';

/** Outcome of a check; a skipped one has the reason in its finding. */
export type CheckVerdict = 'passed' | 'failed' | 'skipped';

/** The main number of a check. */
export interface Measure {
  /** `largest difference`, `elements`. */
  readonly what: string;
  /** The measured value. @real */
  readonly value: number;
  /** Upper limit or required value. @real */
  readonly limit?: number;
}

export interface CheckFinding {
  readonly verdict: CheckVerdict;
  /** The finding in a sentence. */
  readonly finding: string;
  readonly measure?: Measure;
  /** Further information: rules that were applied, remedies. */
  readonly remarks?: readonly string[];
  readonly details?: Details;
}

/** Additional data of some checks. */
export interface Details {
  readonly statistics?: Statistics;
  /** Origin of the first value that is not finite. */
  readonly origin?: NonFiniteOrigin;
  readonly sharing?: TableSharing;
  /** Sequences decoded step by step. */
  readonly decoding?: readonly StepwiseDecoding[];
  /** Times of a forward pass. */
  readonly timing?: Timing;
  readonly float16?: Float16Cost;
  readonly quantized?: QuantizedCost;
}

/** A tensor with a value that is not finite. */
export interface NonFiniteOrigin {
  /** Name of the tensor. */
  readonly tensor: string;
  /** Whether it is a weight, or the output of a layer. */
  readonly kind: 'weight' | 'value';
  /** Sizes of the dimensions. @count */
  readonly shape: Shape;
  /** Index of the first value that is not finite, in each axis. @count */
  readonly first: readonly number[];
  readonly statistics: Statistics;
  /**
   * The last layer with a finite value: the origin follows it. Some steps of a layer cannot be inspected, such as a
   * scan or a sum of branches.
   */
  readonly after?: string;
}

/** Blocks that change with a table, and blocks that contain it by the description. */
export interface TableSharing {
  /** Tensor that was changed. */
  readonly table: string;
  /** Blocks that hold it by the description. */
  readonly holders: readonly string[];
  /** Blocks that changed with it. */
  readonly changed: readonly string[];
}

/** One sequence decoded step by step. */
export interface StepwiseDecoding {
  /** Tokens of the sequence. @integer @minimum 1 */
  readonly tokens: number;
  /** Tokens of the first call; the others come one by one. @count */
  readonly prefill: number;
  /** Visibility of local heads. */
  readonly rule: 'everything' | 'sliding window';
  /** Largest difference of a logit. @real */
  readonly difference: number;
  /** Largest allowed difference; Infinity where rounding alone moves the logits too far for a limit. @real */
  readonly limit: number;
  /** Difference of the logits caused by rounding alone; set when the difference is unusually large. @real */
  readonly rounding?: number;
  /** The first block that, with the same input, differs by more than the rounding error. */
  readonly block?: BlockDifference;
  readonly speed: DecodingSpeed;
}

/** Speed of decoding with and without a cache. */
export interface DecodingSpeed {
  /** Median time of a token with a cache. */
  readonly stepSeconds: number;
  /** Time of a token that all tokens are computed for again. */
  readonly recomputingSeconds: number;
  /** FLOPs of one sequence, for the tokens after the first call. */
  readonly flops: Pick<GenerationFlops, 'cached' | 'recomputed' | 'ratio'>;
}

/** A block computed in two ways from the same input. */
export interface BlockDifference {
  /** Path of the block. */
  readonly block: string;
  /** Largest difference of a value of its output. @real */
  readonly difference: number;
  /** Difference when its input is nudged by the last bit. @real */
  readonly rounding: number;
  /** Largest allowed difference. @real */
  readonly limit: number;
}

export interface Timing {
  /** Seconds to load the whole model. */
  readonly loadSeconds: number;
  /** Runs that are not timed. @count */
  readonly warmUps: number;
  /** Runs that are timed. @integer @minimum 1 */
  readonly repeats: number;
  /** Mean time of a forward pass. */
  readonly meanSeconds: number;
  /** Standard deviation of the repeats; null for a single one. */
  readonly deviationSeconds: number | null;
  /** Shortest time. */
  readonly minSeconds: number;
  /** Median time. */
  readonly medianSeconds: number;
  /** Mean throughput of all rows of the batch together. */
  readonly tokensPerSecond: number;
  /** Times of the parts of the model. */
  readonly parts: readonly PartTiming[];
}

/** Error and savings of float16. */
export interface Float16Cost {
  /** Difference of the logits from float32. */
  readonly logits: LogitDifference;
  readonly f16: ForwardCost;
  readonly f32: ForwardCost;
}

/** Error and savings of quantized weights. */
export interface QuantizedCost {
  /** Difference of the logits from float32. */
  readonly logits: LogitDifference;
  readonly quantized: ForwardCost;
  readonly f32: ForwardCost;
}

/** Cost of a forward pass. */
export interface ForwardCost {
  /** Bytes of the weights on the device. @count */
  readonly weightBytes: number;
  /** Mean time of some passes, with the same repeats as in the timing check. @minimum 0 */
  readonly meanSeconds: number;
}

/** A part of the model, run separately. */
export interface PartTiming {
  /** Path of the layer. */
  readonly layer: string;
  /** Component of the model. */
  readonly component: Component;
  /** Number of equal parts in the model. @integer @minimum 1 */
  readonly times: number;
  /** Median time of one, over a few runs. */
  readonly seconds: number;
}

export const skipped = (finding: string): CheckFinding => ({ verdict: 'skipped', finding });
