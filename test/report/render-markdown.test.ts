import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TableBlock } from '../../src/report/kit/report.js';
import { renderMarkdown } from '../../src/report/render/markdown.js';
import { hostileText } from './hostile.js';

const note = (text: string) => renderMarkdown({ blocks: [{ kind: 'note', text }] });

/** Cells of a table's line, split as on GitHub: at pipes without a backslash. */
function cellsOf(line: string): string[] {
  const cells = line.match(/(?:\\.|[^\\|])+/gsu) ?? [];
  expect(`|${cells.join('|')}|`).toBe(line);
  return cells;
}

describe('renderMarkdown', () => {
  it('writes headings, aligned tables and paragraphs', () => {
    const text = renderMarkdown({
      blocks: [
        { kind: 'heading', text: 'Budget' },
        {
          kind: 'table',
          columns: [
            { title: 'name', key: 'name' },
            { title: 'total', key: 'total', align: 'right' },
          ],
          rows: [
            [{ text: '日本' }, { text: '22.144B', value: 1, tone: 'bad' }],
            [{ text: 'a' }, { text: '–' }],
          ],
        },
        { kind: 'note', text: 'In billions.' },
      ],
    });
    expect(text.split('\n')).toEqual([
      '## Budget',
      '',
      '| name |   total |',
      '| ---- | ------: |',
      '| 日本 | 22.144B |',
      '| a    |       – |',
      '',
      'In billions.',
    ]);
  });

  it.each([
    ['a pipe', 'a|b', 'a\\|b'],
    ['an escaped pipe', 'a\\|b', 'a\\\\\\|b'],
    ['code', '`rm`', '\\`rm\\`'],
    ['HTML', '<img src=x onerror=1>', '&lt;img src=x onerror=1&gt;'],
    ['an entity', '&lt;', '&amp;lt;'],
    ['emphasis', '*a* **b** ~~c~~', '\\*a\\* \\*\\*b\\*\\* \\~\\~c\\~\\~'],
    ['a link', '[a](javascript:x)', '\\[a\\](javascript:x)'],
    ['an image', '![a](b)', '!\\[a\\](b)'],
    ['a formula', '$x$', '\\$x\\$'],
    ['bare addresses', 'https://a.b www.a.b c@d.e', 'https\\://a.b www\\.a.b c\\@d.e'],
    ['underscores in a name', '__proto__', '\\_\\_proto\\_\\_'],
    ['underscores around a word', '_a_', '\\_a\\_'],
    ['several lines', 'a\n\n# b', 'a\\\\n\\\\n\\# b'],
    ['a heading', '# a', '\\# a'],
    ['a list', '- a', '\\- a'],
    ['another list', '+ a', '\\+ a'],
    ['a numbered list', '12. a', '12\\. a'],
    ['a rule', '---', '\\---'],
    ['a quote', '> a', '&gt; a'],
    ['indented code', '     a', 'a'],
  ])('shows %s literally', (_, text, markdown) => expect(note(text)).toBe(markdown));

  it.each(['srte_factorized_rank and 2.5 GB', 'a: b, c/d.yaml', '3.14', 'größe_länge'])(
    'does not change %j',
    (text) => expect(note(text)).toBe(text),
  );

  it('escapes headings', () => {
    expect(renderMarkdown({ blocks: [{ kind: 'heading', text: '<b> #' }] })).toBe(
      '## &lt;b&gt; \\#',
    );
  });

  it('keeps rows and columns of hostile cells, without markup', () => {
    const row = fc.tuple(hostileText, hostileText, hostileText);
    fc.assert(
      fc.property(row, fc.array(row, { maxLength: 4 }), (titles, rows) => {
        const block: TableBlock = {
          kind: 'table',
          columns: titles.map((title) => ({ title, key: 'k' })),
          rows: rows.map((texts) => texts.map((text) => ({ text }))),
        };
        const lines = renderMarkdown({ blocks: [block] }).split('\n');
        expect(lines).toHaveLength(rows.length + 2);
        for (const line of lines) {
          const cells = cellsOf(line);
          expect(cells).toHaveLength(3);
          expect(cells.flatMap(markupIn)).toEqual([]);
        }
      }),
    );
  });

  it('writes hostile headings and notes without markup', () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const [heading = '', paragraph = '', ...more] = renderMarkdown({
          blocks: [
            { kind: 'heading', text: `a${text}` },
            { kind: 'note', text: `a${text}` },
          ],
        }).split('\n\n');
        expect(more).toEqual([]);
        expect(heading.slice(0, 4)).toBe('## a');
        expect(heading.slice(3)).toBe(paragraph);
        expect(markupIn(paragraph)).toEqual([]);
        expect(paragraph).not.toContain('\n');
      }),
    );
  });
});

/** Unescaped characters that make markup. */
function markupIn(markdown: string): string[] {
  return markdown.replace(/\\[!-/:-@[-`{-~]/g, '').match(/[`*[\]<>~$#|]|:\/\/|www\./gi) ?? [];
}
