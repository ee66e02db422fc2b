import { describe, expect, it } from 'vitest';
import { countCharacters } from '../../../src/language/data/characters.js';

describe('countCharacters', () => {
  it.each([
    ['The tree, 1 2 3', 'Latin'],
    ['naïve Ångström', 'Latin'],
    ['今天的天气很好 OK', 'Han'],
    ['こんにちは、世界', 'Japanese'],
    ['안녕하세요', 'Hangul'],
    ['Привет', 'Cyrillic'],
    ['مرحبا', 'Arabic'],
    ['नमस्ते', 'Devanagari'],
    ['👍🏽👍', 'Emoji'],
    ['𝒳𝒴 ⴰⴱⴲ', 'other'],
    ['123 + 4', 'none'],
    ['', 'none'],
  ])('finds the script of %j: %s', (text, script) => {
    expect(countCharacters(text).script).toBe(script);
    expect(countCharacters(text).characters).toBe([...text].length);
  });

  it('counts characters of damaged text', () => {
    const counts = countCharacters('a\tb\r\n\u0000\u001b\u007f\u0085 \ufffd \ud800x\udc00 👍');
    expect(counts).toMatchObject({ control: 4, replacement: 1, surrogates: 2 });
  });
});
