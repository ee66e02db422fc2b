import type { SrteLayout } from '../architecture/srte-layout.js';
import { srteParameters } from '../architecture/srte-layout.js';
import type { CheckpointFormat, Container } from '../checkpoint/formats.js';
import { WRITABLE_BLOCKS } from '../checkpoint/gguf/ggml-types.js';
import { groupByPattern, templateOf } from '../checkpoint/names.js';
import { bytesOfViews, viewsOf } from '../checkpoint/sharing.js';
import { UserError } from '../errors.js';
import { isSidecarName } from '../files/config-names.js';
import type { ConfigOrigin } from '../model-input/checkpoint-config.js';
import { ENCODABLE_DTYPES } from '../tensor/encode.js';
import type { WeightForm } from '../tensor/group-quantization.js';
import { groupBy, sumOf } from '../text/words.js';
import type { Extension } from './conversion-choices.js';
import type {
  MeasuredTable,
  Proof,
  QuantizationError,
  TensorError,
} from './execute/check-output.js';
import { checkProvable, prove } from './execute/check-output.js';
import type { ConversionOutput } from './execute/execute.js';
import { execute, preview } from './execute/execute.js';
import type { TableError } from './execute/table-rows.js';
import { overallError } from './execute/table-rows.js';
import type { CheckpointTarget, ConversionJob, ConversionRequest } from './job.js';
import {
  checkJob,
  NOTHING_WRITTEN,
  outputTarget,
  refuseOverlap,
  withStoppedNotice,
} from './job.js';
import type {
  ConversionInput,
  ConversionPlan,
  Omission,
  PlannedTensor,
  PlannedTie,
  QuantizationPlan,
  StepGroup,
  TensorStep,
} from './plan/conversion-plan.js';
import { groupSteps, stepsOf } from './plan/conversion-plan.js';
import { asGgufPlan } from './plan/gguf-plan.js';
import { planConversion, readInput } from './plan/plan-conversion.js';
import { isBufferName } from './plan/plan-tensors.js';
import type { Resources } from './resources.js';
import { resourcesFor } from './resources.js';
import type { PlannedTable, SrtePlan } from './srte/srte-plan.js';

/** A planned or finished conversion: output of `minimind convert-checkpoint --json`. */
export interface ConversionResult {
  readonly schema: 'minimind/convert-checkpoint@1';
  readonly dryRun: boolean;
  readonly input: ConvertedSide & {
    readonly format: CheckpointFormat;
    /** Null for a conversion by names only. */
    readonly config: { readonly file: string; readonly origin: ConfigOrigin } | null;
  };
  readonly output: ConvertedSide & {
    readonly container: Container;
    readonly files: readonly {
      readonly name: string;
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
  readonly configChanges: readonly {
    readonly path: string;
    readonly from: unknown;
    readonly to: unknown;
  }[];
  /** Similar names of all layers, grouped. */
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
    /** Memory of the process. */
    readonly predictedPeakBytes: number;
    /** Measured by the system; null for a plan. */
    readonly peakBytes: number | null;
  };
  /** Null for a plan. */
  readonly run: {
    readonly seconds: number;
    /** Bytes of the input, repeated reads included; scratch files are not counted. */
    readonly readBytes: number;
    /** Bytes of the output, without those of an earlier run. */
    readonly writtenBytes: number;
    /** Read and written bytes per second. */
    readonly bytesPerSecond: number;
    readonly resumed: boolean;
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
  readonly parameters: number;
  /** Bytes of the distinct tensors, including buffers. */
  readonly tensorBytes: number;
  /** Bytes of the files; for a training checkpoint including data outside the model. */
  readonly bytes: number;
}

/** A GGUF file: its architecture, and the errors of its blocks. */
export interface ConvertedGguf {
  readonly architecture: string;
  /** ‖had − gets‖ / ‖had‖ of all tensors in blocks together; null for a plan, and without blocks. */
  readonly relativeError: number | null;
  /** Errors of the tensors in blocks by layer, those outside of the layers by their names. */
  readonly errors: readonly {
    /** `blk.3`, or the name of a tensor. */
    readonly part: string;
    readonly tensors: number;
    readonly relativeError: number | null;
    readonly largestError: number;
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
    })),
  };
}

/** Weights of linear layers that became packed. */
export interface ConvertedWeights extends WeightForm {
  /** Name of the layout. */
  readonly layout: 'compressed-tensors pack-quantized';
  readonly weights: readonly string[];
  /** Linear layers and routers that stay floats. */
  readonly ignored: readonly string[];
  /** ‖had − gets‖ / ‖had‖ of all weights together; null for a plan, and for zero weights. */
  readonly relativeError: number | null;
  /** One per weight; empty for a plan. */
  readonly errors: readonly QuantizationError[];
}

/** An embedding and a head that became one tensor. */
export interface ConvertedTie extends PlannedTie {
  /** Errors of the tied tensor relative to the embedding and the head; empty for a plan. */
  readonly errors: readonly TensorError[];
}

export interface ConvertedSrte {
  readonly source: SrteLayout & { readonly parameters: number };
  readonly target: SrteLayout & { readonly parameters: number };
  /** `mean`, `first`, `layer:3`; null without a merge. */
  readonly merge: string | null;
  /** The allowed `relativeError` that determined the rank. */
  readonly maxError: number | null;
  /** Values of the rows that the input lacks. */
  readonly extension: Extension | null;
  /** ‖had − gets‖ / ‖had‖ of all layers together; null for a plan, and for zero tables. */
  readonly relativeError: number | null;
  readonly tables: readonly ConvertedTable[];
}

/** The errors are empty for a plan. */
export type ConvertedTable = Omit<MeasuredTable, 'isMade'>;

/** @param seconds Duration of the run; null for a plan. */
export function resultOf(
  input: ConversionInput,
  resources: Resources,
  output: ConversionOutput,
  seconds: number | null,
): ConversionResult {
  const { job, place } = input;
  const { plan, files, tie } = output;
  const steps = stepsOf(plan, input, files);
  const written = {
    path: place.path,
    container: place.container,
    parameters: sumOf(
      plan.tensors.filter(({ role }) => role === 'parameter'),
      parametersIn,
    ),
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
    adapter: job['merge-lora'] ?? null,
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

/** A packed weight counts with its values, and the scales of a weight are not parameters. */
function parametersIn({ shape, action }: PlannedTensor): number {
  const isPacked = action.do === 'quantize';
  if (isPacked && action.part !== 'packed') return 0;
  return (isPacked ? action.weight.shape : shape).reduce((product, size) => product * size, 1);
}

function describedInput({ job, source }: ConversionInput): ConversionResult['input'] {
  const { path, format, files, tensors, packed } = job.checkpoint;
  const views = viewsOf(tensors);
  const parameters = views.filter(({ names }) => !names.some(isBufferName));
  return {
    path,
    format,
    config: source ? { file: source.file, origin: source.origin } : null,
    parameters: sumOf(parameters, ({ tensor }) => tensor.elements),
    tensorBytes: bytesOfViews(packed ? viewsOf(packed.tensors) : views),
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
    const { energy, errors } = { energy: null, errors: [], ...table };
    const known = errors.map((error) => withLayers(error, number, source, target));
    return { name, form, rank, dtype, replaces, sources, energy, errors: known };
  });
  const isMerged = merges(target, tables);
  return {
    source: { ...source, parameters: srteParameters(source) },
    target: { ...target, parameters: srteParameters(target) },
    merge: isMerged ? (typeof merge === 'string' ? merge : `layer:${merge.layer}`) : null,
    maxError: (job.rank === undefined ? job['max-error'] : undefined) ?? null,
    extension,
    relativeError: measured && overallError(tables.flatMap(({ errors }) => errors)),
    tables,
  };
}

/** Whether several tables of the input become one. */
const merges = (target: SrteLayout, tables: readonly Pick<PlannedTable, 'replaces'>[]): boolean =>
  target.form !== 'sincos' && tables.some(({ replaces }) => replaces.length > 1);

/** @throws UserError for `--merge` where nothing is merged, or `--seed` where nothing is random. */
function refuseIdle({ merge, seed, prove }: ConversionRequest, srte: SrtePlan | null): void {
  if (merge !== undefined && !(srte && merges(srte.target, srte.tables))) {
    throw new UserError(
      'usage',
      '--merge: expected tables of several layers to share, found none',
      {
        suggestion:
          'remove --merge; it needs an input with a table for each layer, and --to shared',
      },
    );
  }
  const isSearched = srte?.tables.some(({ form, isMade }) => form === 'low-rank' && isMade);
  if (seed !== undefined && !prove && !isSearched) {
    throw new UserError('usage', '--seed: expected --prove or a new low-rank pair, found neither', {
      suggestion: 'remove --seed; nothing here is random',
    });
  }
}

/** Adds the layers of the table; a shared table has all of them. */
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
    // A missing flag is undefined, despite its type.
    checked: Boolean(check),
    products: backend.name,
  };
}

// Converts a checkpoint: request, plan, execution, check, result.

/** A checked request. Whoever prepares it closes the backend of its resources. */
export interface PreparedConversion {
  readonly input: ConversionInput;
  readonly plan: ConversionPlan;
  readonly resources: Resources;
}

/**
 * Checks a request and plans its output.
 * @throws UserError for every fault of the input or the request.
 */
export async function prepare(request: ConversionRequest): Promise<PreparedConversion> {
  checkJob(request);
  const place = outputTarget(request.out, request.container);
  const job = jobOf(request, place);
  const read = [job.config, job.target].filter((file) => file !== undefined);
  refuseOverlap(job.checkpoint, place, { read, report: job.output });
  return withStoppedNotice(
    job,
    () => NOTHING_WRITTEN,
    () => planned(job, request, place),
  );
}

/**
 * Converts, or with a dry run reports the plan.
 * @throws UserError for every fault of the input, the request or the destination.
 */
export async function convert(request: ConversionRequest): Promise<ConversionResult> {
  const start = performance.now();
  const { input, plan, resources } = await prepare(request);
  const { job } = input;
  try {
    if (job['dry-run']) {
      const output = await withStoppedNotice(
        job,
        () => NOTHING_WRITTEN,
        () => preview(input, plan, resources),
      );
      return resultOf(input, resources, output, null);
    }
    const output = await execute(input, plan, resources);
    const seconds = (performance.now() - start) / 1000;
    const result = resultOf(input, resources, output, seconds);
    const { source } = input;
    if (!job.prove || source === undefined) return result;
    job.display.end();
    const keepsSrte = result.srte === null || result.srte.relativeError === 0;
    const left = () => `${job.out} is complete, but was not compared with the input`;
    return {
      ...result,
      proof: await withStoppedNotice(job, left, () => prove(job, source, keepsSrte)),
    };
  } finally {
    await resources.backend.close();
  }
}

async function planned(
  job: ConversionJob,
  request: ConversionRequest,
  place: CheckpointTarget,
): Promise<PreparedConversion> {
  const input = await readInput(job, place);
  await job.warn(input.warnings);
  if (job.prove) await checkProvable(job, input.source);
  const plan = await planConversion(input);
  refuseIdle(request, plan.srte);
  const resources = await resourcesFor(plan.srte, job);
  return place.container === 'gguf'
    ? { ...asGgufPlan(input, plan), resources }
    : { input, plan, resources };
}

/** @throws UserError for types of blocks in another file than GGUF. */
function jobOf(request: ConversionRequest, { container }: CheckpointTarget): ConversionJob {
  const { dtype, merge = 'mean', seed = 0 } = request;
  const blocks = WRITABLE_BLOCKS.find((each) => each === dtype);
  if (blocks !== undefined && container !== 'gguf') {
    throw new UserError(
      'usage',
      `--dtype ${blocks.toLowerCase()}: expected OUT to end in .gguf, found a ${container} output`,
      { suggestion: 'write OUT as model.gguf, or choose --dtype f16 or bf16' },
    );
  }
  return {
    ...request,
    ...{ merge, seed, blocks, dtype: ENCODABLE_DTYPES.find((each) => each === dtype) },
    // The ending of a GGUF file asks for a change, like --container.
    container: container === 'gguf' ? container : request.container,
  };
}
