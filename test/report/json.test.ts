import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonPieces, toJson } from '../../src/base/text/escape.js';

describe('toJson', () => {
  it('indents by two spaces and ends with a newline', () => {
    expect(toJson({ a: [1, 'b'], c: {} })).toBe(
      '{\n  "a": [\n    1,\n    "b"\n  ],\n  "c": {}\n}\n',
    );
  });

  it.each([
    ['the largest safe integer', Number.MAX_SAFE_INTEGER, 9007199254740991],
    ['a large integer', 2 ** 53, '9007199254740992'],
    ['a large negative integer', -(2 ** 53), '-9007199254740992'],
    ['2^63, all digits', 2 ** 63, '9223372036854775808'],
    ['a small bigint', 12n, 12],
    ['a large bigint', 2n ** 64n, '18446744073709551616'],
    ['NaN', Number.NaN, 'NaN'],
    ['infinity', Number.POSITIVE_INFINITY, 'Infinity'],
    ['negative infinity', Number.NEGATIVE_INFINITY, '-Infinity'],
    ['a fraction', 0.1, 0.1],
    ['null', null, null],
  ])('writes %s', (_, value, read) => {
    expect(JSON.parse(toJson(value))).toBe(read);
    expect(JSON.parse(toJson({ deep: [value] }))).toEqual({ deep: [read] });
  });

  it('writes -0 as 0', () => expect(toJson([-0])).toBe('[\n  0\n]\n'));

  it('leaves out undefined fields and keeps the order', () => {
    expect(Object.keys(JSON.parse(toJson({ z: 1, gone: undefined, a: 2 })))).toEqual(['z', 'a']);
  });

  it('treats __proto__ like any other name', () => {
    const value = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}');
    expect(toJson(value)).toContain('"__proto__"');
    expect(JSON.parse(toJson(value))).toEqual(value);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('escapes control characters, also in keys', () => {
    const value = { '\u2028\x9b': '\x1b[31m\u202e\u200b\ufeff\ud800\u{e0001}' };
    const json = toJson(value);
    expect(json).toMatch(/^[\n -~]*$/);
    expect(JSON.parse(json)).toEqual(value);
  });

  it('refuses values that are not data', () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(() => toJson(cycle)).toThrow(TypeError);
    expect(() => toJson(undefined)).toThrow('undefined is not JSON');
    expect(() => toJson(() => 1)).toThrow('function is not JSON');
  });

  it('writes text that is read back as the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        fc.pre(!hasUnsafeInteger(value));
        // JSON has no -0.
        const plain = JSON.parse(JSON.stringify(value));
        expect(JSON.parse(toJson(value))).toStrictEqual(plain);
        expect(toJson(value)).toBe(toJson(plain));
      }),
    );
  });
});

describe('jsonPieces', () => {
  const whole = (value: object) => [...jsonPieces(value)].join('');

  it('gives the text of toJson', () => {
    expect(whole({})).toBe(toJson({}));
    expect(whole({ a: undefined })).toBe(toJson({ a: undefined }));
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        expect(whole(value)).toBe(toJson(value));
      }),
    );
  });

  it('writes an object of many members in several pieces', () => {
    const members = Array.from({ length: 2500 }, (_, at) => [
      `\x9b"${at}`,
      at < 1100 ? undefined : { at, list: [{}, [at]] },
    ]);
    const value = { first: 1, many: Object.fromEntries(members), last: { x: null } };
    expect(whole(value)).toBe(toJson(value));
    const lengths = Array.from(jsonPieces(value), ({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThan(0.8 * toJson(value).length);
  });

  it('writes a long list in several pieces, with the text of toJson', () => {
    const rows = Array.from(
      { length: 2500 },
      (_, at) => [{ at, flops: 2n ** 60n }, at, undefined][at % 3],
    );
    const value = { first: 1, rows, last: [] };
    expect(whole(value)).toBe(toJson(value));
    const lengths = Array.from(jsonPieces(value), ({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThan(0.5 * toJson(value).length);
  });

  it('writes a long value with toJSON as that says', () => {
    const members = Object.fromEntries(Array.from({ length: 1100 }, (_, at) => [`k${at}`, at]));
    const value = { many: { ...members, toJSON: () => 'short' } };
    expect(whole(value)).toBe(toJson(value));
  });
});

function hasUnsafeInteger(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasUnsafeInteger);
}
