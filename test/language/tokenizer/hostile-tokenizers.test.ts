/** Small tokenizers that take long or much memory in the library. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PART_BOUNDS } from '../../../src/language/tokenizer/parts.js';
import { isLargeTrie, trieNodes } from '../../../src/language/tokenizer/token-trie.js';
import { TextTokenizer } from '../../../src/language/tokenizer/tokenizer.js';
import { readJson } from '../../fixtures.js';

const BASE = readJson<{ readonly model: object }>('fixtures/tokenizers/bpe-512.json');

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const encoded = async (changes: object, text = 'hello there', limit?: number) => {
  const file = path.join(folder, 'tokenizer.json');
  fs.writeFileSync(file, JSON.stringify({ ...BASE, ...changes }));
  const tokenizer = await TextTokenizer.open(file, { limit });
  return tokenizer.encode(text, { special: true });
};

const KINDS = [
  ['normalizer', 'normalizers', { type: 'NFC' }],
  ['pre_tokenizer', 'pretokenizers', { type: 'Digits', individual_digits: true }],
  ['post_processor', 'processors', { type: 'ByteLevel' }],
  ['decoder', 'decoders', { type: 'Fuse' }],
] as const;

const nested = (key: string, depth: number): object =>
  depth === 0 ? {} : { type: 'Sequence', [key]: depth === 1 ? [] : [nested(key, depth - 1)] };

const replace = (pattern: object, content = 'x') => ({ type: 'Replace', pattern, content });
const special = (content: string, more: object = {}) => ({ id: 512, content, ...more });
const unigram = (tokens: readonly string[]) => ({
  model: { type: 'Unigram', unk_id: 0, vocab: tokens.map((token) => [token, -1]) },
  added_tokens: [],
});

describe('a tokenizer of many parts', () => {
  it.each(KINDS)('nests its %s at most 8 deep', async (part, key) => {
    await expect(encoded({ [part]: nested(key, PART_BOUNDS.depth) })).resolves.toBeDefined();
    await expect(encoded({ [part]: nested(key, PART_BOUNDS.depth + 1) })).rejects.toThrow(
      'nests parts more than 8 deep',
    );
  });

  it.each(KINDS)('has at most 1000 in its %s', async (part, key, one) => {
    const sequence = (count: number) => ({
      [part]: { type: 'Sequence', [key]: Array(count).fill(one) },
    });
    await expect(encoded(sequence(PART_BOUNDS.parts))).rejects.toThrow('more than 1000 parts');
    await expect(encoded(sequence(20))).resolves.toBeDefined();
  });

  it('repeats a text at most 16 times after it is tokenized', async () => {
    const item = { Sequence: { id: 'A', type_id: 0 } };
    const template = { type: 'TemplateProcessing', single: Array(17).fill(item), pair: [] };
    await expect(encoded({ post_processor: template })).rejects.toThrow(
      'its post-processor can lengthen a text more than 16 times',
    );
    const twice = { ...template, single: [item, item] };
    const processors = Array(40).fill(twice);
    await expect(encoded({ post_processor: { type: 'Sequence', processors } })).rejects.toThrow(
      'its post-processor can lengthen a text more than 16 times',
    );
    expect(await encoded({ post_processor: twice })).toHaveLength(2 * (await encoded({})).length);
  });
});

describe('the patterns of a tokenizer', () => {
  // The engine compiles them in one call, which has no time limit: some of these took hours.
  it.each([
    ['classes', '[\\p{L}\\p{N}]{0,1000}'.repeat(10_000)],
    ['alternatives', Array.from({ length: 100_000 }, (_, at) => `a${at}`).join('|')],
    ['groups', `${'('.repeat(100_000)}${')'.repeat(100_000)}`],
  ])('are short: %s', async (_, Regex) => {
    const refused = /its patterns have more than 4,000 characters/;
    await expect(encoded({ normalizer: replace({ Regex }) })).rejects.toThrow(refused);
    const split = { type: 'Split', pattern: { Regex }, behavior: 'Isolated' };
    await expect(encoded({ pre_tokenizer: split })).rejects.toThrow(refused);
    await expect(encoded({ decoder: replace({ Regex }) })).rejects.toThrow(refused);
  });

  it('are short together', async () => {
    const normalizers = Array(900).fill(replace({ String: 'abcdefghij' }));
    await expect(encoded({ normalizer: { type: 'Sequence', normalizers } })).rejects.toThrow(
      'its patterns have more than 4,000 characters',
    );
  });

  const most = (pattern: string, count = PART_BOUNDS.patternCharacters / pattern.length) =>
    pattern.repeat(Math.floor(count));

  it.each([
    ['word boundaries', most('\\b', 64)],
    ['no word boundaries', most('\\B', 64)],
    ['classes', most('[\\p{L}\\p{N}]?')],
    ['counted classes', most('[\\p{L}\\p{N}]{0,1000}')],
    ['negated properties', most('\\W', 64)],
    ['intersections', most('[\\w&&[^\\d]]', 55)],
    ['letters of any case', most('(?i:é[a-ö])')],
    ['lookbehinds', most('(?<!\\p{L}{9})')],
    ['counted groups', most('(?:\\p{L}{0,90}){0,90}')],
    ['nested counted groups', '(?:(?:a{1000}){1000}){1000}'],
    ['nested groups', `${'(?:'.repeat(700)}a${')*'.repeat(700)}`],
    ['exponential', '((l|l)*)*x'],
    ['polynomial', '.*.*.*.*.*.*.*.*.*.*=x'],
    ['alternatives', most('a|aa|aaa|')],
    ['backreferences', `${'(l*)'.repeat(9)}${'\\1\\2\\3\\4\\5'.repeat(90)}=`],
  ])(
    'of the longest length end: %s',
    async (_, Regex) => {
      const before = process.cpuUsage();
      for (const change of [
        { normalizer: replace({ Regex }, '') },
        { pre_tokenizer: { type: 'Split', pattern: { Regex }, behavior: 'Isolated' } },
      ]) {
        const outcome = await encoded(change, 'hello aaaa '.repeat(20), 500).catch(String);
        if (typeof outcome === 'string') {
          expect(outcome).toMatch(/takes more than 0.5 s for the text|is not a tokenizer/);
        }
      }
      const { user } = process.cpuUsage(before);
      expect(user / 1e6).toBeLessThan(8);
    },
    60_000,
  );
});

describe('the tokens of a tokenizer', () => {
  it('have a trie of a node for each character that they do not share', () => {
    expect(trieNodes(['abc', 'abd', 'a', 'b'])).toBe(5);
    expect(trieNodes([])).toBe(0);
    expect(isLargeTrie(['abc', 'abd'], 4)).toBe(false);
    expect(isLargeTrie(['abc', 'abd'], 3)).toBe(true);
  });

  it('are short where they are added', async () => {
    const token = 'h'.repeat(1_300_000);
    await expect(encoded({ added_tokens: [special(token)] })).rejects.toThrow(
      'its added tokens have more than 1200000 characters',
    );
  });

  it('are short after normalization where they are added', async () => {
    const normalizer = replace({ String: 'h' }, 'x'.repeat(1000));
    const added = special('h'.repeat(100_000), { normalized: true });
    await expect(encoded({ normalizer, added_tokens: [added] })).rejects.toThrow(
      'its added tokens have more than 1200000 characters',
    );
  });

  it('share their beginnings in a Unigram model', async () => {
    const tokens = Array.from({ length: 60_000 }, (_, at) => `${at}${'x'.repeat(20)}`);
    await expect(encoded(unigram(['<unk>', ...tokens]))).rejects.toThrow(
      'its tokens differ in more than 1200000 characters',
    );
  });

  it('have few lengths in a Unigram model of a long text', async () => {
    const tokens = Array.from({ length: 1000 }, (_, at) => 'a'.repeat(at + 1));
    const model = unigram(['<unk>', ...tokens]);
    expect(await encoded({ ...model, pre_tokenizer: null }, 'a'.repeat(100))).toBeDefined();
    await expect(encoded({ ...model, pre_tokenizer: null }, 'a'.repeat(10_000))).rejects.toThrow(
      'its tokens have more than 64 lengths, too many for a long text',
    );
  });
});
