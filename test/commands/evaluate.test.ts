import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const MODEL = ['hybrid/tiny', '--random', '--set', 'model.vocab_size=512'];
const TOKENIZER = ['--tokenizer', 'fixtures/tokenizers/bpe-512.json'];
const TEXT = ['--text', 'fixtures/tokenizers/text.txt'];

describe('evaluate', () => {
  let folder: string;
  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  });
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  const written = (name: string, content: string) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, content);
    return file;
  };

  it('scores a text by token, word and byte, and lists its worst lines', async () => {
    const { stdout, code } = await runHere(['evaluate', ...MODEL, ...TOKENIZER, ...TEXT, '--json']);
    const result = JSON.parse(stdout);
    const { loss, perplexity, perplexityByWord, bitsPerByte, input } = result;
    const text = fs.readFileSync('fixtures/tokenizers/text.txt', 'utf8');
    expect(code).toBe(0);
    expect(input.bytes).toBe(Buffer.byteLength(text));
    expect(input.words).toBe(text.trim().split(/\s+/).length);
    expect(perplexity).toBeCloseTo(Math.exp(loss), 8);
    expect(bitsPerByte).toBeCloseTo((loss * input.tokens) / input.bytes / Math.log(2), 10);
    expect(Math.log(perplexityByWord)).toBeCloseTo((loss * input.tokens) / input.words, 8);
    const lines = text.split('\n');
    expect(result.worstLines).toHaveLength(5);
    for (const { line, text: shown } of result.worstLines) expect(shown).toBe(lines[line - 1]);
  });

  it('finds no difference between a model and itself', async () => {
    const ids = written('ids.json', JSON.stringify([[1, 2, 3, 4, 5, 6, 7, 8]]));
    const own = 'fixtures/hf/llama';
    const { stdout, code } = await runHere([
      ...['evaluate', own, '--ids', ids, '--against', own, '--json'],
      ...['--max-kl', '0', '--min-top-match', '100%'],
    ]);
    const { kl, sameTop, scored, divergence } = JSON.parse(stdout);
    expect([code, kl, sameTop, scored]).toEqual([0, 0, 1, 7]);
    expect(divergence.lossChange.mean).toBe(0);
  });

  it('exits with 1 and an error for each exceeded threshold', async () => {
    const { code, stderr } = await runHere([
      ...['evaluate', 'fixtures/hf/llama', '--ids', written('one.json', '[[1,2,3,4]]'), '--quiet'],
      ...['--against', 'fixtures/hf/llama-tied-rope3'],
      ...['--max-kl', '1e-6', '--min-top-match', '0.9999', '--max-perplexity', '1.5'],
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: perplexity \S+ exceeds --max-perplexity 1.5$/m);
    expect(stderr).toMatch(/^error: KL divergence \S+ nats exceeds --max-kl 0.000001$/m);
    expect(stderr).toMatch(/^error: top match \S+ is below --min-top-match/m);
  });

  it.each([
    [[...MODEL], 'expected a text or token ids, found none', 2],
    [[...MODEL, ...TEXT, '--ids', 'x'], '--text and --ids cannot be used together', 2],
    [['hybrid/tiny', ...TEXT], 'hybrid/tiny is a config without weights', 2],
    [
      ['fixtures/hf/llama', ...TEXT],
      'expected a tokenizer.json in fixtures/hf/llama, found none',
      2,
    ],
    [['fixtures/hf/llama', ...TOKENIZER, ...TEXT], 'bpe-512.json has tokens up to', 2],
    [[...MODEL, ...TOKENIZER, ...TEXT, '--bos', '512'], '--bos: expected auto, none, or', 2],
    [[...MODEL, ...TOKENIZER, ...TEXT, '--stride', '600'], '--stride: expected at most the', 2],
    [[...MODEL, ...TOKENIZER, '--text', 'nowhere.txt'], 'nowhere.txt', 2],
    [
      [...MODEL, ...TOKENIZER, ...TEXT, '--against', 'fixtures/hf/llama'],
      'the models have different vocabularies: 512 and',
      2,
    ],
  ])('refuses %j', async (flags, message, expected) => {
    const { code, stderr } = await runHere(['evaluate', ...flags, '--quiet']);
    expect(stderr).toContain(message);
    expect(code).toBe(expected);
  });

  it.each([
    ['{"a": 1}', 'expected a list of lists'],
    ['[[1, 2', 'is not JSON'],
    ['[[1, 2], [3, 97]]', 'id 1 of text 1: expected 0 to 96, found 97'],
    ['[[1, "2"]]', 'id 1 of text 0: expected 0 to 96, found "2"'],
    ['[[1], []]', 'expected at least two tokens of a text'],
  ])('refuses the ids %s', async (content, message) => {
    const { code, stderr } = await runHere([
      ...['evaluate', 'fixtures/hf/llama', '--ids', written('wrong.json', content)],
    ]);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});
