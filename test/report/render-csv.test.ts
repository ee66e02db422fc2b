import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable } from '../../src/base/text/escape.js';
import type { Cell, TableBlock } from '../../src/report/kit/report.js';
import { renderCsv } from '../../src/report/render/csv.js';
import { hostileText } from './hostile.js';

const table = (keys: readonly string[], ...rows: readonly Cell[][]): TableBlock => ({
  kind: 'table',
  columns: keys.map((key) => ({ title: key.toUpperCase(), key })),
  rows,
});

/** Reads CSV (RFC 4180) without the code under test. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  const field = /(?:"((?:[^"]|"")*)"|([^",\n\r]*))(,|\n|$)/gy;
  for (;;) {
    const [, quoted, plain = '', end] = field.exec(text) ?? [];
    if (end === undefined) throw new Error(`not CSV: ${text}`);
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === '') return rows;
    if (end === '\n') rows.push([]);
  }
}

describe('renderCsv', () => {
  it('writes keys and exact values of the first table', () => {
    const text = renderCsv({
      blocks: [
        { kind: 'heading', text: 'Budget' },
        table(
          ['name', 'total_parameters'],
          [{ text: 'a, "b"' }, { text: '22.144B', value: 22143967232 }],
        ),
        { kind: 'note', text: 'In billions.' },
        table(['is_tied'], [{ text: 'yes', value: true }], [{ text: 'no', value: false }]),
      ],
    });
    expect(text).toBe('name,total_parameters\n"a, ""b""",22143967232');
  });

  it('prefers the table for programs', () => {
    const data = table(['is_tied'], [{ text: 'yes', value: true }], [{ text: 'no', value: false }]);
    expect(renderCsv({ blocks: [table(['k'], [{ text: 'x' }])], data })).toBe(
      'is_tied\ntrue\nfalse',
    );
    expect(renderCsv({ blocks: [{ kind: 'note', text: 'no table' }] })).toBe('');
  });

  it.each([
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['-', "'-"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['＝1', "'＝1"],
    ['  =1+1', "'  =1+1"],
    ['\t=1+1', '\\t=1+1'],
    ['\r=1+1', '\\r=1+1'],
    ['=cmd|"/c calc"!A1', '"\'=cmd|""/c calc""!A1"'],
    ['a=b', 'a=b'],
    ['–', '–'],
  ])('writes text %j without a formula: %s', (text, csv) => {
    expect(renderCsv({ blocks: [table(['k'], [{ text }])] })).toBe(`k\n${csv}`);
    expect(renderCsv({ blocks: [table(['k'], [{ text: 'x', value: text }])] })).toBe(`k\n${csv}`);
    expect(renderCsv({ blocks: [table([text])] })).toBe(csv);
  });

  it.each([
    [-5, '-5'],
    [-0.25, '-0.25'],
    [0, '0'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [Number.NEGATIVE_INFINITY, '-Infinity'],
  ])('writes the number %d as a number', (value, csv) =>
    expect(renderCsv({ blocks: [table(['k'], [{ text: 'x', value }])] })).toBe(`k\n${csv}`),
  );

  it('distinguishes an empty cell from an empty line', () => {
    expect(renderCsv({ blocks: [table(['k'], [{ text: '' }])] })).toBe('k\n""');
    expect(renderCsv({ blocks: [table(['k', 'l'], [{ text: '' }, { text: '' }])] })).toBe('k,l\n,');
  });

  it('keeps each hostile text in its cell, without formulas', () => {
    const row = fc.tuple(hostileText, hostileText, hostileText);
    fc.assert(
      fc.property(fc.array(row, { maxLength: 4 }), (rows) => {
        const cells = rows.map((texts) => texts.map((text) => ({ text })));
        const [head, ...read] = readCsv(renderCsv({ blocks: [table(['a', 'b', 'c'], ...cells)] }));
        expect(head).toEqual(['a', 'b', 'c']);
        expect(read.map((line) => line.map((text) => text.replace(/^'/, '')))).toEqual(
          rows.map((line) => line.map((text) => printable(text).replace(/^'/, ''))),
        );
        for (const text of read.flat()) expect(text).not.toMatch(/^\s*[=+\-@\t\r]/);
      }),
    );
  });
});
