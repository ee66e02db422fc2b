import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatJson, jsonOrUndefined, parseJson } from '../../src/text/json.js';

describe('JSON of Python', () => {
  // Python 3.11: json.loads('{"a": [0.0, Infinity, -Infinity, NaN], "Infinity": "NaN"}')
  it('has numbers that are not finite', () => {
    expect(parseJson('{"a": [0.0, Infinity, -Infinity, NaN], "Infinity": "NaN"}')).toEqual({
      a: [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
      Infinity: 'NaN',
    });
  });

  // Python refuses these too.
  it.each(['1Infinity', '-NaN', 'Infinityx', '+Infinity', '[NaN', '{NaN: 1}', 'inf', '"a" NaN'])(
    'is not %s',
    (text) => {
      expect(jsonOrUndefined(text)).toBe(undefined);
    },
  );

  it('keeps words within texts', () => {
    const value = { 'number:': 'number:NaN', b: ['\\', 'NaN, "Infinity"', Number.NaN] };
    expect(parseJson(formatJson(value))).toEqual(value);
    expect(formatJson(value)).toContain(', "Infinity'.replace(' "', ' \\"'));
  });

  it('reads what it writes', () => {
    const number = fc.double();
    const leaf = fc.oneof(number, fc.string(), fc.constantFrom('NaN', 'Infinity'), fc.boolean());
    const data = fc.dictionary(fc.string(), fc.oneof(leaf, fc.array(leaf)));
    fc.assert(
      fc.property(data, fc.constantFrom(undefined, 2), (value, indent) => {
        // JSON has one zero: -0 is written as 0.
        expect(JSON.stringify(parseJson(formatJson(value, indent)))).toBe(JSON.stringify(value));
        expect(formatJson(value, indent)).not.toMatch(/:\s*null/);
      }),
    );
  });

  it.each([
    ['nests', '['.repeat(1e6), 'nests values more than 512 deep'],
    ['nests objects', '{"a":'.repeat(1e6), 'nests values more than 512 deep'],
    ['has many lists', `[${'[],'.repeat(2e6)}[]]`, 'more than 2,000,000 lists'],
    ['has many keys', `{${'"":0,'.repeat(4e6)}"":0}`, 'more than 4,000,000 keys'],
  ])('is refused before it is parsed when it %s', (_, text, message) => {
    expect(() => parseJson(text)).toThrow(message);
  });

  it('counts only what is not in a text', () => {
    const text = JSON.stringify({ a: '[{'.repeat(1000), '\\"': '\\' });
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  it('ends soon on a text without an end', () => {
    expect(jsonOrUndefined(`NaN"${'\\"'.repeat(1_000_000)}`)).toBe(undefined);
  });
});
