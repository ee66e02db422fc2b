import { describe, expect, it } from 'vitest';
import { add, inputs, mul, v } from '../../../src/model/budget/expression.js';
import { exact, figure, sumFigure, wholeNumberValue } from '../../../src/model/budget/figure.js';

const { n, m } = inputs({ n: 4, m: 1 });

describe('figure', () => {
  it('has the value and the inputs of its formula', () => {
    const parts = { label: 'x', unit: 'bytes', source: 's' } as const;
    const stated = figure({ ...parts, formula: mul(2, n) });
    expect(JSON.parse(JSON.stringify(stated))).toEqual({
      ...parts,
      formula: '2 * n',
      inputs: { n: 4 },
      value: 8,
    });
  });

  it('lists given inputs first, even if the formula does not use them', () => {
    const parts = { label: 'x', unit: 'bytes', source: 's' } as const;
    const stated = figure({ ...parts, formula: mul(v({ k: 3 }), n), inputs: { m, n } });
    expect(Object.entries(stated.inputs)).toEqual(Object.entries({ m: 1, n: 4, k: 3 }));
    const contradicting = figure({ ...parts, formula: mul(2, n), inputs: inputs({ n: 5 }) });
    expect(() => contradicting.inputs).toThrow('input n is both 5 and 4');
  });

  it('is exact beyond 2^53', () => {
    const a = v({ a: 2 ** 40 });
    expect(wholeNumberValue(add(mul(a, a), 1))).toBe(2n ** 80n + 1n);
    expect(exact(2n ** 53n - 1n)).toBe(2 ** 53 - 1);
    expect(exact(2n ** 53n)).toBe(2n ** 53n);
  });
});

describe('sumFigure', () => {
  const part = (name: string, value: number) =>
    figure({ label: name, unit: 'bytes', formula: v({ [name]: value }), source: 's' });

  it('adds its parts by name', () => {
    const total = sumFigure('all', 'bytes', { one: part('one', 1), two: part('two', 2) }, 's');
    expect(total).toMatchObject({ value: 3, formula: 'one + two', inputs: { one: 1, two: 2 } });
  });

  it('is 0 without parts', () => {
    expect(sumFigure('all', 'bytes', {}, 's')).toMatchObject({ value: 0, formula: '0' });
  });
});
