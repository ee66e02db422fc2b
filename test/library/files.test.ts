/** Functions that read weights, and run models, give the JSON of their commands. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { expectAnswer, library } from './support.js';

const { convert, diff, evaluate, generate, inspect, quickTest, UserError, verify } = library;

const BLOOM = 'fixtures/alibi/bloom';
const FALCON = 'fixtures/alibi/falcon';
const MODELS = [BLOOM, FALCON];
const TINY = 'hybrid/tiny';
const CPU = ['--device', 'cpu', '--threads', '1'];
const ON_CPU = { device: 'cpu', threads: 1 } as const;

describe('inspect', () => {
  test.each(MODELS)('%s', async (place) => {
    await expectAnswer(inspect(place), 'inspect', place);
    const measured = inspect(place, { stats: true, hash: true });
    await expectAnswer(measured, 'inspect', place, '--stats', '--hash');
  });

  test('an adapter', async () => {
    await expectAnswer(inspect('fixtures/lora/llama-bf16'), 'inspect', 'fixtures/lora/llama-bf16');
  });
});

describe('diff', () => {
  test.each([
    [BLOOM, FALCON],
    ['hybrid/original', 'hybrid/shared'],
  ])('%s and %s', async (a, b) => {
    await expectAnswer(diff(a, b), 'diff', a, b);
  });

  test('with values', async () => {
    await expectAnswer(diff(BLOOM, BLOOM, { values: true }), 'diff', BLOOM, BLOOM, '--values');
  });
});

describe('verify', () => {
  test.each(MODELS)('%s', async (place) => {
    await expectAnswer(verify(place), 'verify', place);
    const config = `${place}/config.json`;
    await expectAnswer(verify(place, { config, scan: true }), 'verify', config, place, '--scan');
  });

  test('with values', async () => {
    await expectAnswer(verify(BLOOM, { values: BLOOM }), 'verify', BLOOM, '--values', BLOOM);
  });

  test('against another config', async () => {
    const set = { vocab_size: 60 };
    const answer = await verify(BLOOM, { set });
    expect(answer.matches).toBe(false);
    await expectAnswer(answer, 'verify', BLOOM, '--set', 'vocab_size=60');
  });

  test('refuses to compare values with an adapter', async () => {
    await expect(verify('fixtures/lora/llama-bf16', { values: BLOOM })).rejects.toThrow(
      'values: expected the checkpoint of a whole model, found the LoRA adapter fixtures/lora/llama-bf16',
    );
  });
});

describe('quickTest', () => {
  test.each([...MODELS, TINY])('%s', async (place) => {
    const answer = quickTest(place, { ...ON_CPU, only: ['created', 'forward', 'causality'] });
    await expectAnswer(answer, 'quick-test', place, '--only', 'created,forward,causality', ...CPU);
  });
});

describe('options that JavaScript does not check', () => {
  test('are refused', async () => {
    await expect(generate(TINY)).rejects.toThrow('expected one of prompt and ids, found none');
    await expect(generate(TINY, { prompt: 'a', ids: [1] })).rejects.toThrow('found both');
    await expect(evaluate(TINY, { random: true })).rejects.toThrow(UserError);
    const only = ['nope'] as unknown as ['cache'];
    await expect(quickTest(TINY, { only, ...ON_CPU })).rejects.toThrow('there is no check "nope"');
  });
});

describe('generate', () => {
  test.each(MODELS)('%s', async (place) => {
    const answer = generate(place, { ids: [1, 2, 3], maxTokens: 3, logprobs: 2, ...ON_CPU });
    const words = ['--ids', '1,2,3', '--max-tokens', '3', '--logprobs', '2', ...CPU];
    await expectAnswer(answer, 'generate', place, ...words);
  });

  test('with random weights and a seed', async () => {
    const options = { ids: [1, 2], maxTokens: 4, temperature: 0.8, topK: 5, seed: 7, random: true };
    const words = '--ids 1,2 --max-tokens 4 --temperature 0.8 --top-k 5 --seed 7 --random';
    const answer = generate(TINY, { ...options, ...ON_CPU });
    await expectAnswer(answer, 'generate', TINY, ...words.split(' '), ...CPU);
  });
});

describe('evaluate', () => {
  test.each(MODELS)('%s', async (place) => {
    const answer = evaluate(place, { ids: '5,17,3,9,1,30', context: 4, stride: 2, ...ON_CPU });
    const words = ['--ids', '5,17,3,9,1,30', '--context', '4', '--stride', '2', ...CPU];
    await expectAnswer(answer, 'evaluate', place, ...words);
  });

  test('against another model', async () => {
    const answer = evaluate(BLOOM, { ids: '5,17,3,9', against: BLOOM, ...ON_CPU });
    await expectAnswer(answer, 'evaluate', BLOOM, '--ids', '5,17,3,9', '--against', BLOOM, ...CPU);
  });
});

describe('convert', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  test.each(MODELS)('%s', async (place) => {
    const out = path.join(folder, path.basename(place));
    const options = { dtype: 'bf16', shardBytes: 20e3, threads: 1 } as const;
    const line = [place, out, '--dtype', 'bf16', '--shard-size', '20kB', '--threads', '1'];
    const planned = convert(place, out, { ...options, dryRun: true });
    await expectAnswer(planned, 'convert-checkpoint', ...line, '--dry-run');
    expect(fs.existsSync(out)).toBe(false);
    const written = await convert(place, out, { ...options, check: true });
    const files = filesIn(out);
    await expectAnswer(written, 'convert-checkpoint', ...line, '--check', '--force');
    expect(filesIn(out)).toEqual(files);
  });
});

/** Names and contents of the files in a folder. */
const filesIn = (place: string): Record<string, string> =>
  Object.fromEntries(
    fs
      .readdirSync(place)
      .sort()
      .map((name) => [name, fs.readFileSync(path.join(place, name)).toString('base64')]),
  );

describe('a model of the hub', () => {
  test('is refused by functions that need its weights, with what to write', async () => {
    const asked = [
      evaluate('hf:some/model', { ids: '1,2' }),
      generate('hf:some/model@v2', { ids: [1] }),
      quickTest(TINY, { checkpoint: 'hf:some/model' }),
    ];
    for (const each of asked) {
      await expect(each).rejects.toMatchObject({
        code: 'usage',
        message: expect.stringMatching(/ needs local files, and downloads none from the hub$/),
        suggestion: expect.stringMatching(/hf download some\/model.*, then name \.\/model$/),
      });
    }
  });

  test('has a config that quickTest reads from the hub, or from the caches of this machine', async () => {
    const answer = quickTest('hf:some/model-that-no-cache-has', { offline: true });
    await expect(answer).rejects.toThrow(/some\/model-that-no-cache-has/);
  });
});
