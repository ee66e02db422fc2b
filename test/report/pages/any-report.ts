/** A report with every kind of block and picture, and copies of it with other texts. */
import type { Report } from '../../../src/report/kit/report.js';

export const EVERY_BLOCK: Report = {
  verdict: { text: 'verdict', tone: 'good' },
  blocks: [
    { kind: 'facts', facts: [{ name: 'name', text: 'text', tone: 'bad' }] },
    { kind: 'note', text: 'note', tone: 'dim' },
    { kind: 'note', text: 'code', isCode: true },
    { kind: 'heading', text: 'heading' },
    {
      kind: 'table',
      columns: [
        { title: 'title', key: 'key' },
        { title: 'number', key: 'number', align: 'right' },
        { title: '', key: 'bar' },
      ],
      rows: [
        [
          { text: 'first', tone: 'strong' },
          { text: '2', value: 2.5 },
          { text: '█', value: '', share: 1 },
        ],
        [{ text: 'second' }, { text: '10', value: '10' }, { text: '▌', share: 0.5 }],
        [{ text: 'third' }, { text: '–', value: '' }, { text: '', share: 0 }],
        [{ text: 'total' }, { text: '12', value: 12.5 }, { text: '' }],
      ],
      totals: 1,
    },
  ],
  details: [
    { kind: 'heading', text: 'more' },
    {
      kind: 'plot',
      title: 'plot',
      series: [{ mark: 'p', label: 'series', tone: 'hue1', values: [1, 10, 100] }],
      levels: [{ mark: '-', label: 'level', value: 20 }],
    },
    { kind: 'table', columns: [{ title: 'alone', key: 'alone' }], rows: [[{ text: 'cell' }]] },
  ],
  pictures: () => [
    {
      kind: 'bars',
      title: 'bars',
      unit: 'bytes',
      bars: [{ label: 'bar', value: 3e9, range: [2e9, 4e9], tone: 'bad' }],
      levels: [{ label: 'GPU', value: 8e9 }],
    },
    {
      kind: 'treemap',
      title: 'treemap',
      unit: 'count',
      root: {
        label: 'root',
        children: [
          {
            label: 'group',
            children: [
              { label: 'leaf', value: 5 },
              { label: 'other', value: 3 },
            ],
          },
          { label: 'single', value: 9 },
        ],
      },
    },
    {
      kind: 'line plot',
      title: 'scatter',
      x: { title: 'across', unit: 'bytes', scale: 'log' },
      y: { title: 'up', unit: 'share' },
      curves: [
        {
          label: 'points',
          tone: 'hue2',
          points: [
            [1, 0.5],
            [100, 0.25],
          ],
          names: ['one', 'two'],
        },
        {
          label: 'line',
          tone: 'hue1',
          points: [
            [1, 0.1],
            [10, Number.NaN],
            [50, 0.3],
          ],
        },
      ],
      levels: [{ label: 'limit', value: 0.4 }],
    },
    {
      kind: 'heat map',
      title: 'heat map',
      columns: ['q', 'k'],
      rows: [{ label: 'layer', values: [0.5, null] }],
    },
  ],
  derivations: () => [{ kind: 'heading', text: 'derivation' }],
  more: ['explain', 'values'],
  next: 'minimind next' as Report['next'],
};

/** Fields with words of ours, which are no text. */
const WORDS: ReadonlySet<string> = new Set([
  'kind',
  'tone',
  'align',
  'scale',
  'unit',
  'mark',
  'more',
]);

/** The report with each text replaced. */
export function withTexts(report: Report, text: (at: number) => string): Report {
  let count = 0;
  const replaced = (value: unknown, key = ''): unknown => {
    if (typeof value === 'function') return () => replaced(value());
    if (typeof value === 'string') return WORDS.has(key) ? value : text(count++);
    if (typeof value !== 'object' || value === null || WORDS.has(key)) return value;
    if (Array.isArray(value)) return value.map((each) => replaced(each, key));
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, replaced(each, name)]),
    );
  };
  return replaced(report) as Report;
}
