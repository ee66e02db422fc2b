import { stringify } from 'csv-stringify/sync';
import { printable } from '../../base/text/escape.js';
import type { Cell, Report, TableBlock } from '../kit/report.js';

/**
 * The one table of a report for programs, in RFC 4180 with lines that end in `\n`. The first line has the columns'
 * keys, the others the exact values. Without a final newline.
 */
export function renderCsv({ data, blocks }: Report): string {
  const table = data ?? blocks.find((block) => block.kind === 'table');
  return table ? csvTable(table) : '';
}

function csvTable({ columns, rows }: TableBlock): string {
  const records = [
    columns.map(({ key }) => csvText(key)),
    ...rows.map((row) => columns.map((_, index) => csvValue(row[index]))),
  ];
  return stringify(records, {
    record_delimiter: '\n',
    eof: false,
    // A spreadsheet would evaluate a text that begins with = + - or @.
    escape_formulas: true,
    // Without quotes, a row of one empty cell would look like no row.
    quoted_empty: columns.length === 1,
  });
}

/** A value for CSV. Numbers stay numbers, so that a negative one is not escaped as a formula. */
function csvValue(cell: Cell | undefined): string | number {
  const value = cell?.value ?? cell?.text ?? '';
  return typeof value === 'number' ? value : csvText(String(value));
}

/** A text for CSV. Some spreadsheets ignore spaces before a formula; csv-stringify handles the other cases. */
function csvText(text: string): string {
  return printable(text).replace(/^(?=\s+[=+\-@])/, "'");
}
