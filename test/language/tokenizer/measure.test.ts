import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { measureText } from '../../../src/language/tokenizer/tokenizer.js';
import { inPackage, readJson } from '../../fixtures.js';

const TEXT = inPackage('fixtures/tokenizers/text.txt');
const tokenizer = (size: string | number) => inPackage(`fixtures/tokenizers/bpe-${size}.json`);

/** Counts of Python's tokenizers library, written in Rust, for the same files; see fixtures/tokenizers/generate.py. */
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
  it('gives the counts of the library in Rust', async () => {
    const sizes = Object.keys(COUNTS.tokens);
    expect(sizes.length).toBeGreaterThan(2);
    const measured = await measureText(sizes.map(tokenizer), TEXT);
    expect(measured).toEqual(
      sizes.map((size) => ({
        tokenizer: tokenizer(size),
        bytes: fs.statSync(TEXT).size,
        vocabulary: Number(size),
        tokens: COUNTS.tokens[size],
        characters: COUNTS.characters,
      })),
    );
  });

  it('counts characters, not code units or bytes', async () => {
    const [measure] = await measureText([tokenizer(512)], file('wide.txt', '𝄞é字'));
    // At most one token for each byte of UTF-8: 4 + 2 + 3.
    expect(measure).toMatchObject({ characters: 3 });
    expect(measure?.tokens).toBeLessThanOrEqual(9);
  });

  it.each([
    ['an empty file', '', 'is not a tokenizer'],
    ['other text', 'vocab', 'is not a tokenizer'],
    ['a list', '[]', 'is not a tokenizer'],
    ['a config', '{"model_type": "llama"}', 'is not a tokenizer'],
    ['an invalid vocabulary', '{"model": {"vocab": 7}}', 'is not a tokenizer'],
    [
      'a vocabulary of 600,001 tokens',
      `{"model": {"vocab": {${Array.from({ length: 600_001 }, (_, id) => `"${id}":${id}`)}}}}`,
      'is not a tokenizer: expected at most 600000 tokens',
    ],
    [
      'more than 600,000 tokens with scores',
      `{"model":{"vocab":[${'["a",0],'.repeat(600_001)}["b",0]]}}`,
      'is not a tokenizer: expected at most 600000 tokens',
    ],
    [
      'more than two merges for each token',
      `{"model":{"vocab":{"a":0},"merges":[${'"a a",'.repeat(1_200_001)}"a a"]}}`,
      'is not a tokenizer: expected at most 600000 tokens',
    ],
    ['binary data', Buffer.from([0xff, 0xfe, 0x00]), 'is not UTF-8 text'],
  ])('refuses %s as a tokenizer', async (_, content, message) => {
    const place = file('tokenizer.json', content);
    const error = await measureText([place], TEXT).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ code: 'refused-file' });
    expect(String(error)).toContain(`${place} ${message}`);
  });

  const withIds = (ids: Record<string, unknown>, added: unknown = []) =>
    JSON.stringify({ model: { type: 'BPE', vocab: ids, merges: [] }, added_tokens: added });

  it.each([
    ['of a billion', withIds({ a: 1e9 })],
    ['of a billion, in added tokens', withIds({ a: 0 }, [{ id: 1e9, content: 'b' }])],
    ['beyond exact numbers', withIds({ a: 1e300 })],
    ['below zero', withIds({ a: -1 })],
    ['that is a fraction', withIds({ a: 0.5 })],
    ['that is a text', withIds({ a: '0' })],
    ['that is a list', withIds({ a: ['x'.repeat(1000)] })],
    ['that is missing', withIds({}, [{ content: 'b' }])],
    ['of a token without a text', withIds({}, [{ id: 0, content: ['b'] }])],
    ['of a token that is not a mapping', withIds({}, [7])],
    ['outside a list', withIds({}, { id: 0, content: 'b' })],
    ['of a vocabulary list without scores', JSON.stringify({ model: { vocab: ['a'] } })],
  ])('refuses an id %s', async (_, content) => {
    const error = await measureText([file('tokenizer.json', content)], TEXT).catch(String);
    expect(error).toMatch(/is not a tokenizer: expected /);
    expect(String(error).length).toBeLessThan(400);
  });

  it('counts tokens, but not unused ids', async () => {
    const ids = JSON.parse(fs.readFileSync(tokenizer(512), 'utf8'));
    const content = JSON.stringify({
      ...ids,
      added_tokens: [...ids.added_tokens, { id: 5000, content: '<new>', special: true }],
    });
    const [measure] = await measureText([file('holes.json', content)], TEXT);
    expect(measure).toMatchObject({ vocabulary: 513, tokens: COUNTS.tokens[512] });
  });

  const with512 = (parts: object) =>
    JSON.stringify({ ...JSON.parse(fs.readFileSync(tokenizer(512), 'utf8')), ...parts });
  const normalizing = (...normalizers: object[]) =>
    with512({ normalizer: { type: 'Sequence', normalizers } });
  const replace = (pattern: string, content: string) => ({
    type: 'Replace',
    pattern: { String: pattern },
    content,
  });

  it.each([
    ['doubles 27 times', normalizing(...Array(27).fill(replace('a', 'aa')))],
    ['fills gaps', normalizing(...Array(3).fill(replace('', 'b'.repeat(1000))))],
    ['prepends long texts', normalizing({ type: 'Prepend', prepend: 'x'.repeat(2e6) })],
    [
      'replaces empty matches',
      normalizing(
        ...Array(3).fill({ type: 'Replace', pattern: { Regex: 'x*' }, content: 'y'.repeat(999) }),
      ),
    ],
    ['inserts the text before a match', normalizing(replace('a', '$`$`'))],
    [
      'decomposes inserted characters',
      normalizing(
        ...Array(20)
          .fill([replace('\u0644', '\uFDFA'), { type: 'NFKC' }])
          .flat(),
      ),
    ],
    [
      'replaces spaces by long texts',
      with512({ pre_tokenizer: { type: 'Metaspace', str_rep: '_'.repeat(2e6) } }),
    ],
  ])('refuses a tokenizer that %s before it lengthens a text', async (_, content) => {
    const place = file('tokenizer.json', content);
    await expect(measureText([place], file('a.txt', 'a'))).rejects.toMatchObject({
      code: 'refused-file',
      message: `${place}: its normalizer and pre-tokenizer can lengthen a text more than 16 times`,
    });
  });

  it.each([
    ['of SentencePiece', [{ type: 'Prepend', prepend: '\u2581' }, replace(' ', '\u2581')]],
    [
      'of many steps',
      [
        ...[replace('``', '"'), replace("''", '"'), { type: 'NFKD' }, { type: 'StripAccents' }],
        ...[{ type: 'Lowercase' }, { type: 'Precompiled' }],
        ...Array(9).fill({ type: 'Replace', pattern: { Regex: ' {2,}' }, content: ' ' }),
      ],
    ],
  ])('accepts the normalizer %s', async (_, parts) => {
    const [measure] = await measureText([file('tokenizer.json', normalizing(...parts))], TEXT);
    expect(measure?.tokens).toBeGreaterThan(0);
  });

  it('counts the text once even if a post-processor repeats it', async () => {
    const single = Array(1000).fill({ Sequence: { id: 'A', type_id: 0 } });
    const place = file(
      'tokenizer.json',
      with512({ post_processor: { type: 'TemplateProcessing', single, pair: single } }),
    );
    const [measure] = await measureText([place], TEXT);
    expect(measure).toMatchObject({ tokens: COUNTS.tokens[512] });
  });

  it('stops a pattern that never ends', async () => {
    const endless = {
      ...JSON.parse(fs.readFileSync(tokenizer(512), 'utf8')),
      pre_tokenizer: { type: 'Split', pattern: { Regex: '(a+)+$' }, behavior: 'Isolated' },
    };
    const text = file('text.txt', `${'a'.repeat(60)}b`);
    const place = file('tokenizer.json', JSON.stringify(endless));
    await expect(measureText([place], text, 200)).rejects.toMatchObject({
      code: 'refused-file',
      message: `${place} takes more than 0.2 s for the text`,
    });
  });

  it.skipIf(!fs.existsSync('/dev/zero'))('reads no more than the bound of a device', async () => {
    await expect(measureText([], '/dev/zero')).rejects.toThrow('is larger than 4 MB');
    await expect(measureText(['/dev/zero'], TEXT)).rejects.toThrow('is larger than 100 MB');
  });

  it('refuses a text that is empty, too long or missing', async () => {
    await expect(measureText([], file('empty.txt', ''))).rejects.toThrow('is empty');
    const long = file('long.txt', 'x'.repeat(4_000_001));
    await expect(measureText([], long)).rejects.toThrow('is larger than 4 MB');
    await expect(measureText([], path.join(folder, 'none'))).rejects.toMatchObject({
      code: 'usage',
    });
  });
});
