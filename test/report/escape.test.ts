import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable, printableJson } from '../../src/base/text/escape.js';
import { FORBIDDEN, forbiddenIn } from './hostile.js';

describe('printable', () => {
  it.each([
    ['a colour', '\x1b[31mred\x1b[0m', '\\x1b[31mred\\x1b[0m'],
    ['a clipboard write', '\x1b]52;c;ZXZpbA==\x07', '\\x1b]52;c;ZXZpbA==\\x07'],
    ['a C1 introducer', '\x9b2J', '\\x9b2J'],
    ['a rewritten line', 'safe\rerror', 'safe\\rerror'],
    ['lines and tabs', 'a\n\tb', 'a\\n\\tb'],
    ['NUL and DEL', '\0\x7f', '\\x00\\x7f'],
    ['reordered text', 'a\u202egpj.exe', 'a\\u{202e}gpj.exe'],
    ['isolates', '\u2066a\u2069', '\\u{2066}a\\u{2069}'],
    ['invisible letters', 'a\u200bd\u2060m\ufeffin', 'a\\u{200b}d\\u{2060}m\\u{feff}in'],
    ['line separators', 'a\u2028b\u2029', 'a\\u{2028}b\\u{2029}'],
    ['half a surrogate pair', 'a\ud83d', 'a\\u{d83d}'],
    ['tags', 'a\u{e0041}', 'a\\u{e0041}'],
    ['an invisible filler', 'a\u3164', 'a\\u{3164}'],
  ])('shows %s', (_, text, shown) => expect(printable(text)).toBe(shown));

  it.each(['naïve 日本語 🙂 ❤️ العربية é', 'C:\\temp', "model['a.b']", ''])(
    'does not change %j',
    (text) => expect(printable(text)).toBe(text),
  );

  it('removes all control and invisible characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(forbiddenIn(printable(text))).toEqual([]);
      }),
    );
    for (const [from, to] of FORBIDDEN) {
      for (let point = from; point <= to; point++) {
        const shown = printable(`a${String.fromCodePoint(point)}b`);
        expect(forbiddenIn(shown)).toEqual([]);
        expect(shown.length).toBeGreaterThan(3);
      }
    }
  });

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(printable(text))).toBe(printable(text));
      }),
    );
  });
});

describe('printableJson', () => {
  it('keeps line breaks and writes the rest as UTF-16 escapes', () => {
    const json = JSON.stringify({ '\u202e': '\u{e0001}\x7f' }, undefined, 1);
    expect(printableJson(json)).toBe('{\n "\\u202e": "\\udb40\\udc01\\u007f"\n}');
  });
});
