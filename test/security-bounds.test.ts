/** The bounds that SECURITY.md states are those of the code, and what shows them exists. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CHECKPOINT_SHAPES } from './cost/checkpoint-shapes.js';
import { DISTRIBUTED_SHAPES } from './cost/distributed-shapes.js';
import { DOCUMENT_SHAPES } from './cost/document-shapes.js';
import { GRAPH_SHAPES } from './cost/graph-shapes.js';
import { TEXT_SHAPES } from './cost/text-shapes.js';
import { inPackage } from './fixtures.js';

const read = (name: string) => fs.readFileSync(inPackage(name), 'utf8');

const ROWS = (/^## Bounds\n(.*?)^## /ms.exec(read('SECURITY.md'))?.[1] ?? '')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.split('|').map((cell) => cell.trim()));

/** Bound of each row, and the constant or key in the code that has it. */
const BOUNDS: readonly (readonly [bound: string, file: string, name: string])[] = [
  ['512 levels', 'src/base/text/json.ts', 'depth'],
  ['2,000,000 lists and objects', 'src/base/text/json.ts', 'lists'],
  ['1,000,000 keys', 'src/base/text/json.ts', 'keys'],
  ['1,000,000 words `NaN` and `Infinity`', 'src/base/text/json.ts', 'words'],
  ['1,000,000 bytes', 'src/config/source.ts', 'MAX_DOCUMENT_BYTES'],
  ['100 levels', 'src/config/syntax/yaml.ts', 'MAX_DEPTH'],
  ['150,000 parts of its syntax', 'src/config/syntax/yaml.ts', 'MAX_NODES'],
  ['1,000,000 values behind aliases', 'src/config/syntax/yaml.ts', 'MAX_VALUES'],
  ['50 mistakes that are listed', 'src/config/document-problems.ts', 'MAX_PROBLEMS'],
  ['100,000,000 bytes', 'src/language/tokenizer/tokenizer.ts', 'MAX_TOKENIZER_BYTES'],
  ['600,000 tokens, or a fortieth of the file', 'src/language/tokenizer/parse.ts', 'MAX_TOKENS'],
  ['8 levels', 'src/language/tokenizer/parts.ts', 'depth'],
  ['1,000 parts', 'src/language/tokenizer/parts.ts', 'parts'],
  ['4,000 characters', 'src/language/tokenizer/parts.ts', 'patternCharacters'],
  ['16 times', 'src/language/tokenizer/parts.ts', 'MAX_GROWTH'],
  [
    '1,200,000 characters, or a twelfth of the file',
    'src/language/tokenizer/token-trie.ts',
    'MOST_NODES',
  ],
  ['64 lengths', 'src/language/tokenizer/token-trie.ts', 'USUAL_LENGTHS'],
  ['1,500 ms', 'src/language/tokenizer/tokenizer.ts', 'BASE_LIMIT'],
  ['20,000,000 bytes', 'src/language/tokenizer/model-text.ts', 'MAX_CONFIG_BYTES'],
  ['5,000 ms', 'src/language/tokenizer/chat-template.ts', 'TIME_LIMIT'],
  ['60,000 ms', 'src/language/tokenizer/chat-template.ts', 'SERIES_LIMIT'],
  ['280,000,000 bytes', 'src/language/tokenizer/template-process.ts', 'MEMORY_LIMIT'],
  ['16,000,000 characters', 'src/language/tokenizer/template-process.ts', 'MOST_TEXT'],
  ['1,500 ms', 'src/checkpoint/adapter/adapter-modules.ts', 'TIME_LIMIT'],
  ['32,768 characters', 'src/checkpoint/adapter/adapter-modules.ts', 'MOST_CHARACTERS'],
  ['4,194,304 bytes', 'src/checkpoint/adapter/adapter-config.ts', 'MAX_BYTES'],
  [
    '8 times the bytes of its files, and 64 MiB more',
    'src/checkpoint/checkpoint-rules.ts',
    'mostTensorBytes',
  ],
  ['1,048,576 elements', 'src/checkpoint/torch/state-dict/tensors.ts', 'MAX_EXPANDED'],
  ['67,108,864 bytes', 'src/checkpoint/torch/pickle/pickle-machine.ts', 'MAX_PICKLE_BYTES'],
  ['90,000,000 bytes', 'src/checkpoint/torch/pickle/pickle-machine.ts', 'SMALL_BUDGET'],
  ['640,000,000 bytes', 'src/checkpoint/torch/pickle/pickle-machine.ts', 'MAX_BYTES'],
  ['1,048,576 bytes', 'src/checkpoint/torch/pickle/pickle-machine.ts', 'MAX_TEXT_BYTES'],
  ['16,777,216 bytes', 'src/checkpoint/torch/zip/zip-end.ts', 'MAX_DIRECTORY_BYTES'],
  ['100,000,000 bytes', 'src/checkpoint/safetensors/read-safetensors.ts', 'MAX_HEADER_BYTES'],
  [
    '100,000 tensors; 200,000 of a larger one',
    'src/checkpoint/safetensors/read-safetensors.ts',
    'MAX_TENSORS',
  ],
  ['65,536 bytes', 'src/checkpoint/safetensors/read-safetensors.ts', 'MAX_KEY_BYTES'],
  ['12,000 tensors; 200,000 of a larger one', 'src/checkpoint/gguf/read-gguf.ts', 'MAX_TENSORS'],
  ['4,096 matrices', 'src/input/model-input/gguf/gguf-weights.ts', 'MOST_MATRICES'],
  ['12,000 entries; 200,000 of a larger one', 'src/checkpoint/gguf/imatrix.ts', 'MOST_ENTRIES'],
  ['100,000 keys', 'src/checkpoint/gguf/read-gguf.ts', 'MAX_KEYS'],
  ['16,777,216 bytes of strings', 'src/checkpoint/gguf/read-gguf.ts', 'MAX_STRING_BYTES'],
  ['8,000,000 strings in arrays', 'src/checkpoint/gguf/read-gguf.ts', 'MAX_STRINGS'],
  ['12,000 tensors; 200,000 of a larger one', 'src/checkpoint/onnx/read-onnx.ts', 'MAX_TENSORS'],
  ['500,000 nodes', 'src/checkpoint/onnx/read-onnx.ts', 'MAX_NODES'],
  ['5,000,000 fields', 'src/checkpoint/onnx/proto-scanner.ts', 'MAX_FIELDS'],
  ['32 graphs in each other', 'src/checkpoint/onnx/read-onnx.ts', 'MAX_DEPTH'],
  ['67,108,864 bytes of names and texts', 'src/checkpoint/onnx/proto-scanner.ts', 'MAX_KEPT_BYTES'],
  ['5,000,000 comparisons', 'src/checkpoint/distributed/sharded-tensor.ts', 'MAX_COMPARISONS'],
  ['32,000,000 bytes', 'src/checkpoint/shards/index-file.ts', 'MAX_INDEX_BYTES'],
  ['400,000 names', 'src/checkpoint/shards/index-file.ts', 'MAX_KEYS'],
  ['4,000 shards', 'src/checkpoint/shards/index-file.ts', 'MAX_SHARDS'],
  ['50,000 tensors', 'src/checkpoint/shards/open-shards.ts', 'MAX_SMALL_TENSORS'],
  ['100,000 values', 'src/checkpoint/torch/state-dict/state-dict.ts', 'MAX_CONTENT'],
  ['100 times the packed bytes', 'src/language/data/files/packing.ts', 'ratio'],
  ['134,217,728 bytes', 'src/language/data/files/zstd-frames.ts', 'MOST_WINDOW_BYTES'],
  ['8,000,000, and 100 for each byte', 'src/language/data/files/parquet-process.ts', 'MOST_VALUES'],
  ['8,000,000 bytes', 'src/language/data/lines.ts', 'MOST_LINE_BYTES'],
  ['24,000,000 bytes', 'src/input/hub/hub-client.ts', 'MAX_LISTING_BYTES'],
  ['200,000 files', 'src/input/hub/hub-client.ts', 'MAX_FILES'],
  ['8 redirects', 'src/input/hub/http-client.ts', 'MAX_REDIRECTS'],
  ['1,073,741,824 bytes', 'src/input/hub/remote-folder.ts', 'MAX_HEADERS'],
  ['2,000 characters', 'src/report/kit/error-json.ts', 'MOST_MESSAGE'],
];

/** Numbers in the value of a constant, in the order of the code. */
function numbersOf(file: string, name: string): number[] {
  const value = new RegExp(`\\b${name}\\b(?: =|:)(?: \\([^=]*=>)?([^;\\n]*[\\d][^;\\n]*)`).exec(
    read(file),
  )?.[1];
  const isKey = value !== undefined && /^[a-z]/.test(name) && value.includes(',');
  const parts = (isKey ? value.split(',')[0] : value)?.match(
    /\d[\d_]*(?:e\d+)?(?: \*\*? \d[\d_]*)*/g,
  );
  return (parts ?? []).map((part) =>
    part
      .replaceAll('_', '')
      .split(' * ')
      .map((factor) => factor.split(' ** ').map(Number))
      .map(([base = 0, power = 1]) => base ** power)
      .reduce((product, factor) => product * factor, 1),
  );
}

/** Numbers of a text of people, as in `8 times the bytes of its files, and 64 MiB more`. */
const stated = (text: string) =>
  [...text.matchAll(/(\d[\d,]*\d|\d)( MiB)?/g)].map(
    ([, digits = '', mebibytes]) => Number(digits.replaceAll(',', '')) * (mebibytes ? 2 ** 20 : 1),
  );

const SHAPES = [
  ...[...CHECKPOINT_SHAPES, ...DISTRIBUTED_SHAPES, ...GRAPH_SHAPES],
  ...[...DOCUMENT_SHAPES, ...TEXT_SHAPES],
].map(({ name }) => name);

describe('bounds in SECURITY.md', () => {
  it('are those that are checked here', () => {
    expect(ROWS.map((row) => row[2])).toEqual(BOUNDS.map(([bound]) => bound));
  });

  it.each(BOUNDS)('are those of the code: %s in %s, %s', (bound, file, name) => {
    const numbers = numbersOf(file, name);
    expect(numbers.slice(0, stated(bound).length)).toEqual(stated(bound));
  });

  it.each(ROWS.map((row) => [row[3]?.replaceAll('`', '') ?? '']))('are shown by %s', (command) => {
    const [, shape] = /^npm run test:cost -- '(.+)'$/.exec(command) ?? [];
    if (shape !== undefined) {
      expect(SHAPES.filter((name) => new RegExp(shape).test(name))).not.toEqual([]);
      return;
    }
    const [, place = '', title] = /^npx vitest run (\S+)(?: -t '(.+)')?$/.exec(command) ?? [];
    expect(fs.existsSync(inPackage(place)), place).toBe(true);
    if (title !== undefined) expect(read(place)).toContain(title);
  });
});
