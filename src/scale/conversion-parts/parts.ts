/** A conversion in parts: plan, work, progress, end and job, each with one result. */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sumOf } from '../../base/text/words.js';
import type { ConversionResult } from '../../convert/conversion/conversion-result.js';
import type { ConversionRequest } from '../../convert/conversion/job.js';
import { CPUS, type LaunchOptions, launch, type PartsJob } from '../launch.js';
import { arrayText, type PartsAnswer } from '../part-lock.js';
import { refuseTooManyParts, writePlan } from '../plan-file.js';
import { type AskedParts, askedParts, type LaunchName } from '../task-index.js';
import {
  type FinishOptions,
  finishParts,
  missingParts,
  type PartState,
  type PartsStatus,
  partsStatusOf,
} from './finish-parts.js';
import { planInParts } from './make-parts.js';
import {
  modelsOfConversion,
  type PartsPlan,
  type PlanFile,
  readPartsPlan,
  readPlanToWrite,
} from './parts-plan.js';
import { type PartOptions, runParts } from './run-part.js';

/**
 * A conversion in parts: its plan, a part, the progress, or a finish that is not possible yet. A finish that succeeds
 * answers as convert-checkpoint does.
 * @answer minimind convert-checkpoint --plan FILE --json
 */
export interface PartsResult extends PartsAnswer {
  readonly schema: 'minimind/convert-parts@1';
  /** The checkpoint that is read. */
  readonly input: {
    /** Path of the checkpoint. */
    readonly path: string;
    /** Number of files. @count */
    readonly files: number;
    /** Their size. @count */
    readonly bytes: number;
  };
  /** The checkpoint that is written. */
  readonly output: {
    /** Path of the checkpoint. */
    readonly path: string;
    /** Number of files. @count */
    readonly files: number;
    /** Their size. @count */
    readonly bytes: number;
  };
  /** The parts, each with its progress. */
  readonly parts: readonly (PartState & {
    /** Files of the part. @count */
    readonly files: number;
    /** Ranges of rows of computed tables. @count */
    readonly slices: number;
    /** Bytes that the part reads. @minimum 0 */
    readonly readBytes: number;
    /** Predicted peak of the process. @count */
    readonly memoryBytes: number;
  })[];
  /** Whether the output is in place. */
  readonly isFinished: boolean;
  /** Bytes of all finished files. @count */
  readonly doneBytes: number;
  /** Only the files with tensors. @count */
  readonly bytes: number;
  /** Speed of all running tasks; null when none runs. @integer */
  readonly bytesPerSecond: number | null;
  /** Estimated time to the end; null when no task runs. */
  readonly secondsLeft: number | null;
  /** Result of a run; null except for a part. */
  readonly ran:
    | (NonNullable<PartsAnswer['ran']> & {
        /** Bytes that this run wrote; null except for a part. @count */
        readonly writtenBytes: number;
      })
    | null;
}

function partsResult(
  action: PartsResult['action'],
  file: string,
  plan: PartsPlan,
  status: PartsStatus = partsStatusOf(plan),
): PartsResult {
  const { input, output } = plan;
  const missing = status.isFinished ? [] : missingParts(status);
  return {
    schema: 'minimind/convert-parts@1',
    action,
    plan: { file, hash: plan.hash },
    input: {
      path: input.path,
      files: input.files.length,
      bytes: sumOf(input.files, ({ bytes }) => bytes),
    },
    output: {
      path: output.path,
      files: output.files.length,
      bytes: sumOf(output.files, ({ bytes }) => bytes),
    },
    ...status,
    parts: status.parts.map((state, index) => {
      const { files = [], slices = [], readBytes = 0, memoryBytes = 0 } = plan.parts[index] ?? {};
      return { ...state, files: files.length, slices: slices.length, readBytes, memoryBytes };
    }),
    missing,
    array: arrayText(missing),
    ran: null,
    job: null,
  };
}

/**
 * Plans a conversion in parts, and writes the plan.
 * @throws UserError for every fault of the input, the request, the output or the plan's file.
 */
export async function makePlan(
  request: ConversionRequest,
  { file, version }: PlanFile,
  { parts, stateDict }: { readonly parts: number; readonly stateDict: string | undefined },
): Promise<PartsResult> {
  refuseTooManyParts(parts);
  const plan = await planInParts(request, { parts, stateDict, version });
  await writePlan(file, plan, request.force);
  return partsResult('plan', file, plan);
}

type RunOptions = AskedParts & Omit<PartOptions, 'parts'>;

/** Does a part of a plan. @throws UserError as `runParts`, and for a part that the plan lacks. */
export async function runPart(
  named: PlanFile,
  { part, tasks, environment, ...options }: RunOptions,
): Promise<PartsResult> {
  const start = performance.now();
  const { file } = named;
  const plan = await readPlanToWrite(named);
  const parts = askedParts({ part, tasks, environment }, plan.parts.length, file);
  const units = await runParts(plan, { parts, ...options });
  const done = units.filter(({ outcome }) => outcome === 'done');
  return {
    ...partsResult('part', file, plan),
    ran: {
      parts,
      units: units.length,
      unitsThere: units.length - done.length,
      writtenBytes: sumOf(done, ({ bytes }) => bytes),
      seconds: (performance.now() - start) / 1000,
    },
  };
}

/** Progress of a plan. @throws UserError for a plan that cannot be read. */
export async function partsStatus(named: PlanFile): Promise<PartsResult> {
  return partsResult('status', named.file, await readPartsPlan(named));
}

/** Milliseconds between two looks of `--wait`. */
const POLL = 10_000;

/**
 * Finishes the output of a plan.
 * @param wait Whether to wait for missing parts.
 * @returns The result of the conversion; the state of the parts when some are missing, or all is done already.
 * @throws UserError as `finishParts`.
 */
export async function finishPlan(
  named: PlanFile,
  options: FinishOptions & { readonly wait: boolean },
): Promise<ConversionResult | PartsResult> {
  const plan = await readPlanToWrite(named);
  while (options.wait && missingParts(partsStatusOf(plan)).length > 0) await delay(POLL);
  return (await finishParts(plan, options)) ?? partsResult('finish', named.file, plan);
}

/** The job of a plan. @throws UserError when it cannot be submitted. */
export async function launchPlan(
  named: PlanFile,
  scheduler: LaunchName,
  options: LaunchOptions & { readonly isSubmitted: boolean },
): Promise<PartsResult> {
  const plan = await readPlanToWrite(named);
  const job = await launch(jobOf(plan, named), scheduler, options);
  return { ...partsResult('launch', named.file, plan), job };
}

/** Bytes read and written per second that a part is sure to reach; half of a slow shared disk. */
const LEAST_RATE = 50e6;
/** Memory of the finish for each tensor of the input: it also reads the index of the output. */
const FINISH_INDEX_BYTES = 2e3;

/** Work and needs of the tasks of a plan. */
export function jobOf(plan: PartsPlan, { file, out }: Omit<PlanFile, 'version'>): PartsJob {
  const { input, output, parts, hash } = plan;
  const largest = Math.max(...parts.map(({ memoryBytes }) => memoryBytes));
  return {
    command: 'convert-checkpoint',
    planFile: file,
    places: [input.path, output.path],
    operands: out === undefined ? [] : [path.resolve(out)],
    planHash: hash,
    partSeconds: parts.map(({ readBytes, writeBytes }) => (readBytes + writeBytes) / LEAST_RATE),
    comments: [
      `Converts ${input.path} into ${output.path} in ${parts.length} parts.`,
      `for at least ${LEAST_RATE / 1e6} MB/s read and written.`,
    ],
    hubModels: [...new Set(modelsOfConversion(plan))],
    hasRows: parts.some(({ slices }) => slices.length > 0),
    memoryBytes: largest + FINISH_INDEX_BYTES * input.tensors,
    cpus: CPUS,
  };
}
