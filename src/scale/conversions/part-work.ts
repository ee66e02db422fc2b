/** The work of a part: rows of tables, tables and files, each confirmed by a receipt. */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { UserError } from '../../base/errors.js';
import type { ByteSink } from '../../base/files/write-whole.js';
import { sumOf } from '../../base/values.js';
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
import {
  type Action,
  type PlannedTensor,
  tensorNamed,
} from '../../convert/conversion/plan/conversion-plan.js';
import type { PlannedTable } from '../../convert/conversion/srte/srte-plan.js';
import type { PartLock } from '../part-lock.js';
import { writeLocked } from '../result-file.js';
import type { UnitWork } from '../run-units.js';
import { tablesIn } from './divide.js';
import { type OpenedParts, openParts, type PartsSurroundings } from './open-parts.js';
import { type PartsFolder, type PartsPlan, slicesOf } from './parts-plan.js';
import {
  fileUnit,
  measureFile,
  type Receipt,
  sliceUnit,
  tableUnit,
  type Unit,
  type UnitMeasurements,
  writeReceipt,
} from './receipts.js';

/** Does the units of a conversion. The input is opened for the first one that has no receipt. */
export class PartWork implements UnitWork<Unit> {
  readonly #plan: PartsPlan;
  readonly #folder: PartsFolder;
  readonly #surroundings: PartsSurroundings;
  #opened: OpenedParts | undefined;
  #byName: ReadonlyMap<string, PlannedTensor> | undefined;
  #files: ReadonlyMap<string, OutputFile> | undefined;
  readonly #scratch: ClosableScratch;
  readonly #made = new Map<number, MadeTable | undefined>();
  readonly #verified = new Set<ByteFile>();

  constructor(plan: PartsPlan, folder: PartsFolder, surroundings: PartsSurroundings) {
    this.#plan = plan;
    this.#folder = folder;
    this.#surroundings = surroundings;
    this.#scratch = scratchAt((name) => path.join(folder.spool, name));
  }

  async close(): Promise<void> {
    this.#scratch.close();
    await this.#opened?.close();
  }

  async #open(): Promise<OpenedParts> {
    this.#opened ??= await openParts(this.#plan, {
      ...this.#surroundings,
      // A part writes only into its own folder; --finish decides what it replaces.
      force: true,
    });
    return this.#opened;
  }

  async needs(unit: Unit): Promise<Unit[]> {
    if (unit.do === 'slice') return [];
    if (unit.do === 'table') return slicesOf(this.#plan, unit.table).map(sliceUnit);
    const { plan } = await this.#open();
    return tablesIn(await this.#tensorsOf(unit.name)).flatMap((table) =>
      plan.srte?.tables[table]?.isMade ? [tableUnit(table)] : [],
    );
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

  async run(unit: Unit, lock: PartLock): Promise<number> {
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
    const receipt = { plan: this.#plan.hash, ...done, seconds, readBytes: readBytes() - before };
    await writeReceipt(this.#folder, unit, receipt);
    return receipt.bytes;
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
    const { energy = null, singularValues = null, errors = null } = made ?? {};
    return { ...this.#hashed(name), energy, singularValues, errors };
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
    const slices = slicesOf(this.#plan, number);
    const whole = rowsName(table);
    if (slices.length === 0 || this.#scratch.has(whole)) return;
    await this.#scratch.write(whole, async (sink) => {
      for (const slice of slices) {
        for (const piece of filePieces(this.#scratch.open(rowsName(table, slice)))) {
          await sink.write(piece);
        }
      }
    });
  }

  #hashed(name: string): Pick<Receipt, 'bytes' | 'sha256'> {
    const file = this.#scratch.open(name);
    const hash = createHash('sha256');
    for (const piece of filePieces(file)) hash.update(piece);
    return { bytes: file.size, sha256: hash.digest('hex') };
  }

  async #writeFile(
    name: string,
    lock: PartLock,
  ): Promise<Pick<Receipt, 'bytes' | 'sha256'> & UnitMeasurements> {
    const { input, plan } = await this.#open();
    for (const unit of await this.needs(fileUnit(name))) {
      if (unit.do === 'table' && !this.#made.has(unit.table)) await this.#makeTable(unit.table);
    }
    const file = await this.#outputFile(name);
    const target = path.join(this.#folder.files, name);
    const { checkpoint, saturate } = input.job;
    const made = (plan.srte?.tables ?? []).map((_, number) => this.#made.get(number));
    const valuesOf = (tensor: PlannedTensor) =>
      outputValuesOf(tensor, { checkpoint, made, plan, saturate });
    const hash = createHash('sha256');
    const { display } = this.#surroundings;
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
    await writeLocked(target, fileUnit(name).id, lock, (sink) =>
      file.fill(hashing(sink), valuesOf),
    );
    if (written !== file.bytes) {
      throw new UserError('system', `${target} has ${written} bytes instead of ${file.bytes}`);
    }
    const measured = await measureFile(target, file.tensors, input, plan, display.step);
    return { bytes: file.bytes, sha256: hash.digest('hex'), ...measured };
  }
}

const PIECE_BYTES = 2 ** 20;

function* filePieces(file: ByteFile): Generator<Uint8Array> {
  for (let at = 0; at < file.size; at += PIECE_BYTES) {
    yield file.read(at, Math.min(PIECE_BYTES, file.size - at));
  }
}

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
