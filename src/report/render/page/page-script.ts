/**
 * The script of a page: a table is sorted by a click on the title of a column, first one way, then the other, then as it
 * was. Without the script, all content is there in its own order.
 */
export const PAGE_SCRIPT = `'use strict';
for (const table of document.querySelectorAll('table[data-sortable]')) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value ?? cell.textContent;
    return value.trim() === '' || Number.isNaN(Number(value)) ? value : Number(value);
  };
  // Texts, such as a missing value, come after numbers in both directions.
  const compare = (a, b, sign) =>
    typeof a !== typeof b
      ? (typeof a === 'number' ? -1 : 1)
      : sign * (typeof a === 'number' ? a - b : a.localeCompare(b, 'en', { numeric: true }));
  const sortBy = (head, column) => {
    const next = { none: 'descending', descending: 'ascending', ascending: 'none' };
    const order = next[head.getAttribute('aria-sort')];
    for (const each of heads) if (each.hasAttribute('aria-sort')) each.setAttribute('aria-sort', 'none');
    head.setAttribute('aria-sort', order);
    const sign = order === 'ascending' ? 1 : -1;
    const sorted = order === 'none'
      ? original
      : original.toSorted((a, b) => compare(valueOf(a, column), valueOf(b, column), sign));
    body.append(...sorted);
  };
  heads.forEach((head, column) => {
    if (head.textContent.trim() === '') return;
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute('aria-sort', 'none');
    button.addEventListener('click', () => sortBy(head, column));
  });
}
`;
