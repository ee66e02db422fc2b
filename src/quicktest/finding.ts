/** Results of a check. */
import type { Component } from '../architecture/layer.js';
import type { GenerationFlops } from '../budget/flops.js';
import type { Statistics } from '../checkpoint/statistics.js';
import type { Shape } from '../tensor/dtype.js';
import type { LogitDifference } from './differences.js';

/** Outcome of a check; a skipped one has the reason in its finding. */
export type CheckVerdict = 'passed' | 'failed' | 'skipped';

/** The main number of a check. */
export interface Measure {
  /** `largest difference`, `elements`. */
  readonly what: string;
  readonly value: number;
  /** Upper limit or required value. */
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
  readonly decoding?: readonly StepwiseDecoding[];
  readonly timing?: Timing;
  readonly float16?: Float16Cost;
  readonly quantized?: QuantizedCost;
}

/** A tensor with a value that is not finite. */
export interface NonFiniteOrigin {
  readonly tensor: string;
  readonly kind: 'weight' | 'value';
  readonly shape: Shape;
  /** Index of the first value that is not finite, in each axis. */
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
  readonly table: string;
  readonly holders: readonly string[];
  readonly changed: readonly string[];
}

/** One sequence decoded step by step. */
export interface StepwiseDecoding {
  readonly tokens: number;
  /** Tokens of the first call; the others come one by one. */
  readonly prefill: number;
  /** Visibility of local heads. */
  readonly rule: 'everything' | 'sliding window';
  readonly difference: number;
  readonly limit: number;
  /** Difference of the logits caused by rounding alone; set when the difference is unusually large. */
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
  readonly block: string;
  readonly difference: number;
  /** Difference when its input is nudged by the last bit. */
  readonly rounding: number;
  readonly limit: number;
}

export interface Timing {
  /** Seconds to load the whole model. */
  readonly loadSeconds: number;
  readonly warmUps: number;
  readonly repeats: number;
  readonly meanSeconds: number;
  /** Standard deviation of the repeats; null for a single one. */
  readonly deviationSeconds: number | null;
  readonly minSeconds: number;
  readonly medianSeconds: number;
  /** Mean throughput of all rows of the batch together. */
  readonly tokensPerSecond: number;
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
  /** Bytes of the weights on the device. */
  readonly weightBytes: number;
  /** Mean time of some passes, with the same repeats as in the timing check. */
  readonly meanSeconds: number;
}

/** A part of the model, run separately. */
export interface PartTiming {
  readonly layer: string;
  readonly component: Component;
  /** Number of equal parts in the model. */
  readonly times: number;
  /** Median time of one, over a few runs. */
  readonly seconds: number;
}

export const skipped = (finding: string): CheckFinding => ({ verdict: 'skipped', finding });
