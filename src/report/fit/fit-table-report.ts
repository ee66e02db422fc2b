/** Report of `minimind fit` without hardware: common GPUs and machines, and what fits on each. */

import {
  nextCommand,
  type SettingName,
  type SettingValues,
  setting,
  withoutSettings,
} from '../../base/text/setting.js';
import { formatBytes, formatInteger, shortCount } from '../../base/text/units.js';
import { capital, counted, joined, modelName } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type {
  BestHardware,
  FitTableResult,
  TableCell,
  TableRow,
  TableSetting,
} from '../../estimate/fit/fit-table.js';
import type { Block, Cell, Report, TableBlock } from '../kit/report.js';
import { leftColumn, noteOf, right, strongCell, tableOf, valueCell } from '../kit/report.js';
import { contextText } from '../profile/setting-notes.js';
import { changedSettings } from './fit-training.js';

/** @param words The command line after `fit`, with the model. */
export function fitTableReport(result: FitTableResult, words: readonly string[]): Report {
  const { rows, best } = result;
  const changes = best[0] ? hardwareSettings(best[0]) : largestOf(rows);
  return {
    verdict: { text: fitTableVerdict(result) },
    blocks: [table(rows), ...notes(result.setting)],
    next: nextCommand(
      'fit',
      withoutSettings(words, Object.keys(changes) as SettingName[]),
      changes,
    ),
    data: dataTable(rows),
  };
}

/** Settings that are enough for the question. */
function hardwareSettings({ gpu, gpus, flags }: BestHardware): SettingValues {
  const { cluster: _, ...settings } = flags ?? {};
  return { gpu, ...(gpus !== null && { gpus }), ...changedSettings(settings) };
}

/** The last row, whose detail explains what is missing where nothing is enough. */
const largestOf = (rows: readonly TableRow[]): SettingValues => ({ gpu: rows.at(-1)?.name ?? '' });

const TITLES = {
  serve: 'serve',
  lora: 'LoRA',
  qlora: 'QLoRA',
  train: 'train',
} as const satisfies Record<TableCell['use'], string>;

const cellTitle = ({ use, dtype }: TableCell) => dtype ?? TITLES[use];

/**
 * `qwen3-8b (8.19B parameters): serving in bf16 needs l4, LoRA rtx-5090, training mi300x`: the smallest GPU for each
 * use, uses of the same GPU together.
 */
function fitTableVerdict({ file, parameters, rows, best }: FitTableResult): string {
  const uses = rows[0]?.cells ?? [];
  const first = uses.findIndex(({ use }) => use === 'serve');
  const purposes = new Map<string, string[]>();
  for (const [index, { use, dtype }] of uses.entries()) {
    if (use === 'serve' && index !== first) continue;
    const purpose = {
      serve: `serving in ${dtype}`,
      lora: 'LoRA',
      qlora: 'QLoRA',
      train: 'training',
    }[use];
    const smallest = smallestText(best[index]);
    purposes.set(smallest, [...(purposes.get(smallest) ?? []), purpose]);
  }
  const found = [...purposes].map(
    ([gpu, own], index) =>
      `${joined(own)} ${index > 0 ? '' : own.length === 1 ? 'needs ' : 'need '}${gpu}`,
  );
  return `${modelName(file)} (${shortCount(parameters)} parameters): ${found.join(', ')}`;
}

/** Hardware of a use, as `--gpu` and `--gpus` name it: `l4`, `8 × h200`, `16 GPUs of dgx-h100`. */
function smallestText(best: BestHardware | null | undefined): string {
  if (!best) return 'more than any listed GPU';
  const { gpu, gpus, isMachine } = best;
  if (gpus === null) return gpu;
  return isMachine ? `${gpus} GPUs of ${gpu}` : `${gpus} × ${gpu}`;
}

const table = (rows: readonly TableRow[]): TableBlock =>
  tableOf(rows, [
    leftColumn('GPU', 'gpu', ({ name }) => strongCell(name)),
    right('memory', 'memory_bytes', ({ unit, memoryBytes }) => ({
      text: `${unit === 1 ? '' : `${unit} × `}${formatBytes(Math.round(memoryBytes))}`,
      value: unit * memoryBytes,
    })),
    ...(rows[0]?.cells ?? []).map((use, index) =>
      right(cellTitle(use), cellTitle(use), ({ unit, cells }: TableRow) =>
        gpusCell(cells[index] ?? use, unit),
      ),
    ),
  ]);

function gpusCell({ verdict, gpus }: TableCell, unit: number): Cell {
  if (verdict === 'fits') return { text: 'fits', tone: 'good' };
  if (gpus !== null && gpus <= unit) return { text: '1×' };
  if (verdict === 'may fit') return { text: 'may fit', tone: 'warning' };
  return gpus === null ? { text: 'no', tone: 'dim' } : { text: `${Math.ceil(gpus / unit)}×` };
}

/** One row per cell, for programs. */
const dataTable = (rows: readonly TableRow[]): TableBlock =>
  tableOf(
    rows.flatMap(({ cells, ...row }) => cells.map((cell) => ({ ...row, ...cell }))),
    [
      leftColumn('gpu', 'gpu', ({ name }) => name),
      right('unit', 'unit_gpus', ({ unit }) => valueCell(unit)),
      right('memory', 'memory_bytes', ({ memoryBytes }) => valueCell(memoryBytes)),
      leftColumn('use', 'use', ({ use }) => use),
      leftColumn('dtype', 'dtype', ({ dtype }) => dtype ?? ''),
      leftColumn('verdict', 'verdict', ({ verdict }) => verdict),
      right('gpus', 'gpus', ({ gpus }) => valueCell(gpus ?? '')),
    ],
  );

function notes({ serving, training, lora, contextOrigin }: TableSetting): Block[] {
  const load = (each: NonNullable<TableSetting['serving']>) =>
    each.users === null ? each.batch : counted(each.users, 'user');
  const tokens = (of: string | number, context: number) =>
    `${of} × ${formatInteger(context)} tokens`;
  const settings = present([
    serving && `serving ${tokens(load(serving), serving.context)}${contextText(contextOrigin)}`,
    training &&
      `training ${training.microBatch} × ${formatInteger(training.context)}, ` +
        [training.optimizer, ...trainingFlags(training)].join(' '),
    lora && `LoRA rank ${lora.rank}`,
  ]);
  return [
    noteOf(
      `${capital(settings.join('; '))}. 2×: two units` +
        `${training ? ', training with changes' : ''}; no: no number with known links.`,
    ),
  ];
}

/** Flags of a training that differ from the default. */
const trainingFlags = (training: NonNullable<TableSetting['training']>): string[] => [
  ...(training.recompute === 'none' ? [] : [setting('recompute', training.recompute)]),
  ...(training.zero === 0 ? [] : [setting('zero', training.zero)]),
  ...(training.precision === 'mixed' ? [] : [setting('precision', training.precision)]),
  ...(training.attention === 'fused' ? [] : [setting('attention', training.attention)]),
  ...(training.loss === 'full' ? [] : [setting('loss', training.loss)]),
  ...(training.convention === 'zero' ? [] : [setting('convention', training.convention)]),
  ...(training.dropout ? [setting('dropout')] : []),
];
