import { describe, expect, it } from 'vitest';
import { describeValue, escapeText, quote } from '../../src/config/quote.js';

describe('escapeText', () => {
  it.each([
    ['C0', '\u0000\u001b', '\\u0000\\u001b'],
    ['line breaks and tabs', 'a\tb\nc\rd', 'a\\tb\\nc\\rd'],
    ['DEL and C1', '\u007f\u0085\u009b', '\\u007f\\u0085\\u009b'],
    ['line separators', '\u2028\u2029', '\\u2028\\u2029'],
    ['marks of direction', '\u200e\u200f\u061c', '\\u200e\\u200f\\u061c'],
    [
      'overrides of direction',
      '\u202a\u202b\u202c\u202d\u202e',
      '\\u202a\\u202b\\u202c\\u202d\\u202e',
    ],
    ['isolates', '\u2066\u2067\u2068\u2069', '\\u2066\\u2067\\u2068\\u2069'],
    ['zero width', '\u200b\u200c\u200d\ufeff', '\\u200b\\u200c\\u200d\\ufeff'],
    ['lone surrogates', '\ud800x\udc00', '\\ud800x\\udc00'],
    ['invisible tags', '\u{e0041}', '\\u{e0041}'],
    ['no other characters', 'Grüße, 世界 😀 "\\"', 'Grüße, 世界 😀 "\\"'],
  ])('escapes %s', (_, text, escaped) => {
    expect(escapeText(text)).toBe(escaped);
  });

  it('truncates only between characters and escapes', () => {
    expect(escapeText('abcdef', 6)).toBe('abcdef');
    expect(escapeText('abcdefg', 6)).toBe('abcde…');
    expect(escapeText('abc\u202edef', 6)).toBe('abc…');
  });
});

describe('quote', () => {
  it('escapes quotes and backslashes', () => {
    expect(quote('a"b\\c')).toBe('"a\\"b\\\\c"');
  });

  it('truncates long texts', () => {
    expect(quote('x'.repeat(1000))).toBe(`"${'x'.repeat(59)}…"`);
  });
});

describe('describeValue', () => {
  it.each([
    ['abc', '"abc"'],
    [1.5, '1.5'],
    [Number.NaN, 'NaN'],
    [true, 'true'],
    [null, 'null'],
    [[], 'an empty list'],
    [[1], 'a list'],
    [{ a: 1 }, 'a mapping'],
  ])('describes %j as %s', (value, words) => {
    expect(describeValue(value)).toBe(words);
  });
});
