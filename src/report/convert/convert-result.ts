import type { SrteForm, SrteLayout } from '../../architecture/srte-layout.js';
import type { CheckpointFormat } from '../../checkpoint/formats.js';
import type { TensorError } from '../../conversion/measure-tables.js';
import type { Container } from '../../conversion/places.js';
import type { PlannedTie } from '../../conversion/plan.js';
import type { StepGroup, TensorStep } from '../../conversion/plan-steps.js';
import type { Extension } from '../../conversion/request.js';
import type { TableError } from '../../conversion/table-errors.js';
import type { ConfigOrigin } from '../../model-input/checkpoint-config.js';
import type { Against } from '../../quicktest/sides.js';
import type { StoredDtype } from '../../tensor/dtype.js';

/** A conversion, planned or done: what `minimind convert-checkpoint --json` prints. */
export interface ConvertResult {
  readonly schema: 'minimind/convert-checkpoint@1';
  readonly dryRun: boolean;
  readonly input: ConvertedSide & {
    readonly format: CheckpointFormat;
    /** Null when it is converted by its names alone. */
    readonly config: { readonly file: string; readonly origin: ConfigOrigin } | null;
  };
  readonly output: ConvertedSide & {
    readonly container: Container;
    readonly files: readonly {
      readonly name: string;
      readonly bytes: number;
      /** Whether an earlier run has written it. */
      readonly resumed: boolean;
    }[];
  };
  /** Null when the SRTE stays as it is, or there is none. */
  readonly srte: ConvertedSrte | null;
  /** Null when nothing is tied. */
  readonly tie: ConvertedTie | null;
  readonly configChanges: readonly {
    readonly path: string;
    readonly from: unknown;
    readonly to: unknown;
  }[];
  /** Like names of all layers together. */
  readonly leftOut: readonly {
    readonly pattern: string;
    readonly names: readonly string[];
    readonly why: string;
  }[];
  readonly notes: readonly string[];
  readonly groups: readonly StepGroup[];
  readonly tensors: readonly TensorStep[];
  readonly memory: {
    readonly limitBytes: number;
    /** Of the process. */
    readonly predictedPeakBytes: number;
    /** As the system counts it; null for a plan. */
    readonly peakBytes: number | null;
  };
  /** Null for a plan. */
  readonly run: {
    readonly seconds: number;
    /** Of the input, what was read again included; scratch files are not counted. */
    readonly readBytes: number;
    /** Of the output; what an earlier run has written is not counted. */
    readonly writtenBytes: number;
    /** Read and written. */
    readonly bytesPerSecond: number;
    readonly resumed: boolean;
    readonly checked: boolean;
    /** What computed the products of matrices: `JavaScript`, `ONNX Runtime 1.30.0, 2 threads`. */
    readonly products: string;
  } | null;
  /** Null when it was not asked for. */
  readonly proof: Proof | null;
}

/** The input and the output, run on the same tokens; its memory and its time are not those of the run. */
export interface Proof {
  /**
   * `same` within rounding; `differs` as a conversion that is not exact may; `failed` when one that keeps all
   * values differs by more than rounding; `skipped` when it could not be made.
   */
  readonly verdict: 'same' | 'differs' | 'failed' | 'skipped';
  /** Whether the conversion keeps every value that the model computes with. */
  readonly isExact: boolean;
  /** Why it could not be made. */
  readonly why: string | null;
  readonly against: Against | null;
}

interface ConvertedSide {
  /** As the user wrote it. */
  readonly path: string;
  readonly parameters: number;
  /** Of the tensors, buffers included, each once. */
  readonly tensorBytes: number;
  /** Of the files: of a training checkpoint with all that is not the model. */
  readonly bytes: number;
}

/** An embedding and a head that became one tensor. */
export interface ConvertedTie extends PlannedTie {
  /** Errors of the tied tensor in the place of the embedding and of the head; none for a plan. */
  readonly errors: readonly TensorError[];
}

export interface ConvertedSrte {
  readonly source: SrteLayout & { readonly parameters: number };
  readonly target: SrteLayout & { readonly parameters: number };
  /** `mean`, `first`, `layer:3`; null where no two tables become one. */
  readonly merge: string | null;
  /** The largest `relativeError` that was allowed, by which the rank was found. */
  readonly maxError: number | null;
  /** What stands in the rows that the input does not have. */
  readonly extension: Extension | null;
  /** Of all layers together, ‖had − gets‖ / ‖had‖; null for a plan, and where all was zero. */
  readonly relativeError: number | null;
  readonly tables: readonly ConvertedTable[];
}

/** A table of the output. */
export interface ConvertedTable {
  readonly name: string;
  readonly form: SrteForm;
  readonly rank: number | null;
  readonly dtype: StoredDtype;
  /** Numbers of the input's tables that it takes the place of, and of those that its values come from. */
  readonly replaces: readonly number[];
  readonly sources: readonly number[];
  /** Share of the squared norm of the table that a pair was made from and keeps; null for other forms. */
  readonly energy: number | null;
  readonly errors: readonly TableError[];
}
