import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  add,
  ceil,
  ceildiv,
  div,
  type Expression,
  exp,
  expressionText,
  inputs,
  inputsOf,
  inputValues,
  ln,
  max,
  min,
  mul,
  sub,
  v,
} from '../../../src/model/budget/expression.js';
import { quantity, wholeNumberValue } from '../../../src/model/budget/figure.js';
import { evaluateIndependently } from './independent.js';

const { a, b, c } = inputs({ a: 12, b: 3, c: 2 });

describe('expressionText', () => {
  it.each<[string, Expression, number]>([
    ['a', a, 12],
    ['2 * a * b', mul(2, a, b), 72],
    ['a + b - c', sub(add(a, b), c), 13],
    ['a - (b - c)', sub(a, sub(b, c)), 11],
    ['a + b - c', add(a, sub(b, c)), 13],
    ['a - b - c', sub(a, b, c), 7],
    ['a - (b + c)', sub(a, add(b, c)), 7],
    ['(a + b) * c', mul(add(a, b), c), 30],
    ['a + b * c', add(a, mul(b, c)), 18],
    ['a / b / c', div(a, b, c), 2],
    ['a / (b * c)', div(a, mul(b, c)), 2],
    ['a / (b - c)', div(a, sub(b, c)), 12],
    ['a * b / c', mul(a, div(b, c)), 18],
    ['max(a - b, c) + min(a, b + c)', add(max(sub(a, b), c), min(a, add(b, c))), 14],
    ['ceildiv(a + 1, b)', ceildiv(add(a, 1), b), 5],
    ['0', add(), 0],
    ['a', add(a), 12],
  ])('prints %s', (text, expression, value) => {
    expect(expressionText(expression)).toBe(text);
    expect(wholeNumberValue(expression)).toBe(value);
  });
});

describe('inputsOf', () => {
  it('lists names in the order of the formula, each once', () => {
    expect(Object.entries(inputValues(inputsOf(add(mul(c, a), a, b))))).toEqual([
      ['c', 2],
      ['a', 12],
      ['b', 3],
    ]);
  });

  it('refuses one name with two values', () => {
    expect(() => inputsOf(add(a, v({ a: 13 })))).toThrow('input a is both 12 and 13');
  });

  it.each(['two words', '1st', '', 'max', 'a-b'])('refuses %j as a name', (name) => {
    expect(() => v({ [name]: 1 })).toThrow('cannot be the name of an input');
  });

  it('refuses a variable without a name, and with two names', () => {
    expect(() => v({})).toThrow('an input has one name');
    expect(() => v({ a: 1, b: 2 })).toThrow('an input has one name');
  });
});

describe('wholeNumberValue', () => {
  it.each([
    ['(a + 1) / b', div(add(a, 1), b)],
    ['a / 0', div(a, 0)],
    ['b + 7 / c', add(b, div(7, c))],
  ])('refuses %s', (text, expression) =>
    expect(() => wholeNumberValue(expression)).toThrow(
      `the formula "${text}" divides by zero, or with a rest`,
    ),
  );

  it('refuses a function that is not defined for whole numbers', () =>
    expect(() => wholeNumberValue(ln(a))).toThrow('the formula "ln(a)" calls ln'));
});

/** Any expression over leaves; `quotient` makes divisions that the arithmetic supports. */
const expressions = (
  leaf: fc.Arbitrary<Expression>,
  quotient: (dividend: Expression, divisor: Expression) => Expression,
) =>
  fc.letrec<{ any: Expression }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 5 },
      leaf,
      fc
        .tuple(fc.constantFrom(add, sub, mul, min, max, quotient), tie('any'), tie('any'))
        .map(([make, left, right]) => make(left, right)),
      fc.array(tie('any'), { minLength: 1, maxLength: 4 }).map((terms) => add(...terms)),
      fc.array(tie('any'), { minLength: 1, maxLength: 3 }).map((factors) => mul(...factors)),
    ),
  })).any;

const constant = fc.nat({ max: 1000 }).map((value) => add(value));

describe('an expression', () => {
  it('has the same value as its text evaluated by JavaScript, in whole numbers', () => {
    const leaf = fc.oneof(constant, fc.constantFrom(a, b, c));
    const exactQuotient = (dividend: Expression, divisor: Expression) => {
      const positive = max(divisor, 1);
      return div(mul(dividend, positive), positive);
    };
    fc.assert(
      fc.property(expressions(leaf, exactQuotient), (expression) => {
        const value = BigInt(wholeNumberValue(expression));
        expect(value).toBe(
          evaluateIndependently(expressionText(expression), inputValues(inputsOf(expression))),
        );
      }),
    );
  });

  it('has the same value as its text evaluated by JavaScript, to the last bit of real numbers', () => {
    const positive = (value: Expression) => max(value, 0.1);
    const leaf = fc.oneof(
      constant,
      fc.double({ min: 0.001, max: 10, noNaN: true }).map((value) => add(value)),
      fc
        .double({ min: -10, max: 10, noNaN: true })
        .map((x) => v({ [`x_${String(x).replace(/\W/g, '_')}`]: x })),
      fc.constantFrom(ceil(div(a, 7)), ln(b), exp(div(c, b))),
    );
    const quotient = (dividend: Expression, divisor: Expression) =>
      div(dividend, positive(divisor));
    fc.assert(
      fc.property(expressions(leaf, quotient), (formula) => {
        const computed = quantity({ label: 'x', unit: 'ratio', formula, source: '' });
        expect(computed.value).toBe(realValue(computed.formula, computed.inputs));
      }),
    );
  });
});

function realValue(formula: string, named: Readonly<Record<string, number | bigint>>): number {
  const { min, max, ceil, log: ln, exp } = Math;
  const names = { min, max, ceil, ln, exp, ...named };
  return new Function(...Object.keys(names), `return ${formula};`)(...Object.values(names));
}
