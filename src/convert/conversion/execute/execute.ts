/** Executes a plan: computes the tables, writes the files and moves the output into place. */

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../../../base/errors.js';
import { INDEX_FILE } from '../../../base/files/config-names.js';
import { watchEnd } from '../../../base/files/early-end.js';
import { withFileErrors } from '../../../base/files/file-system.js';
import { Staging } from '../../../base/files/staging.js';
import { TemporaryFolder } from '../../../base/files/temporary.js';
import {
  checkReplaceable,
  refuseFullDisk,
  resolveOutputTarget,
  writeWhole,
} from '../../../base/files/write-whole.js';
import { setting } from '../../../base/text/setting.js';
import { formatBytes } from '../../../base/text/units.js';
import { sumOf } from '../../../base/values.js';
import { ByteFile } from '../../../checkpoint/byte-file.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { openCheckpoint } from '../../../checkpoint/open.js';
import type { ConversionJob } from '../job.js';
import { NOTHING_WRITTEN, withStoppedNotice } from '../job.js';
import type { ConversionInput, ConversionPlan, PlannedTensor } from '../plan/conversion-plan.js';
import { isRankOpen, planConversion } from '../plan/plan-conversion.js';
import type { Resources } from '../resources.js';
import { findSrteTables } from '../srte/srte-tables.js';
import {
  outputFilesOf,
  refuseLostSidecars,
  sidecarNotes,
  sidecarsOf,
} from './accompanying-files.js';
import type { MeasuredTable, QuantizationError, TensorError } from './check-output.js';
import {
  checkOutput,
  measureBlocks,
  measureQuantized,
  measureTables,
  measureTie,
  WrongOutput,
} from './check-output.js';
import type { MadeTable, Scratch } from './make-tables.js';
import { makeTables } from './make-tables.js';
import type { OutputFile } from './output-files.js';
import { outputValuesOf } from './tensor-values.js';

/** The output of a conversion, or of its preview. */
export interface ConversionOutput {
  /** Includes the computed rank. */
  readonly plan: ConversionPlan;
  readonly files: readonly (Omit<OutputFile, 'fill'> & {
    /** Whether an earlier run wrote it. */
    readonly resumed?: boolean;
  })[];
  /** Null for a preview. */
  readonly tables: readonly MeasuredTable[] | null;
  /** Errors of a tied tensor; empty when nothing is tied, null for a preview. */
  readonly tie: readonly TensorError[] | null;
  /** Errors of the tensors in blocks of a GGUF file; null for a preview. */
  readonly blocks: readonly TensorError[] | null;
  /** Errors of the quantized weights; empty when none is, null for a preview. */
  readonly quantized: readonly QuantizationError[] | null;
}

/**
 * The output without writing it: all facts about it. If the rank depends on an error, it is computed by reading the
 * tables.
 * @throws UserError as `execute` does, but not for an output that cannot be replaced.
 */
export async function preview(
  input: ConversionInput,
  first: ConversionPlan,
  resources: Resources,
): Promise<ConversionOutput> {
  const plan = isRankOpen(input)
    ? await planConversion(input, await findRank(input, first, resources))
    : first;
  const files = await expectedFiles(input, plan);
  const notes = [...plan.notes, ...notesOnFiles(input), ...reasonsNotToWrite(input)];
  return {
    plan: { ...plan, notes },
    files,
    tables: null,
    tie: null,
    blocks: null,
    quantized: null,
  };
}

/** The rank that the allowed error requires, found by reading the tables. */
export async function findRank(
  input: ConversionInput,
  plan: ConversionPlan,
  resources: Resources,
): Promise<number | undefined> {
  await watchEnd();
  const scratch = temporaryScratch();
  try {
    const [made] = await makeTables(input, plan.srte, resources, scratch);
    return made?.rank ?? undefined;
  } finally {
    scratch.close();
  }
}

/** @throws UserError when the destination is not writable, or the format cannot hold the tensors. */
export const expectedFiles = (
  input: ConversionInput,
  plan: ConversionPlan,
): Promise<readonly OutputFile[]> =>
  withFileErrors(input.place.path, () => outputFilesOf(input, plan));

export const notesOnFiles = ({ job, place }: ConversionInput): string[] =>
  sidecarNotes(job.checkpoint, place.kind);

/** Reasons for which a real run would be refused. */
function reasonsNotToWrite(input: ConversionInput): string[] {
  const { job, place } = input;
  try {
    checkReplaceable(resolveOutputTarget(place.path, place.kind), job.force);
    refuseLost(input);
    return [];
  } catch (error) {
    if (!(error instanceof UserError)) return [];
    const { message, suggestion } = error;
    return [`The output cannot be written: ${[message, suggestion].filter(Boolean).join('; ')}`];
  }
}

/** @throws UserError when replacing the folder would delete files that the new one lacks. */
export function refuseLost({ job, place }: ConversionInput): void {
  if (place.kind === 'folder' && job.force) {
    refuseLostSidecars(place.path, sidecarsOf(job.checkpoint));
  }
}

/**
 * Converts, and moves the output into place.
 * @param first The plan, with rank 1 while the rank is unknown.
 * @throws UserError when reading or writing fails, a value does not fit its type, the input has changed meanwhile, or
 * the written data is wrong.
 */
export async function execute(
  input: ConversionInput,
  first: ConversionPlan,
  resources: Resources,
): Promise<ConversionOutput> {
  const { job, place } = input;
  // Reports all faults of the plan before any work.
  const expected = await expectedFiles(input, first);
  // A resumed output already occupies its space.
  if (!job.resume) refuseFullDisk(place.path, expected);
  refuseLost(input);
  const staging = await openStaging(input, first);
  const scratch = scratchAt((name) => staging.spool(name));
  return withStoppedNotice(
    job,
    () => leftText(staging, expected),
    async () => {
      try {
        // If an earlier run completed the output, its tables are only measured.
        const made = staging.isInPlace
          ? []
          : await makeTables(input, first.srte, resources, scratch);
        const plan = isRankOpen(input)
          ? await planConversion(input, made[0]?.rank ?? rankIn(place.path))
          : first;
        const output = await writeOutput(input, plan, made, staging, resources);
        scratch.close();
        await staging.commit();
        return { ...output, plan: { ...plan, notes: [...plan.notes, ...notesOnFiles(input)] } };
      } catch (error) {
        scratch.close();
        throw await abandoned(error, staging);
      }
    },
  );
}

const resumeText = () => `run again with ${setting('resume')} to continue`;

/** Message about an unfinished output: `run again with --resume to continue: 3.1 GB of 8.8 GB are done`. */
function leftText(staging: Staging, files: readonly OutputFile[]): string {
  if (!staging.isWorthKeeping) return NOTHING_WRITTEN;
  const bytesOf = (some: readonly OutputFile[]) => sumOf(some, ({ bytes }) => bytes);
  const done = bytesOf(files.filter(({ name }) => staging.isFinished(name)));
  if (done === 0) return resumeText();
  return `${resumeText()}: ${formatBytes(done)} of ${formatBytes(bytesOf(files))} are done`;
}

/** The rank of the pair in a finished output. */
function rankIn(file: string): number {
  const output = openCheckpoint(file);
  try {
    return findSrteTables(output).rank ?? 0;
  } finally {
    output.close();
  }
}

/** Writes every file that an earlier run did not finish, and checks the output. */
async function writeOutput(
  input: ConversionInput,
  plan: ConversionPlan,
  made: readonly (MadeTable | undefined)[],
  staging: Staging,
  resources: Resources,
): Promise<ConversionOutput> {
  const { checkpoint, saturate, check, display } = input.job;
  // Listed again, because the copied files can have changed while the tables were made.
  const files = outputFilesOf(input, plan);
  const values = (tensor: PlannedTensor) =>
    outputValuesOf(tensor, { checkpoint, made, plan, saturate });
  const written = [];
  const onProgress = display.step(
    'writing',
    sumOf(files, ({ name, bytes }) => (staging.isFinished(name) ? 0 : bytes)),
  );
  const watched = async function* (tensor: PlannedTensor) {
    for await (const chunk of values(tensor)) {
      yield chunk;
      onProgress(chunk.length);
    }
  };
  for (const { fill, ...file } of files) {
    const resumed = staging.isFinished(file.name);
    if (!resumed) await staging.write(file.name, (sink) => fill(sink, watched));
    written.push({ ...file, resumed });
  }
  refuseChanged(checkpoint.files);
  const output = openCheckpoint(outputPath(staging, files), { keepPacked: true });
  try {
    const tables = await measureTables(input, plan.srte, made, output, resources);
    if (check && !staging.isInPlace) {
      const bytes = sumOf(plan.tensors, (tensor) => tensor.bytes);
      await checkOutput(plan, output, values, display.step('checking', bytes));
    }
    const tie = plan.tie ? await measureTie(plan.tie, checkpoint, output, display.step) : [];
    const blocks = await measureBlocks(plan.tensors, checkpoint, output, display.step);
    const quantized = await measureQuantized(plan, checkpoint, output, display.step);
    return { plan, files: written, tables, tie, blocks, quantized };
  } finally {
    output.close();
  }
}

/** The single file with tensors, or the index of several. */
export function outputPath(staging: Staging, files: readonly Pick<OutputFile, 'name'>[]): string {
  const main = files.find(({ name }) => name === INDEX_FILE) ?? files[0];
  return staging.finished(main?.name ?? '');
}

/** @throws UserError when a file has changed since it was opened. */
export function refuseChanged(files: Checkpoint['files']): void {
  const changed = files.find((file) => file.hasChanged());
  if (changed === undefined) return;
  throw new UserError('refused-file', `${changed.path} was changed while it was read`, {
    suggestion: 'wait until the other program has finished writing, then convert again',
  });
}

/**
 * Keeps finished work if it helps a later run, and reports that. Nothing is kept for an error that would occur again.
 */
async function abandoned(error: unknown, staging: Staging): Promise<unknown> {
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
    suggestion: `${error.suggestion ? `${error.suggestion}, then ` : ''}${resumeText()}`,
    cause: error,
  });
}

async function openStaging(input: ConversionInput, first: ConversionPlan): Promise<Staging> {
  const { job, place } = input;
  const { force, resume } = job;
  const identity = identityOf(input, first);
  return Staging.open(place.path, { kind: place.kind, force, resume, identity });
}

/** Parts of a job, without the files, that determine its output. */
const IDENTITY = [
  'layout',
  'target',
  'merge',
  'rank',
  'maxError',
  'maxPositions',
  'extend',
  'tie',
  'dtype',
  'mixture',
  'quantize',
  'group',
  'dequantize',
  'saturate',
  'dialect',
  'heads',
  'container',
  'shardSize',
  'config',
  'family',
  'noConfig',
  'mergeLora',
  'set',
  'seed',
] as const satisfies readonly (keyof ConversionJob)[];

/** Hash of everything that determines the result: the input's files and the request. */
function identityOf({ job, place, source }: ConversionInput, first: ConversionPlan): string {
  const asked = IDENTITY.map((key) => job[key]);
  const target = job.target === undefined ? undefined : first.config?.written.value;
  const inputs = job.checkpoint.files.map((file) => [
    path.resolve(file.path),
    file.size,
    file.changedAt,
  ]);
  const sidecars = place.kind === 'folder' ? sidecarsOf(job.checkpoint) : [];
  const text = JSON.stringify(
    [inputs, sidecars, place, asked, target, source?.written.value, first.gguf?.importanceSha256],
    (_, value) => (typeof value === 'bigint' ? Number(value) : value),
  );
  return createHash('sha256').update(text).digest('hex');
}

export interface ClosableScratch extends Scratch {
  close(): void;
}

/** @param pathOf Path of a file by its name. */
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

/** A private folder of the user, removed by `close` or at the end of the process. */
function temporaryScratch(): ClosableScratch {
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
