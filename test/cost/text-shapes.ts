/** Small files next to a model that are expensive for a naive reader: tokenizers, templates and their settings. */
import fs from 'node:fs';
import path from 'node:path';
import { inPackage, readJson } from '../fixtures.js';
import { commands, oneFile, type Shape } from './shape.js';

const CONFIG = 'configs/minimind/minimind2-small.yaml';
const TOKENIZE = commands(`compare ${CONFIG} --tokenizer FILE --text fixtures/tokenizers/text.txt`);

const many = (size: number, part: (index: number) => string) =>
  Array.from({ length: Math.max(1, Math.floor(size / (part(99_999).length + 1))) }, (_, at) =>
    part(at),
  );
const nested = (size: number, open: string, close: string) => {
  const levels = Math.max(1, Math.floor(size / (open.length + close.length)));
  return open.repeat(levels) + close.repeat(levels);
};

/** A tokenizer.json with a member in its JSON, or in place of the one of that name. */
const tokenizer = (name: string, json: (size: number) => string): Shape['make'] =>
  oneFile('tokenizer.json', (size) => {
    const { [name]: _, ...rest } = readJson('fixtures/tokenizers/bpe-512.json') as Record<
      string,
      unknown
    >;
    return `${JSON.stringify(rest).slice(0, -1)},"${name}":${json(size)}}`;
  });

const sequences = (key: string) => (size: number) =>
  nested(size, `{"type":"Sequence","${key}":[`, ']}');
const added = (content: (at: number) => string) => (size: number) =>
  `[${many(
    size,
    (at) =>
      `{"id":${512 + at},"content":"${content(at)}","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}`,
  )}]`;

const tokenizers: readonly (readonly [name: string, make: Shape['make']])[] = [
  ['nested normalizers', tokenizer('normalizer', sequences('normalizers'))],
  ['nested pre-tokenizers', tokenizer('pre_tokenizer', sequences('pretokenizers'))],
  ['nested decoders', tokenizer('decoder', sequences('decoders'))],
  ['nested post-processors', tokenizer('post_processor', sequences('processors'))],
  ['brackets', tokenizer('x', (size) => nested(size, '[', ']'))],
  ['open brackets', tokenizer('x', (size) => '['.repeat(size))],
  [
    'many added tokens',
    tokenizer(
      'added_tokens',
      added((at) => `<${at}>`),
    ),
  ],
  [
    'added tokens that begin alike',
    tokenizer(
      'added_tokens',
      added((at) => `${'a'.repeat(50)}${at}`),
    ),
  ],
  [
    'many normalizers',
    tokenizer(
      'normalizer',
      (size) => `{"type":"Sequence","normalizers":[${many(size, () => '{"type":"NFC"}')}]}`,
    ),
  ],
  [
    'many pre-tokenizers',
    tokenizer(
      'pre_tokenizer',
      (size) =>
        `{"type":"Sequence","pretokenizers":[${many(size, () => '{"type":"Whitespace"}')}]}`,
    ),
  ],
  [
    'a long pattern',
    tokenizer(
      'pre_tokenizer',
      (size) =>
        `{"type":"Split","pattern":{"Regex":"${'a|'.repeat(size / 2)}b"},"behavior":"Isolated"}`,
    ),
  ],
  [
    'a pattern of groups',
    tokenizer(
      'pre_tokenizer',
      (size) =>
        `{"type":"Split","pattern":{"Regex":"${nested(size, '(', ')')}"},"behavior":"Isolated"}`,
    ),
  ],
  [
    'long merges',
    oneFile('tokenizer.json', (size) => {
      const file = readJson('fixtures/tokenizers/bpe-512.json') as { model: { merges: unknown } };
      file.model.merges = many(size, (at) => `${'a'.repeat(50)}${at} ${'b'.repeat(50)}`);
      return JSON.stringify(file);
    }),
  ],
  [
    'a Unigram of many tokens',
    oneFile('tokenizer.json', (size) => {
      const vocab = many(size, (at) => `["t${at}",-1.5]`);
      return `{"version":"1.0","added_tokens":[],"model":{"type":"Unigram","unk_id":0,"vocab":[${vocab}]}}`;
    }),
  ],
];

/** A folder of a model with one of its files replaced. */
const modelWith =
  (name: string, text: (size: number) => string): Shape['make'] =>
  (place, size) => {
    const folder = path.join(place, 'model');
    fs.cpSync(inPackage('fixtures/hf/llama'), folder, { recursive: true });
    fs.cpSync(inPackage('fixtures/tokenizers/bpe-512.json'), path.join(folder, 'tokenizer.json'));
    fs.writeFileSync(path.join(folder, name), text(size));
    return folder;
  };

const SETTINGS = ['tokenizer_config.json', 'generation_config.json', 'config.json'];
const settings: readonly (readonly [name: string, text: (size: number) => string])[] = [
  ['open brackets', (size) => '['.repeat(size)],
  ['brackets', (size) => `{"a":${nested(size, '[', ']')}}`],
  ['braces', (size) => nested(size, '{"a":', '}').replace('}', '1}')],
  ['lists', (size) => `{"a":[${'[],'.repeat(size / 3)}[]]}`],
  ['numbers', (size) => `{"a":[${'1,'.repeat(size / 2)}1]}`],
  ['keys', (size) => `{${many(size, (at) => `"${at}":1`)}}`],
];

/** Templates that are long. Those that run long are bounded by the process that runs them. */
const templates: readonly (readonly [name: string, text: (size: number) => string])[] = [
  ['text', (size) => 'x'.repeat(size)],
  ['expressions', (size) => '{{ 1 }}'.repeat(size / 7)],
  ['open blocks', (size) => '{% if 1 %}'.repeat(size / 10)],
  ['nested blocks', (size) => nested(size, '{% if 1 %}', '{% endif %}')],
  ['brackets', (size) => `{{ ${nested(size, '(', ')')} }}`],
  ['additions', (size) => `{{ 1${'+1'.repeat(size / 2)} }}`],
  ['comments', (size) => '{# #}'.repeat(size / 5)],
];

const GENERATE = commands('generate FILE hello --chat --max-tokens 1');

export const TEXT_SHAPES: readonly Shape[] = [
  ...tokenizers.map(([name, make]) => ({
    name: `a tokenizer with ${name}`,
    make,
    commands: TOKENIZE,
  })),
  ...SETTINGS.flatMap((file) =>
    settings.map(([name, text]) => ({
      name: `a ${file} of ${name}`,
      make: modelWith(file, text),
      commands: GENERATE,
    })),
  ),
  ...templates.map(([name, text]) => ({
    name: `a template of ${name}`,
    make: modelWith('tokenizer_config.json', (size) =>
      JSON.stringify({ chat_template: text(size) }),
    ),
    commands: GENERATE,
  })),
];
