/** Small configs, tokenizers and ids that are expensive for a naive reader. A new one is a line of the table. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { inPackage, readJson } from '../fixtures.js';
import { commands, oneFile, type Shape } from './shape.js';

const CONFIG = 'configs/minimind/minimind2-small.yaml';
const FIRST_IDS = 'quick-test configs/minimind/minimind2-small.yaml --trace --ids FILE';
const DOCUMENT = commands('validate FILE', 'profile FILE', 'fit FILE', 'compare FILE FILE');
const MODEL = commands('validate FILE', 'profile FILE', 'compare FILE', 'quick-test FILE --trace');

const yaml = (text: (size: number) => string) => oneFile('config.yaml', text);

/** A Hugging Face config with changed values and one more key. */
const config = (values: Readonly<Record<string, unknown>>, more?: (size: number) => string) =>
  oneFile('config.json', (size) => {
    const whole = { ...(readJson('fixtures/hf/llama/config.json') as object), ...values };
    return more
      ? `${JSON.stringify(whole).slice(0, -1)},"x":${more(size)}}`
      : JSON.stringify(whole);
  });

interface TokenizerFile {
  readonly model: { vocab: Record<string, number>; merges: unknown[] };
}

const tokenizer = (change: (file: TokenizerFile, size: number) => void) =>
  oneFile('tokenizer.json', (size) => {
    const file = readJson('fixtures/tokenizers/bpe-512.json') as TokenizerFile;
    change(file, size);
    return JSON.stringify(file);
  });

const many = (size: number, part: (index: number) => string) =>
  Array.from({ length: Math.max(1, Math.floor(size / part(99_999).length)) }, (_, at) => part(at));

/** A pipe without a writer. */
const pipe =
  (name: string): Shape['make'] =>
  (folder) => {
    const file = path.join(folder, name);
    execFileSync('mkfifo', [file]);
    return file;
  };

const ENDLESS: Shape['make'] = (folder) => {
  const file = path.join(folder, 'endless');
  fs.symlinkSync('/dev/zero', file);
  return file;
};

const ONCE = [0];

const documents: readonly (readonly [name: string, make: Shape['make']])[] = [
  ['a YAML of many keys', yaml((size) => many(size, (at) => `k${at}: 1\n`).join(''))],
  ['a YAML of one long key', yaml((size) => `? ${'k'.repeat(size)}\n: 1\n`)],
  ['a YAML of one long text', yaml((size) => `model: "${'k '.repeat(size / 2)}"\n`)],
  ['a YAML of brackets', yaml((size) => `model: ${'['.repeat(size)}`)],
  ['a YAML of dashes', yaml((size) => '- '.repeat(size / 2))],
  ['a YAML of one list', yaml((size) => `model: [${'1,'.repeat(size / 2)}]`)],
  ['a YAML of lines', yaml((size) => '\n'.repeat(size))],
  ['a YAML of comments', yaml((size) => '# x\n'.repeat(size / 4))],
  ['a YAML of documents', yaml((size) => '---\n'.repeat(size / 4))],
  ['a YAML of anchors', yaml((size) => many(size, (at) => `- &a${at} 1\n`).join(''))],
  ['a YAML of aliases', yaml((size) => `a: &a [1]\nb:\n${'- *a\n'.repeat(size / 5)}`)],
  [
    'a YAML of lists held ten times',
    yaml(() => {
      const levels = many(200, (at) =>
        `l${at}: &l${at} [${`*l${at - 1},`.repeat(10)}]\n`.slice(0, 200),
      );
      return `l0: &l0 [1]\n${levels.slice(1).join('')}`;
    }),
  ],
  ['a YAML of one key', yaml((size) => 'model: 1\n'.repeat(size / 9))],
  ['a YAML of merges', yaml((size) => `a: &a {b: 1}\nc:\n${'  <<: *a\n'.repeat(size / 9)}`)],
  ['a YAML of small mappings', yaml((size) => `model: [${'{a: 1},'.repeat(size / 7)}]`)],
  [
    'a YAML of merges in a list',
    yaml((size) => `a: &a {x: 1}\nmodel:\n  <<: [${'*a,'.repeat(size / 3)}]\n`),
  ],
  [
    'a JSON of layers without positions',
    config(
      { model_type: 'smollm3' },
      (size) => `1,"no_rope_layers":[${many(size, () => '1').join()}]`,
    ),
  ],
  ['a YAML of escapes', yaml((size) => `model: "${'\\n'.repeat(size / 2)}"`)],
  ['a JSON of brackets', config({}, (size) => '['.repeat(size) + ']'.repeat(0))],
  ['a JSON of one list', config({}, (size) => `[${many(size, () => '1').join()}]`)],
  ['a JSON of many keys', config({}, (size) => `{${many(size, (at) => `"${at}":1`).join()}}`)],
  ['a JSON of one long text', config({}, (size) => `"${'x'.repeat(size)}"`)],
  ['a JSON of one key', config({}, (size) => `{${many(size, () => '"a":1').join()}}`)],
  [
    'a long list of layers',
    config({}, (size) => `1,"layer_types":[${many(size, () => '"full_attention"').join()}]`),
  ],
];

const models: readonly (readonly [name: string, make: Shape['make']])[] = [
  ['65,537 layers', config({ num_hidden_layers: 65_537 })],
  ['10,000 layers', config({ num_hidden_layers: 10_000 })],
  ['a billion layers', config({ num_hidden_layers: 1e9 })],
  ['a vocabulary of 2^40', config({ vocab_size: 2 ** 40 })],
  ['2^40 positions', config({ max_position_embeddings: 2 ** 40 })],
  [
    '65,536 heads',
    config({ num_attention_heads: 65_536, num_key_value_heads: 65_536, hidden_size: 65_536 * 64 }),
  ],
  [
    '65,537 layers in YAML',
    yaml(() =>
      fs
        .readFileSync(inPackage(CONFIG), 'utf8')
        .replace(/num_hidden_layers: .*/, 'num_hidden_layers: 65537'),
    ),
  ],
];

const TOKENIZE = `compare ${CONFIG} --tokenizer FILE --text fixtures/tokenizers/text.txt`;

const tokenizers: (readonly [name: string, make: Shape['make'], sizes?: readonly number[]])[] = [
  [
    'a tokenizer with an id of a billion',
    tokenizer(({ model }) => {
      model.vocab.far = 1e9;
    }),
    ONCE,
  ],
  [
    'a tokenizer with a negative id',
    tokenizer(({ model }) => {
      model.vocab.far = -1;
    }),
    ONCE,
  ],
  [
    'a tokenizer of many tokens',
    tokenizer(({ model }, size) => {
      for (let at = 512; at < size / 16; at++) model.vocab[`t${at}`] = at;
    }),
  ],
  [
    'a tokenizer of many merges',
    tokenizer(({ model }, size) => {
      for (const merge of many(size, (at) => `a${at} b`)) model.merges.push(merge);
    }),
  ],
  [
    'a tokenizer with a long token',
    tokenizer(({ model }, size) => {
      model.vocab['x'.repeat(size)] = 512;
    }),
  ],
];

const replacing = (pattern: object, content: string) => ({ type: 'Replace', pattern, content });

/** Changes to a tokenizer that make one character long. */
const normalizers: readonly (readonly [name: string, parts: (size: number) => object[]])[] = [
  ['that doubles a character', () => Array(27).fill(replacing({ String: 'e' }, 'ee'))],
  ['that fills gaps', () => Array(3).fill(replacing({ String: '' }, 'b'.repeat(1000)))],
  [
    'that prepends',
    (size) => Array(16).fill({ type: 'Prepend', prepend: 'x'.repeat(Math.ceil(size / 16)) }),
  ],
];

for (const [name, parts] of normalizers) {
  tokenizers.push([
    `a tokenizer ${name}`,
    tokenizer((file, size) => {
      Object.assign(file, { normalizer: { type: 'Sequence', normalizers: parts(size) } });
    }),
  ]);
}
tokenizers.push([
  'a tokenizer with a slow pattern',
  tokenizer((file) => {
    const pattern = { Regex: '([a-z]+ ?)+$' };
    Object.assign(file, { pre_tokenizer: { type: 'Split', pattern, behavior: 'Isolated' } });
  }),
  ONCE,
]);

export const DOCUMENT_SHAPES: readonly Shape[] = [
  ...documents.map(([name, make]) => ({ name, make, commands: DOCUMENT })),
  ...models.map(([name, make]) => ({ name, make, commands: MODEL, sizes: ONCE })),
  ...tokenizers.map(([name, make, sizes]) => ({
    name,
    make,
    commands: commands(TOKENIZE),
    ...(sizes && { sizes }),
  })),
  // Only pipes that the command finds itself: it waits for the writer of a pipe that the user names.
  {
    name: 'a folder with a pipe named config.json',
    sizes: ONCE,
    make: (folder, size) => path.dirname(pipe('config.json')(folder, size)),
    commands: DOCUMENT,
  },
  {
    name: 'a pipe named model.safetensors',
    sizes: ONCE,
    make: pipe('model.safetensors'),
    commands: commands('inspect FILE', `verify ${CONFIG} FILE`),
  },
  {
    name: 'an endless text',
    sizes: ONCE,
    make: ENDLESS,
    commands: commands(
      `compare ${CONFIG} --tokenizer fixtures/tokenizers/bpe-512.json --text FILE`,
      `compare ${CONFIG} --tokenizer FILE --text fixtures/tokenizers/text.txt`,
    ),
  },
  { name: 'endless ids', sizes: ONCE, make: ENDLESS, commands: commands(FIRST_IDS) },
  { name: 'an endless config', sizes: ONCE, make: ENDLESS, commands: DOCUMENT },
  {
    name: 'ids',
    make: oneFile('ids.json', (size) => `[[${many(size, () => '1').join()}]]`),
    commands: commands(FIRST_IDS),
  },
  {
    name: 'rows of ids',
    make: oneFile('ids.json', (size) => `[${many(size, () => '[1]').join()}]`),
    commands: commands(FIRST_IDS),
  },
  {
    name: 'brackets of ids',
    make: oneFile('ids.json', (size) => '['.repeat(size)),
    commands: commands(FIRST_IDS),
  },
];
