import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UserError } from '../../src/errors.js';
import { measureText } from '../../src/tokenizer/measure.js';
import { inPackage, readJson } from '../fixtures.js';

const TEXT = inPackage('fixtures/tokenizers/text.txt');
const tokenizer = (size: string | number) => inPackage(`fixtures/tokenizers/bpe-${size}.json`);

/** What Python's tokenizers, in Rust, make of the same files; see fixtures/tokenizers/generate.py. */
const COUNTS = readJson<{ characters: number; tokens: Record<string, number> }>(
  'fixtures/tokenizers/counts.json',
);

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const file = (name: string, content: string | Buffer) => {
  const place = path.join(folder, name);
  fs.writeFileSync(place, content);
  return place;
};

describe('measureText', () => {
  it('counts as the library in Rust does', async () => {
    const sizes = Object.keys(COUNTS.tokens);
    expect(sizes.length).toBeGreaterThan(2);
    const measured = await measureText(sizes.map(tokenizer), TEXT);
    expect(measured).toEqual(
      sizes.map((size) => ({
        tokenizer: tokenizer(size),
        vocabulary: Number(size),
        tokens: COUNTS.tokens[size],
        characters: COUNTS.characters,
      })),
    );
  });

  it('counts characters, and not their code units or bytes', async () => {
    const [measure] = await measureText([tokenizer(512)], file('wide.txt', '𝄞é字'));
    // One token for each byte of UTF-8 at most: 4 + 2 + 3.
    expect(measure).toMatchObject({ characters: 3 });
    expect(measure?.tokens).toBeLessThanOrEqual(9);
  });

  it.each([
    ['nothing', '', 'is no tokenizer'],
    ['no JSON', 'vocab', 'is no tokenizer'],
    ['a list', '[]', 'is no tokenizer'],
    ['a config', '{"model_type": "llama"}', 'is no tokenizer'],
    ['no text', Buffer.from([0xff, 0xfe, 0x00]), 'is not UTF-8 text'],
  ])('refuses %s for a tokenizer', async (_, content, message) => {
    const place = file('tokenizer.json', content);
    const error = await measureText([place], TEXT).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ code: 'refused-file' });
    expect(String(error)).toContain(`${place} ${message}`);
  });

  it('refuses a text that is empty, too long or not there', async () => {
    await expect(measureText([], file('empty.txt', ''))).rejects.toThrow('is empty');
    const long = file('long.txt', 'x'.repeat(4_000_001));
    await expect(measureText([], long)).rejects.toThrow('is larger than 4 MB');
    await expect(measureText([], path.join(folder, 'none'))).rejects.toMatchObject({
      code: 'usage',
    });
  });
});
