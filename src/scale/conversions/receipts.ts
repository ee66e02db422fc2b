/** Units of work of a plan, and the receipts of those that are done. */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as z from 'zod';
import { namesIn, readReplaced } from '../../base/files/file-system.js';
import { parseJson } from '../../base/text/json.js';
import { groupBy } from '../../base/values.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import {
  measureBlocks,
  measureQuantized,
  measureTie,
  type QuantizationError,
  type TensorError,
} from '../../convert/conversion/execute/check-output.js';
import type { TableSlice } from '../../convert/conversion/execute/make-tables.js';
import type { ComparisonSums, TableError } from '../../convert/conversion/execute/table-rows.js';
import type { StepProgress } from '../../convert/conversion/job.js';
import type {
  ConversionInput,
  ConversionPlan,
  PlannedTensor,
} from '../../convert/conversion/plan/conversion-plan.js';
import { sha256 } from '../plan-file.js';
import { writeText } from '../result-file.js';
import type { UnitStore } from '../unit-store.js';
import type { PartsFolder, PartsPlan, PlannedPart } from './parts-plan.js';

/** Work of a runner at a time: rows of a table, a table, or a file of the output. */
export type Unit =
  | { readonly do: 'slice'; readonly id: string; readonly slice: TableSlice }
  | { readonly do: 'table'; readonly id: string; readonly table: number }
  | { readonly do: 'file'; readonly id: string; readonly name: string };

export const sliceUnit = (slice: TableSlice): Unit => ({
  do: 'slice',
  id: `rows-${slice.table}-${slice.first}-${slice.end}`,
  slice,
});

export const tableUnit = (table: number): Unit => ({ do: 'table', id: `table-${table}`, table });

/** Names of files can be long and odd, so their hash is part of the id. */
export const fileUnit = (name: string): Unit => ({
  do: 'file',
  id: `file-${name.replaceAll(/[^\w.-]/g, '_').slice(0, 80)}-${sha256(name).slice(0, 8)}`,
  name,
});

/** Phases of a plan: rows of tables, and all else. */
export type Phase = 1 | 2;

/** The units of a part in the order in which they are done: those that wait for others last. */
export function unitsOf({ slices, tables, files }: PlannedPart, phase?: Phase): Unit[] {
  return [
    ...(phase === 2 ? [] : slices.map(sliceUnit)),
    ...(phase === 1 ? [] : [...files.map(fileUnit), ...tables.map(tableUnit)]),
  ];
}

/** Results that the report of the conversion needs. */
export interface UnitMeasurements {
  /** Comparison of the rows of a slice with each source. */
  readonly sums?: readonly ComparisonSums[];
  readonly energy?: number | null;
  readonly singularValues?: readonly number[] | null;
  /** Errors of a full table that was made as a whole. */
  readonly errors?: readonly TableError[] | null;
  /** Errors of tensors that are whole in a file. */
  readonly tie?: readonly TensorError[];
  readonly blocks?: readonly TensorError[];
  readonly quantized?: readonly QuantizationError[];
}

const receiptSchema = z.looseObject({
  /** Hash of the plan. */
  plan: z.string(),
  unit: z.string(),
  /** Bytes and SHA-256 of the written file; those of a pair are of its rows. */
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  host: z.string(),
  seconds: z.number(),
  readBytes: z.number(),
});

export type Receipt = z.infer<typeof receiptSchema> & UnitMeasurements;

const fileOf = (folder: PartsFolder, { id }: Unit) => path.join(folder.receipts, `${id}.json`);

/** Written after its file is in place. */
export const writeReceipt = (
  folder: PartsFolder,
  unit: Unit,
  receipt: Omit<Receipt, 'unit' | 'host'>,
): Promise<void> =>
  writeText(
    fileOf(folder, unit),
    JSON.stringify({ ...receipt, unit: unit.id, host: os.hostname() }),
  );

/** Removes the receipt of a unit, so that it is done again. */
export const removeReceipt = (folder: PartsFolder, unit: Unit): void =>
  fs.rmSync(fileOf(folder, unit), { force: true });

/** The receipt of a unit; undefined when it is missing, of another plan, or broken, or its file has another size. */
export function receiptOf(folder: PartsFolder, plan: PartsPlan, unit: Unit): Receipt | undefined {
  try {
    const receipt = receiptSchema.parse(parseJson(readReplaced(fileOf(folder, unit))));
    if (receipt.plan !== plan.hash || receipt.unit !== unit.id) return undefined;
    if (unit.do === 'file' && fs.statSync(folder.written(unit.name)).size !== receipt.bytes) {
      return undefined;
    }
    return receipt;
  } catch {
    return undefined;
  }
}

/**
 * Receipts of a plan as results. The work in a unit is the bytes of its file.
 * @param read Gets the receipts that are read, by the id of their unit.
 */
export const receiptStore = (
  plan: PartsPlan,
  folder: PartsFolder,
  read?: Map<string, Receipt>,
): UnitStore<Unit> => ({
  folders: folder.all,
  locks: folder.locks,
  idOf: ({ id }) => id,
  doneIn(unit) {
    const receipt = receiptOf(folder, plan, unit);
    if (receipt) read?.set(unit.id, receipt);
    return receipt && (unit.do === 'file' ? receipt.bytes : 0);
  },
});

/**
 * `receiptStore` that reads the receipts of some units only. Those of others count when their names are there: each task
 * reads its own ones, so all tasks together read each once.
 * @param own Ids of the units whose receipts are read.
 */
export function listedReceipts(
  plan: PartsPlan,
  folder: PartsFolder,
  own: ReadonlySet<string>,
): UnitStore<Unit> {
  const store = receiptStore(plan, folder);
  const bytes = new Map(plan.output.files.map((file) => [file.name, file.bytes]));
  let names: ReadonlySet<string> | undefined;
  return {
    ...store,
    doneIn(unit) {
      if (own.has(unit.id)) return store.doneIn(unit);
      names ??= new Set(namesIn(folder.receipts));
      if (!names.has(path.basename(fileOf(folder, unit)))) return undefined;
      return unit.do === 'file' ? bytes.get(unit.name) : 0;
    },
  };
}

// Errors of the tensors of one written file, for the report of the whole conversion.

/**
 * Measures what is whole in a file: a tied tensor, tensors in blocks, and quantized weights whose parts are all there.
 * @param names Tensors of the file.
 */
export async function measureFile(
  file: string,
  names: readonly string[],
  { job: { checkpoint } }: Pick<ConversionInput, 'job'>,
  plan: ConversionPlan,
  step: StepProgress,
): Promise<UnitMeasurements> {
  if (plan.tie === null && plan.quantization === undefined && plan.gguf === undefined) return {};
  const own = new Set(names);
  const tensors = plan.tensors.filter(({ name }) => own.has(name));
  const { tie } = plan;
  const whole = plan.quantization ? wholeWeights(plan.tensors, own) : [];
  const hasTie = tie !== null && own.has(tie.name);
  const hasBlocks = tensors.some(({ blocks }) => blocks !== undefined);
  if (!hasTie && !hasBlocks && whole.length === 0) return {};
  const output = openCheckpoint(file, { keepPacked: true });
  try {
    return {
      ...(hasTie && { tie: await measureTie(tie, checkpoint, output, step) }),
      ...(hasBlocks && { blocks: await measureBlocks(tensors, checkpoint, output, step) }),
      ...(whole.length > 0 && {
        quantized: await measureQuantized({ ...plan, tensors: whole }, checkpoint, output, step),
      }),
    };
  } finally {
    output.close();
  }
}

/** The tensors of the quantized weights of a plan whose parts are all among these names. */
function wholeWeights(
  tensors: readonly PlannedTensor[],
  own: ReadonlySet<string>,
): PlannedTensor[] {
  return weightGroups(tensors)
    .filter((parts) => parts.every(({ name }) => own.has(name)))
    .flat();
}

/** The tensors of each quantized weight. */
export const weightGroups = (tensors: readonly PlannedTensor[]): PlannedTensor[][] => [
  ...groupBy(
    tensors.filter(({ action }) => action.do === 'quantize'),
    ({ action }) => (action.do === 'quantize' ? action.weight.name : ''),
  ).values(),
];
