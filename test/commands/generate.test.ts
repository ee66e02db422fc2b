import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage, readJson } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const LLAMA = ['generate', 'fixtures/hf/llama', '--device', 'cpu'];

/** Model with random weights and a tokenizer. */
const TINY = [
  ...['generate', 'configs/hybrid/tiny.yaml', '--set', 'model.vocab_size=512', '--random'],
  ...['--tokenizer', 'fixtures/tokenizers/bpe-512.json', '--device', 'cpu'],
];

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

function file(name: string, content: string | object): string {
  const target = path.join(folder, name);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, typeof content === 'string' ? content : JSON.stringify(content));
  return target;
}

/** Folder of a model with additional files. */
function modelWith(name: string, files: Record<string, string | object>): string {
  fs.cpSync(inPackage('fixtures/hf/llama'), path.join(folder, name), { recursive: true });
  for (const [each, content] of Object.entries(files)) file(`${name}/${each}`, content);
  return path.join(folder, name);
}

/** Tokenizer with a token for each letter, of the size of the vocabulary. */
const LETTERS = {
  version: '1.0',
  added_tokens: [
    {
      id: 1,
      content: '<s>',
      special: true,
      normalized: false,
      single_word: false,
      lstrip: false,
      rstrip: false,
    },
    {
      id: 2,
      content: '</s>',
      special: true,
      normalized: false,
      single_word: false,
      lstrip: false,
      rstrip: false,
    },
  ],
  normalizer: null,
  pre_tokenizer: { type: 'Split', pattern: { Regex: '' }, behavior: 'Isolated', invert: false },
  post_processor: null,
  decoder: { type: 'Fuse' },
  model: {
    type: 'BPE',
    merges: [],
    unk_token: '?',
    vocab: Object.fromEntries([
      ...[
        ['?', 0],
        ['<s>', 1],
        ['</s>', 2],
      ],
      ...Array.from({ length: 94 }, (_, index) => [
        String.fromCharCode(33 + index) === '?' ? ' ' : String.fromCharCode(33 + index),
        index + 3,
      ]),
    ]),
  },
};

const jsonOf = async (args: string[]) => {
  const { code, stdout } = await runHere([...args, '--json']);
  expect(code, stdout).toBe(0);
  return JSON.parse(stdout);
};

describe('generate', () => {
  it('continues ids with the likeliest tokens', async () => {
    const [first] =
      readJson<Record<string, { prompt: number[]; ids: number[] }[]>>(
        'fixtures/generation/greedy.json',
      ).llama ?? [];
    const { stdout, stderr } = await runHere([
      ...LLAMA,
      '--ids',
      String(first?.prompt),
      '--max-tokens',
      '20',
    ]);
    expect(stdout.trim().split(' ').map(Number)).toEqual(first?.ids.slice(0, 20));
    expect(stderr).toContain('20 tokens');
    expect(stderr).toContain('least sure');
  });

  it('samples the same tokens with the same seed, and reports every step', async () => {
    const args = [...LLAMA, '--ids', '1,5,9', '--max-tokens', '6', '--temperature', '0.9'];
    const more = ['--top-k', '9', '--seed', '3', '--logprobs', '2', '--explain-sampling'];
    const [{ answers, sampling }, again] = [
      await jsonOf([...args, ...more]),
      await jsonOf([...args, ...more]),
    ];
    expect(again.answers[0].ids).toEqual(answers[0].ids);
    expect(sampling).toMatchObject({ temperature: 0.9, topK: 9, seed: 3, maxTokens: 6 });
    const [token] = answers[0].tokens;
    expect(token.top).toHaveLength(2);
    expect(token.sampling.map((stage: { name: string }) => stage.name)).toEqual([
      'model',
      'temperature',
      'top-k',
    ]);
    expect(token.sampling[2].kept).toBe(9);
    expect(answers[0].tokens[3].sampling).toBeNull();
    const { stdout } = await runHere([...args, ...more]);
    expect(stdout).toContain('Sampling of token 1');
    expect(stdout).toContain('█');
  });

  it('uses a draft model, and compares with another model', async () => {
    const base = [...LLAMA, '--ids', '5,6,5,6,5', '--max-tokens', '16'];
    const [plain, drafted, other] = [
      await jsonOf(base),
      await jsonOf([...base, '--draft', 'fixtures/hf/llama', '--draft-tokens', '3']),
      await jsonOf([...base, '--against', 'fixtures/hf/llama-linear']),
    ];
    expect(drafted.answers[0].ids).toEqual(plain.answers[0].ids);
    expect(drafted.answers[0].draft).toMatchObject({ tokens: 3 });
    expect(drafted.answers[0].draft.accepted).toEqual(drafted.answers[0].draft.proposed);
    expect(drafted.answers[0].draft.calls).toBeLessThan(8);
    expect(other.answers[0].against.same).toBeLessThan(16);
    expect(other.answers[0].against.partings[0].own.id).toBe(
      other.answers[0].ids[other.answers[0].against.partings[0].position],
    );
  });

  it('continues text, and stops at a string', async () => {
    const whole = await jsonOf([...TINY, 'The model', '--max-tokens', '24', '--temperature', '1']);
    const { text } = whole.answers[0];
    expect(whole.tokenizer).toBe('fixtures/tokenizers/bpe-512.json');
    const { stdout } = await runHere([
      ...TINY,
      'The model',
      '--max-tokens',
      '24',
      '--temperature',
      '1',
      '-q',
    ]);
    expect(stdout).toBe(text.endsWith('\n') ? text : `${text}\n`);
    const stop = text.slice(6, 9);
    const stopped = await jsonOf([
      ...TINY,
      'The model',
      '--max-tokens',
      '24',
      '--temperature',
      '1',
      '--stop',
      stop,
    ]);
    expect(stopped.answers[0]).toMatchObject({
      ended: 'stop string',
      text: text.slice(0, text.indexOf(stop)),
    });
  });

  it('answers each line of a batch file', async () => {
    const lines = file('prompts.jsonl', '{"prompt": "One"}\n\n{"prompt": "Two"}\n');
    const { answers } = await jsonOf([...TINY, '--batch', lines, '--max-tokens', '3']);
    expect(answers.map((each: { prompt: { text: string } }) => each.prompt.text)).toEqual([
      'One',
      'Two',
    ]);
    // Python's json.dumps writes such lines.
    const ids = file('ids.jsonl', '{"ids": [1, 2, 3], "loss": NaN}\n{"ids": [4]}\n');
    const ofIds = await jsonOf([...LLAMA, '--batch', ids, '--max-tokens', '3']);
    expect(ofIds.answers.map((each: { prompt: { ids: number[] } }) => each.prompt.ids)).toEqual([
      [1, 2, 3],
      [4],
    ]);
    for (const wrong of ['[]', '[97]', '[-1]', '["1"]', '[1.5]', '3']) {
      const { code } = await runHere([...LLAMA, '--batch', file('bad', `{"ids": ${wrong}}`), '-q']);
      expect(code).toBe(2);
    }
    const { code, stderr } = await runHere([
      ...TINY,
      '--batch',
      file('bad.jsonl', '{"prompt": "One"}\n{}'),
      '-q',
    ]);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('line 2') });
  });

  it('uses the template, the defaults and the stop tokens of the folder', async () => {
    const model = modelWith('chat', {
      'tokenizer.json': LETTERS,
      'tokenizer_config.json': { bos_token: '<s>', eos_token: { content: '</s>' } },
      'chat_template.jinja':
        '{{ bos_token }}{% for m in messages %}{{ m.role[0] }}:{{ m.content }}{% endfor %}a:',
      'generation_config.json': {
        do_sample: true,
        temperature: 0.6,
        top_p: 0.9,
        eos_token_id: [7],
        num_beams: 4,
      },
    });
    const { answers, sampling, stop, chat, warnings } = await jsonOf([
      ...[
        'generate',
        model,
        'Hi',
        '--chat',
        '--system',
        'No',
        '--max-tokens',
        '4',
        '--top-p',
        '0.8',
      ],
    ]);
    expect(chat).toBe(true);
    expect(answers[0].prompt.text).toBe('<s>s:Nou:Hia:');
    expect(sampling).toMatchObject({ temperature: 0.6, topK: 50, topP: 0.8 });
    expect(sampling.fromFile).toEqual(['temperature 0.6', 'top_k 50']);
    expect(stop.ids).toEqual([7, 2]);
    expect(warnings).toMatchObject([{ path: 'num_beams' }]);

    const messages = [
      { role: 'system', content: 'No' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Oh' },
      { role: 'user', content: 'Hm' },
    ];
    const chats = file('chats.jsonl', JSON.stringify({ messages }));
    const batch = await jsonOf(['generate', model, '--batch', chats, '--max-tokens', '1']);
    expect(batch.answers[0].prompt.text).toBe('<s>s:Nou:Hia:Ohu:Hma:');
    for (const wrong of ['[]', '[{}]', '[{"role": "bot", "content": ""}]', '"Hi"']) {
      const lines = file('bad.jsonl', `{"messages": ${wrong}}`);
      const { code, stderr } = await runHere(['generate', model, '--batch', lines, '-q']);
      expect({ code, stderr }).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('line 1: expected {"prompt"'),
      });
    }
  });

  it.each([
    [
      'a config without weights',
      ['generate', 'configs/hybrid/tiny.yaml', '--ids', '1'],
      '--random',
    ],
    ['no prompt', LLAMA, 'expected a prompt, found none'],
    ['two prompts', [...LLAMA, 'Hi', '--ids', '1'], 'expected one of a prompt'],
    ['no tokenizer', [...LLAMA, 'Hi'], '--ids 1,2,3'],
    ['an unknown id', [...LLAMA, '--ids', '1,97'], 'expected ids from 0 to 96, found 97'],
    ['a negative id', [...LLAMA, '--ids', '1,2,-1'], 'expected ids from 0 to 96, found -1'],
    [
      'a long prompt',
      [...LLAMA, '--ids', Array(64).fill(1).join()],
      'expected a prompt below 64 tokens',
    ],
    [
      // Only its beginning is tokenized.
      'a text many times too long',
      [...TINY, 'x '.repeat(8000)],
      'expected a prompt below 256 tokens (the positions of the model), found more than 4,096',
    ],
    ['a long context', [...LLAMA, '--ids', '1', '--context', '65'], 'expected at most 64 tokens'],
    [
      'another vocabulary',
      [...LLAMA, '--ids', '1', '--draft', 'hybrid/tiny'],
      'expected a model with a vocabulary of 97',
    ],
    [
      'a lookup without a length',
      [...LLAMA, '--ids', '1', '--draft', 'ngram:x'],
      'expected ngram:N',
    ],
    [
      'a temperature below 0',
      [...LLAMA, '--ids', '1', '--temperature', '-1'],
      'expected a number from 0 on',
    ],
    ['a chat without a template', [...TINY, 'Hi', '--chat'], 'expected a chat template'],
  ])('refuses %s', async (_, args, message) => {
    const { code, stderr } = await runHere(args);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });

  it('suggests a fix for a SentencePiece model', async () => {
    const model = modelWith('pieces', { 'tokenizer.model': 'x' });
    const { code, stderr } = await runHere(['generate', model, 'Hi']);
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('save_pretrained'),
    });
  });

  it('prints the answers in docs/generate.md', async () => {
    const page = fs.readFileSync(inPackage('docs/generate.md'), 'utf8');
    const examples = [
      ...page.matchAll(/```console\nminimind (.*)\n```\n\n```text\n([\s\S]*?)```/g),
    ];
    expect(examples.length).toBeGreaterThan(3);
    for (const [, line = '', expected = ''] of examples) {
      // Given logits run no model.
      const device = line.includes('--logits') ? [] : ['--device', 'cpu'];
      const { code, stdout } = await runHere([...line.split(' '), ...device]);
      expect(code).toBe(0);
      const lines = stdout.split('\n').map((each) => each.trimEnd());
      expect(lines).toEqual(expect.arrayContaining(expected.trimEnd().split('\n')));
    }
  });

  it('ends at Ctrl-C with the text so far and its figures', async () => {
    const set = ['--set', 'model.max_position_embeddings=1000000', '--max-tokens', '1000000'];
    const model = ['generate', 'configs/hybrid/tiny.yaml', '--random', '--device', 'cpu'];
    const args = [inPackage('bin/run.js'), ...model, '--ids', '1,2,3', ...set];
    const child = spawn(process.execPath, args, { cwd: inPackage('.') });
    let [stdout, stderr] = ['', ''];
    child.stdout.once('data', () => child.kill('SIGINT'));
    child.stdout.on('data', (part) => {
      stdout += part;
    });
    child.stderr.on('data', (part) => {
      stderr += part;
    });
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect({ code, stdout, stderr }).toEqual({
      code: 130,
      stdout: expect.stringMatching(/^\d[\d ]*\n$/),
      stderr: expect.stringMatching(/\d tokens?.*, stopped by Ctrl-C · prompt/),
    });
  });

  it('reads a prompt from standard input, and writes only the text', () => {
    const { code, stdout } = runCli([...TINY, '-', '--max-tokens', '3', '-q'], {
      input: 'The model\n',
    });
    expect(code).toBe(0);
    expect(stdout.endsWith('\n')).toBe(true);
  });
});
