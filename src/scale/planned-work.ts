/** Work that a plan divides into parts: its progress, its job, and the answers about it. */
import { setTimeout as delay } from 'node:timers/promises';
import { type LaunchedJob, type LaunchOptions, launch, type PartsJob } from './launch.js';
import type { HashedPlan } from './plan-file.js';
import { type AskedParts, askedParts, type LaunchName } from './task-index.js';
import { arrayText, type Progress, type StateName } from './unit-store.js';

/** Fields of every answer about work in parts. */
export interface PartsAnswer {
  /** Action of the command. */
  readonly action: 'plan' | 'part' | 'status' | 'finish' | 'launch';
  /** The plan. */
  readonly plan: {
    /** Path of the plan. */
    readonly file: string;
    /** SHA-256 of the plan. @pattern ^[0-9a-f]{64}$ */
    readonly hash: string;
  };
  readonly parts: readonly {
    /** Number of the part, from 1. @integer @minimum 1 */
    readonly part: number;
    /** State of the part. */
    readonly state: StateName;
    /** Hosts that work on it. */
    readonly hosts: readonly string[];
  }[];
  /** Parts that are not finished. @integer @minimum 1 */
  readonly missing: readonly number[];
  /** The missing parts as an array of Slurm: `7,19`. */
  readonly array: string;
  /** Null for other actions. */
  readonly ran: {
    /** Parts that this run finished. @integer */
    readonly parts: readonly number[];
    /** Units that it finished. @count */
    readonly units: number;
    /** Units that an earlier run or another runner did. @count */
    readonly unitsThere: number;
    /** Duration. */
    readonly seconds: number;
  } | null;
  /** Null for other actions. */
  readonly job: LaunchedJob | null;
}

/** A plan that was read, and its state on the disk. Conversions and sweeps each have their own. */
export abstract class PlannedWork<Plan extends HashedPlan, Answer extends PartsAnswer> {
  readonly file: string;
  readonly plan: Plan;

  constructor(file: string, plan: Plan) {
    this.file = file;
    this.plan = plan;
  }

  /** Progress, without the input. */
  abstract progress(): Progress<Plan['parts'][number]>;

  /** The plan with its progress. */
  abstract answer(action: Answer['action'], ran?: Answer['ran']): Answer;

  /** Work and needs of the tasks. */
  protected abstract job(): Omit<PartsJob, 'planFile' | 'planHash'>;

  /** Last fields of an answer. */
  protected end<Ran>({ missing }: Pick<Progress<unknown>, 'missing'>, ran: Ran) {
    return { missing, array: arrayText(missing), ran, job: null };
  }

  /** Parts that a finish needs and that are not done. */
  get missing(): readonly number[] {
    return this.progress().missing;
  }

  /** Waits until no part is missing. */
  async wait(poll = 10_000): Promise<void> {
    while (this.missing.length > 0) await delay(poll);
  }

  /** Numbers of the parts to do. @throws UserError for a part that the plan lacks. */
  partsFor(asked: AskedParts): number[] {
    return askedParts(asked, this.plan.parts.length, this.file);
  }

  /** The parts of a plan with some numbers. */
  protected numbered(numbers: readonly number[]): Plan['parts'][number][] {
    return numbers.flatMap((number) => this.plan.parts[number - 1] ?? []);
  }

  /** Writes the job and submits it if asked. @throws UserError when it cannot be submitted. */
  async launch(
    scheduler: LaunchName,
    options: LaunchOptions & { readonly isSubmitted: boolean },
  ): Promise<Answer> {
    const { file: planFile, plan } = this;
    const job = await launch({ ...this.job(), planFile, planHash: plan.hash }, scheduler, options);
    return { ...this.answer('launch'), job };
  }
}
