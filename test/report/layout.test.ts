import fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, it } from 'vitest';
import { clip, graphemes, textWidth, usableWidth, wrap } from '../../src/report/kit/layout.js';

describe('usableWidth', () => {
  it.each([
    [80, 80],
    [20, 20],
    [7, 20],
    [0, Number.POSITIVE_INFINITY],
    [Number.NaN, Number.POSITIVE_INFINITY],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ])('of %d is %d', (width, usable) => expect(usableWidth(width)).toBe(usable));
});

describe('textWidth', () => {
  it.each([
    ['', 0],
    ['abc', 3],
    ['日本', 4],
    ['e\u0301', 1],
    ['🙂', 2],
    ['●─│', 3],
  ])('of %j is %d', (text, width) => expect(textWidth(text)).toBe(width));
});

it('textWidth agrees with string-width on common characters', () => {
  const drawn = Array.from({ length: 0x259f - 0x2500 + 1 }, (_, n) =>
    String.fromCharCode(0x2500 + n),
  );
  for (const character of [...'×·–—−…→●', ...drawn]) {
    expect(textWidth(character)).toBe(stringWidth(character));
    expect(textWidth(`a${character}b`)).toBe(stringWidth(`a${character}b`));
  }
});

it('graphemes keeps an accent on its letter', () => {
  expect(graphemes('e\u0301日a')).toEqual(['e\u0301', '日', 'a']);
  expect(graphemes('ab')).toEqual(['a', 'b']);
});

it('clip never cuts a wide character in two', () => {
  expect(clip('日本語', 5)).toBe('日本');
  expect(clip('abc', 5)).toBe('abc');
});

describe('wrap', () => {
  it.each([
    ['fits', 'a bc', 4, ['a bc']],
    ['breaks between words', 'a bc def', 4, ['a bc', 'def']],
    ['breaks a word only when it is longer than a line', 'ab cdefgh', 5, ['ab', 'cdefg', 'h']],
    ['continues after the end of a broken word', 'abcdef g', 4, ['abcd', 'ef g']],
    ['breaks a name at a joint', 'layers.0.weight', 10, ['layers.0.', 'weight']],
    [
      'does not break at a joint that wastes most of a line',
      'a.weights_of',
      7,
      ['a.weigh', 'ts_of'],
    ],
    ['keeps the indentation', '  ab cd', 5, ['  ab', '  cd']],
    ['keeps several spaces within a line', 'a  b c', 4, ['a  b', 'c']],
    ['drops an indentation that leaves no room', '      ab', 4, ['ab']],
    ['drops spaces at the end', 'ab   ', 4, ['ab']],
    ['has one line for an empty text', '', 4, ['']],
    ['measures wide characters', '日本 語', 4, ['日本', '語']],
    ['gives a character that is too wide a line', '日本', 1, ['日', '本']],
  ])('%s', (_, text, width, lines) => expect(wrap(text, width)).toEqual(lines));

  it('begins further lines with the given prefix', () => {
    expect(wrap('a b c', 4, '> ')).toEqual(['a b', '> c']);
    expect(wrap('abcdefg', 4, '> ')).toEqual(['abcd', '> ef', '> g']);
  });

  it('does not wrap at infinity', () => {
    const text = 'word '.repeat(1000);
    expect(wrap(text, Number.POSITIVE_INFINITY)).toEqual([text.trimEnd()]);
  });

  it('loses only spaces and respects the width', () => {
    fc.assert(
      fc.property(words, fc.integer({ min: 4, max: 30 }), (text, width) => {
        const lines = wrap(text, width);
        expect(lines.join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''));
        for (const line of lines) {
          expect(textWidth(line)).toBeLessThanOrEqual(width);
          expect(line).toBe(line.trimEnd());
        }
      }),
    );
  });
});

const words = fc
  .array(
    fc.oneof(
      fc.constantFrom(' ', '  ', '日本語', 'e\u0301', '🇩🇪', '🙂'),
      fc.string({ unit: 'grapheme' }),
    ),
  )
  .map((parts) => parts.join('').replace(/[\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, ''));
