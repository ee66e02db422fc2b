import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderChat } from '../../src/tokenizer/chat-template.js';
import { answerToTask } from '../../src/tokenizer/template-worker.js';
import { inPackage, readJson } from '../fixtures.js';

/** Folder of templates with their expected texts. */
const FOLDER = process.env.MINIMIND_TEST_TEMPLATES ?? inPackage('fixtures/chat-templates');

type Rendered = string | { readonly raised: string };

const EXPECTED: Record<string, Record<string, Rendered>> = JSON.parse(
  fs.readFileSync(`${FOLDER}/expected.json`, 'utf8'),
);
const CHATS = readJson<Record<string, Record<string, unknown>>>(
  'fixtures/chat-templates/chats.json',
);
const TOKENS = { bos_token: '<s>', eos_token: '</s>', pad_token: '<pad>', unk_token: '<unk>' };

/** Values that transformers gives a template, with the date of the expected texts. */
const valuesOf = (chat: Record<string, unknown>) => ({
  ...TOKENS,
  tools: null,
  documents: null,
  add_generation_prompt: true,
  strftime_now: (format: string) =>
    format
      .replaceAll('%d', '26')
      .replaceAll('%b', 'Jul')
      .replaceAll('%B', 'July')
      .replaceAll('%Y', '2024'),
  ...chat,
});

describe('chat templates', () => {
  it('have at least twenty cases', () => {
    expect(Object.keys(readJson('fixtures/chat-templates/expected.json')).length).toBeGreaterThan(
      19,
    );
  });

  it.each(Object.keys(EXPECTED))('are rendered as by Jinja in Python: %s', (name) => {
    const template = fs.readFileSync(`${FOLDER}/${name}.jinja`, 'utf8');
    for (const [chat, values] of Object.entries(CHATS)) {
      const answer = answerToTask({ template, values: valuesOf(values) });
      const rendered = 'text' in answer ? answer.text : answer;
      const expected = EXPECTED[name]?.[chat];
      // Messages of Python's own errors name Python types.
      if (typeof expected === 'object' && 'error' in answer) continue;
      expect(rendered, chat).toEqual(expected);
    }
  });
});

const template = (text: string) => ({ text, file: 'tokenizer_config.json' });
const MESSAGES = [{ role: 'user', content: 'Hello' }] as const;

describe('in a separate thread, a template', () => {
  it('gets messages and special tokens', async () => {
    const text =
      '{{ bos_token }}{% for each in messages %}{{ each.role }}: {{ each.content }}{% endfor %}' +
      '{% if add_generation_prompt %}!{% endif %}';
    expect(await renderChat(template(text), MESSAGES, TOKENS)).toBe('<s>user: Hello!');
  });

  it('is stopped when it does not end', async () => {
    const loops = '{% for a in range(99999) %}'.repeat(3) + '{% endfor %}'.repeat(3);
    await expect(renderChat(template(loops), MESSAGES, TOKENS, 300)).rejects.toThrow(
      'the chat template of tokenizer_config.json takes more than 0.3 s and was stopped',
    );
  });

  it.each([
    ['{{ raise_exception("no system role") }}', 'refuses the messages: no system role'],
    ['{% if %}', 'is not valid'],
    ['{{ messages | unknown_filter }}', 'is not valid'],
  ])('gives a user error: %s', async (text, message) => {
    await expect(renderChat(template(text), MESSAGES, {})).rejects.toThrow(message);
  });
});
