/** Does the work of parts: each unit under a lock, written beside, synced, renamed, and confirmed by a receipt. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../../base/errors.js';
import {
  removeQuietly,
  renameTo,
  syncFolder,
  withFileErrors,
} from '../../base/files/file-system.js';
import type { ByteSink } from '../../base/files/write-whole.js';
import { writeThrough } from '../../base/files/write-whole.js';
import { sumOf } from '../../base/text/words.js';
import type { ByteFile } from '../../checkpoint/byte-file.js';
import {
  type ClosableScratch,
  refuseChanged,
  scratchAt,
} from '../../convert/conversion/execute/execute.js';
import {
  type MadeTable,
  makeSlice,
  makeTables,
  rowsName,
} from '../../convert/conversion/execute/make-tables.js';
import type { OutputFile } from '../../convert/conversion/execute/output-files.js';
import { outputValuesOf } from '../../convert/conversion/execute/tensor-values.js';
import { withStoppedNotice } from '../../convert/conversion/job.js';
import {
  type Action,
  type PlannedTensor,
  tensorNamed,
} from '../../convert/conversion/plan/conversion-plan.js';
import type { PlannedTable } from '../../convert/conversion/srte/srte-plan.js';
import { type LockTimes, LockWatch, type PartLock, workUnder } from '../part-lock.js';
import { tablesIn } from './divide.js';
import { type OpenedParts, openParts, type PartsSurroundings } from './open-parts.js';
import { PartsFolder, type PartsPlan, type PlannedPart } from './parts-plan.js';
import {
  fileUnit,
  measureFile,
  type Phase,
  type Receipt,
  receiptOf,
  sliceUnit,
  tableUnit,
  type Unit,
  type UnitMeasurements,
  unitsOf,
  writeReceipt,
} from './receipts.js';

export interface PartOptions extends PartsSurroundings {
  /** Numbers of the parts. */
  readonly parts: readonly number[];
  /** Undefined: both. */
  readonly phase: Phase | undefined;
  readonly times?: LockTimes;
  /** Milliseconds between two looks at the units of others. */
  readonly poll?: number;
}

/** A unit after a run. */
export interface UnitResult {
  readonly unit: Unit;
  /** `there` when an earlier run or another runner did it. */
  readonly outcome: 'done' | 'there';
  readonly bytes: number;
}

/** Whether `--finish` has already put the output in place. */
export function isFinished(plan: PartsPlan, folder: PartsFolder): boolean {
  if (!fs.existsSync(folder.finished)) return false;
  const { kind, path: target, files } = plan.output;
  return files.every(({ name, bytes }) => {
    const file =
      kind === 'folder' ? path.join(target, name) : path.join(path.dirname(target), name);
    return fs.statSync(file, { throwIfNoEntry: false })?.size === bytes;
  });
}

/**
 * Does the work of some parts that is not done yet, and waits for units that others do. Can be repeated, and run at once
 * with itself.
 * @throws UserError when the input is not that of the plan, or reading or writing fails. Finished units stay.
 */
export async function runParts(plan: PartsPlan, options: PartOptions): Promise<UnitResult[]> {
  const folder = new PartsFolder(plan);
  const parts = options.parts.flatMap((number) => plan.parts[number - 1] ?? []);
  if (isFinished(plan, folder)) return [];
  await withFileErrors(folder.root, () => folder.make());
  const runner = new Runner(plan, folder, options);
  const left = () => 'finished units stay; run the part again to continue';
  return withStoppedNotice(options, left, async () => {
    try {
      return await runner.run(parts);
    } finally {
      await runner.close();
    }
  });
}

class Runner {
  readonly #plan: PartsPlan;
  readonly #folder: PartsFolder;
  readonly #options: PartOptions;
  readonly #watch: LockWatch;
  readonly #results = new Map<string, UnitResult>();
  #opened: OpenedParts | undefined;
  #byName: ReadonlyMap<string, PlannedTensor> | undefined;
  #files: ReadonlyMap<string, OutputFile> | undefined;
  readonly #scratch: ClosableScratch;
  readonly #made = new Map<number, MadeTable | undefined>();
  readonly #verified = new Set<ByteFile>();

  constructor(plan: PartsPlan, folder: PartsFolder, options: PartOptions) {
    this.#plan = plan;
    this.#folder = folder;
    this.#options = options;
    this.#watch = new LockWatch(options.times);
    this.#scratch = scratchAt((name) => path.join(folder.spool, name));
  }

  async run(parts: readonly PlannedPart[]): Promise<UnitResult[]> {
    const units = parts.flatMap((part) => unitsOf(part, this.#options.phase));
    await this.#ensure(units.filter(({ do: what }) => what === 'slice'));
    await this.#ensure(await this.#inOrder(units.filter(({ do: what }) => what !== 'slice')));
    return units.flatMap(({ id }) => this.#results.get(id) ?? []);
  }

  async close(): Promise<void> {
    this.#scratch.close();
    await this.#opened?.close();
  }

  /** Those that need nothing first, so that no free unit waits for a table. */
  async #inOrder(units: readonly Unit[]): Promise<Unit[]> {
    const left = units.filter((unit) => !this.#isThere(unit));
    const needs = new Map<Unit, number>();
    for (const unit of left) needs.set(unit, (await this.#needed(unit)).length);
    return left.toSorted((a, b) => (needs.get(a) ?? 0) - (needs.get(b) ?? 0));
  }

  /** Does the free ones of some units, then waits for those that others do. */
  async #ensure(units: readonly Unit[]): Promise<void> {
    let pending = units;
    while (pending.length > 0) {
      const busy: Unit[] = [];
      for (const unit of pending) {
        if (!(await this.#attempt(unit))) busy.push(unit);
      }
      pending = busy;
      if (pending.length > 0) await delay(this.#options.poll ?? 2_000);
    }
  }

  /** @returns Whether the unit is done; false when another runner does it. */
  async #attempt(unit: Unit): Promise<boolean> {
    const { times } = this.#options;
    return workUnder(
      path.join(this.#folder.locks, `${unit.id}.lock`),
      { watch: this.#watch, ...(times && { times }) },
      {
        isThere: () => this.#isThere(unit),
        prepare: async () => this.#ensure(await this.#needed(unit)),
        work: async (lock) => {
          const receipt = await this.#do(unit, lock);
          await writeReceipt(this.#folder, unit, receipt);
          this.#results.set(unit.id, { unit, outcome: 'done', bytes: receipt.bytes });
        },
      },
    );
  }

  #isThere(unit: Unit): boolean {
    this.#folder.refresh();
    const written = unit.do === 'file' ? path.join(this.#folder.files, unit.name) : undefined;
    const receipt = receiptOf(this.#folder, this.#plan, unit, written);
    if (receipt === undefined) return false;
    if (!this.#results.has(unit.id)) {
      this.#results.set(unit.id, { unit, outcome: 'there', bytes: receipt.bytes });
    }
    return true;
  }

  async #open(): Promise<OpenedParts> {
    this.#opened ??= await openParts(this.#plan, {
      ...this.#options,
      // A part writes only into its own folder; --finish decides what it replaces.
      force: true,
    });
    return this.#opened;
  }

  /** Units that must be done before this one. */
  async #needed(unit: Unit): Promise<Unit[]> {
    if (unit.do === 'slice') return [];
    if (unit.do === 'table') return this.#slicesOf(unit.table).map(sliceUnit);
    const { plan } = await this.#open();
    return tablesIn(await this.#tensorsOf(unit.name)).flatMap((table) =>
      plan.srte?.tables[table]?.isMade ? [tableUnit(table)] : [],
    );
  }

  #slicesOf(table: number) {
    const all = this.#plan.parts.flatMap(({ slices }) => slices);
    return all.filter((slice) => slice.table === table).toSorted((a, b) => a.first - b.first);
  }

  async #outputFile(name: string): Promise<OutputFile> {
    const { files } = await this.#open();
    this.#files ??= new Map(files.map((file) => [file.name, file]));
    const file = this.#files.get(name);
    if (file === undefined) throw new Error(`no file ${name} in the plan`);
    return file;
  }

  async #tensorsOf(name: string): Promise<PlannedTensor[]> {
    const { plan } = await this.#open();
    this.#byName ??= new Map(plan.tensors.map((tensor) => [tensor.name, tensor]));
    const { tensors } = await this.#outputFile(name);
    return tensors.flatMap((each) => this.#byName?.get(each) ?? []);
  }

  async #do(unit: Unit, lock: PartLock): Promise<Omit<Receipt, 'unit' | 'host'>> {
    const start = performance.now();
    const { input, refuseOther } = await this.#open();
    const { files } = input.job.checkpoint;
    const readBytes = () => sumOf(files, ({ bytesRead }) => bytesRead);
    const before = readBytes();
    const unread = (await this.#inputsOf(unit)).filter((file) => !this.#verified.has(file));
    refuseOther(unread);
    for (const file of unread) this.#verified.add(file);
    const done = await this.#write(unit, lock);
    refuseChanged(files);
    const seconds = (performance.now() - start) / 1000;
    return { plan: this.#plan.hash, ...done, seconds, readBytes: readBytes() - before };
  }

  /** The files of the input that a unit reads. */
  async #inputsOf(unit: Unit): Promise<readonly ByteFile[]> {
    const { input } = await this.#open();
    const { checkpoint } = input.job;
    if (unit.do !== 'file') return checkpoint.files;
    const tensors = await this.#tensorsOf(unit.name);
    const names = tensors.flatMap(({ action }) => sourcesOf(action));
    const found = new Set(
      names.map((name) => {
        const tensor = tensorNamed(name, checkpoint);
        return tensor?.encoding?.file ?? tensor?.storage.file;
      }),
    );
    const known = checkpoint.files.filter((file) => found.has(file));
    // Values computed from several tensors do not say from which files.
    return known.length === found.size ? known : checkpoint.files;
  }

  async #write(
    unit: Unit,
    lock: PartLock,
  ): Promise<Pick<Receipt, 'bytes' | 'sha256'> & UnitMeasurements> {
    const { input, plan, resources } = await this.#open();
    if (unit.do === 'file') return this.#writeFile(unit.name, lock);
    const { srte } = plan;
    if (srte === null) throw new Error('no tables');
    if (unit.do === 'slice') {
      const table = srte.tables[unit.slice.table];
      if (table === undefined) throw new Error(`no table ${unit.slice.table}`);
      const sums = await makeSlice(input, srte, unit.slice, resources, this.#scratch);
      return { ...this.#hashed(rowsName(table, unit.slice)), sums };
    }
    const made = await this.#makeTable(unit.table);
    const [rows] = made?.parts.values() ?? [];
    const name = rows === undefined ? '' : path.basename(rows.storage.file.path);
    return { ...this.#hashed(name), energy: made?.energy ?? null, errors: made?.errors ?? null };
  }

  /** A table from its slices, or from the input; those of others are read. */
  async #makeTable(number: number): Promise<MadeTable | undefined> {
    const { input, plan, resources } = await this.#open();
    const table = plan.srte?.tables[number];
    if (table === undefined) throw new Error(`no table ${number}`);
    await this.#join(table, number);
    const made = await makeTables(
      input,
      plan.srte,
      resources,
      this.#scratch,
      (each) => each === number,
    );
    this.#made.set(number, made[number]);
    return made[number];
  }

  async #join(table: PlannedTable, number: number): Promise<void> {
    const slices = this.#slicesOf(number);
    const whole = rowsName(table);
    if (slices.length === 0 || this.#scratch.has(whole)) return;
    await this.#scratch.write(whole, async (sink) => {
      for (const slice of slices) {
        const file = this.#scratch.open(rowsName(table, slice));
        for (let at = 0; at < file.size; at += PIECE_BYTES) {
          await sink.write(file.read(at, Math.min(PIECE_BYTES, file.size - at)));
        }
      }
    });
  }

  #hashed(name: string): Pick<Receipt, 'bytes' | 'sha256'> {
    const file = this.#scratch.open(name);
    const hash = createHash('sha256');
    for (let at = 0; at < file.size; at += PIECE_BYTES) {
      hash.update(file.read(at, Math.min(PIECE_BYTES, file.size - at)));
    }
    return { bytes: file.size, sha256: hash.digest('hex') };
  }

  async #writeFile(
    name: string,
    lock: PartLock,
  ): Promise<Pick<Receipt, 'bytes' | 'sha256'> & UnitMeasurements> {
    const { input, plan } = await this.#open();
    for (const unit of await this.#needed(fileUnit(name))) {
      if (unit.do === 'table' && !this.#made.has(unit.table)) await this.#makeTable(unit.table);
    }
    const file = await this.#outputFile(name);
    const { files } = this.#folder;
    const prefix = `.${fileUnit(name).id}.`;
    // Left by an owner that is gone.
    for (const each of fs.readdirSync(files)) {
      if (each.startsWith(prefix)) removeQuietly(path.join(files, each));
    }
    const temporary = path.join(files, `${prefix}${lock.token}.tmp`);
    const target = path.join(files, name);
    const { checkpoint, saturate } = input.job;
    const made = (plan.srte?.tables ?? []).map((_, number) => this.#made.get(number));
    const valuesOf = (tensor: PlannedTensor) =>
      outputValuesOf(tensor, { checkpoint, made, plan, saturate });
    const hash = createHash('sha256');
    const { display } = this.#options;
    const onProgress = display.step(`writing ${name}`, file.bytes);
    let written = 0;
    const hashing = (sink: ByteSink): ByteSink => ({
      get position() {
        return sink.position;
      },
      async write(bytes) {
        hash.update(bytes);
        written += bytes.length;
        lock.add(bytes.length);
        onProgress(bytes.length);
        await sink.write(bytes);
      },
    });
    await writeThrough(
      temporary,
      target,
      undefined,
      (sink) => file.fill(hashing(sink), valuesOf),
      () => {
        renameTo(temporary, target);
        syncFolder(files);
      },
    );
    if (written !== file.bytes) {
      throw new UserError('system', `${target} has ${written} bytes instead of ${file.bytes}`);
    }
    const measured = await measureFile(target, file.tensors, input, plan, display.step);
    return { bytes: file.bytes, sha256: hash.digest('hex'), ...measured };
  }
}

const PIECE_BYTES = 2 ** 20;

/** Names in the input of the tensors that an action reads directly. */
function sourcesOf(action: PlannedTensor['action']): readonly string[] {
  const within: Action = action.do === 'quantize' ? action.weight.action : action;
  switch (within.do) {
    case 'copy':
    case 'fit':
    case 'unpair':
      return [within.from];
    case 'average':
      return within.from;
    case 'table':
    case 'quantize':
    case 'compute':
      return [];
  }
}
