import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { globMatcher } from '../../src/cli/name-filter.js';

/** Equivalents in a regular expression. */
const SOURCES = new Map([
  ['*', '.*'],
  ['?', '.'],
  ['.', '\\.'],
]);

const isMatch = (pattern: string, name: string) => globMatcher(pattern)(name);

describe('globMatcher', () => {
  it.each([
    ['*', ''],
    ['*', 'a.b/c\nd'],
    ['*.weight', 'layers.0.attn.weight'],
    ['layers.*.weight', 'layers..weight'],
    ['l*s.*.w*t', 'layers.0.weight'],
    ['*a*a*', 'banana'],
    ['?', '.'],
    ['?', '🙂'],
    ['layers.?.w', 'layers.0.w'],
    ['[ab]x', 'bx'],
    ['[a-c]', 'b'],
    ['[!a-c]', 'd'],
    ['[^a-c]', 'd'],
    ['[a-]', '-'],
    ['[]]', ']'],
    ['[!]]', 'a'],
    ['*.[qkv].weight', 'layers.0.q.weight'],
    ['{a,b}', 'b'],
    ['layers.{0,1}.*', 'layers.1.x'],
    ['{a,b}{c,d}', 'bc'],
    ['{a,b{c,d}}', 'bd'],
    ['{,x}y', 'y'],
    ['{a*,[b-d]}', 'c'],
    ['\\*', '*'],
    ['\\{a,b}', '{a,b}'],
    ['{a\\,b,c}', 'a,b'],
    ['[x', '[x'],
    ['{x', '{x'],
    ['{x}', '{x}'],
    ['x\\', 'x\\'],
    ['__proto__', '__proto__'],
  ])('%j matches %j', (pattern, name) => expect(isMatch(pattern, name)).toBe(true));

  it.each([
    ['', 'a'],
    ['a', ''],
    ['?', ''],
    ['?', 'ab'],
    ['*.weight', 'weight'],
    ['*.weight', 'x.weights'],
    ['layers.?.w', 'layers.10.w'],
    ['[ab]', 'c'],
    ['[!ab]', 'a'],
    ['[!ab]', ''],
    ['{a,b}', 'c'],
    ['{a,b}', 'a,b'],
    ['a.c', 'abc'],
    ['A', 'a'],
    ['\\*', 'a'],
    ['{a,b{c,d}}', 'c'],
    ['*a*a*a*', 'ab.a'],
  ])('%j does not match %j', (pattern, name) => expect(isMatch(pattern, name)).toBe(false));

  it('matches stars and question marks like a regular expression', () => {
    const pattern = fc.array(fc.constantFrom('*', '?', 'a', 'b', '.'), { maxLength: 8 });
    const name = fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 12 });
    fc.assert(
      fc.property(pattern, name, (glob, characters) => {
        const source = glob.map((each) => SOURCES.get(each) ?? each);
        const expected = new RegExp(`^${source.join('')}$`).test(characters.join(''));
        expect(isMatch(glob.join(''), characters.join(''))).toBe(expected);
      }),
    );
  });

  it('matches any escaped name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        expect(isMatch(name.replace(/[\\*?[{]/g, '\\$&'), name)).toBe(true);
      }),
    );
  });

  it('is fast for a name that nearly matches in many ways', () => {
    // A regular expression would take time with the fourth power of the length.
    expect(isMatch('*a*a*a*a*b', 'a'.repeat(200_000))).toBe(false);
  });

  it('refuses braces that expand to too many patterns', () => {
    expect(() => globMatcher('{a,b}'.repeat(9))).not.toThrow();
    expect(() => globMatcher('{a,b}'.repeat(20))).toThrow(
      new RangeError('its braces expand to more than 1000 patterns'),
    );
  });
});
