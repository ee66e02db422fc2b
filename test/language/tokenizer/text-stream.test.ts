import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { TextStream, TextTokenizer } from '../../../src/language/tokenizer/tokenizer.js';
import { inPackage } from '../../fixtures.js';

const open = () => TextTokenizer.open(inPackage('fixtures/tokenizers/bpe-512.json'));

/** A text with characters of one to four bytes. */
const TEXT = 'A model é 字 𝄞 and 👩‍🚀, "quoted".\n\tEnd';

describe('the text of a stream of tokens', () => {
  it('is the encoded text, in whole characters', async () => {
    const tokenizer = await open();
    const text =
      TEXT + fs.readFileSync(inPackage('fixtures/tokenizers/text.txt'), 'utf8').slice(0, 500);
    const ids = tokenizer.encode(text, { special: false });
    expect(tokenizer.decode(ids, { special: false })).toBe(text);
    const stream = new TextStream(tokenizer);
    const parts = ids.map((id) => stream.add(id));
    expect(parts.join('')).not.toContain('\ufffd');
    expect(parts.join('') + stream.end()).toBe(text);
    expect(stream.text).toBe(text);
  });

  it('continues a prompt', async () => {
    const tokenizer = await open();
    const ids = tokenizer.encode(TEXT, { special: false });
    const prompt = tokenizer.encode('A model', { special: false });
    const stream = new TextStream(tokenizer, { before: prompt });
    const text = ids.map((id) => stream.add(id)).join('') + stream.end();
    expect(text).toBe(TEXT);
  });

  it('shows a replacement for a character that never becomes whole', async () => {
    const tokenizer = await open();
    const [half = 0] = tokenizer.encode('字', { special: false });
    const stream = new TextStream(tokenizer);
    const parts = Array.from({ length: 9 }, () => stream.add(half));
    expect(parts.slice(0, 3)).toEqual(['', '', '']);
    expect(parts.join('')).toContain('\ufffd');
  });

  it.each([
    [['字 𝄞'], 'A model é '],
    [['nothing', 'quo', '"quoted'], 'A model é 字 𝄞 and 👩‍🚀, "'],
    [['End?'], TEXT],
    [['A'], ''],
  ])('ends before a stop string: %j', async (stops, expected) => {
    const tokenizer = await open();
    const stream = new TextStream(tokenizer, { stops });
    let shown = '';
    for (const id of tokenizer.encode(TEXT, { special: false })) {
      shown += stream.add(id);
      expect(expected.startsWith(shown)).toBe(true);
    }
    expect(shown + stream.end()).toBe(expected);
    expect(stream.isStopped).toBe(expected !== TEXT);
  });
});
