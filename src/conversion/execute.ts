/** Follows a plan: makes the tables, writes the files, measures what the new tables have lost. */
import type { ByteFile } from '../checkpoint/byte-file.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { UserError } from '../errors.js';
import { INDEX_FILE } from '../files/config-names.js';
import type { ByteSink } from '../files/file-sink.js';
import type { MatrixProducts } from '../linalg/product.js';
import { checkOutput } from './check-output.js';
import type { Planned } from './make-plan.js';
import { type MadeTable, makeTable, type Scratch } from './make-tables.js';
import { measureTable, measureTie, type TensorError } from './measure-tables.js';
import { valuesOf } from './output-values.js';
import type { OutputFile, ValuesOf } from './outputs.js';
import type { PlannedTable, PlannedTensor, SrtePlan } from './plan.js';
import type { SrteTables } from './srte-tables.js';
import type { TableError } from './table-errors.js';

/** Where the files of an output are built before they take its place. */
export interface OutputFolder {
  /** Whether an earlier run has finished a file. */
  isFinished(name: string): boolean;
  write(name: string, fill: (sink: ByteSink) => Promise<void>): Promise<void>;
  /** Path of a finished file. */
  finished(name: string): string;
}

export interface ExecuteInput {
  readonly checkpoint: Checkpoint;
  readonly tables: SrteTables | null;
  readonly planned: Planned;
  readonly made: readonly (MadeTable | undefined)[];
  /** The files of the output, once it is known how their values come about. */
  files(valuesOf: ValuesOf): readonly OutputFile[];
}

interface WorkOptions {
  readonly products: MatrixProducts;
  readonly blockRows: number;
  readonly saturate: boolean;
  /** What is being done, and how many bytes it will work on. */
  readonly step: (label: string, bytes: number) => (bytes: number) => void;
}

export interface MakeTablesOptions extends WorkOptions {
  readonly scratch: Scratch;
  readonly seed: number;
  readonly relativeError?: number | undefined;
}

export interface ExecuteOptions extends WorkOptions {
  readonly output: OutputFolder;
  /** Whether to read everything again, and compare. */
  readonly check: boolean;
}

export interface Executed {
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly resumed: boolean;
  }[];
  readonly tables: readonly MeasuredTable[];
  /** Errors of a tied tensor; empty when nothing is tied. */
  readonly tie: readonly TensorError[];
}

export interface MeasuredTable extends PlannedTable {
  readonly energy: number | null;
  /** One for each table that it takes the place of. */
  readonly errors: readonly TableError[];
}

/**
 * Makes the tables of a plan that have to be.
 * @throws UserError as `makeTable` does.
 */
export async function makeTables(
  plan: SrtePlan | null,
  { checkpoint, tables }: Pick<ExecuteInput, 'checkpoint' | 'tables'>,
  { step, ...options }: MakeTablesOptions,
): Promise<(MadeTable | undefined)[]> {
  const made: (MadeTable | undefined)[] = [];
  for (const [number, table] of plan?.tables.entries() ?? []) {
    if (!plan || !table.isMade) {
      made.push(undefined);
      continue;
    }
    const rows = Math.min(plan.target.positions, plan.source.positions);
    const onBytes = step(`merging ${table.name}`, rows * plan.source.hidden * table.sources.length);
    made.push(
      await makeTable(plan, number, tables, { file: checkpoint.path, ...options, step, onBytes }),
    );
  }
  return made;
}

/**
 * Writes every file of an output that an earlier run has not finished, and measures its tables.
 * @throws UserError when reading or writing fails, a value does not fit its type, the input has changed
 * meanwhile, or what was written is not what should have been.
 */
export async function execute(input: ExecuteInput, options: ExecuteOptions): Promise<Executed> {
  const { checkpoint, planned, made } = input;
  const { output: folder, saturate, step, check } = options;
  const sources = {
    checkpoint,
    made,
    formulas: planned.formulas,
    extension: planned.plan.srte?.extension ?? null,
    saturate,
  };
  const values = (tensor: PlannedTensor) => valuesOf(tensor, sources);
  let tell: (bytes: number) => void = () => {};
  const files = input.files(async function* (tensor) {
    for await (const chunk of values(tensor)) {
      yield chunk;
      tell(chunk.length);
    }
  });
  const written = [];
  tell = step(
    'writing',
    files.reduce((sum, { name, bytes }) => sum + (folder.isFinished(name) ? 0 : bytes), 0),
  );
  for (const { name, bytes, fill } of files) {
    const resumed = folder.isFinished(name);
    if (!resumed) await folder.write(name, fill);
    written.push({ name, bytes, resumed });
  }
  refuseChanged(checkpoint.files);
  const output = openCheckpoint(outputPath(folder, files));
  try {
    const tables = await measured(input, output, options);
    if (check)
      await checkOutput(planned.plan, output, values, step('checking', totalBytes(planned)));
    const { tie: tied } = planned.plan;
    const tie = tied ? await measureTie(tied, checkpoint, output, options) : [];
    return { files: written, tables, tie };
  } finally {
    output.close();
  }
}

const totalBytes = ({ plan }: Planned) => plan.tensors.reduce((sum, { bytes }) => sum + bytes, 0);

/** The one file with tensors, or the index of several. */
function outputPath(folder: OutputFolder, files: readonly OutputFile[]): string {
  const main = files.find(({ name }) => name === INDEX_FILE) ?? files[0];
  return folder.finished(main?.name ?? '');
}

async function measured(
  { checkpoint, tables, planned: { plan }, made }: ExecuteInput,
  output: Checkpoint,
  options: ExecuteOptions,
): Promise<MeasuredTable[]> {
  const { srte } = plan;
  if (srte === null) return [];
  const result: MeasuredTable[] = [];
  for (const [number, table] of srte.tables.entries()) {
    const known = made[number];
    const errors =
      known?.errors ??
      (await measureTable({ file: checkpoint.path, srte, table, tables, output }, options));
    result.push({
      ...table,
      rank: known?.rank ?? table.rank,
      energy: known?.energy ?? null,
      errors: merged(errors, tables),
    });
  }
  return result;
}

/** Layers that had the same table have the same error. */
function merged(errors: readonly TableError[], tables: SrteTables | null): TableError[] {
  return tables?.sharing === 'shared'
    ? errors.map((error) => ({ ...error, layers: [] }))
    : [...errors];
}

/** @throws UserError when a file is no longer what it was when it was opened. */
function refuseChanged(files: readonly ByteFile[]): void {
  const changed = files.find((file) => file.hasChanged());
  if (changed === undefined) return;
  throw new UserError('refused-file', `${changed.path} was changed while it was read`, {
    suggestion: 'wait until whatever writes it has finished, and convert again',
  });
}
