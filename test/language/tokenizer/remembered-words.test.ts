/** A tokenizer that remembers words has the tokens of the library alone, for words that it met before and for new ones. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import v8 from 'node:v8';
import vm from 'node:vm';
import { Tokenizer } from '@huggingface/tokenizers';
import { afterAll, describe, expect, it } from 'vitest';
import { rememberWords } from '../../../src/language/tokenizer/remembered-words.js';
import { TextTokenizer } from '../../../src/language/tokenizer/tokenizer.js';
import { readJson } from '../../fixtures.js';

const BASE = readJson<{ model: object }>('fixtures/tokenizers/bpe-512.json');
const BYTES = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
const SPLIT = {
  type: 'Split',
  pattern: { Regex: '\\p{N}{1,3}|\\p{L}+|\\s+|[^\\p{L}\\p{N}\\s]+' },
  behavior: 'Isolated',
  invert: false,
};

const KINDS: Readonly<Record<string, object>> = {
  'words of GPT-2': { pre_tokenizer: BYTES },
  'words of a pattern': {
    pre_tokenizer: { type: 'Sequence', pretokenizers: [SPLIT, { ...BYTES, use_regex: false }] },
  },
  'a space before the text': { pre_tokenizer: { ...BYTES, add_prefix_space: true } },
  'words between spaces': { pre_tokenizer: { type: 'WhitespaceSplit' } },
  'no words': { pre_tokenizer: null },
};

const LONG = 'longer-than-any-word-that-is-remembered '.repeat(4).replaceAll(' ', '');
const TEXTS = [
  "Hello there,  it's 12345 apples (déjà vu)\n\n  x = y_1 + 3.14\t🙂\n",
  "there it's x = x there 你好 世界",
  `half \ud800 of a pair, ${LONG} ${LONG}`,
  '   \n',
];

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-words-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.each(Object.entries(KINDS))('%s', (name, changes) => {
  const content = { ...BASE, ...changes };

  it('has the tokens of the library', async () => {
    const file = path.join(folder, `${Object.keys(KINDS).indexOf(name)}.json`);
    fs.writeFileSync(file, JSON.stringify(content));
    const own = await TextTokenizer.open(file);
    const library = new Tokenizer(content, {});
    const expected = TEXTS.map((text) => library.encode(text, { add_special_tokens: false }).ids);
    // The second time, every word is one that it remembers.
    expect([own.encodeAll(TEXTS), own.encodeAll(TEXTS)]).toEqual([expected, expected]);
  });
});

it('merges a word once', () => {
  const tokenizer = new Tokenizer({ ...BASE, pre_tokenizer: BYTES }, {});
  rememberWords(tokenizer);
  const model = tokenizer.model as unknown as { add_node: (...of: unknown[]) => void };
  const { add_node: add } = model;
  let pairs = 0;
  model.add_node = function (...given) {
    pairs++;
    add.apply(this, given);
  };
  tokenizer.encode('there', { add_special_tokens: false });
  const first = pairs;
  tokenizer.encode('there', { add_special_tokens: false });
  expect([first > 0, pairs]).toEqual([true, first]);
});

it('keeps no text that a remembered word is from', () => {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc') as () => void;
  const tokenizer = new Tokenizer({ ...BASE, pre_tokenizer: BYTES }, {});
  rememberWords(tokenizer);
  const steps = tokenizer.pre_tokenizer as unknown as { pre_tokenize_text(text: string): string[] };
  const used = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = used();
  const words = new Set<string>();
  for (let index = 0; index < 30; index++) {
    const own = String.fromCharCode(...[...String(index)].map((digit) => 97 + Number(digit)));
    const word = `somelongword${own}`;
    // A file as it is read: one megabyte in one piece.
    const text = Buffer.from(`${' '.repeat(1_000_000)}${word}`).toString('latin1');
    words.add(steps.pre_tokenize_text(text).at(-1) ?? '');
  }
  expect(words.size).toBe(30);
  expect(used() - before).toBeLessThan(47e6);
});
