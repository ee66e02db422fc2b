/** A conversion in parts: plan, work, progress, end and job, each with one result. */
import { setTimeout as delay } from 'node:timers/promises';
import { type LaunchOptions, launchText, submit } from '../../parts/launch.js';
import type { LockTimes } from '../../parts/part-lock.js';
import { arrayText } from '../../parts/part-states.js';
import { refuseOtherPart, refuseTooManyParts, writePlan } from '../../parts/plan-file.js';
import { type LaunchName, partsOfTask } from '../../parts/task-index.js';
import { sumOf } from '../../text/words.js';
import type { ConversionResult } from '../conversion-result.js';
import type { ConversionRequest } from '../job.js';
import {
  type FinishOptions,
  finishParts,
  missingParts,
  type PartState,
  type PartsStatus,
  statusOf,
} from './finish-parts.js';
import { planInParts } from './make-parts.js';
import type { PartsSurroundings } from './open-parts.js';
import { jobOf } from './parts-job.js';
import { type PartsPlan, readPartsPlan } from './parts-plan.js';
import type { Phase } from './receipts.js';
import { runParts } from './run-part.js';

/** Output of `minimind convert-checkpoint --plan FILE --json`, except of a complete `--finish`. */
export interface PartsResult {
  readonly schema: 'minimind/convert-parts@1';
  readonly action: 'plan' | 'part' | 'status' | 'finish' | 'launch';
  readonly plan: { readonly file: string; readonly hash: string };
  readonly input: { readonly path: string; readonly files: number; readonly bytes: number };
  readonly output: { readonly path: string; readonly files: number; readonly bytes: number };
  readonly parts: readonly (PartState & {
    readonly files: number;
    /** Ranges of rows of computed tables. */
    readonly slices: number;
    readonly readBytes: number;
    /** Predicted peak of the process. */
    readonly memoryBytes: number;
  })[];
  /** Whether the output is in place. */
  readonly isFinished: boolean;
  readonly doneBytes: number;
  /** Only the files with tensors. */
  readonly bytes: number;
  readonly bytesPerSecond: number | null;
  readonly secondsLeft: number | null;
  readonly missing: readonly number[];
  /** The missing parts as an array of Slurm: `7,19`. */
  readonly array: string;
  /** Null for other actions. */
  readonly ran: {
    readonly parts: readonly number[];
    readonly units: number;
    /** Units that an earlier run or another runner did. */
    readonly unitsThere: number;
    readonly writtenBytes: number;
    readonly seconds: number;
  } | null;
  /** Null for other actions. */
  readonly job: {
    readonly scheduler: LaunchName;
    readonly text: string;
    /** Answer of the scheduler; null when the job was only printed. */
    readonly answer: string | null;
  } | null;
}

function resultOf(
  action: PartsResult['action'],
  file: string,
  plan: PartsPlan,
  status: PartsStatus = statusOf(plan),
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

/** The file of a plan, and the version of minimind. */
export interface PlanFile {
  readonly file: string;
  readonly version: string;
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
  return resultOf('plan', file, plan);
}

export interface RunOptions extends PartsSurroundings {
  /** Number of the part, or the one of the task that this process is. */
  readonly part: number | 'auto';
  readonly phase: Phase | undefined;
  readonly tasks: number | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly times?: LockTimes;
  readonly poll?: number;
}

/** Does a part of a plan. @throws UserError as `runParts`, and for a part that the plan lacks. */
export async function runPart(
  { file, version }: PlanFile,
  { part, tasks, environment, ...options }: RunOptions,
): Promise<PartsResult> {
  const start = performance.now();
  const plan = await readPartsPlan(file, version);
  const total = plan.parts.length;
  if (part !== 'auto') refuseOtherPart(part, total, file);
  const parts = part === 'auto' ? partsOfTask(environment, total, tasks) : [part];
  const units = await runParts(plan, { parts, ...options });
  const done = units.filter(({ outcome }) => outcome === 'done');
  return {
    ...resultOf('part', file, plan),
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
export async function partsStatus({ file, version }: PlanFile): Promise<PartsResult> {
  return resultOf('status', file, await readPartsPlan(file, version));
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
  { file, version }: PlanFile,
  options: FinishOptions & { readonly wait: boolean },
): Promise<ConversionResult | PartsResult> {
  const plan = await readPartsPlan(file, version);
  while (options.wait && missingParts(statusOf(plan)).length > 0) await delay(POLL);
  return (await finishParts(plan, options)) ?? resultOf('finish', file, plan);
}

/** The job of a plan. @throws UserError when it cannot be submitted. */
export async function launchPlan(
  { file, version }: PlanFile,
  options: LaunchOptions & {
    readonly scheduler: LaunchName;
    readonly isSubmitted: boolean;
  },
): Promise<PartsResult> {
  const { scheduler, isSubmitted } = options;
  const plan = await readPartsPlan(file, version);
  const text = launchText(jobOf(plan, file), scheduler, options);
  const answer = isSubmitted ? await submit(scheduler, text) : null;
  return { ...resultOf('launch', file, plan), job: { scheduler, text, answer } };
}
