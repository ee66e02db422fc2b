import { describe, expect, it } from 'vitest';
import { drawHeatMapText } from '../../src/report/kit/heat-map-text.js';
import type { HeatMapPicture } from '../../src/report/kit/pictures.js';

const linesOf = (map: HeatMapPicture, width?: number, isAscii?: boolean) =>
  drawHeatMapText(map, width, isAscii).map((line) => line.map(({ text }) => text).join(''));

const MAP: HeatMapPicture = {
  kind: 'heat map',
  title: 'Error',
  unit: 'share',
  columns: ['q_proj', 'k_proj'],
  rows: [
    { label: 'layer 0', values: [0, 0.4] },
    { label: 'layer 1', values: [null, 0.1] },
  ],
};

describe('a heat map in a terminal', () => {
  it('has a shade for each value, and a legend', () => {
    expect(linesOf(MAP)).toEqual([
      'Error',
      '         a b',
      'layer 0  ··██',
      'layer 1    ░░',
      '· 0%  ░ 10.0%  ▒ 20.0%  ▓ 30.0%  █ 40.0%',
      'a=q_proj b=k_proj',
    ]);
    expect(linesOf(MAP, 80, true)[2]).toBe('layer 0  ..##');
  });

  it('begins at the smallest value where all are near the largest', () => {
    const rows = [{ label: 'layer 0', values: [0.08, 0.1] }];
    expect(linesOf({ ...MAP, rows }).slice(2, 4)).toEqual([
      'layer 0  ··██',
      '· 8.00%  ░ 8.50%  ▒ 9.00%  ▓ 9.50%  █ 10.0%',
    ]);
  });

  it('stays within the terminal, also with hostile names', () => {
    const names = Array.from({ length: 60 }, (_, index) => `\u202e${index}${'x'.repeat(300)}`);
    const rows = names.map((label) => ({ label, values: names.map(() => Number.NaN) }));
    const lines = linesOf({ ...MAP, title: '\x1b[31m', columns: names, rows }, 40);
    for (const line of lines) {
      expect(line.length).toBeLessThanOrEqual(40);
      expect(line).not.toMatch(/[\u202e\n]/);
    }
    expect(lines.join(' ')).toMatch(/and \d+ more columns/);
  });
});
