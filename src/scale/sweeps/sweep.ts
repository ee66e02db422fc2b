/** Sweeps in parts: a unit of a runner is a part, whose results are one file. */
import fs from 'node:fs';
import path from 'node:path';
import { UserError, usageError } from '../../base/errors.js';
import { readInputs } from '../../base/files/input-registry.js';
import type { Sweep } from '../../base/sweep.js';
import { sumOf } from '../../base/values.js';
import { equalRanges } from '../equal-shares.js';
import { changedInput } from '../fingerprint.js';
import { CPUS } from '../launch.js';
import type { PartLock } from '../part-lock.js';
import { partsFolder, refuseTooManyParts, sha256, writePlan } from '../plan-file.js';
import { type PartsAnswer, PlannedWork } from '../planned-work.js';
import { type RunTimes, runUnits } from '../run-units.js';
import { arrayOption } from '../task-index.js';
import { arrayText, type Progress, progressOf, type UnitStore } from '../unit-store.js';
import { exactJson, fromExactJson } from './exact-json.js';
import {
  hashedSweepPlan,
  inputFingerprints,
  modelsOfSweep,
  readSweepPlan,
  refuseChangedInputs,
  type SweepPart,
  type SweepPlan,
} from './sweep-plan.js';
import {
  brokenResults,
  partId,
  ResultsReader,
  resultsFile,
  writeResults,
} from './sweep-results.js';

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

/** An opened plan, and the folder of its results next to it. */
export class SweepParts extends PlannedWork<SweepPlan, SweepResult> {
  readonly #store: UnitStore<SweepPart>;
  readonly #folder: string;

  constructor(file: string, plan: SweepPlan) {
    super(path.resolve(file), plan);
    const folder = partsFolder(this.file, plan);
    this.#folder = folder;
    this.#store = {
      folders: [folder],
      locks: folder,
      idOf: partId,
      doneIn(part) {
        const isThere = part.first === part.end || fs.existsSync(resultsFile({ folder, part }));
        return isThere ? unitsOf(part) : undefined;
      },
    };
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
      parts: equalRanges(costs, count).map(({ first, end, cost: seconds }, index) => {
        return { part: index + 1, first, end, seconds };
      }),
    });
    await writePlan(file, plan, force);
    return new SweepParts(file, plan).answer('plan');
  }

  /**
   * @param presets Folder of the presets.
   * @throws UserError when an input is not the one of the plan.
   */
  refuseChangedInputs(presets: string): void {
    refuseChangedInputs(this.plan, presets);
  }

  /** @throws UserError when a sweep has other units, or runs otherwise, than that of the plan. */
  #refuseOther(sweep: AnySweep): void {
    if (identityOf(sweep) === this.plan.units.sha256) return;
    throw changedInput(`${this.file}: the ${this.plan.units.name} are not those of the plan`);
  }

  /**
   * Does some parts, and waits for those that others do.
   * @throws UserError when a result cannot be computed or written.
   */
  async run<Value, Result, Backend>(
    sweep: Sweep<Value, Result, Backend>,
    numbers: readonly number[],
    times: RunTimes = {},
  ): Promise<SweepResult> {
    const start = performance.now();
    this.#refuseOther(sweep);
    const work = {
      isWhole: async (part: SweepPart) => (await this.#broken(part)) === undefined,
      run: async (part: SweepPart, lock: PartLock) => {
        refuseOtherBackend(this.plan.backend, exactJson(await sweep.backend.here()));
        await writeResults(this.#results(part), lock, sweep.compute);
        return unitsOf(part);
      },
    };
    const done = await runUnits(this.numbered(numbers), this.#store, work, times);
    const units = this.unitsIn(numbers);
    return this.answer('part', {
      parts: [...numbers],
      units,
      unitsThere: units - sumOf(done.values(), (amount) => amount),
      seconds: (performance.now() - start) / 1000,
    });
  }

  /** Number of units of some parts. */
  unitsIn(numbers: readonly number[]): number {
    return sumOf(this.numbered(numbers), unitsOf);
  }

  #results(part: SweepPart) {
    return { folder: this.#folder, plan: this.plan, part };
  }

  #broken(part: SweepPart): Promise<UserError | undefined> {
    return brokenResults(this.#results(part));
  }

  /** @throws UserError for results that are broken or of another plan. */
  async #refuseBroken(): Promise<void> {
    const broken: { readonly part: SweepPart; readonly error: UserError }[] = [];
    for (const part of this.plan.parts) {
      const error = await this.#broken(part);
      if (error !== undefined) broken.push({ part, error });
    }
    const [first, ...others] = broken;
    if (first === undefined) return;
    if (others.length === 0) throw first.error;
    throw new UserError('refused-file', `the results of ${broken.length} parts cannot be used`, {
      problems: broken.map(({ part, error: { message } }) => {
        const file = resultsFile(this.#results(part));
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
    this.#refuseOther(sweep);
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

  protected job() {
    const { command, cpus, folder, inputs, memoryBytes, parts, units } = this.plan;
    return {
      ...{ command, cpus, memoryBytes, operands: [], hasRows: false },
      partSeconds: parts.map(({ seconds }) => seconds),
      comments: [
        `minimind ${command}: ${units.count} ${units.name} in ${parts.length} parts.`,
        'enough for a slow machine.',
      ],
      hubModels: modelsOfSweep(this.plan),
      // The folder itself holds what the paths of the command line name.
      places: [path.join(folder, 'x'), ...inputs.map(({ path: input }) => input)],
    };
  }

  progress(): Progress<SweepPart> {
    return progressOf(this.plan, this.#store, (part) => [part]);
  }

  answer(action: SweepResult['action'], ran: SweepResult['ran'] = null): SweepResult {
    const { file, plan } = this;
    const { command, hash, memoryBytes, units } = plan;
    const progress = this.progress();
    const { done: doneUnits, perSecond: unitsPerSecond } = progress;
    return {
      schema: 'minimind/sweep@1',
      action,
      command,
      plan: { file, hash },
      results: this.#folder,
      unitName: units.name,
      units: units.count,
      doneUnits,
      parts: progress.parts.map(({ part, state, hosts, done }) => {
        return { part: part.part, state, hosts, doneUnits: done, units: unitsOf(part) };
      }),
      memoryBytes,
      unitsPerSecond,
      secondsLeft: unitsPerSecond && (units.count - doneUnits) / unitsPerSecond,
      ...this.end(progress, ran),
    };
  }
}

/** Number of units of a part. */
const unitsOf = ({ first, end }: SweepPart): number => end - first;

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
