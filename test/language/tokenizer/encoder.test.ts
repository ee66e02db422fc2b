/** Threads that tokenize give the tokens of the tokenizer itself, in the order of the texts, and its errors. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ahead } from '../../../src/base/ahead.js';
import { UserError } from '../../../src/base/errors.js';
import { type DataInput, readData } from '../../../src/language/data/read-data.js';
import { BatchEncoder, type EncoderOptions } from '../../../src/language/tokenizer/encoder.js';
import { TextTokenizer } from '../../../src/language/tokenizer/tokenizer.js';
import { inPackage, readJson } from '../../fixtures.js';
import { SILENT } from '../data/support.js';

const FILE = inPackage('fixtures/data/tokenizer/tokenizer.json');
const BATCHES = [
  ['Once upon a time.', '', 'half \ud800 of a pair', '<|im_start|>user\n你好<|im_end|>'],
  [],
  ...Array.from({ length: 20 }, (_, at) => ['there '.repeat(1 + ((at * 7) % 40)), `${at ** 9} 🙂`]),
];

async function opened(options: EncoderOptions, file = FILE) {
  const tokenizer = await TextTokenizer.open(file);
  const encoder = new BatchEncoder(tokenizer, options);
  onTestFinished(() => encoder.close());
  return { tokenizer, encoder };
}

describe('the encoder of batches', () => {
  it.each<[string, EncoderOptions]>([
    ['one thread', { threads: 1, alone: 0 }],
    ['two threads', { threads: 2, alone: 0 }],
    ['three threads after the first batches', { threads: 3, alone: 200 }],
  ])('has the tokens of the tokenizer with %s', async (_, options) => {
    const { tokenizer, encoder } = await opened(options);
    const encoded = await Promise.all(BATCHES.map((texts) => encoder.encode(texts)));
    expect(encoded).toEqual(BATCHES.map((texts) => tokenizer.encodeAll(texts)));
  });

  it('asks for more batches only with threads', async () => {
    const { encoder } = await opened({ threads: 2, alone: 1 });
    await encoder.encode(['a text']);
    expect(encoder.batchesAhead).toBe(1);
    await encoder.encode(['a text']);
    expect(encoder.batchesAhead).toBe(4);
  });

  it('refuses a text with the error of the tokenizer', async () => {
    const { model } = readJson<{ model: { vocab: Record<string, number> } }>(
      'fixtures/data/tokenizer/tokenizer.json',
    );
    const content = readJson<object>('fixtures/data/tokenizer/tokenizer.json');
    // The library has no token for an unknown one that is not in the vocabulary.
    const { z: _, ...vocab } = model.vocab;
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-encoder-'));
    onTestFinished(() => fs.rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'tokenizer.json');
    fs.writeFileSync(
      file,
      JSON.stringify({ ...content, model: { ...model, vocab, unk_token: 'none' } }),
    );
    const { tokenizer, encoder } = await opened({ threads: 2, alone: 0 }, file);
    const failure = encoder.encode(['zzz']);
    await expect(failure).rejects.toBeInstanceOf(UserError);
    await expect(failure).rejects.toThrow(`${file} has no token for a part of the text`);
    expect(() => tokenizer.encodeAll(['zzz'])).toThrow('has no token for a part of the text');
    expect(await encoder.encode(['a'])).toEqual(tokenizer.encodeAll(['a']));
  });
});

describe('training data', () => {
  const input = (name: string, threads: number): DataInput => ({
    files: [inPackage(`fixtures/data/${name}.jsonl`)],
    tokenizer: inPackage('fixtures/data/tokenizer'),
    recipe: 'minimind3',
    similarity: 0.8,
    threads,
  });

  it.each(['pretrain', 'chat', 'preference'])(
    'has the same figures with threads: %s',
    async (name) => {
      const [one, two] = await Promise.all(
        [1, 2].map(async (threads) => {
          const { seconds: _, ...reading } = await readData(input(name, threads), SILENT);
          return reading;
        }),
      );
      expect(two).toEqual(one);
      expect(one?.figures.tokens?.tokens).toBeGreaterThan(0);
    },
  );
});

describe('items ahead', () => {
  async function* failing() {
    yield 1;
    yield 2;
    throw new Error('third');
  }

  it('come in order, and their error where it belongs', async () => {
    const seen: number[] = [];
    const read = async () => {
      for await (const each of ahead(failing(), () => 5)) seen.push(each);
    };
    await expect(read()).rejects.toThrow('third');
    expect(seen).toEqual([1, 2]);
  });

  it('end with their reader', async () => {
    let isEnded = false;
    async function* endless() {
      try {
        for (let at = 0; ; at++) yield at;
      } finally {
        isEnded = true;
      }
    }
    for await (const each of ahead(endless(), () => 3)) if (each === 4) break;
    expect(isEnded).toBe(true);
  });
});
