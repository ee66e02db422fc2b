/** Cells and blocks of reports. */

import type { GenerationFlops } from '../../budget/flops.js';
import type { ResolvedSetting, SettingOrigin } from '../../budget/profile-model.js';
import {
  formatBinaryBytes,
  formatBytes,
  formatFlops,
  formatInteger,
  formatShare,
  percentText,
} from '../../text/units.js';
import { present } from '../../text/words.js';
import type { Block, Cell, Column, TableBlock } from './report.js';

export const headingBlock = (text: string): Block => ({ kind: 'heading', text });
export const noteOf = (text: string): Block => ({ kind: 'note', text, tone: 'dim' });

/** `… 14 more: --details`, below a list that was cut; nothing when it was not. */
export const moreNote = (more: number, flag: '--details' | '--json'): Block[] =>
  more > 0 ? [noteOf(`… ${formatInteger(more)} more: ${flag}`)] : [];

/** A cell, or its text, of a row. */
type CellOf<Row> = (row: Row, index: number) => Cell | string;

/** A column, and its cell in each row. */
export interface Field<Row> extends Column {
  readonly cell: CellOf<Row>;
}

/** Builds a column, with its cells if the table has rows of one kind. */
function columnBuilder(format: Pick<Column, 'align' | 'wrap' | 'cut'>) {
  function build(title: string, key: string): Column;
  function build<Row>(title: string, key: string, cell: CellOf<Row>): Field<Row>;
  function build<Row>(title: string, key: string, cell?: CellOf<Row>) {
    return { title, key, ...format, ...(cell && { cell }) };
  }
  return build;
}

export const leftColumn = columnBuilder({});
export const wrapColumn = columnBuilder({ wrap: true });
/** For names, which differ at their ends. */
export const cutColumn = columnBuilder({ cut: true });
export const right = columnBuilder({ align: 'right' });

/** A table with a row for each of `rows`, and further ones at the end, as totals. */
export function tableOf<Row>(
  rows: readonly Row[],
  fields: readonly (Field<Row> | false)[],
  last: TableBlock['rows'] = [],
): TableBlock {
  const shown = fields.filter((field) => field !== false);
  const cellsOf = (row: Row, index: number) =>
    shown.map(({ cell }) => {
      const content = cell(row, index);
      return typeof content === 'string' ? { text: content } : content;
    });
  return {
    kind: 'table',
    columns: shown.map(({ cell: _, ...column }) => column),
    rows: [...rows.map(cellsOf), ...last],
  };
}

/** Mark of a file's current state. */
export const CURRENT_MARK = '●';

export const strongCell = (text: string): Cell => ({ text, tone: 'strong' });

/** A value that does not exist. */
export const NOTHING: Cell = { text: '–', value: '' };

/** CSV stores integers beyond 2^53 − 1 as text with every digit. */
const exactValue = (value: number | bigint) => (typeof value === 'bigint' ? String(value) : value);

export const bytesCell = (value: number | bigint): Cell => ({
  text: formatBytes(value),
  value: exactValue(value),
});
export const binaryCell = (value: number | bigint): Cell => ({
  text: formatBinaryBytes(value),
  value: Number(value) / 2 ** 30,
});
/** `1,234`; `–` for null. */
export const integerCell = (value: number | bigint | null): Cell =>
  value === null ? NOTHING : { text: formatInteger(value), value: exactValue(value) };
export const flopsCell = (value: number | bigint): Cell => ({
  text: formatFlops(value),
  value: exactValue(value),
});
export const shareCell = (part: number | bigint, whole: number | bigint): Cell => ({
  text: formatShare(part, whole),
  value: Number(part) / Number(whole),
});

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/**
 * A horizontal bar, `share` (clamped to 0 to 1) of `width` terminal columns long, to the nearest eighth of a column.
 */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share || 0)) * width * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

export const percentCell = (share: number | null): Cell => ({
  text: percentText(share),
  value: share ?? '',
});

/** `2.5587`; `–` for null. */
export const realCell = (value: number | null): Cell =>
  value === null ? NOTHING : { text: value === 0 ? '0' : value.toPrecision(5), value };

/** `0.9633`; `–` for null. */
export const cosineCell = (cosine: number | null): Cell =>
  cosine === null ? NOTHING : { text: cosine.toFixed(4), value: cosine };

// Texts shared by several reports.

// Setting of figures: batch, length and precision.

const ORIGINS = {
  flag: '',
  file: ' (from the file)',
  default: ' (default)',
  longest: ' (default, its maximum)',
} as const satisfies Record<SettingOrigin, string>;

/** Origin of the sequence length, when it is not the user. */
export const contextText = (origin: SettingOrigin): string => ORIGINS[origin];

/** @param file Name of the source of values without a flag. */
export const settingNotes = (setting: ResolvedSetting, file = 'file'): Block[] => [
  inferenceNote(setting, file),
  ...trainingNotes(setting, file),
];

const from = (origin: SettingOrigin, file: string) => ORIGINS[origin].replace('file', file);

const inferenceNote = ({ inference, origins }: ResolvedSetting, file: string): Block =>
  noteOf(
    `Inference: ${formatInteger(inference.batch)} × ${formatInteger(inference.context)} tokens` +
      `${from(origins.context, file)}, ${inference.dtype}.`,
  );

function trainingNotes(setting: ResolvedSetting, file: string): Block[] {
  const { training, origins, beyondOneDevice } = setting;
  const precision = training.precision === 'mixed' ? 'mixed precision' : 'float32';
  return present([
    noteOf(
      `Training: ${formatInteger(training.batch)}${from(origins.trainingBatch, file)} × ${formatInteger(training.context)} ` +
        `tokens, ${precision}${from(origins.precision, file)}, ${training.optimizer}, ` +
        `recomputation ${training.recompute}${from(origins.recompute, file)}.`,
    ),
    beyondOneDevice.length > 0 &&
      noteOf(
        `The ${file === 'file' ? 'file asks' : 'files ask'} for ${beyondOneDevice.join(', ')}; one device without it is counted here.`,
      ),
  ]);
}

/** FLOPs of generating tokens with and without a cache. */
export const generationNote = ({
  prompt,
  generated,
  cached,
  recomputed,
  ratio,
}: GenerationFlops): Block =>
  noteOf(
    `Generating ${formatInteger(generated)} tokens after ${formatInteger(prompt)}, one sequence: ` +
      `${formatFlops(cached)} with a cache, ${formatFlops(recomputed)} without one (${ratio.toPrecision(3)} ×).`,
  );
