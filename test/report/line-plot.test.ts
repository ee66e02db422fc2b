import { describe, expect, it } from 'vitest';
import type { LinePlotBlock } from '../../src/report/kit/pictures.js';
import { drawLinePlot } from '../../src/report/kit/plots.js';
import { render } from '../../src/report/render/render.js';

const plot = (
  points: readonly (readonly [number, number])[],
  others: Partial<LinePlotBlock> = {},
): LinePlotBlock => ({
  kind: 'line plot',
  title: 'values',
  x: {},
  y: {},
  curves: [{ label: 'a', tone: 'plain', points }],
  rows: 5,
  ...others,
});

const drawn = (block: LinePlotBlock, width = 32, isAscii = true): string[] =>
  drawLinePlot(block, width, isAscii).map((line) => line.map(({ text }) => text).join(''));

/** Text of each row right of the axis. */
const cells = (lines: readonly string[]) =>
  lines.flatMap((line) => line.split(/ [|│]/).slice(1, 2));

describe('a line plot', () => {
  it('draws a falling line from the upper left to the lower right corner', () => {
    const lines = drawn(
      plot([
        [0, 4],
        [100, 0],
      ]),
    );
    const rows = cells(lines);
    expect(rows).toHaveLength(5);
    expect(rows[0]?.[0]).toBe('*');
    expect(rows[4]?.at(-1)).toBe('*');
    // Connected: each row has a mark, further right than the one above.
    const firsts = rows.map((row) => row.indexOf('*'));
    expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
    expect(firsts.every((column) => column >= 0)).toBe(true);
  });

  it('labels the ends and the middle of both axes', () => {
    const lines = drawn(
      plot([
        [0, 0],
        [1000, 3e-4],
      ]),
      60,
    );
    expect(lines[1]).toMatch(/^ *3e-4 \|/);
    expect(lines[3]).toMatch(/^ *1\.5e-4 \|/);
    expect(lines[5]).toMatch(/^ *0 \|/);
    expect(lines.at(-1)?.trim()).toMatch(/^0 +250 +500 +750 +1000$/);
  });

  it('draws with Braille dots, four to a row, where possible', () => {
    const points = [
      [0, 0],
      [1, 0],
    ] as const;
    const rows = cells(drawn(plot(points, { y: { from: 1 } }), 32, false));
    // The two lowest dots of each character.
    expect(rows.at(-1)).toMatch(/^\u28c0+$/);
    expect(rows.slice(0, -1).join('')).toBe('');
  });

  it('uses only ASCII on a terminal without Unicode', () => {
    const points = Array.from({ length: 500 }, (_, x) => [x, Math.sin(x / 30)] as const);
    expect(drawn(plot(points)).join('\n')).toMatch(/^[ -~\n−]*$/);
  });

  it('leaves a gap where a value is not finite', () => {
    const rows = cells(
      drawn(
        plot([
          [0, 1],
          [1, 1],
          [2, Number.NaN],
          [3, 1],
          [4, 1],
        ]),
      ),
    );
    expect(rows.join('')).toMatch(/^\*+ +\*+$/);
  });

  it('puts equal ratios at equal distances on a logarithmic axis', () => {
    const points = [
      [1e-7, 0],
      [1e-4, 1],
      [1e-1, 0],
    ] as const;
    const lines = drawn(plot(points, { x: { scale: 'log' } }), 63);
    const top = cells(lines)[0] ?? '';
    const peak = (top.indexOf('*') + top.lastIndexOf('*')) / 2;
    const width = (lines.at(-2) ?? '').split('+')[1]?.length ?? 0;
    expect(Math.abs(peak - (width - 1) / 2)).toBeLessThanOrEqual(1);
    expect(lines.at(-1)).toContain('1e-4');
  });

  it('names several curves', () => {
    const one = { label: 'train', tone: 'hue1', points: [[0, 1]] } as const;
    const two = { label: 'proxy', tone: 'hue2', points: [[1, 2]] } as const;
    expect(drawn(plot([], { curves: [one, two] })).at(-1)).toBe('* train   o proxy');
  });

  it.each([20, 40, 80, 200])('is never wider than %i columns', (width) => {
    const points = Array.from({ length: 1000 }, (_, x) => [x, x * 1e-7] as const);
    for (const isAscii of [true, false]) {
      const lines = drawn(plot(points), width, isAscii);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
    }
  });

  it('is a code block in Markdown and absent from CSV', async () => {
    const report = { blocks: [plot([[0, 1]])] };
    const options = { width: 80, colourLevel: 0 } as const;
    expect(await render(report, 'markdown', options)).toMatch(/^```text\n[\s\S]*\n```\n$/);
    expect(await render(report, 'csv', options)).toBe('\n');
  });

  it('draws a plot without values', () => {
    expect(drawn(plot([])).length).toBeGreaterThan(5);
  });
});
