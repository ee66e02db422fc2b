/** Report of `minimind fit` without hardware: common GPUs and machines, and what fits on each. */

import { nextCommand, setting, withoutSettings } from '../../base/text/setting.js';
import { formatBytes, formatInteger, shortCount } from '../../base/text/units.js';
import { counted, joined, modelName, present } from '../../base/text/words.js';
import type {
  FitTableResult,
  TableCell,
  TableRow,
  TableSetting,
} from '../../estimate/fit/fit-table.js';
import type { Block, Cell, Report, TableBlock } from '../kit/report.js';
import { leftColumn, noteOf, right, strongCell, tableOf, valueCell } from '../kit/report.js';
import { contextText } from '../profile/setting-notes.js';

/** @param words The command line after `fit`, with the model. */
export function fitTableReport(result: FitTableResult, words: readonly string[]): Report {
  const { rows } = result;
  // Without any, the last row explains what is missing.
  const best = bestRow(rows, 0) ?? rows.at(-1);
  return {
    verdict: { text: verdictText(result) },
    blocks: [table(rows), ...notes(result.setting)],
    next: best && nextCommand('fit', withoutSettings(words), hardwareOf(best, 0)),
    data: dataTable(rows),
  };
}

const TITLES = {
  serve: 'serve',
  lora: 'LoRA',
  qlora: 'QLoRA',
  train: 'train',
} as const satisfies Record<TableCell['use'], string>;

const cellTitle = ({ use, dtype }: TableCell) => dtype ?? TITLES[use];

/**
 * `qwen3-8b (8.19B parameters): l4 is enough to serve in bf16, rtx-5090 for LoRA, mi300x to train`: the smallest GPU
 * for each use, uses of the same GPU together.
 */
function verdictText({ file, parameters, rows }: FitTableResult): string {
  const uses = rows[0]?.cells ?? [];
  const first = uses.findIndex(({ use }) => use === 'serve');
  const purposes = new Map<string, string[]>();
  for (const [index, { use, dtype }] of uses.entries()) {
    if (use === 'serve' && index !== first) continue;
    const purpose = {
      serve: `to serve in ${dtype}`,
      lora: 'for LoRA',
      qlora: 'for QLoRA',
      train: 'to train',
    }[use];
    const smallest = smallestText(rows, index);
    purposes.set(smallest, [...(purposes.get(smallest) ?? []), purpose]);
  }
  const found = [...purposes].map(
    ([gpu, own], index) => `${gpu}${index === 0 ? ' is enough' : ''} ${joined(own)}`,
  );
  return `${modelName(file)} (${shortCount(parameters)} parameters): ${found.join(', ')}`;
}

/** Hardware of a use, as `--gpu` and `--gpus` name it: `l4`, `8 × h200`, `16 GPUs of dgx-h100`. */
function smallestText(rows: readonly TableRow[], index: number): string {
  const best = bestRow(rows, index);
  if (best === undefined) return 'no listed GPU';
  const { gpu, gpus } = hardwareOf(best, index);
  if (gpus === undefined) return gpu;
  const isMachine = best.unit > 1 || gpu !== best.name;
  return isMachine ? `${gpus} GPUs of ${gpu}` : `${gpus} × ${gpu}`;
}

/** Flags of the hardware of a row on which a use fits. */
function hardwareOf(
  { name, unit, cells }: TableRow,
  index: number,
): { readonly gpu: string; readonly gpus?: number } {
  const { gpus = null, machine = name } = cells[index] ?? {};
  return gpus === null || gpus <= unit ? { gpu: name } : { gpu: machine, gpus };
}

/** Smallest GPU for a use that fits on one, else the hardware of which the fewest GPUs fit; undefined without any. */
function bestRow(rows: readonly TableRow[], index: number): TableRow | undefined {
  const gpusOf = ({ cells }: TableRow) => cells[index]?.gpus ?? Number.POSITIVE_INFINITY;
  const used = (row: TableRow) => Math.max(row.unit, gpusOf(row));
  const [best] = rows
    .filter((row) => gpusOf(row) < Number.POSITIVE_INFINITY)
    .sort((a, b) => used(a) - used(b) || a.memoryBytes - b.memoryBytes);
  return best;
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
        verdictCell(cells[index] ?? use, unit),
      ),
    ),
  ]);

function verdictCell({ verdict, gpus }: TableCell, unit: number): Cell {
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
    each.users === null ? counted(each.batch, 'sequence') : counted(each.users, 'user');
  return present([
    serving &&
      noteOf(
        `Serving: ${load(serving)} of ${formatInteger(serving.context)} tokens${contextText(contextOrigin)}; ` +
          '2×: on two units; no: on no number with a known link.',
      ),
    training &&
      noteOf(
        `Training: ${training.microBatch} × ${formatInteger(training.context)} tokens, ` +
          `${[training.optimizer, ...trainingFlags(training)].join(' ')}; 1×, 2×: with changes that keep it the same` +
          `${lora ? `; LoRA: rank ${lora.rank}, recomputation ${lora.recompute}` : ''}.`,
      ),
  ]);
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
