/** The end of a conversion in parts: index, config and the move into place, from receipts only. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../../base/errors.js';
import { Staging } from '../../base/files/staging.js';
import { setting } from '../../base/text/setting.js';
import { sumOf } from '../../base/values.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import {
  type ConversionResult,
  conversionResult,
} from '../../convert/conversion/conversion-result.js';
import {
  checkIndex,
  isExact,
  type MeasuredTable,
  measureQuantized,
  measureTables,
  type QuantizationError,
} from '../../convert/conversion/execute/check-output.js';
import { notesOnFiles, outputPath, refuseLost } from '../../convert/conversion/execute/execute.js';
import { type MadeTable, sliceErrors } from '../../convert/conversion/execute/make-tables.js';
import { noValues } from '../../convert/conversion/execute/output-files.js';
import type { ConversionDisplay } from '../../convert/conversion/job.js';
import { writeText } from '../result-file.js';
import { arrayOption } from '../task-index.js';
import { arrayText } from '../unit-store.js';
import { type OpenedParts, openParts, type PartsSurroundings } from './open-parts.js';
import { type PartsFolder, type PartsPlan, slicesOf } from './parts-plan.js';
import {
  fileUnit,
  type Receipt,
  receiptOf,
  removeReceipt,
  sliceUnit,
  tableUnit,
  weightGroups,
} from './receipts.js';

const notMeasured = () =>
  `The error of the SRTE was not measured, because that reads all tables again: ${setting('finish')} ${setting('check')} does`;

export interface FinishOptions extends PartsSurroundings {
  /** Whether to read every file again and compare its SHA-256 with its receipt, and to measure pairs. */
  readonly check: boolean;
  /** Whether to replace an output that exists. */
  readonly force: boolean;
}

/**
 * Writes what is not part of any part (index, config, copied files) and moves the output into place. No part is missing.
 * @param known Receipts of all files, by the id of their unit.
 * @returns The result as of a single run.
 * @throws UserError when the input changed, a file is not what its receipt says, or the output cannot be put in place.
 */
export async function finishParts(
  plan: PartsPlan,
  folder: PartsFolder,
  known: ReadonlyMap<string, Receipt>,
  { display, mount, check, force }: FinishOptions,
): Promise<ConversionResult> {
  const start = performance.now();
  const receipts = new Map(
    plan.parts
      .flatMap(({ files }) => files)
      .map((name) => [name, known.get(fileUnit(name).id)] as const),
  );
  const done = { plan, folder, receipts, check };
  if (check) await checkReceipts(done, display);
  const opened = await openParts(plan, { display, mount, force });
  try {
    const { input, files } = opened;
    const { path: target, kind } = plan.output;
    refuseLost(input);
    const staging = await Staging.open(target, { kind, force, resume: true, identity: plan.hash });
    try {
      for (const { name, fill, tensors } of files) {
        if (staging.isFinished(name)) continue;
        if (tensors.length > 0) await staging.adopt(name, path.join(folder.files, name));
        else await staging.write(name, (sink) => fill(sink, noValues));
      }
      const output = openCheckpoint(outputPath(staging, files), { keepPacked: true });
      try {
        checkIndex(opened.plan, output);
        const measured = await measuredIn(done, opened, output);
        const text = JSON.stringify({ plan: plan.hash, receipts: [...receipts.values()] });
        await writeText(folder.finished, text);
        await staging.commit();
        folder.clear();
        const seconds = (performance.now() - start) / 1000;
        const unmeasured = measured.tables === null ? [notMeasured()] : [];
        const notes = [...opened.plan.notes, ...notesOnFiles(input), ...unmeasured];
        const result = conversionResult(
          input,
          opened.resources,
          { plan: { ...opened.plan, notes }, files, ...measured },
          seconds,
        );
        return withReceipts(result, [...receipts.values()], check);
      } finally {
        output.close();
      }
    } catch (error) {
      await staging.abandon();
      throw error;
    }
  } finally {
    await opened.close();
  }
}

/** The figures of all runners together. */
function withReceipts(
  result: ConversionResult,
  receipts: readonly (Receipt | undefined)[],
  check: boolean,
): ConversionResult {
  if (result.run === null) return result;
  const known = receipts.flatMap((receipt) => receipt ?? []);
  const readBytes = sumOf(known, (each) => each.readBytes);
  const writtenBytes = sumOf(result.output.files, ({ bytes }) => bytes);
  const seconds = sumOf(known, (each) => each.seconds) + result.run.seconds;
  const bytesPerSecond = Math.round((readBytes + writtenBytes) / seconds);
  const run = { ...result.run, readBytes, writtenBytes, seconds, bytesPerSecond, checked: check };
  return { ...result, run };
}

/** Parts that are all done, before their output is in place. */
interface DoneParts {
  readonly plan: PartsPlan;
  readonly folder: PartsFolder;
  /** Receipts of the files. */
  readonly receipts: ReadonlyMap<string, Receipt | undefined>;
  /** Whether all that parts have not measured is measured. */
  readonly check: boolean;
}

/** @throws UserError for a file with another SHA-256 than its receipt, which is removed. */
async function checkReceipts(
  { plan, folder, receipts }: DoneParts,
  display: ConversionDisplay,
): Promise<void> {
  const total = sumOf(receipts.values(), (receipt) => receipt?.bytes ?? 0);
  const onBytes = display.step('checking', total);
  const wrong: number[] = [];
  for (const { part, files } of plan.parts) {
    for (const name of files) {
      const hash = createHash('sha256');
      const stream = fs.createReadStream(folder.written(name), { highWaterMark: 2 ** 20 });
      for await (const chunk of stream) {
        hash.update(chunk);
        onBytes(chunk.length);
      }
      if (hash.digest('hex') === receipts.get(name)?.sha256) continue;
      removeReceipt(folder, fileUnit(name));
      wrong.push(part);
    }
  }
  if (wrong.length === 0) return;
  throw new UserError(
    'system',
    `files of ${wrong.length === 1 ? 'part' : 'parts'} ${arrayText(wrong)} are not what was written: their SHA-256 differs from that of their receipts`,
    { suggestion: `check the disk, and run again: ${arrayOption(arrayText(wrong))}` },
  );
}

/** Measurements of the runners, in the order of the plan; the missing ones are made here. */
async function measuredIn(done: DoneParts, opened: OpenedParts, output: Checkpoint) {
  const { receipts } = done;
  const { input, plan } = opened;
  const known = [...receipts.values()].flatMap((receipt) => receipt ?? []);
  const { checkpoint, display } = input.job;
  const quantized = new Map<string, QuantizationError>(
    known.flatMap((receipt) => (receipt.quantized ?? []).map((each) => [each.name, each] as const)),
  );
  const groups = plan.quantization ? weightGroups(plan.tensors) : [];
  const nameOf = ([first]: (typeof groups)[number]) =>
    first?.action.do === 'quantize' ? first.action.weight.name : '';
  // The parts of these are in two files.
  const cut = groups.filter((group) => !quantized.has(nameOf(group))).flat();
  for (const each of await measureQuantized(
    { ...plan, tensors: cut },
    checkpoint,
    output,
    display.step,
  )) {
    quantized.set(each.name, each);
  }
  const blocks = new Map(
    known.flatMap((receipt) => (receipt.blocks ?? []).map((each) => [each.name, each] as const)),
  );
  return {
    tie: known.flatMap((receipt) => receipt.tie ?? []),
    blocks: plan.tensors.flatMap(({ name }) => blocks.get(name) ?? []),
    quantized: groups.flatMap((group) => quantized.get(nameOf(group)) ?? []),
    tables: await tablesMeasured(done, opened, output),
  };
}

/** Errors of the tables that the parts made; those of pairs and of cast tables only with a check, which reads all tables. */
async function tablesMeasured(
  { plan: parts, folder, check }: DoneParts,
  { input, plan, resources }: OpenedParts,
  output: Checkpoint,
): Promise<readonly MeasuredTable[] | null> {
  const { srte } = plan;
  if (srte === null) return [];
  const made = srte.tables.map((table, number): MadeTable | undefined => {
    const own = slicesOf(parts, number);
    const sums = own.flatMap((slice) => {
      const each = receiptOf(folder, parts, sliceUnit(slice))?.sums;
      return each === undefined || each.length === 0 ? [] : [each];
    });
    const receipt = receiptOf(folder, parts, tableUnit(number));
    const { energy = null, singularValues = null } = receipt ?? {};
    const isSliced = own.length > 0 && sums.length === own.length && table.form !== 'low-rank';
    const errors = isSliced ? sliceErrors(input, table, sums) : (receipt?.errors ?? null);
    const { isMade, rank } = table;
    return isMade ? { parts: new Map(), rank, energy, singularValues, errors } : undefined;
  });
  const isUnknown = srte.tables.some(
    (table, number) =>
      made[number]?.errors == null && !isExact(srte, table, input.srte?.tables ?? null),
  );
  if (isUnknown && !check) return null;
  return measureTables(input, srte, made, output, resources);
}
