import { describe, expect, it } from 'vitest';
import { add, inputs, mul, v } from '../../src/model/budget/expression.js';
import { figure, quantity } from '../../src/model/budget/figure.js';
import { explanationBlocks } from '../../src/report/profile/explanation.js';
import { renderTable } from '../../src/report/render/table.js';

const weights = figure({
  label: 'weights',
  unit: 'bytes',
  formula: mul(v({ bytes: 2 }), v({ parameters: 1500 })),
  source: 'two bytes each',
});

const workspace = (value: number, times: number, source: string) => {
  const { usual } = inputs({ usual: value });
  const formula = times === 0 ? add() : times === 1 ? usual : mul(times, usual);
  return quantity({ label: 'workspace', unit: 'bytes', inputs: { usual }, formula, source });
};

const bounds = {
  lower: workspace(0, 0, 'none'),
  expected: workspace(1234567.75, 1, 'as usual'),
  upper: workspace(1234567.75, 2, 'as usual'),
};

const shown = (sections: Record<string, unknown>, width: number) =>
  renderTable({ blocks: explanationBlocks(sections) }, { width, colourLevel: 0 });

describe('explanations', () => {
  it('show three bounds in one line, with common parts only once', () => {
    const text = shown({ memory: { bounds } }, Number.POSITIVE_INFINITY);
    expect(text).toContain('Where there are three, they are lower / expected / upper.');
    const [, line = ''] = /^(workspace .*)$/m.exec(text) ?? [];
    expect(line.split(/ {2,}/)).toEqual([
      'workspace',
      '0 / 1,234,568 / 2,469,136',
      'bytes',
      'lower: 0; expected: usual; upper: 2 * usual',
      'usual = 0 / 1,234,568 / 1,234,568',
      'lower: none; expected and upper: as usual',
    ]);
  });

  it('use two columns where six do not fit', () => {
    const text = shown({ memory: { weights, bounds } }, 60);
    expect(text).toContain(`
figure                         formula, with inputs; source
─────────────────────────────  ─────────────────────────────
weights: 3,000 bytes           bytes * parameters, with
                               bytes = 2; parameters =
                               1,500; two bytes each
`);
  });

  it('explain each figure once', () => {
    const text = shown({ first: { weights }, second: { weights } }, 200);
    expect(text.match(/bytes \* parameters/g)).toHaveLength(1);
    expect(text).not.toContain('second');
  });
});
