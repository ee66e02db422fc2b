/** Tables of a page. Their script sorts them by the exact values; totals stay below. */
import type { Cell, Column, TableBlock } from '../kit/report.js';
import { type Child, element, fragment, type Markup } from './markup.js';

/** Rows from which sorting is of use. */
const FEWEST_SORTED = 3;

/** A table in a region that scrolls by itself, also with the keyboard. */
export function htmlTable({ columns, rows, totals = 0 }: TableBlock, label: string): Markup {
  const end = rows.length - totals;
  const rowMarkup = (row: readonly Cell[]) =>
    element(
      'tr',
      {},
      columns.map((column, index) => cellMarkup(row[index], column, index === 0)),
    );
  const isSortable = end >= FEWEST_SORTED;
  return scrolling(
    label,
    element(
      'table',
      { 'data-sortable': isSortable },
      element('thead', {}, element('tr', {}, columns.map(headMarkup))),
      element('tbody', {}, rows.slice(0, end).map(rowMarkup)),
      totals > 0 && element('tfoot', {}, rows.slice(end).map(rowMarkup)),
    ),
  );
}

/** A region for content that can be wider than the page. */
export const scrolling = (label: string, content: Child): Markup =>
  element('div', { class: 'scroll', role: 'group', tabindex: 0, 'aria-label': label }, content);

const headMarkup = ({ title, align }: Column) =>
  title === ''
    ? element('td', {})
    : element('th', { scope: 'col', class: align === 'right' && 'right' }, title);

function cellMarkup(cell: Cell = { text: '' }, column: Column, isFirst: boolean): Markup {
  const { text, value, tone, share } = cell;
  const shown = share === undefined ? text : text.replace(BAR, '');
  const isHead = isFirst && text !== '';
  const kind = column.align === 'right' ? 'right number' : 'name';
  return element(
    isHead ? 'th' : 'td',
    {
      scope: isHead && 'row',
      class: tone === undefined || tone === 'plain' ? kind : `${kind} ${tone}`,
      'data-value': isNumber(value) && String(value) !== text && String(value),
    },
    share !== undefined && barMarkup(share),
    shown,
  );
}

/** Text of a bar in a terminal. */
const BAR = /^[▏▎▍▌▋▊▉█]*/;

const isNumber = (value: Cell['value']) =>
  typeof value === 'number' || (typeof value === 'string' && /^-?\d+$/.test(value));

const BAR_WIDTH = 160;

/** A bar of a share. The cells beside it have its value. */
const barMarkup = (share: number): Child =>
  fragment(
    element(
      'svg',
      { class: 'bar', width: BAR_WIDTH, height: 10, 'aria-hidden': 'true' },
      element('rect', {
        width: Math.round(Math.min(1, Math.max(0, share || 0)) * BAR_WIDTH * 10) / 10,
        height: 10,
        fill: 'currentColor',
      }),
    ),
  );
