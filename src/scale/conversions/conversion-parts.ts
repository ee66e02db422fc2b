/** A conversion in parts: its plan, its progress, the run of a part, and the end. */
import path from 'node:path';
import { sumOf } from '../../base/values.js';
import type { ConversionResult } from '../../convert/conversion/conversion-result.js';
import { type ConversionRequest, withStoppedNotice } from '../../convert/conversion/job.js';
import { CPUS } from '../launch.js';
import { refuseTooManyParts, writePlan } from '../plan-file.js';
import { type PartsAnswer, PlannedWork } from '../planned-work.js';
import { type RunTimes, runUnits } from '../run-units.js';
import { type Progress, progressOf, type UnitStore } from '../unit-store.js';
import { type FinishOptions, finishParts } from './finish-parts.js';
import { planInParts } from './make-parts.js';
import type { PartsSurroundings } from './open-parts.js';
import { PartWork } from './part-work.js';
import {
  modelsOfConversion,
  PartsFolder,
  type PartsPlan,
  type PlanFile,
  type PlannedPart,
  readPartsPlan,
  readPlanToWrite,
} from './parts-plan.js';
import {
  fileUnit,
  listedReceipts,
  type Phase,
  type Receipt,
  receiptStore,
  type Unit,
  unitsOf,
} from './receipts.js';

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
  readonly parts: readonly (PartsAnswer['parts'][number] & {
    /** Bytes of its files that are written, those of running units included. @count */
    readonly doneBytes: number;
    /** Bytes of its files. @count */
    readonly bytes: number;
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

export interface PartOptions extends PartsSurroundings, RunTimes {
  /** Undefined: both. */
  readonly phase: Phase | undefined;
}

/** Bytes read and written per second that a part is sure to reach; half of a slow shared disk. */
const LEAST_RATE = 50e6;
/** Memory of the finish for each tensor of the input: it also reads the index of the output. */
const FINISH_INDEX_BYTES = 2e3;

/** A plan, and the folder in which its parts are built. */
export class ConversionParts extends PlannedWork<PartsPlan, PartsResult> {
  readonly #folder: PartsFolder;
  readonly #store: UnitStore<Unit>;
  /** The output as the command line names it. */
  readonly #out: string | undefined;

  constructor({ file, out }: Omit<PlanFile, 'version'>, plan: PartsPlan) {
    super(file, plan);
    this.#out = out;
    this.#folder = new PartsFolder(plan);
    this.#store = receiptStore(plan, this.#folder);
  }

  /** Opens a plan to show its progress. @throws UserError for a plan that cannot be read. */
  static async open(named: PlanFile): Promise<ConversionParts> {
    return new ConversionParts(named, await readPartsPlan(named));
  }

  /** Opens a plan to write its output. @throws UserError as `readPlanToWrite`. */
  static async openToWrite(named: PlanFile): Promise<ConversionParts> {
    return new ConversionParts(named, await readPlanToWrite(named));
  }

  /**
   * Plans a conversion in parts, and writes the plan.
   * @throws UserError for every fault of the input, the request, the output or the plan's file.
   */
  static async make(
    request: ConversionRequest,
    named: PlanFile,
    { parts, stateDict }: { readonly parts: number; readonly stateDict: string | undefined },
  ): Promise<PartsResult> {
    refuseTooManyParts(parts);
    const plan = await planInParts(request, { parts, stateDict, version: named.version });
    await writePlan(named.file, plan, request.force);
    return new ConversionParts(named, plan).answer('plan');
  }

  /**
   * Does the units of some parts that are not done yet, and waits for those that others do.
   * @param numbers Numbers of the parts.
   * @throws UserError when the input is not that of the plan, or reading or writing fails. Finished units stay.
   */
  async run(numbers: readonly number[], options: PartOptions): Promise<PartsResult> {
    const start = performance.now();
    const parts = this.#folder.isFinished ? [] : this.numbered(numbers);
    const units = parts.flatMap((part) => unitsOf(part, options.phase));
    const done = parts.length > 0 ? await this.#done(units, options) : undefined;
    const own = units.flatMap(({ id }) => done?.get(id) ?? []);
    return this.answer('part', {
      parts: [...numbers],
      units: units.length,
      unitsThere: units.length - own.length,
      writtenBytes: sumOf(own, (bytes) => bytes),
      seconds: (performance.now() - start) / 1000,
    });
  }

  #done(units: readonly Unit[], options: PartOptions): Promise<ReadonlyMap<string, number>> {
    const work = new PartWork(this.plan, this.#folder, options);
    const left = () => 'finished units stay; run the part again to continue';
    return withStoppedNotice(options, left, () =>
      runUnits(units, this.#store, work, options).finally(() => work.close()),
    );
  }

  /**
   * Finishes the output of a plan.
   * @returns The result of the conversion; the state of the parts when some are missing, or all is done already.
   * @throws UserError as `finishParts`.
   */
  async finish(options: FinishOptions): Promise<ConversionResult | PartsResult> {
    if (this.#folder.isFinished) return this.answer('finish');
    const receipts = new Map<string, Receipt>();
    const store = receiptStore(this.plan, this.#folder, receipts);
    const { missing } = progressOf(this.plan, store, unitsToFinish);
    if (missing.length > 0) return this.answer('finish');
    return finishParts(this.plan, this.#folder, receipts, options);
  }

  protected job() {
    const { input, output, parts } = this.plan;
    const largest = Math.max(...parts.map(({ memoryBytes }) => memoryBytes));
    return {
      command: 'convert-checkpoint',
      places: [input.path, output.path],
      operands: this.#out === undefined ? [] : [path.resolve(this.#out)],
      partSeconds: parts.map(({ readBytes, writeBytes }) => (readBytes + writeBytes) / LEAST_RATE),
      comments: [
        `Converts ${input.path} into ${output.path} in ${parts.length} parts.`,
        `for at least ${LEAST_RATE / 1e6} MB/s read and written.`,
      ],
      hubModels: [...new Set(modelsOfConversion(this.plan))],
      hasRows: parts.some(({ slices }) => slices.length > 0),
      memoryBytes: largest + FINISH_INDEX_BYTES * input.tensors,
      cpus: CPUS,
    };
  }

  /** @param own Parts whose receipts are read; of the others, only their names. Default: all. */
  progress(own?: readonly number[]): Progress<PlannedPart> {
    // A finish has moved the files away.
    const store = this.#folder.isFinished
      ? { ...this.#store, doneIn: () => 0 }
      : this.#storeOf(own);
    return progressOf(this.plan, store, unitsToFinish);
  }

  #storeOf(own: readonly number[] | undefined): UnitStore<Unit> {
    if (own === undefined) return this.#store;
    const units = this.numbered(own).flatMap(unitsToFinish);
    return listedReceipts(this.plan, this.#folder, new Set(units.map(({ id }) => id)));
  }

  answer(action: PartsResult['action'], ran: PartsResult['ran'] = null): PartsResult {
    const { file, plan } = this;
    const { input, output, hash } = plan;
    const { isFinished } = this.#folder;
    const progress = this.progress(ran?.parts);
    const { perSecond } = progress;
    const parts = progress.parts.map(({ part: planned, state, hosts, done }) => {
      const { part, files, slices, readBytes, writeBytes: bytes, memoryBytes } = planned;
      const doneBytes = isFinished ? bytes : done;
      const work = { files: files.length, slices: slices.length, readBytes, memoryBytes };
      return { part, state, bytes, hosts, doneBytes, ...work };
    });
    const doneBytes = sumOf(parts, (part) => part.doneBytes);
    const bytes = sumOf(parts, (part) => part.bytes);
    return {
      schema: 'minimind/convert-parts@1',
      action,
      plan: { file, hash },
      input: pathAndSize(input),
      output: pathAndSize(output),
      isFinished,
      parts,
      doneBytes,
      bytes,
      bytesPerSecond: perSecond && Math.round(perSecond),
      secondsLeft: perSecond && (bytes - doneBytes) / perSecond,
      ...this.end(progress, ran),
    };
  }
}

const pathAndSize = ({ path, files }: PartsPlan['input'] | PartsPlan['output']) => ({
  path,
  files: files.length,
  bytes: sumOf<{ readonly bytes: number }>(files, ({ bytes }) => bytes),
});

/** Units that a finish needs of a part: its files. The tables are needed only by files of other parts. */
const unitsToFinish = (part: PlannedPart): Unit[] =>
  part.files.length > 0 ? part.files.map(fileUnit) : unitsOf(part, 2);
