/**
 * A sweep: values of units, folded in their order. A single run computes each unit when the fold asks for it; in parts the
 * fold reads them from the results of the parts, so that it is the same code and gives the same answer.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, usageError } from '../../base/errors.js';
import { makeFolder, withFileErrors } from '../../base/files/file-system.js';
import { readInputs } from '../../base/files/input-registry.js';
import { refuseUnwritable } from '../../base/files/write-whole.js';
import { sumOf } from '../../base/text/words.js';
import { CPUS, type LaunchOptions, launch, type PartsJob } from '../launch.js';
import {
  arrayText,
  diskTime,
  type LockTimes,
  LockWatch,
  lockState,
  type PartsAnswer,
  workUnder,
} from '../part-lock.js';
import { changedInput, refuseTooManyParts, sha256, writePlan } from '../plan-file.js';
import { type AskedParts, arrayOption, askedParts, type LaunchName } from '../task-index.js';
import { exactJson, fromExactJson } from './exact-json.js';
import {
  dealtUnits,
  hashedSweepPlan,
  inputFingerprints,
  modelsOfSweep,
  readSweepPlan,
  refuseChangedInputs,
  SweepFolder,
  type SweepPart,
  type SweepPlan,
} from './sweep-plan.js';
import { checkResults, outcomeOf, ResultsReader, writeResults } from './sweep-results.js';

export interface Sweep<Value, Result, Backend = null> {
  readonly units: {
    /** Plural noun: `models`. */
    readonly name: string;
    readonly count: number;
    /** Cost of each unit, in seconds of a slow machine. */
    readonly costs: () => Iterable<number> | Promise<Iterable<number>>;
    /** Influences on the values beyond the files: the list of units. */
    readonly identity: () => unknown;
  };
  /**
   * Predicted peak of the process.
   * @param costs Those of the units.
   */
  readonly memoryBytes: (backend: Backend, costs: readonly number[]) => number;
  /** The engine, where it decides the last bits of the values: it is the same in all parts. */
  readonly backend: {
    readonly here: () => Promise<Backend>;
    /** Flags that choose it, with the number of threads. A plan keeps them. */
    readonly flags: (backend: Backend) => Readonly<Record<string, string | number>>;
    /** Whether a value of a plan is a backend. */
    readonly isBackend: (value: unknown) => value is Backend;
  };
  /**
   * Gives the event loop a turn, so that Ctrl-C ends the process and its lock is rewritten.
   * @throws UserError for a unit that ends a single run.
   */
  readonly compute: (unit: number) => Promise<Value>;
  /** @param value Value of a unit. */
  readonly fold: (value: (unit: number) => Promise<Value>, backend: Backend) => Promise<Result>;
}

/**
 * A sweep in parts: its plan, a part, the progress, or a finish that is not possible yet. A finish that succeeds answers
 * as the command does.
 * @answer minimind compare|plan|evaluate --plan FILE --json
 */
export interface SweepResult extends PartsAnswer {
  readonly schema: 'minimind/sweep@1';
  /** Command of the sweep: `compare`, `plan` or `evaluate`. */
  readonly command: string;
  /** Folder of the results. */
  readonly results: string;
  /** Plural noun of the units: models, widths, windows. */
  readonly unitName: string;
  /** Number of units. @count */
  readonly units: number;
  /** Finished units. @count */
  readonly doneUnits: number;
  /** The parts, each with its progress. */
  readonly parts: readonly (PartsAnswer['parts'][number] & {
    /** Finished units of the part. @count */
    readonly doneUnits: number;
    /** Units of the part. @count */
    readonly units: number;
  })[];
  /** Predicted peak memory of a task. @count */
  readonly memoryBytes: number;
  /** Rate of all runners together; null when none runs. */
  readonly unitsPerSecond: number | null;
  /** Estimated time to the end; null when no task runs. */
  readonly secondsLeft: number | null;
}

/** An opened plan, and the folder of its results. */
export class SweepParts {
  /** Absolute path. */
  readonly file: string;
  readonly plan: SweepPlan;
  readonly #folder: SweepFolder;

  constructor(file: string, plan: SweepPlan) {
    this.file = path.resolve(file);
    this.plan = plan;
    this.#folder = new SweepFolder(file, plan);
  }

  /** @throws UserError for a file that is not a plan of this command and version. */
  static async open(file: string, version: string, command: string): Promise<SweepParts> {
    return new SweepParts(file, await readSweepPlan(file, version, command));
  }

  /**
   * Plans a sweep in parts. All files that it reads have been opened.
   * @throws UserError for inputs that only this process can read, and when the plan cannot be written.
   */
  static async make<Value, Result, Backend>(
    file: string,
    sweep: Sweep<Value, Result, Backend>,
    backend: Backend,
    request: Pick<SweepPlan, 'command' | 'arguments' | 'version'> & {
      readonly parts: number;
      readonly force: boolean;
      /** Folder of the presets. */
      readonly presets: string;
    },
  ): Promise<SweepResult> {
    const { parts: count, force, presets, ...words } = request;
    refuseTooManyParts(count);
    const { units } = sweep;
    const costs = [...(await units.costs())];
    const plan = hashedSweepPlan({
      ...words,
      folder: process.cwd(),
      inputs: inputFingerprints(readInputs(), presets),
      units: { name: units.name, count: units.count, sha256: identityOf(sweep) },
      backend: exactJson(backend),
      cpus: Number(sweep.backend.flags(backend).threads ?? CPUS),
      memoryBytes: Math.ceil(sweep.memoryBytes(backend, costs)),
      parts: dealtUnits(costs, count),
    });
    await writePlan(file, plan, force);
    return new SweepParts(file, plan).result('plan');
  }

  /** Refuses a plan that cannot be written, before its units are counted. */
  static refuseUnwritable(file: string, force: boolean): Promise<void> {
    return refuseUnwritable(file, force);
  }

  /**
   * @param presets Folder of the presets.
   * @throws UserError when an input is not the one of the plan.
   */
  refuseChangedInputs(presets: string): void {
    refuseChangedInputs(this.plan, presets);
  }

  /** @throws UserError when a sweep has other units, or runs otherwise, than that of the plan. */
  refuseOther(sweep: AnySweep): void {
    if (identityOf(sweep) === this.plan.units.sha256) return;
    throw changedInput(`${this.file}: the ${this.plan.units.name} are not those of the plan`);
  }

  /** @throws UserError for a part that the plan lacks. */
  partsFor(asked: AskedParts): number[] {
    return askedParts(asked, this.plan.parts.length, this.file);
  }

  /**
   * Does some parts, those that others do not work on first, and waits for the others. Can be repeated, and run at once
   * with itself.
   * @throws UserError when a result cannot be computed or written.
   */
  async run<Value, Result, Backend>(
    sweep: Sweep<Value, Result, Backend>,
    numbers: readonly number[],
    { times, poll = 2_000 }: { readonly times?: LockTimes; readonly poll?: number } = {},
  ): Promise<SweepResult> {
    const start = performance.now();
    this.refuseOther(sweep);
    const watch = new LockWatch(times);
    await withFileErrors(this.#folder.root, () => makeFolder(this.#folder.root));
    const parts = numbers.flatMap((number) => this.plan.parts[number - 1] ?? []);
    const there = new Set(parts);
    let pending = parts;
    while (pending.length > 0) {
      const busy: SweepPart[] = [];
      for (const part of pending) {
        const isDone = await workUnder(
          this.#folder.lock(part),
          { watch, ...(times && { times }) },
          {
            isThere: () => this.#isThere(part),
            work: async (lock) => {
              refuseOtherBackend(this.plan.backend, exactJson(await sweep.backend.here()));
              await this.#compute(sweep.compute, part, () => lock.add(1));
              there.delete(part);
            },
          },
        );
        if (!isDone) busy.push(part);
      }
      pending = busy;
      if (pending.length > 0) await delay(poll);
    }
    return this.result('part', {
      parts: [...numbers],
      units: this.unitsIn(numbers),
      unitsThere: sumOf(there, ({ first, end }) => end - first),
      seconds: (performance.now() - start) / 1000,
    });
  }

  /** Number of units of some parts. */
  unitsIn(numbers: readonly number[]): number {
    return sumOf(numbers, (number) => {
      const { first = 0, end = 0 } = this.plan.parts[number - 1] ?? {};
      return end - first;
    });
  }

  /** Whether a part has whole results. Those that are broken are replaced. */
  async #isThere(part: SweepPart): Promise<boolean> {
    if (part.first === part.end) return true;
    // Opening the folder makes a client of NFS ask for its current names.
    fs.closeSync(fs.openSync(this.#folder.root, 'r'));
    if (!this.#hasResults(part)) return false;
    try {
      await checkResults({ folder: this.#folder, plan: this.plan, part });
      return true;
    } catch (error) {
      if (error instanceof UserError) return false;
      throw error;
    }
  }

  #hasResults(part: SweepPart): boolean {
    return part.first === part.end || fs.existsSync(this.#folder.results(part));
  }

  async #compute(
    compute: (unit: number) => Promise<unknown>,
    part: SweepPart,
    onUnit: () => void,
  ): Promise<void> {
    async function* outcomes() {
      for (let unit = part.first; unit < part.end; unit++) {
        yield await outcomeOf(() => compute(unit));
        onUnit();
      }
    }
    const { plan } = this;
    await writeResults({ folder: this.#folder, plan, part }, os.hostname(), outcomes());
  }

  /** Waits until all parts have results. */
  async wait(poll = 10_000): Promise<void> {
    while (this.missing.length > 0) await delay(poll);
  }

  /** Parts without results. */
  get missing(): number[] {
    return this.plan.parts.filter((part) => !this.#hasResults(part)).map(({ part }) => part);
  }

  /** @throws UserError for results that are broken or of another plan. */
  async #refuseBroken(): Promise<void> {
    const broken: { readonly part: SweepPart; readonly error: UserError }[] = [];
    for (const part of this.plan.parts) {
      if (part.first === part.end) continue;
      try {
        await checkResults({ folder: this.#folder, plan: this.plan, part });
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        broken.push({ part, error });
      }
    }
    const [first, ...others] = broken;
    if (first === undefined) return;
    if (others.length === 0) throw first.error;
    throw new UserError('refused-file', `the results of ${broken.length} parts cannot be used`, {
      problems: broken.map(({ part, error: { message } }) => {
        const file = this.#folder.results(part);
        return { severity: 'error', file, message: message.replace(`${file}: `, '') };
      }),
      suggestion: `run these parts again: ${arrayOption(arrayText(broken.map(({ part }) => part.part)))}`,
    });
  }

  /**
   * The answer of the single run, from the results of all parts.
   * @throws UserError for results that are broken or of another plan, and as a single run does.
   */
  async finish<Value, Result, Backend>(sweep: Sweep<Value, Result, Backend>): Promise<Result> {
    this.refuseOther(sweep);
    await this.#refuseBroken();
    const reader = new ResultsReader<Value>(this.#folder, this.plan);
    try {
      const backend = fromExactJson(this.plan.backend);
      if (!sweep.backend.isBackend(backend)) {
        throw changedInput(`${this.file}: the backend is not one of minimind ${this.plan.command}`);
      }
      return await sweep.fold((unit) => reader.value(unit), backend);
    } finally {
      await reader.close();
    }
  }

  /** The job of the plan. @throws UserError when it cannot be submitted. */
  async launch(
    scheduler: LaunchName,
    options: LaunchOptions & { readonly isSubmitted: boolean },
  ): Promise<SweepResult> {
    const job = await launch(this.#job(), scheduler, options);
    return { ...this.result('launch'), job };
  }

  #job(): PartsJob {
    const { command, cpus, folder, hash, inputs, memoryBytes, parts, units } = this.plan;
    return {
      ...{ command, cpus, planFile: this.file, planHash: hash, memoryBytes, operands: [] },
      partSeconds: parts.map(({ seconds }) => seconds),
      comments: [
        `minimind ${command}: ${units.count} ${units.name} in ${parts.length} parts.`,
        'enough for a slow machine.',
      ],
      hasRows: false,
      hubModels: modelsOfSweep(this.plan),
      // The folder itself holds what the paths of the command line name.
      places: [path.join(folder, 'x'), ...inputs.map(({ path: input }) => input)],
    };
  }

  /** State by the results and the locks. */
  result(action: SweepResult['action'], ran: SweepResult['ran'] = null): SweepResult {
    const { file, plan } = this;
    const clock = diskTime(this.#folder.root);
    let unitsPerSecond = 0;
    const parts = plan.parts.map((part): SweepResult['parts'][number] => {
      const { part: number, first, end } = part;
      const units = end - first;
      if (this.#hasResults(part)) {
        return { part: number, state: 'done', hosts: [], doneUnits: units, units };
      }
      const { state, owner } = lockState(this.#folder.lock(part), clock);
      if (owner === undefined) return { part: number, state, hosts: [], doneUnits: 0, units };
      if (owner.seconds > 0) unitsPerSecond += owner.bytes / owner.seconds;
      return { part: number, state, hosts: [owner.host], doneUnits: owner.bytes, units };
    });
    const doneUnits = sumOf(parts, (part) => part.doneUnits);
    const { missing } = this;
    return {
      schema: 'minimind/sweep@1',
      action,
      command: plan.command,
      plan: { file, hash: plan.hash },
      results: this.#folder.root,
      unitName: plan.units.name,
      units: plan.units.count,
      doneUnits,
      parts,
      memoryBytes: plan.memoryBytes,
      unitsPerSecond: unitsPerSecond > 0 ? unitsPerSecond : null,
      secondsLeft: unitsPerSecond > 0 ? (plan.units.count - doneUnits) / unitsPerSecond : null,
      missing,
      array: arrayText(missing),
      ran,
      job: null,
    };
  }
}

type AnySweep = Pick<Sweep<unknown, unknown>, 'units'>;

/** Engines round in their own way, so all parts use one. */
function refuseOtherBackend(planned: string, here: string): void {
  if (planned === here) return;
  throw usageError(
    `the plan computes with ${backendText(planned)}, and this machine with ${backendText(here)}`,
    'use the same kind of machine for all parts, or plan again',
  );
}

/** `onnx 1.22.0 cpu 2 f32`: the differences between two are among these. */
const backendText = (backend: string): string =>
  Object.values(fromExactJson(backend) ?? {})
    .filter((value) => typeof value !== 'object' && typeof value !== 'boolean')
    .join(' ');

const identityOf = ({ units }: AnySweep): string =>
  sha256(exactJson([units.name, units.count, units.identity()]));
