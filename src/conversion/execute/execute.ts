/** Follows a plan: makes the tables, writes the files, measures what the new tables have lost. */

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { ByteFile } from '../../checkpoint/byte-file.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import type { Writable } from '../../checkpoint/torch/pickle/write-values.js';
import { CLEAR_LINE } from '../../cli/progress.js';
import { escapeText } from '../../config/quote.js';
import { UserError } from '../../errors.js';
import type { ByteSink } from '../../files/byte-sink.js';
import type { ConfigFormat } from '../../files/config-names.js';
import { CONFIG_FILES, configIn, INDEX_FILE, ownConfigName } from '../../files/config-names.js';
import { isSameFile } from '../../files/names.js';
import { checkReplaceable, findOutputPlace } from '../../files/output-place.js';
import { explained } from '../../files/refusals.js';
import { Staging } from '../../files/staging.js';
import { TemporaryFolder } from '../../files/temporary.js';
import { writeWhole } from '../../files/write-whole.js';
import type { MatrixProducts } from '../../linalg/product.js';
import { formatBytes } from '../../report/kit/units.js';
import type { PlannedShard, PlannedTable, PlannedTensor, SrtePlan } from '../plan/plan.js';
import type { PlanFlags, Planning, Subject } from '../plan/plan-conversion.js';
import type { Planned } from '../plan/plan-tensors.js';
import type { MemoryPlan, Multiplier } from '../resources.js';
import { planMemory, refuseFullDisk } from '../resources.js';
import type { SrteTables } from '../srte/srte-tables.js';
import { findSrteTables } from '../srte/srte-tables.js';
import {
  configWith,
  copiesOf,
  refuseLostSidecars,
  sidecarNotes,
  sidecarsOf,
  stepOf,
  writableOf,
} from './accompanying-files.js';
import type { TableError, TensorError } from './check.js';
import { checkOutput, measureTable, measureTie, WrongOutput } from './check.js';
import type { MadeTable, Scratch } from './make-tables.js';
import { makeTable } from './make-tables.js';
import type { Companions, OutputFile, OutputPlace, ValuesOf } from './output-files.js';
import { DEFAULT_SHARD_BYTES, safetensorsFiles, shardsOf, torchFile } from './output-files.js';
import { valuesOf } from './tensor-values.js';

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

// The run of a conversion: its memory, its files, its place.

export interface RunFlags extends PlanFlags {
  readonly place: OutputPlace;
  readonly shardBytes: number | undefined;
  readonly maxMemoryBytes: number;
  readonly seed: number;
  readonly force: boolean;
  readonly resume: boolean;
  readonly check: boolean;
}

export type Step = (label: string, bytes: number) => (bytes: number) => void;

/** The output as it would be, or is. */
export interface Converted extends Planning {
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly resumed?: boolean;
  }[];
  readonly memory: MemoryPlan;
  /** Null for a plan. */
  readonly tables: Executed['tables'] | null;
  readonly tie: Executed['tie'] | null;
}

/**
 * Everything that can be said without writing the output. A rank that is given by its error is found, for
 * which the tables are read.
 */
export async function preview(
  checkpoint: Checkpoint,
  subject: Subject,
  flags: RunFlags,
  multiplierFor: (srte: SrtePlan | null) => Promise<Multiplier>,
  step: Step,
): Promise<Converted> {
  const first = await subject.plan(subject.rank ?? 1);
  const srte = withOpenRank(first.plan.srte, subject);
  const multiplier = await multiplierFor(srte);
  const memory = memoryFor(srte, flags, multiplier);
  let planning = first;
  if (subject.rank === null) {
    const scratch = temporaryScratch();
    try {
      const tools = { scratch, multiplier, memory, step };
      const made = await make(checkpoint, subject, first, flags, tools);
      planning = await subject.plan(made[0]?.rank ?? 1);
    } finally {
      scratch.close();
    }
  }
  return {
    ...planning,
    files: await expectedFiles(checkpoint, planning, subject, flags),
    memory,
    tables: null,
    tie: null,
    plan: withNotes(planning, [
      ...sidecarNotes(checkpoint, flags.place.kind),
      ...standsThere(checkpoint, flags),
    ]),
  };
}

/** @throws UserError when their place cannot be written to, or their format cannot hold the tensors. */
const expectedFiles = (
  checkpoint: Checkpoint,
  planning: Planning,
  subject: Subject,
  flags: RunFlags,
): Promise<readonly OutputFile[]> =>
  explained(flags.place.path, () =>
    filesOf(checkpoint, planning, flags, configNameFor(subject, planning, flags))(noValues),
  );

/** What a real run would be refused for. */
function standsThere(checkpoint: Checkpoint, flags: RunFlags): string[] {
  const { place, force } = flags;
  try {
    checkReplaceable(findOutputPlace(place.path, place.kind), force);
    refuseLost(checkpoint, flags);
    return [];
  } catch (error) {
    if (!(error instanceof UserError)) return [];
    return [`As it is, the output could not be written: ${error.message}`];
  }
}

function refuseLost(checkpoint: Checkpoint, { place, force }: RunFlags): void {
  if (place.kind === 'folder' && force) refuseLostSidecars(place.path, sidecarsOf(checkpoint));
}

const withNotes = ({ plan }: Planning, notes: readonly string[]) => ({
  ...plan,
  notes: [...plan.notes, ...notes],
});

const noValues: ValuesOf = () => {
  throw new Error('a preview writes nothing');
};

/** Converts, and puts the output in its place. */
export async function convert(
  checkpoint: Checkpoint,
  subject: Subject,
  flags: RunFlags,
  multiplierFor: (srte: SrtePlan | null) => Promise<Multiplier>,
  step: Step,
): Promise<Converted & { readonly resumed: boolean; readonly products: string }> {
  // All that can be wrong with the plan is told before anything is made.
  const first = await subject.plan(subject.rank ?? 1);
  const srte = withOpenRank(first.plan.srte, subject);
  const multiplier = await multiplierFor(srte);
  const memory = memoryFor(srte, flags, multiplier);
  const expected = await expectedFiles(checkpoint, first, subject, flags);
  // What is there to resume takes its space already.
  if (!flags.resume) refuseFullDisk(flags.place.path, expected);
  refuseLost(checkpoint, flags);
  const staging = await openStaging(checkpoint, subject, first, flags);
  const scratch = scratchAt((name) => staging.spool(name));
  const stopped = () => tellStopped(staging, flags);
  process.once('exit', stopped);
  const tools = { scratch, multiplier, memory, step };
  try {
    // What an earlier run has put in its place needs nothing but to be looked at.
    const made = staging.isInPlace ? [] : await make(checkpoint, subject, first, flags, tools);
    const rank = subject.rank ?? made[0]?.rank ?? rankIn(flags.place.path);
    const planning = subject.rank === null ? await subject.plan(rank) : first;
    const usual = CONFIG_FILES[formatOf(planning)];
    const configName = staging.isFinished(usual) ? usual : configNameFor(subject, planning, flags);
    const saturate = flags.saturate;
    const check = flags.check && !staging.isInPlace;
    const { files, tables, tie } = await execute(
      {
        checkpoint,
        tables: subject.srte?.tables ?? null,
        planned: planning,
        made,
        files: filesOf(checkpoint, planning, flags, configName),
      },
      { ...optionsOf(tools), output: staging, saturate, check },
    );
    scratch.close();
    await staging.commit();
    const resumed = files.some((file) => file.resumed);
    const plan = withNotes(planning, sidecarNotes(checkpoint, flags.place.kind));
    return { ...planning, plan, files, tables, tie, memory, resumed, products: multiplier.name };
  } catch (error) {
    scratch.close();
    throw await abandoned(error, staging, flags);
  } finally {
    process.removeListener('exit', stopped);
  }
}

/** Where Ctrl-C, or whatever else ends the process, leaves a conversion. */
function tellStopped(staging: Staging, { place }: RunFlags): void {
  if (!staging.isWorthKeeping) return;
  const line = process.stderr.isTTY ? CLEAR_LINE : '';
  process.stderr.write(`${line}stopped: ${goOn(place)}\n`);
}

const goOn = ({ path: out }: OutputPlace) =>
  `go on with --resume: what is finished of ${escapeText(out)} is kept`;

/** The rank of the pair in a finished output. */
function rankIn(file: string): number {
  const output = openCheckpoint(file);
  try {
    return findSrteTables(output).rank ?? 0;
  } finally {
    output.close();
  }
}

interface Tools {
  readonly scratch: Scratch;
  readonly multiplier: Multiplier;
  readonly memory: MemoryPlan;
  readonly step: Step;
}

const optionsOf = ({ scratch, multiplier, memory, step }: Tools) => ({
  scratch,
  products: multiplier.products,
  blockRows: memory.blockRows,
  step,
});

function make(
  checkpoint: Checkpoint,
  subject: Subject,
  { plan }: Planning,
  { seed, saturate, truncation }: RunFlags,
  tools: Tools,
): Promise<(MadeTable | undefined)[]> {
  const relativeError =
    truncation && 'relativeError' in truncation ? truncation.relativeError : undefined;
  const input = { checkpoint, tables: subject.srte?.tables ?? null };
  return makeTables(plan.srte, input, { ...optionsOf(tools), seed, saturate, relativeError });
}

/** The rank that a first plan is made with is none, when it is yet to be found. */
const withOpenRank = (srte: SrtePlan | null, { rank }: Subject): SrtePlan | null =>
  srte && rank === null ? { ...srte, target: { ...srte.target, rank } } : srte;

function memoryFor(srte: SrtePlan | null, flags: RunFlags, { bytes }: Multiplier): MemoryPlan {
  const taken = { processBytes: process.memoryUsage.rss(), engineBytes: bytes };
  return planMemory(srte, flags.maxMemoryBytes, taken, formatBytes);
}

/** What was done is kept where it is worth it, and said so: not where the same would only fail again. */
async function abandoned(error: unknown, staging: Staging, { place }: RunFlags): Promise<unknown> {
  const isLost =
    error instanceof WrongOutput || (error instanceof UserError && error.code === 'refused-file');
  if (isLost) {
    await staging.discard();
    return error;
  }
  const left = await staging.abandon();
  if (left === 'removed' || !(error instanceof UserError)) return error;
  return new UserError(error.code, error.message, {
    problems: error.problems,
    suggestion: `${error.suggestion ? `${error.suggestion}, then ` : ''}${goOn(place)}`,
    cause: error,
  });
}

async function openStaging(
  checkpoint: Checkpoint,
  subject: Subject,
  first: Planning,
  flags: RunFlags,
): Promise<Staging> {
  const { place, force, resume } = flags;
  const identity = identityOf(checkpoint, subject, first, flags);
  return Staging.open(place.path, { kind: place.kind, force, resume, identity });
}

/** Changes when the result would: with the input's files, and with what is asked for. */
function identityOf(
  checkpoint: Checkpoint,
  { source }: Subject,
  first: Planning,
  flags: RunFlags,
): string {
  const { force: _, resume: __, check: ___, maxMemoryBytes: ____, ...asked } = flags;
  const target = flags.target === undefined ? undefined : first.config?.written.value;
  const inputs = checkpoint.files.map((file) => [
    path.resolve(file.path),
    file.size,
    file.changedAt,
  ]);
  const sidecars = flags.place.kind === 'folder' ? sidecarsOf(checkpoint) : [];
  const text = JSON.stringify([inputs, sidecars, asked, target, source?.written.value]);
  return createHash('sha256').update(text).digest('hex');
}

const formatOf = ({ config }: Planning): ConfigFormat => config?.written.format ?? 'yaml';

/** @param configName Of the config beside the output. */
function filesOf(
  checkpoint: Checkpoint,
  planning: Planning,
  flags: RunFlags,
  configName: string,
): (valuesOf: ValuesOf) => readonly OutputFile[] {
  const { plan } = planning;
  const { place, shardBytes, target, set } = flags;
  const isNew = target !== undefined || set.length > 0;
  const companions = { ...companionsOf(checkpoint, planning, isNew), configName };
  if (place.container === 'pt' && shardBytes !== undefined) {
    throw new UserError('usage', 'a PyTorch file has no shards', {
      suggestion: 'leave --shard-size out, or write safetensors into a folder',
    });
  }
  const shards = shardsIn(planning, flags);
  if (place.kind === 'file' && shards.length > 1) {
    throw new UserError(
      'usage',
      `${place.path} is one file, and there are ${shards.length} shards`,
      { suggestion: 'name a folder for them: a name without an ending' },
    );
  }
  const name = path.basename(placeOf(place));
  return (valuesOf) =>
    place.container === 'pt'
      ? [torchFile(name, plan, companions, valuesOf)]
      : [
          ...safetensorsFiles(plan, shards, companions, valuesOf),
          ...(place.kind === 'folder' ? copiesOf(sidecarsOf(checkpoint)) : []),
        ];
}

/** The files of the output, with the tensors in each. */
export function shardsIn({ plan }: Planning, { place, shardBytes }: RunFlags): PlannedShard[] {
  const most = place.kind === 'file' ? Number.POSITIVE_INFINITY : DEFAULT_SHARD_BYTES;
  const shards = shardsOf(plan.tensors, shardBytes ?? most);
  const [only, ...others] = shards;
  if (place.kind === 'folder' || only === undefined || others.length > 0) return shards;
  return [{ ...only, file: path.basename(placeOf(place)) }];
}

/** The path of an output, where it is a link to it. */
const placeOf = ({ path: target, kind }: OutputPlace): string => findOutputPlace(target, kind).file;

/**
 * What the config beside an output is called: `config.yaml` or, in the form of Hugging Face, `config.json`,
 * unless that is somebody else's already, or another would be taken for the output's. Even by force no config is replaced that the conversion reads.
 * @throws UserError when there is no name left for it.
 */
function configNameFor(
  { source }: Subject,
  planning: Planning,
  { place, force, target, config }: RunFlags,
): string {
  const format = formatOf(planning);
  const usual = CONFIG_FILES[format];
  if (place.kind === 'folder' || place.container === 'pt') return usual;
  const folder = path.dirname(placeOf(place));
  const read = [target, config, source?.origin === 'inside' ? undefined : source?.file];
  const isRead = (name: string) =>
    read.some((file) => file !== undefined && isSameFile(file, path.join(folder, name)));
  // Beside an output that is not there yet it is another model's.
  const mayReplace = force && fs.existsSync(placeOf(place));
  const isUsable = (name: string) =>
    !fs.existsSync(path.join(folder, name)) || (mayReplace && !isRead(name));
  const others = configIn(folder);
  const isHidden = others !== undefined && path.basename(others) !== usual && format === 'json';
  const own = ownConfigName(placeOf(place), format);
  const name = [...(isHidden ? [] : [usual]), own].find(isUsable) ?? own;
  if (!isRead(name)) return name;
  throw new UserError('usage', `${path.join(folder, name)} is read, and would be replaced`, {
    suggestion: 'choose an output in another folder: its config is written beside it',
  });
}

function companionsOf(
  checkpoint: Checkpoint,
  { config, keepsConfig }: Planning,
  isNew: boolean,
): Omit<Companions, 'configName'> {
  const metadata = new Map(
    [...checkpoint.metadata].filter(([key]) => !checkpoint.aliases.has(key) && key !== 'step'),
  );
  // A config that came with the checkpoint keeps its whole numbers and floats apart.
  const kept: Writable | undefined =
    isNew || !config?.isInside || config.written.format === 'json'
      ? undefined
      : configWith(checkpoint, config.settings);
  return {
    step: stepOf(checkpoint),
    metadata,
    config: config
      ? { text: config.written.text, value: kept ?? writableOf(config.written.value) }
      : keepsConfig
        ? unreadConfig(checkpoint)
        : null,
  };
}

/** A config that nothing here can read stays in a PyTorch file as it was, while it is true. */
function unreadConfig({ content }: Checkpoint): Companions['config'] {
  const value = content.get('config');
  return value === undefined ? null : { text: null, value };
}

// Files that a conversion keeps for itself while it works.

export interface ClosableScratch extends Scratch {
  close(): void;
}

/** @param pathOf Where a file is, by its name. */
export function scratchAt(pathOf: (name: string) => string): ClosableScratch {
  const opened = new Map<string, ByteFile>();
  return {
    has: (name) => fs.existsSync(pathOf(name)),
    write: (name, fill) => writeWhole(pathOf(name), true, fill),
    open(name) {
      const file = opened.get(name) ?? ByteFile.open(pathOf(name));
      opened.set(name, file);
      return file;
    },
    close() {
      for (const file of opened.values()) file.close();
    },
  };
}

/** In a folder of its own, for this user alone, that goes with `close` or with the process. */
export function temporaryScratch(): ClosableScratch {
  const folder = new TemporaryFolder();
  const scratch = scratchAt((name) => path.join(folder.path, name));
  return {
    ...scratch,
    close() {
      scratch.close();
      folder.remove();
    },
  };
}
