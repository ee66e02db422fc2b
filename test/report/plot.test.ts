import { describe, expect, it } from 'vitest';
import type { PlotBlock, Series } from '../../src/report/kit/pictures.js';
import { drawPlot } from '../../src/report/kit/plots.js';
import { render } from '../../src/report/render/render.js';

const series = (mark: string, values: readonly number[], isOnTop = false): Series => ({
  mark,
  label: `series ${mark}`,
  tone: 'hue1',
  values,
  isOnTop,
});

const plot = (all: readonly Series[], levels: PlotBlock['levels'] = []): PlotBlock => ({
  kind: 'plot',
  title: 'Values',
  series: all,
  levels,
});

const drawn = (block: PlotBlock, width?: number): string[] =>
  drawPlot(block, width).map((line) => line.map(({ text }) => text).join(''));

/** Text right of the axis, the lowest row first. */
const rows = (lines: readonly string[]) =>
  lines.flatMap((line) => line.split(' |').slice(1)).toReversed();

describe('a plot', () => {
  it('puts equal ratios at equal heights', () => {
    const lines = rows(drawn(plot([series('a', [1, 10, 100])])));
    const heights = ['a'].flatMap((mark) =>
      lines.flatMap((row, height) => (row.includes(mark) ? [height] : [])),
    );
    expect(heights).toHaveLength(3);
    expect(heights[0]).toBe(0);
    expect(heights[2]).toBe(lines.length - 1);
    expect(heights[1]).toBeCloseTo((lines.length - 1) / 2, -0.5);
    // From the left to the right end.
    expect(lines[0]?.[0]).toBe('a');
    expect(lines.at(-1)).toHaveLength(48);
  });

  it('labels powers of ten', () => {
    const labels = drawn(plot([series('a', [1, 1e6])])).flatMap(
      (line) => /^ *(\w+) \|/.exec(line)?.[1] ?? [],
    );
    expect(labels).toEqual(['1M', '100k', '10k', '1k', '100', '10', '1']);
  });

  it.each([
    [
      [0.03, 0.4],
      ['0.2', '0.1', '0.05'],
    ],
    [
      [1.2, 60],
      ['50', '20', '10', '5', '2'],
    ],
    [
      [1e-5, 3e-5],
      ['2e-5', '1e-5'],
    ],
  ])('labels %j with other round numbers', (values, expected) => {
    const labels = drawn(plot([series('a', values)])).flatMap(
      (line) => /^ *(\S+) \|/.exec(line)?.[1] ?? [],
    );
    expect(labels).toEqual(expected);
  });

  it('respects the maximum number of rows', () => {
    const block = { ...plot([series('a', [1, 10, 100])]), mostRows: 5 };
    expect(rows(drawn(block))).toHaveLength(5);
  });

  it('marks overlapping series, except one on top', () => {
    const both = [series('a', [1, 10]), series('b', [1, 100])];
    const bottom = (all: readonly Series[]) => rows(drawn(plot(all)))[0]?.[0];
    expect(bottom(both)).toBe('#');
    expect(bottom([...both, series('c', [1, 1], true)])).toBe('c');
    expect(bottom([series('c', [1, 1], true), ...both])).toBe('c');
  });

  it('draws levels in the background, two in one row by turns', () => {
    const level = (mark: string, value: number) => ({ mark, label: `level ${mark}`, value });
    const lines = drawn(plot([series('a', [1, 100])], [level('-', 1), level('=', 1.001)]));
    expect(rows(lines)[0]).toMatch(/^a=-=-=-/);
    expect(lines.join('\n')).toContain('level =');
  });

  it.each([20, 40, 80, 200])('is no wider than %d columns', (width) => {
    const values = Array.from({ length: 64 }, (_, j) => 1.3 ** j);
    const many = ['a', 'b', 'c', 'd'].map((mark, index) =>
      series(
        mark,
        values.map((v) => v * (index + 1)),
      ),
    );
    const lines = drawn(plot(many, [{ mark: '-', label: 'a level', value: 50 }]), width);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
    for (const line of lines) expect(line).toBe(line.trimEnd());
  });

  it.each([[[]], [[5]], [[5, 5, 5]]])('can be drawn for the values %j', (values) => {
    expect(() => drawn(plot([series('a', values)]))).not.toThrow();
  });

  it('has colours on a terminal, is code in Markdown and absent from CSV', async () => {
    const report = { blocks: [plot([series('a', [1, 2])])] };
    const options = { width: 80, colourLevel: 1 } as const;
    expect(await render(report, 'table', options)).toContain('\x1b[36ma');
    expect(await render(report, 'table', { ...options, colourLevel: 0 })).not.toContain('\x1b');
    expect(await render(report, 'markdown', options)).toMatch(/^```text\nValues\n[\s\S]*\n```\n$/);
    expect(await render(report, 'csv', options)).toBe('\n');
  });
});
