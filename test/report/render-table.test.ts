import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextCommand } from '../../src/base/text/setting.js';
import { textWidth } from '../../src/report/kit/layout.js';
import type { Column, RenderOptions, Report, Tone } from '../../src/report/kit/report.js';
import { renderTable } from '../../src/report/render/table.js';
import { hostileReport } from './hostile.js';

const plain = (width: number): RenderOptions => ({ width, colourLevel: 0 });
const WIDE = plain(Number.POSITIVE_INFINITY);

const columns: readonly Column[] = [
  { title: 'strategy', key: 'strategy', wrap: true },
  { title: 'total', key: 'total', align: 'right' },
  { title: 'share', key: 'share', align: 'right' },
];

const report: Report = {
  blocks: [
    { kind: 'heading', text: 'Strategies' },
    {
      kind: 'table',
      columns,
      rows: [
        [
          { text: 'not shared between blocks', tone: 'strong' },
          { text: '22.144B' },
          { text: '38.8%' },
        ],
        [{ text: '共有 shared' }, { text: '8.912M' }, { text: '' }],
      ],
    },
    { kind: 'note', text: 'Saved against not shared.' },
    { kind: 'note', text: 'Buffers not counted.', tone: 'dim' },
  ],
};

const lines = (options: RenderOptions, shown: Report = report) =>
  renderTable(shown, options).split('\n');

describe('renderTable', () => {
  it('aligns numbers on the right, without bars or borders', () => {
    expect(lines(WIDE)).toEqual([
      'Strategies',
      'strategy                     total  share',
      '─────────────────────────  ───────  ─────',
      'not shared between blocks  22.144B  38.8%',
      '共有 shared                 8.912M',
      '',
      'Saved against not shared.',
      'Buffers not counted.',
    ]);
  });

  it('wraps the columns that allow it on a narrow terminal', () => {
    expect(lines(plain(30)).slice(1, 7)).toEqual([
      'strategy          total  share',
      '──────────────  ───────  ─────',
      'not shared      22.144B  38.8%',
      'between blocks',
      '共有 shared      8.912M',
      '',
    ]);
  });

  it('shows each row as a record when wrapping does not help', () => {
    expect(lines(plain(25)).slice(1, 9)).toEqual([
      'strategy: not shared',
      '  between blocks',
      'total: 22.144B',
      'share: 38.8%',
      '',
      'strategy: 共有 shared',
      'total: 8.912M',
      'share:',
    ]);
  });

  it('never wraps numbers', () => {
    const wide = { ...report, blocks: report.blocks.slice(1, 2) };
    for (let width = 26; width < 50; width++) {
      expect(renderTable(wide, plain(width))).toContain('22.144B  38.8%');
    }
  });

  it('shrinks the widest column first', () => {
    const text = (size: number) => ({ text: 'x'.repeat(size) });
    const block = {
      kind: 'table' as const,
      columns: ['a', 'b', 'c'].map((key) => ({ title: key, key, wrap: true })),
      rows: [[text(40), text(20), text(5)]],
    };
    expect(lines(plain(49), { blocks: [block] })[1]).toBe(
      [20, 20, 5].map((width) => '─'.repeat(width)).join('  '),
    );
    expect(lines(plain(40), { blocks: [block] })[1]).toMatch(/^─{15,16} {2}─{15,16} {2}─{5}$/);
  });

  it('leaves out empty blocks', () => {
    const blocks = [{ kind: 'note' as const, text: '' }, ...report.blocks.slice(2)];
    expect(lines(WIDE, { blocks })).toEqual(['Saved against not shared.', 'Buffers not counted.']);
    expect(renderTable({ blocks: [{ kind: 'table', columns, rows: [] }] }, plain(20))).toBe('');
    expect(renderTable({ blocks: [{ kind: 'table', columns, rows: [] }] }, plain(80))).toBe(
      'strategy  total  share\n────────  ─────  ─────',
    );
  });

  it('uses one grid for a long table', () => {
    const rows = Array.from({ length: 1000 }, (_, index) => [
      { text: index === 900 ? 'the longest of all' : `row ${index}` },
      { text: String(index) },
      { text: '1' },
    ]);
    const rendered = lines(WIDE, { blocks: [{ kind: 'table', columns, rows }] });
    expect(rendered).toHaveLength(1002);
    expect(new Set(rendered.map((line) => line.length))).toEqual(
      new Set(['the longest of all'.length + 14]),
    );
    expect(rendered.filter((line) => line.includes('─'))).toHaveLength(1);
  });

  it('colours by tone', () => {
    const toned = (tone: Tone) => ({
      blocks: [{ kind: 'note' as const, text: 'x', tone }],
    });
    const colour = (tone: Tone, colourLevel: 0 | 1) =>
      renderTable(toned(tone), { width: 80, colourLevel });
    expect(colour('plain', 1)).toBe('x');
    expect(colour('dim', 1)).toBe('\x1b[2mx\x1b[22m');
    expect(colour('strong', 1)).toBe('\x1b[1mx\x1b[22m');
    expect(colour('good', 1)).toBe('\x1b[32mx\x1b[39m');
    expect(colour('bad', 1)).toBe('\x1b[31mx\x1b[39m');
    expect(colour('warning', 1)).toBe('\x1b[35mx\x1b[39m');
    expect(colour('bad', 0)).toBe('x');
  });

  // In the palette of xterm, yellow has a contrast of 1.6 on white, where WCAG 2.1 asks for 4.5 of text.
  it.each([
    ['good', '32', '✓', '+'],
    ['warning', '35', '!', '!'],
    ['bad', '31', '✗', 'x'],
  ] as const)(
    'shows a %s verdict as a mark with a colour and bold text without',
    (tone, code, mark, ascii) => {
      const report = { verdict: { text: 'fits on one GPU and on two', tone }, blocks: [] };
      const drawn = (options: Partial<RenderOptions>) =>
        renderTable(report, { width: 24, colourLevel: 1, ...options }).split('\n');
      const bold = (text: string) => `\x1b[1m${text}\x1b[22m`;
      expect(drawn({})).toEqual([
        `\x1b[${code}m${mark}\x1b[39m ${bold('fits on one GPU and on')}`,
        `  ${bold('two')}`,
      ]);
      expect(drawn({ isAscii: true })[0]).toContain(`\x1b[${code}m${ascii}\x1b[39m `);
      // Without colours, the words say it.
      expect(drawn({ colourLevel: 0, width: 80 })).toEqual(['fits on one GPU and on two']);
    },
  );

  it('has no text in yellow', () => {
    const tones: readonly Tone[] = [
      ...(['plain', 'dim', 'strong', 'good', 'bad', 'warning'] as const),
      ...(['hue1', 'hue2', 'hue3', 'hue4', 'hue5'] as const),
    ];
    const blocks = tones.map((tone) => ({ kind: 'note' as const, text: 'x', tone }));
    const text = renderTable({ blocks }, { width: 80, colourLevel: 1 });
    for (const code of ['33', '93']) expect(text).not.toContain(`\x1b[${code}m`);
  });

  it('colours headings, titles and the rule', () => {
    const [heading, titles, rule, row] = lines({ width: 80, colourLevel: 1 });
    expect(heading).toBe('\x1b[1mStrategies\x1b[22m');
    const bold = (text: string) => `\x1b[1m${text}\x1b[22m`;
    const dim = (count: number) => `\x1b[2m${'─'.repeat(count)}\x1b[22m`;
    expect(titles).toBe(`${bold('strategy')}${' '.repeat(21)}${bold('total')}  ${bold('share')}`);
    expect(rule).toBe(`${dim(25)}  ${dim(7)}  ${dim(5)}`);
    expect(row).toBe(`${bold('not shared between blocks')}  22.144B  38.8%`);
  });

  it('never exceeds the width for any report', () => {
    fc.assert(
      fc.property(hostileReport, fc.integer({ min: 20, max: 120 }), (any, width) => {
        for (const line of lines(plain(width), any)) {
          expect(textWidth(line)).toBeLessThanOrEqual(width);
        }
      }),
    );
  });

  it('writes no spaces at the ends of lines', () => {
    fc.assert(
      fc.property(hostileReport, widths, (any, width) => {
        for (const line of lines(plain(width), any)) expect(line).toBe(line.trimEnd());
      }),
    );
  });

  it('has the same layout in colour', () => {
    fc.assert(
      fc.property(hostileReport, widths, fc.constantFrom(1, 2, 3), (any, width, colourLevel) => {
        const coloured = renderTable(any, { width, colourLevel });
        expect(stripVTControlCharacters(coloured)).toBe(renderTable(any, plain(width)));
      }),
    );
  });
});

const widths = fc.oneof(fc.integer({ min: 0, max: 120 }), fc.constant(Number.POSITIVE_INFINITY));

describe('on a wide terminal, renderTable', () => {
  const prose = 'Each word of this note is short. '.repeat(8);
  const words = [
    ...['qwen3-8b', '--gpu', '4090', '--gpus', '16', '--zero', '2'],
    ...['--tensor-parallel', '8', '--sequence-parallel', '--global-batch', '2048'],
  ];
  const next = nextCommand('fit', words);
  const wide: Report = {
    blocks: [{ kind: 'note', text: prose }],
    details: [],
    next,
    more: ['explain'],
  };

  it('keeps the lines of a text short enough to read', () => {
    const longest = Math.max(...lines(plain(200), wide).map((line) => line.length));
    expect(longest).toBeGreaterThan(80);
    expect(longest).toBeLessThanOrEqual(100);
    expect(lines(WIDE, wide)[0]).toBe(prose.trimEnd());
  });

  it.skipIf(process.platform === 'win32').each([60, 80, 100, 200])(
    'breaks a long command at its flags, so that it can be pasted (%d columns)',
    (width) => {
      const shown = lines(plain(width), wide);
      const command = shown.slice(
        shown.findIndex((line) => line.startsWith('Next: ')),
        -1,
      );
      expect(command.length).toBeGreaterThan(1);
      expect(Math.max(...command.map((line) => line.length))).toBeLessThanOrEqual(100);
      const pasted = command
        .join('\n')
        .replace('Next: ', '')
        .replace(/ \\\n +/g, ' ');
      expect(pasted).toBe(next);
    },
  );

  it('leaves a command with quotes and one for a file whole', () => {
    const quoted = nextCommand('fit', [...words, '--set', 'a=b --c']);
    expect(lines(plain(80), { ...wide, next: quoted })).toContain(`Next: ${quoted}`);
    expect(lines(WIDE, wide).at(-1)).toContain(`Next: ${next}`);
  });
});
