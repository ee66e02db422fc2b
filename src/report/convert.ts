/** What `minimind convert-checkpoint` prints. */
import type { SrteLayout } from '../architecture/srte-layout.js';
import type { CheckpointFormat } from '../checkpoint/checkpoint.js';
import type { LeftOut, PlannedTable, PlannedTensor } from '../conversion/plan.js';
import type { TableError } from '../conversion/table-errors.js';
import { heading } from './cells.js';
import type { Report } from './report.js';

export interface ConvertResult {
  readonly schema: 'minimind/convert-checkpoint@1';
  readonly dryRun: boolean;
  readonly input: {
    readonly path: string;
    readonly format: CheckpointFormat;
    readonly config: { readonly file: string; readonly origin: string } | null;
    readonly parameters: number;
    readonly bytes: number;
  };
  readonly output: {
    readonly path: string;
    readonly container: string;
    readonly parameters: number;
    readonly bytes: number;
    readonly files: readonly { readonly name: string; readonly bytes: number }[];
  };
  readonly srte: {
    readonly source: SrteLayout & { readonly parameters: number };
    readonly target: SrteLayout & { readonly parameters: number };
    readonly merge: string;
    readonly extension: string | null;
    /** Of all layers together, ‖had − gets‖ / ‖had‖; null in a dry run, and where all was zero. */
    readonly relativeError: number | null;
    readonly tables: readonly (PlannedTable & {
      readonly energy: number | null;
      readonly errors: readonly TableError[];
    })[];
  } | null;
  readonly configChanges: readonly {
    readonly path: string;
    readonly from: unknown;
    readonly to: unknown;
  }[];
  readonly leftOut: readonly LeftOut[];
  readonly notes: readonly string[];
  readonly tensors: readonly PlannedTensor[];
  readonly memory: {
    readonly limitBytes: number;
    readonly predictedPeakBytes: number;
    readonly peakBytes: number | null;
  };
  readonly run: {
    readonly seconds: number;
    readonly resumed: boolean;
    readonly checked: boolean;
    /** Read and written. */
    readonly bytesPerSecond: number;
    /** What computed the products of matrices: `JavaScript`, `ONNX Runtime 1.30.0, 2 threads`. */
    readonly products: string;
  } | null;
}

export function convertReport(result: ConvertResult, _options: { readonly flat: boolean }): Report {
  return { blocks: [heading(result.output.path)] };
}
