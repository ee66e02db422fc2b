/** What is told of a conversion, planned or done. */
import { type SrteLayout, srteParameters } from '../architecture/srte-layout.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { groupAlike, templateOf } from '../checkpoint/name-patterns.js';
import { bytesOfViews, viewsOf } from '../checkpoint/sharing.js';
import type { LeftOut, SrtePlan } from '../conversion/plan.js';
import { groupSteps, stepsOf, type TensorStep } from '../conversion/plan-steps.js';
import { overallError, type TableError } from '../conversion/table-errors.js';
import { isBufferName } from '../conversion/wanted.js';
import type { ConvertedTable, ConvertResult } from '../report/convert/convert-result.js';
import type { Subject } from './convert-plan.js';
import { type Converted, type RunFlags, shardsIn } from './convert-run.js';

/** What is known only of a conversion that was done. */
export interface Ran {
  readonly seconds: number;
  readonly resumed: boolean;
  readonly products: string;
}

/** @param ran Null for a plan. */
export function resultOf(
  checkpoint: Checkpoint,
  subject: Subject,
  flags: RunFlags,
  converted: Converted,
  ran: Ran | null,
): ConvertResult {
  const { plan, config, memory } = converted;
  const steps = stepsOf(plan, {
    stored: (name) =>
      checkpoint.tensors.get(name) ?? checkpoint.tensors.get(checkpoint.aliases.get(name) ?? ''),
    tables: subject.srte?.tables?.tables ?? [],
    shards: shardsIn(converted, flags),
  });
  const output = outputOf(flags, converted, steps);
  return {
    schema: 'minimind/convert-checkpoint@1',
    dryRun: ran === null,
    input: inputOf(checkpoint, subject),
    output,
    srte: plan.srte && srteOf(plan.srte, flags, converted),
    tie: plan.tie && { ...plan.tie, errors: converted.tie ?? [] },
    configChanges: config?.changes ?? [],
    leftOut: leftOutOf(plan.leftOut),
    notes: plan.notes,
    groups: groupSteps(steps),
    tensors: steps,
    memory: {
      limitBytes: flags.maxMemoryBytes,
      predictedPeakBytes: Math.round(memory.peakBytes),
      peakBytes: ran && process.resourceUsage().maxRSS * 1024,
    },
    run: ran && runOf(checkpoint, flags, output, ran),
    proof: null,
  };
}

function inputOf(checkpoint: Checkpoint, { source }: Subject): ConvertResult['input'] {
  const { path, format, files, tensors } = checkpoint;
  const views = viewsOf(tensors);
  const parameters = views.filter(({ names }) => !names.some(isBufferName));
  return {
    path,
    format,
    config: source ? { file: source.file, origin: source.origin } : null,
    parameters: parameters.reduce((sum, { tensor }) => sum + tensor.elements, 0),
    tensorBytes: bytesOfViews(views),
    bytes: files.reduce((sum, { size }) => sum + size, 0),
  };
}

function outputOf(
  { place: { path, container } }: RunFlags,
  { files }: Converted,
  steps: readonly TensorStep[],
): ConvertResult['output'] {
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const elements = ({ shape }: TensorStep) => shape.reduce((product, size) => product * size, 1);
  return {
    path,
    container,
    parameters: sum(steps.filter(({ role }) => role === 'parameter').map(elements)),
    tensorBytes: sum(steps.map(({ bytes }) => bytes)),
    bytes: sum(files.map(({ bytes }) => bytes)),
    files: files.map(({ name, bytes, resumed = false }) => ({ name, bytes, resumed })),
  };
}

function srteOf(
  { source, target, merge, extension, ...plan }: SrtePlan,
  { truncation }: RunFlags,
  { tables: measured }: Converted,
): ConvertResult['srte'] {
  const tables = (measured ?? plan.tables).map((table, number): ConvertedTable => {
    const { name, form, rank, dtype, replaces, sources } = table;
    const { energy, errors } = { energy: null, errors: [], ...table };
    const known = errors.map((error) => ofLayers(error, number, source, target));
    return { name, form, rank, dtype, replaces, sources, energy, errors: known };
  });
  const isMerged = target.form !== 'sincos' && tables.some(({ replaces }) => replaces.length > 1);
  return {
    source: { ...source, parameters: srteParameters(source) },
    target: { ...target, parameters: srteParameters(target) },
    merge: isMerged ? (typeof merge === 'string' ? merge : `layer:${merge.layer}`) : null,
    maxError: truncation && 'relativeError' in truncation ? truncation.relativeError : null,
    extension,
    relativeError: measured && overallError(tables.flatMap(({ errors }) => errors)),
    tables,
  };
}

/** An error with the layers that had the table; a table that they shared had them all. */
function ofLayers(
  error: TableError,
  number: number,
  source: SrteLayout,
  target: SrteLayout,
): TableError {
  if (error.layers.length > 0) return error;
  const all = Array.from({ length: source.layers }, (_, layer) => layer);
  return { ...error, layers: target.sharing === 'shared' ? all : [number] };
}

const leftOutOf = (leftOut: readonly LeftOut[]): ConvertResult['leftOut'] =>
  groupAlike(leftOut, ({ name, why }) => ({ template: templateOf(name), key: why })).map(
    ({ pattern, first, members }) => ({
      pattern,
      names: members.map(({ name }) => name),
      why: first.why,
    }),
  );

function runOf(
  { files }: Checkpoint,
  { check }: RunFlags,
  output: ConvertResult['output'],
  { seconds, resumed, products }: Ran,
): ConvertResult['run'] {
  const readBytes = files.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  const writtenBytes = output.files.reduce(
    (sum, { bytes, resumed: is }) => sum + (is ? 0 : bytes),
    0,
  );
  // A flag that is not given is undefined, whatever its type says.
  const checked = Boolean(check);
  const bytesPerSecond = Math.round((readBytes + writtenBytes) / seconds);
  return { seconds, readBytes, writtenBytes, bytesPerSecond, resumed, checked, products };
}
