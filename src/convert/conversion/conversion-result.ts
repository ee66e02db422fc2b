/** The result of a conversion, planned or done: both sides, errors, files, memory. */

import { isSidecarName } from '../../base/files/config-names.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { groupBy, sumOf } from '../../base/values.js';
import { tensorsOfFile } from '../../checkpoint/checkpoint.js';
import type { CheckpointFormat, Container } from '../../checkpoint/formats.js';
import { groupByPattern, templateOf } from '../../checkpoint/names.js';
import { parameterNames } from '../../checkpoint/reconcile/faults.js';
import { viewsOf } from '../../checkpoint/sharing.js';
import { encodedBytes } from '../../checkpoint/stored-tensor.js';
import type { ConfigOrigin } from '../../input/model-input/checkpoint/checkpoint-config.js';
import type { SrteLayout } from '../../model/architecture/srte-layout.js';
import { srteParameters } from '../../model/architecture/srte-layout.js';
import { tensorsOf } from '../../model/architecture/walk.js';
import type { Extension } from './conversion-choices.js';
import type {
  MeasuredTable,
  Proof,
  QuantizationError,
  TensorError,
} from './execute/check-output.js';
import type { ConversionOutput } from './execute/execute.js';
import type { TableError } from './execute/table-rows.js';
import { overallError } from './execute/table-rows.js';
import type { ConversionJob } from './job.js';
import type {
  ConversionInput,
  Omission,
  PlannedTensor,
  PlannedTie,
  QuantizationPlan,
  StepGroup,
  TensorStep,
} from './plan/conversion-plan.js';
import { groupSteps, tensorSteps } from './plan/conversion-plan.js';
import { isBufferName } from './plan/plan-tensors.js';
import type { Resources } from './resources.js';
import type { PlannedTable, SrtePlan } from './srte/srte-plan.js';

/**
 * A planned or finished conversion.
 * @answer minimind convert-checkpoint --json
 */
export interface ConversionResult {
  readonly schema: 'minimind/convert-checkpoint@1';
  /** Whether this is a plan, and nothing was written. */
  readonly dryRun: boolean;
  /** The checkpoint that was read. */
  readonly input: ConvertedSide & {
    /** Format of the input. */
    readonly format: CheckpointFormat;
    /** Null for a conversion by names only. */
    readonly config: {
      /** The config of the input. */
      readonly file: string;
      readonly origin: ConfigOrigin;
    } | null;
  };
  /** The checkpoint that was written. */
  readonly output: ConvertedSide & {
    /** Container of the output. */
    readonly container: Container;
    /** Files of the output. */
    readonly files: readonly {
      /** Name in the folder of the output. */
      readonly name: string;
      /** Size of the file. @count */
      readonly bytes: number;
      /** Whether an earlier run wrote it. */
      readonly resumed: boolean;
      /** Whether it is a copy from the folder of the input: a tokenizer, a chat template. */
      readonly copied: boolean;
    }[];
  };
  /** Folder of the LoRA adapter that was merged; null without one. */
  readonly adapter: string | null;
  /** Null when the SRTE is unchanged or absent. */
  readonly srte: ConvertedSrte | null;
  /** Null when nothing is tied. */
  readonly tie: ConvertedTie | null;
  /** Null for other containers. */
  readonly gguf: ConvertedGguf | null;
  /** Null when no weight becomes packed. */
  readonly quantization: ConvertedWeights | null;
  /** Changes of the config. */
  readonly configChanges: readonly {
    /** Dotted path of the key; in a config.json, the key as it is there. */
    readonly path: string;
    /** Value before; null when it was not there. */
    readonly from: unknown;
    /** Value after. */
    readonly to: unknown;
  }[];
  /** Similar names of all layers, grouped. */
  readonly leftOut: readonly {
    /** Names in short: `layers.{0–31}.srte.freqs`. */
    readonly pattern: string;
    /** Names of the tensors. */
    readonly names: readonly string[];
    /** Reason why they are left out. */
    readonly why: string;
  }[];
  /** Remarks for people. */
  readonly notes: readonly string[];
  /** Tensors by the way in which they are made. */
  readonly groups: readonly StepGroup[];
  /** Tensors of the output in its order, each once. */
  readonly tensors: readonly TensorStep[];
  /** Memory of the conversion. */
  readonly memory: {
    /** Memory that the conversion may use. @count */
    readonly limitBytes: number;
    /** Memory of the process. @count */
    readonly predictedPeakBytes: number;
    /** Measured by the system; null for a plan. @count */
    readonly peakBytes: number | null;
  };
  /** Null for a plan. */
  readonly run: {
    /** Duration; null for a plan. @minimum 0 */
    readonly seconds: number;
    /** Bytes of the input, repeated reads included; scratch files are not counted. @count */
    readonly readBytes: number;
    /** Bytes of the output, without those of an earlier run. @count */
    readonly writtenBytes: number;
    /** Read and written bytes per second. @count */
    readonly bytesPerSecond: number;
    /** Whether files of an earlier run were kept. */
    readonly resumed: boolean;
    /** Whether the output was read again and compared. */
    readonly checked: boolean;
    /** Backend of the matrix products: `JavaScript`, `ONNX Runtime 1.30.0, 2 threads`. */
    readonly products: string;
  } | null;
  /** Null without a request. */
  readonly proof: Proof | null;
}

interface ConvertedSide {
  /** Path as given. */
  readonly path: string;
  /** Values of the parameters, each once; buffers are not counted. @count */
  readonly parameters: number;
  /** Tensors, tied ones once, as `inspect` and `verify` count them. @count */
  readonly tensors: number;
  /** Bytes of the distinct tensors, including buffers. @count */
  readonly tensorBytes: number;
  /** Bytes of the files; for a training checkpoint including data outside the model. @count */
  readonly bytes: number;
}

/** A GGUF file: its architecture, and the errors of its blocks. */
interface ConvertedGguf {
  /** Architecture of llama.cpp. */
  readonly architecture: string;
  /** ‖had − gets‖ / ‖had‖ of all tensors in blocks together; null for a plan, and without blocks. */
  readonly relativeError: number | null;
  /** Errors of the tensors in blocks by layer, those outside of the layers by their names. */
  readonly errors: readonly {
    /** `blk.3`, or the name of a tensor. */
    readonly part: string;
    /** Number of tensors. @integer */
    readonly tensors: number;
    /** Norm of the error ÷ norm of the values; null for a plan. */
    readonly relativeError: number | null;
    /** Largest error of a value; null for a plan. */
    readonly largestError: number;
    /** Errors of its tensors. */
    readonly byTensor: readonly {
      /** Name of the tensor in the GGUF file. */
      readonly name: string;
      /** Norm of the error ÷ norm of the values; null for zero values. */
      readonly relativeError: number | null;
    }[];
  }[];
}

function convertedGguf(architecture: string, { blocks }: ConversionOutput): ConvertedGguf {
  const measured = blocks ?? [];
  const parts = groupBy(measured, ({ name }) => /^blk\.\d+/.exec(name)?.[0] ?? name);
  const overall = (errors: readonly TensorError[]) =>
    overallError(errors.map((each) => ({ ...each, layers: [] })));
  return {
    architecture,
    relativeError: measured.length > 0 ? overall(measured) : null,
    errors: Array.from(parts, ([part, errors]) => ({
      part,
      tensors: errors.length,
      relativeError: overall(errors),
      largestError: Math.max(...errors.map(({ largestError }) => largestError)),
      byTensor: errors.map(({ name, relativeError }) => ({ name, relativeError })),
    })),
  };
}

/** Weights of linear layers that became packed. */
export interface ConvertedWeights extends WeightForm {
  /** Name of the layout. */
  readonly layout: 'compressed-tensors pack-quantized';
  /** Names of the quantized weights. */
  readonly weights: readonly string[];
  /** Linear layers and routers that stay floats. */
  readonly ignored: readonly string[];
  /** ‖had − gets‖ / ‖had‖ of all weights together; null for a plan, and for zero weights. */
  readonly relativeError: number | null;
  /** One per weight; empty for a plan. */
  readonly errors: readonly QuantizationError[];
}

/** An embedding and a head that became one tensor. */
interface ConvertedTie extends PlannedTie {
  /** Errors of the tied tensor relative to the embedding and the head; empty for a plan. */
  readonly errors: readonly TensorError[];
}

export interface ConvertedSrte {
  /** Layout of the SRTE in the input. */
  readonly source: SrteLayout & {
    /** Learned values of all tables together. @count */
    readonly parameters: number;
  };
  /** Layout of the SRTE in the output. */
  readonly target: SrteLayout & {
    /** Learned values of all tables together. @count */
    readonly parameters: number;
  };
  /** `mean`, `first`, `layer:3`; null without a merge. @pattern ^(mean|first|layer:\d+)$ */
  readonly merge: string | null;
  /** The allowed `relativeError` that determined the rank. @exclusiveMinimum 0 @exclusiveMaximum 1 */
  readonly maxError: number | null;
  /** Values of the rows that the input lacks. */
  readonly extension: Extension | null;
  /** ‖had − gets‖ / ‖had‖ of all layers together; null for a plan, and for zero tables. @real @minimum 0 */
  readonly relativeError: number | null;
  /** Tables of the output. */
  readonly tables: readonly ConvertedTable[];
}

/** The errors are empty for a plan. */
export type ConvertedTable = Omit<MeasuredTable, 'isMade'>;

/** @param seconds Duration of the run; null for a plan. */
export function conversionResult(
  input: ConversionInput,
  resources: Resources,
  output: ConversionOutput,
  seconds: number | null,
): ConversionResult {
  const { job, place } = input;
  const { plan, files, tie } = output;
  const steps = tensorSteps(plan, input, files);
  const written = {
    path: place.path,
    container: place.container,
    parameters: sumOf(
      plan.tensors.filter(({ role }) => role === 'parameter'),
      parametersIn,
    ),
    tensors: steps.length,
    tensorBytes: sumOf(steps, ({ bytes }) => bytes),
    bytes: sumOf(files, ({ bytes }) => bytes),
    files: files.map(({ name, bytes, resumed = false }) => ({
      name,
      bytes,
      resumed,
      copied: isSidecarName(name),
    })),
  };
  return {
    schema: 'minimind/convert-checkpoint@1',
    dryRun: seconds === null,
    input: describedInput(input),
    output: written,
    adapter: job.mergeLora ?? null,
    srte: plan.srte && convertedSrte(plan.srte, job, output),
    tie: plan.tie && { ...plan.tie, errors: tie ?? [] },
    gguf: plan.gguf ? convertedGguf(plan.gguf.architecture, output) : null,
    quantization: plan.quantization ? convertedWeights(plan.quantization, output) : null,
    configChanges: plan.config?.changes ?? [],
    leftOut: groupedOmissions(plan.leftOut),
    notes: plan.notes,
    groups: groupSteps(steps),
    tensors: steps,
    memory: {
      limitBytes: resources.limitBytes,
      predictedPeakBytes: Math.round(resources.peakBytes),
      peakBytes: seconds === null ? null : process.resourceUsage().maxRSS * 1024,
    },
    run: seconds === null ? null : describedRun(job, resources, written.files, seconds),
    proof: null,
  };
}

/** Parameters of a tensor. A packed weight counts with its values; the scales of a weight are not parameters. */
function parametersIn({ shape, action }: PlannedTensor): number {
  const isPacked = action.do === 'quantize';
  if (isPacked && action.part !== 'packed') return 0;
  return (isPacked ? action.weight.shape : shape).reduce((product, size) => product * size, 1);
}

function describedInput({ job, source }: ConversionInput): ConversionResult['input'] {
  const { path, format, files, tensors } = job.checkpoint;
  const stored = viewsOf(tensorsOfFile(job.checkpoint));
  const views = viewsOf(tensors);
  const buffers = (source ? tensorsOf(source.model) : []).filter(({ role }) => role === 'buffer');
  const others = new Set([...buffers.flatMap(parameterNames), ...(source?.ignored?.names ?? [])]);
  const isOther = (name: string) => isBufferName(name) || others.has(name);
  const parameters = views.filter(({ names }) => !names.some(isOther));
  return {
    path,
    format,
    config: source ? { file: source.file, origin: source.origin } : null,
    parameters: sumOf(parameters, ({ tensor }) => tensor.elements),
    tensors: stored.length,
    tensorBytes: sumOf(stored, ({ tensor }) => encodedBytes(tensor)),
    bytes: sumOf(files, ({ size }) => size),
  };
}

function convertedSrte(
  { source, target, merge, extension, ...plan }: SrtePlan,
  job: ConversionJob,
  { tables: measured }: ConversionOutput,
): ConversionResult['srte'] {
  const tables = (measured ?? plan.tables).map((table, number): ConvertedTable => {
    const { name, form, rank, dtype, replaces, sources } = table;
    const { energy, singularValues, errors } = {
      ...{ energy: null, singularValues: null, errors: [] },
      ...table,
    };
    const known = errors.map((error) => withLayers(error, number, source, target));
    return { name, form, rank, dtype, replaces, sources, energy, singularValues, errors: known };
  });
  const isMerged = merges(target, tables);
  return {
    source: { ...source, parameters: srteParameters(source) },
    target: { ...target, parameters: srteParameters(target) },
    merge: isMerged ? (typeof merge === 'string' ? merge : `layer:${merge.layer}`) : null,
    maxError: (job.rank === undefined ? job.maxError : undefined) ?? null,
    extension,
    relativeError: measured && overallError(tables.flatMap(({ errors }) => errors)),
    tables,
  };
}

/** Whether several tables of the input become one. */
export const merges = (
  target: SrteLayout,
  tables: readonly Pick<PlannedTable, 'replaces'>[],
): boolean => target.form !== 'sincos' && tables.some(({ replaces }) => replaces.length > 1);

/** Adds the layers that use the table; all layers use a shared one. */
function withLayers(
  error: TableError,
  number: number,
  source: SrteLayout,
  target: SrteLayout,
): TableError {
  if (error.layers.length > 0) return error;
  const all = Array.from({ length: source.layers }, (_, layer) => layer);
  return { ...error, layers: target.sharing === 'shared' ? all : [number] };
}

function convertedWeights(
  { form, weights, ignored }: QuantizationPlan,
  { quantized }: ConversionOutput,
): ConvertedWeights {
  const errors = quantized ?? [];
  const squares = errors.map(
    ({ norm, relativeError }) => ((norm ?? 0) * (relativeError ?? 0)) ** 2,
  );
  const whole = sumOf(errors, ({ norm }) => (norm ?? 0) ** 2);
  return {
    ...form,
    layout: 'compressed-tensors pack-quantized',
    weights,
    ignored,
    relativeError: whole > 0 ? Math.sqrt(sumOf(squares, (each) => each) / whole) : null,
    errors,
  };
}

const groupedOmissions = (leftOut: readonly Omission[]): ConversionResult['leftOut'] =>
  groupByPattern(leftOut, ({ name, why }) => ({ template: templateOf(name), key: why })).map(
    ({ pattern, first, members }) => ({
      pattern,
      names: members.map(({ name }) => name),
      why: first.why,
    }),
  );

function describedRun(
  { checkpoint, check }: ConversionJob,
  { backend }: Resources,
  files: ConversionResult['output']['files'],
  seconds: number,
): ConversionResult['run'] {
  const readBytes = sumOf(checkpoint.files, ({ bytesRead }) => bytesRead);
  const writtenBytes = sumOf(files, ({ bytes, resumed }) => (resumed ? 0 : bytes));
  return {
    seconds,
    readBytes,
    writtenBytes,
    bytesPerSecond: Math.round((readBytes + writtenBytes) / seconds),
    resumed: files.some(({ resumed }) => resumed),
    // oclif leaves a missing flag undefined, although its type is boolean.
    checked: Boolean(check),
    products: backend.name,
  };
}
