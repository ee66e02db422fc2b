import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluate, exact, figure } from '../../src/budget/figure.js';
import { evaluateIndependently } from './independent.js';

describe('evaluate', () => {
  it.each([
    ['2 + 3 * 4', 14],
    ['(2 + 3) * 4', 20],
    ['10 - 3 - 2', 5],
    ['48 / 4 / 3', 4],
    ['min(7, 3, 5) + max(1, 2)', 5],
    ['ceildiv(7, 2)', 4],
    ['ceildiv(8, 2)', 4],
    ['  12  ', 12],
  ])('%s = %d', (formula, value) => expect(evaluate(formula, {})).toBe(value));

  it('knows inputs by name, and only its own', () => {
    expect(evaluate('a * b_2', { a: 3, b_2: 5 })).toBe(15);
    expect(() => evaluate('toString', {})).toThrow('names toString, which is no input');
  });

  it('stays exact beyond 2^53', () => {
    expect(evaluate('a * a + 1', { a: 2 ** 40 })).toBe(2n ** 80n + 1n);
    expect(exact(2n ** 53n - 1n)).toBe(2 ** 53 - 1);
    expect(exact(2n ** 53n)).toBe(2n ** 53n);
  });

  it.each([
    ['1 +', 'ends too early'],
    ['1 2', 'goes on after its end'],
    ['(1', 'lacks a )'],
    ['7 / 2', 'divides by zero, or with a rest'],
    ['1 / 0', 'divides by zero, or with a rest'],
    ['1 % 2', 'has an unknown sign'],
    ['', 'ends too early'],
  ])('refuses %j', (formula, what) => expect(() => evaluate(formula, {})).toThrow(what));

  it('agrees with JavaScript on any sums and products', () => {
    const formula = fc.letrec<{ sum: string; leaf: string }>((tie) => ({
      leaf: fc.oneof(fc.nat().map(String), fc.constantFrom('a', 'b')),
      sum: fc.oneof(
        { maxDepth: 4 },
        tie('leaf'),
        fc
          .tuple(tie('sum'), fc.constantFrom('+', '-', '*'), tie('sum'))
          .map(([left, sign, right]) => `(${left} ${sign} ${right})`),
        fc.tuple(tie('sum'), tie('sum')).map(([left, right]) => `max(${left}, ${right})`),
      ),
    })).sum;
    fc.assert(
      fc.property(formula, fc.nat(), fc.nat(), (text, a, b) => {
        expect(BigInt(evaluate(text, { a, b }))).toBe(evaluateIndependently(text, { a, b }));
      }),
    );
  });

  it('gives a figure its value', () => {
    const parts = {
      label: 'x',
      unit: 'bytes',
      formula: '2 * n',
      inputs: { n: 4 },
      source: 's',
    } as const;
    expect(figure(parts)).toEqual({ ...parts, value: 8 });
  });
});
