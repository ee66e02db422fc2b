/** Divides a conversion into parts: whole files of the output and ranges of rows of computed tables. */

import { sumOf } from '../../base/values.js';
import { encodedBytes } from '../../checkpoint/stored-tensor.js';
import type { PreparedConversion } from '../../convert/conversion/conversion.js';
import type { TableSlice } from '../../convert/conversion/execute/make-tables.js';
import type { OutputFile } from '../../convert/conversion/execute/output-files.js';
import {
  type Action,
  type ConversionInput,
  type PlannedTensor,
  tensorNamed,
} from '../../convert/conversion/plan/conversion-plan.js';
import { isRankOpen } from '../../convert/conversion/plan/plan-conversion.js';
import { rowsMade, type SrtePlan } from '../../convert/conversion/srte/srte-plan.js';
import { equalShares } from '../equal-shares.js';
import type { PlannedPart } from './parts-plan.js';

export type Work = Omit<PlannedPart, 'memoryBytes'> & { readonly hasTables: boolean };

/** Numbers of the tables that some tensors are parts of. */
export function tablesIn(tensors: readonly PlannedTensor[]): readonly number[] {
  const tables = tensors.flatMap(({ action }) => (action.do === 'table' ? [action.table] : []));
  return [...new Set(tables)];
}

/** The work of each part of a conversion: the same for the same conversion and number. */
export function divide(
  parts: number,
  { input, plan, resources }: PreparedConversion,
  files: readonly OutputFile[],
): Work[] {
  const byName = new Map(plan.tensors.map((tensor) => [tensor.name, tensor]));
  const withTensors = files
    .filter(({ tensors }) => tensors.length > 0)
    .map((file) => {
      const tensors = file.tensors.flatMap((name) => byName.get(name) ?? []);
      const readBytes = sumOf(tensors, (tensor) => readBytesOf(tensor, tensor.action, input));
      const tables = tablesIn(tensors);
      return { ...file, readBytes, tables, cost: readBytes + file.bytes };
    });
  const shares = equalShares(withTensors, parts, ({ cost }) => cost);
  const slices = slicesOf(plan.srte, isRankOpen(input), resources.blockRows, parts);
  const tables = tableShares(plan.srte, shares, parts);
  return shares.map((share, index): Work => {
    const own = slices[index] ?? [];
    const joined = tables[index] ?? [];
    const sliced = sumOf(own, (slice) => sliceBytes(input, plan.srte, slice));
    return {
      part: index + 1,
      slices: own,
      tables: [...joined],
      files: share.map(({ name }) => name),
      readBytes: sumOf(share, (each) => each.readBytes) + sliced,
      writeBytes: sumOf(share, (each) => each.bytes),
      hasTables:
        own.length > 0 || joined.length > 0 || share.some((each) => each.tables.length > 0),
    };
  });
}

function readBytesOf(tensor: PlannedTensor, action: Action, input: ConversionInput): number {
  const stored = (name: string) => {
    const found = tensorNamed(name, input.job.checkpoint);
    return found === undefined ? 0 : encodedBytes(found);
  };
  switch (action.do) {
    case 'copy':
    case 'unpair':
    case 'fit':
      return stored(action.from);
    case 'average':
      return sumOf(action.from, stored);
    case 'quantize':
      return action.part === 'shape' ? 0 : readBytesOf(action.weight, action.weight.action, input);
    case 'table':
      return tensor.bytes;
    case 'compute':
      return 0;
  }
}

/** Tables that are worth dividing: several tables of the input, or products of pairs. */
function slicedTables(srte: SrtePlan | null, isOpen: boolean): number[] {
  // The sums that choose a rank depend on their order, so such a table is made as a whole.
  if (srte === null || isOpen) return [];
  return [...srte.tables.entries()]
    .filter(([, table]) => table.isMade && (table.sources.length > 1 || table.form === 'table'))
    .map(([number]) => number);
}

/**
 * Ranges of rows of each part. They begin at the blocks in which a single run reads, so that products of an engine are
 * the same. A table of one block is not divided.
 */
function slicesOf(
  srte: SrtePlan | null,
  isOpen: boolean,
  blockRows: number,
  parts: number,
): TableSlice[][] {
  const shares = Array.from({ length: parts }, (): TableSlice[] => []);
  if (srte === null || parts === 1) return shares;
  const rows = rowsMade(srte);
  const blocks = Math.ceil(rows / blockRows);
  const tables = blocks > 1 ? slicedTables(srte, isOpen) : [];
  const total = blocks * tables.length;
  for (const [index, share] of shares.entries()) {
    const [from, to] = [index, index + 1].map((each) => Math.floor((total * each) / parts));
    for (const [order, table] of tables.entries()) {
      const [first, end] = [from, to].map((each) =>
        Math.min(rows, Math.max(0, Math.min(blocks, (each ?? 0) - order * blocks)) * blockRows),
      );
      if (first !== undefined && end !== undefined && first < end)
        share.push({ table, first, end });
    }
  }
  return shares;
}

function sliceBytes(input: ConversionInput, srte: SrtePlan | null, slice: TableSlice): number {
  const sources = srte?.tables[slice.table]?.sources ?? [];
  return sumOf(sources, (number) => {
    const rows = input.srte?.tables?.tables[number]?.rows;
    return rows === undefined
      ? 0
      : (encodedBytes(rows) / (rows.shape[0] ?? 1)) * (slice.end - slice.first);
  });
}

/** Computed tables of each part: one table where its file is, several evenly. */
function tableShares(
  srte: SrtePlan | null,
  shares: readonly (readonly { readonly tables: readonly number[] }[])[],
  parts: number,
): (readonly number[])[] {
  const made = [...(srte?.tables.entries() ?? [])].filter(([, { isMade }]) => isMade);
  const numbers = made.map(([number]) => number);
  if (numbers.length > 1) return equalShares(numbers, parts, () => 1);
  const ownerOf = (number: number) =>
    shares.find((files) => files.some(({ tables }) => tables.includes(number)));
  return shares.map((files) => numbers.filter((number) => ownerOf(number) === files));
}
