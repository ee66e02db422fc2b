/** Results of the forms of a quick test. */

import type { TwoModelComparison } from '../engine/compare/compare-outputs.js';
import type { TraceStep } from '../model/budget/trace/step-builder.js';
import type { Overfit } from './overfit/overfit.js';
import type { QuickTest } from './run-quick-test.js';

/** The model of a test. */
interface TestedFile {
  readonly schema: 'minimind/quick-test@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
}

/** The model of a test that runs it. */
interface RanFile extends TestedFile {
  /** Checkpoint of the weights; null when they are random. */
  readonly checkpoint: string | null;
}

/** Size of an input. */
interface TestedSize {
  /** Sequences of the input. @integer @minimum 1 */
  readonly batch: number;
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
}

/** Checks of a model. */
export interface QuickTestResult extends RanFile, QuickTest {}

/** Steps of a forward pass, without running it. */
export interface TraceResult extends TestedFile, TestedSize {
  /** Steps from tokens to logits. */
  readonly trace: readonly TraceStep[];
  /** Steps from logits to the loss of a training. */
  readonly loss: readonly TraceStep[];
}

/** Outputs of two models, or of one model in two engines. */
export interface AgainstResult extends RanFile, TestedSize {
  /** The comparison. */
  readonly against: TwoModelComparison;
}

/** Training on a single batch. */
export interface OverfitResult extends RanFile, TestedSize {
  /** The training. */
  readonly overfit: Overfit;
}

/**
 * Checks of a model; with --trace the steps of a forward pass, with --against the comparison with another model, with
 * --overfit a training on one batch.
 * @answer minimind quick-test --json
 */
export type QuickTestAnswer = QuickTestResult | TraceResult | AgainstResult | OverfitResult;
