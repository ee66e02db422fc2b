/** What came of a check. */
import type { Component } from '../architecture/layer.js';
import type { Statistics } from '../checkpoint/statistics.js';
import type { Shape } from '../tensor/dtype.js';
import type { LogitDifference } from './differences.js';

/** A skipped check says why in its finding. */
export type Verdict = 'passed' | 'failed' | 'skipped';

/** The number that a check comes down to. */
export interface Measure {
  /** `largest difference`, `elements`. */
  readonly what: string;
  readonly value: number;
  /** What it may be at most, or has to be. */
  readonly limit?: number;
}

export interface Finding {
  readonly verdict: Verdict;
  /** What was found, in a sentence. */
  readonly finding: string;
  readonly measure?: Measure;
  /** What else there is to know: rules that were followed, remedies. */
  readonly remarks?: readonly string[];
  readonly details?: Details;
}

/** What some checks know beyond their number. */
export interface Details {
  /** Of the logits. */
  readonly statistics?: Statistics;
  /** Where the first value appeared that is no number. */
  readonly origin?: Origin;
  readonly sharing?: Sharing;
  readonly decoding?: readonly Decoding[];
  readonly timing?: Timing;
  readonly float16?: Float16Cost;
}

/** A tensor in which something is not finite. */
export interface Origin {
  readonly tensor: string;
  readonly kind: 'weight' | 'value';
  readonly shape: Shape;
  readonly statistics: Statistics;
  /**
   * The layer whose value was the last before it, and is finite: it begins behind that. Not every step of a
   * layer can be looked at, such as a scan or a sum of branches.
   */
  readonly after?: string;
}

/** Which blocks change with a table, and which hold it by the description. */
export interface Sharing {
  readonly table: string;
  readonly holders: readonly string[];
  readonly changed: readonly string[];
}

/** One sequence decoded step by step. */
export interface Decoding {
  readonly tokens: number;
  /** Tokens of the first call; the others come one by one. */
  readonly prefill: number;
  /** What local heads see. */
  readonly rule: 'everything' | 'sliding window';
  readonly difference: number;
  readonly limit: number;
  /** How far rounding alone moves the logits; told where the difference is larger than is usual. */
  readonly rounding?: number;
  /** The first block that by itself, given the same, differs by more than rounding explains. */
  readonly block?: BlockDifference;
}

/** A block computed in two ways from the same input. */
export interface BlockDifference {
  readonly block: string;
  readonly difference: number;
  /** How far it moves when its input is nudged by the last bit. */
  readonly rounding: number;
  readonly limit: number;
}

export interface Timing {
  /** Making the whole model ready. */
  readonly loadSeconds: number;
  readonly warmUps: number;
  readonly repeats: number;
  readonly meanSeconds: number;
  /** Of the repeats; null of a single one. */
  readonly deviationSeconds: number | null;
  readonly minSeconds: number;
  readonly medianSeconds: number;
  /** Of all rows of the batch together, at the mean. */
  readonly tokensPerSecond: number;
  readonly parts: readonly PartTiming[];
}

/** What float16 costs and saves. */
export interface Float16Cost {
  /** Of the logits, from those of float32. */
  readonly logits: LogitDifference;
  readonly f16: Spent;
  readonly f32: Spent;
}

/** What a forward pass takes. */
export interface Spent {
  /** Of the weights, where they are computed with. */
  readonly weightBytes: number;
  /** The mean of some passes, as many as are timed otherwise. */
  readonly meanSeconds: number;
}

/** A part of the model, run by itself. */
export interface PartTiming {
  readonly layer: string;
  readonly component: Component;
  /** How often the model computes it, or one like it. */
  readonly times: number;
  /** Of one of them: the median of a few runs. */
  readonly seconds: number;
}

export const skipped = (finding: string): Finding => ({ verdict: 'skipped', finding });
