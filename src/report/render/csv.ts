import { stringify } from 'csv-stringify/sync';
import { printable } from '../../text/escape.js';
import type { Cell, Report, TableBlock } from '../kit/report.js';

/**
 * The tables of a report, in RFC 4180 with lines that end in `\n`; a blank line between two tables. The first line of
 * each has the columns' keys, the others the exact values. Without a final newline.
 */
export function renderCsv(report: Report): string {
  return report.blocks
    .filter((block) => block.kind === 'table')
    .map(csvTable)
    .join('\n\n');
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
    // A row of one empty cell must differ from the blank line between tables.
    quoted_empty: columns.length === 1,
  });
}

/** Numbers stay numbers, so that a negative one is not escaped as a formula. */
function csvValue(cell: Cell | undefined): string | number {
  const value = cell?.value ?? cell?.text ?? '';
  return typeof value === 'number' ? value : csvText(String(value));
}

/** Some spreadsheets ignore spaces before a formula; csv-stringify handles the other cases. */
function csvText(text: string): string {
  return printable(text).replace(/^(?=\s+[=+\-@])/, "'");
}
