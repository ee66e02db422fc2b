import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ChatRenderer, renderChat } from '../../../src/language/tokenizer/chat-template.js';
import { answerToTask } from '../../../src/language/tokenizer/template-process.js';
import { inPackage, readJson } from '../../fixtures.js';
import { sampled } from '../../sampled.js';

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

describe('in a separate process, a template', () => {
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

/** A text of 2^n times a letter, as a variable. */
const long = (name: string, letter: string, n: number) =>
  `{% set ns = namespace(x='${letter}') %}{% for i in range(${n}) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{% set ${name} = ns.x %}`;

/** Templates that take hours or gigabytes, most of them in one native call. */
const HOSTILE: Readonly<Record<string, string>> = {
  'text search': `${long('a', 'a', 26)}${long('b', 'a', 24)}{{ (b + 'b' + b) in a }}`,
  'nested brackets': `${long('a', '[', 26)}{{ a | fromjson }}`,
  'nested objects': `${long('a', '{"a":', 24)}{{ a | fromjson }}`,
  'a long array': `${long('a', '0,', 26)}{{ ('[' + a + '0]') | fromjson | length }}`,
  'a doubled text': `${long('a', 'a', 29)}{{ a | upper }}`,
  'doubled texts that are kept': `${long('a', 'a', 27)}{% set k = namespace(l=[]) %}{% for i in range(1000) %}{% set k.l = k.l + [a | upper] %}{% endfor %}{{ k.l | length }}`,
  'doubled lists': `{% set n = namespace(l=[0]) %}{% for i in range(40) %}{% set n.l = n.l + n.l %}{% endfor %}{{ n.l | length }}`,
  'a split text': `${long('a', 'a,', 27)}{{ a.split(',') | length }}`,
  'a replaced text': `${long('a', 'a', 27)}{{ a.replace('a', 'aaaaaaaa') | length }}`,
  'replacements in a row': `${long('a', 'a', 10)}{% set n = namespace(x='a') %}{% for i in range(9) %}{% set n.x = n.x.replace('a', a) %}{% endfor %}{{ n.x | length }}`,
  'characters of a text': `${long('a', 'a', 27)}{% for c in a %}{{ c }}{% endfor %}`,
  'a list of characters': `${long('a', 'a', 27)}{{ a | list | length }}`,
  'stripped characters': `${long('a', 'a', 27)}{{ a.strip('b') | length }}`,
  'joined lists': `{% set n = namespace(l='a') %}{% for i in range(60) %}{% set n.l = [n.l, n.l] | join(n.l) %}{% endfor %}{{ n.l }}`,
  'sorted lists': `{% set n = namespace(l=range(99999) | list) %}{% for i in range(9) %}{% set n.l = n.l + n.l %}{% endfor %}{{ n.l | sort | length }}`,
  'written lists': `{% set n = namespace(l=[0]) %}{% for i in range(30) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | tojson }}`,
  'an indented text': `${long('a', '\\n', 26)}{{ a | indent(1000) | length }}`,
  'nested loops': '{% for a in range(99999) %}'.repeat(4) + '{% endfor %}'.repeat(4),
  'recursive macros': '{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}',
  'wide numbers': `{% set n = namespace(s='') %}{% for i in range(99999) %}{% for j in range(99999) %}{% set n.s = n.s + '%f' | format(i) %}{% endfor %}{% endfor %}{{ n.s }}`,
  'ranges that are kept': `{% set n = namespace(l=[]) %}{% for i in range(99999) %}{% set n.l = n.l + [range(99999)] %}{% endfor %}{{ n.l | length }}`,
  'repeated texts': `{% set n = namespace(x='a') %}{% for i in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x | length }}`,
  'repetition by a number': `${long('a', 'a', 20)}{{ (a * 99999) * 99999 }}`,
  'indented JSON': `{% set n = namespace(l=[0]) %}{% for i in range(24) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | tojson(indent=9) }}`,
  'JSON indented far': `{{ (range(99999) | list) | tojson(indent=99999) }}`,
  'nested lists as text': `{% set n = namespace(l=[0]) %}{% for i in range(30) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}`,
  'slices of a text': `${long('a', 'a', 27)}{% for i in range(99999) %}{{ a[1:] | length }}{{ a[::-1] | length }}{% endfor %}`,
  'slices of lists': `{% set n = namespace(l=range(99999) | list) %}{% for i in range(99999) %}{% set n.l = n.l[1:] + n.l[:-1] %}{% endfor %}{{ n.l | length }}`,
  'joined ranges': `{% for i in range(99999) %}{{ range(99999) | join('aaaaaaaaaaaaaaaa') }}{% endfor %}`,
  'formatted digits': `{% for i in range(99999) %}{{ '%99f%99f%99f' | format(i, i, i) * 1 }}{% for j in range(99999) %}{{ '%.99f' | format(j) }}{% endfor %}{% endfor %}`,
  'filters in a row': `{% for i in range(99999) %}{{ range(99999) | map('string') | list | sort | unique | list | length }}{% endfor %}`,
  'sorted by an attribute': `{% for i in range(99999) %}{{ messages | list | sort(attribute='content') | length }}{% for j in range(99999) %}{% endfor %}{% endfor %}`,
  'macros in turn':
    '{% macro f(n) %}{{ g(n) }}{{ g(n) }}{% endmacro %}{% macro g(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}',
  'macros that double': `{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% else %}aaaa{% endif %}{% endmacro %}{{ f(40) }}`,
  'callers in callers': `{% macro f(n) %}{% for i in range(99999) %}{{ caller() }}{% endfor %}{% endmacro %}{% call f(1) %}{% call f(1) %}{% call f(1) %}a{% endcall %}{% endcall %}{% endcall %}`,
  'keys of dicts': `{% set n = namespace(d={}) %}{% for i in range(99999) %}{% for j in range(99999) %}{% set n.d = dict(n.d, a=i) %}{% for k, v in {'a': i}.items() %}{{ k }}{% endfor %}{% endfor %}{% endfor %}`,
  'a long answer': `${long('a', 'a', 25)}{{ a }}`,
};

describe('a hostile template', () => {
  it.each(sampled(Object.entries(HOSTILE), 3))('is stopped: %s', async (_, text) => {
    await expect(renderChat(template(text), MESSAGES, TOKENS, 400)).rejects.toThrow(
      /takes (more than 0.4 s|too much memory) and was stopped|is not valid/,
    );
  });

  it('stops in a series of chats, and all later ones', async () => {
    const series = new ChatRenderer(template(HOSTILE['doubled lists'] ?? ''), TOKENS);
    for (const _ of [1, 2]) {
      await expect(series.render([{ messages: MESSAGES }])).rejects.toThrow('too much memory');
    }
    series.close();
  });
});
