import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../src/config/document.js';
import { toProblems } from '../../src/config/document-problems.js';
import { line, problemsOfReading, userError } from './support.js';

const parsed = (text: string | Uint8Array) => parseDocument(text, 'a.yaml').value;
const problemsOf = (text: string) =>
  problemsOfReading(() => parseDocument(text, 'a.yaml')).map(line);

describe('a .json file', () => {
  // Python's json, which transformers reads a config.json with, refuses all of these.
  it.each([
    [
      '{"a": 1,}',
      'config.json:1:8 error: a comma follows the last value, which JSON does not allow → remove the comma',
    ],
    ['{"a": [1, 2, ], "b": 1}', 'config.json:1:12 error: a comma follows the last value'],
    [
      '{"a": 1} # note',
      'config.json:1:10 error: a comment, which JSON does not allow → remove the comment',
    ],
    ['{"a": True}', 'config.json:1:7 error: "True" is not JSON → write true'],
    ['{"a": None}', 'config.json:1:7 error: "None" is not JSON → write null'],
    ["{'a': 1}", 'config.json:1:2 error: "\'a\'" is not JSON: texts and keys need double quotes'],
    ['a: 1', 'config.json:1:1 error: "a" is not JSON'],
  ])('is JSON: %s', (text, problem) => {
    const { found } = parseDocument(text, 'config.json');
    expect(toProblems(found).problems.map(line)).toEqual([expect.stringContaining(problem)]);
    expect(parseDocument(text, 'config.yaml').found).toEqual([]);
  });

  it.each([
    '{"a": "b, }", "c": "#"}',
    '{"a": NaN, "b": -Infinity}',
    '\uFEFF{"a": [1, {}], "b": 1E-5}',
  ])('can be %s', (text) => {
    expect(parseDocument(text, 'config.json').found).toEqual([]);
  });
});

describe('parseDocument', () => {
  it.each([
    ['1e-5', 1e-5],
    ['1E5', 1e5],
    ['0x10', 16],
    ['0o17', 15],
    ['017', 17],
    ['-0', -0],
    ['.inf', Number.POSITIVE_INFINITY],
    ['-.inf', Number.NEGATIVE_INFINITY],
    ['.nan', Number.NaN],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['-9007199254740991', Number.MIN_SAFE_INTEGER],
    ['1e20', 1e20],
    ['"32"', '32'],
    ["'32'", '32'],
    ['!!str 32', '32'],
    ['yes', 'yes'],
    ['1_000', '1_000'],
    ['1:30', '1:30'],
    ['2024-01-01', '2024-01-01'],
    ['True', true],
    ['~', null],
    ['', null],
    ['[1, [a, {b: c}]]', [1, ['a', { b: 'c' }]]],
    ['"\\u00e9\\ud83d\\ude00"', 'é😀'],
  ])('reads %s', (text, value) => {
    expect(parsed(`a: ${text}`)).toStrictEqual({ a: value });
  });

  it('reads JSON', () => {
    const value = { a: [1, 2.5, null, true, 'x/"\n'], b: { '': {} }, '<<': 1 };
    expect(parsed(JSON.stringify(value))).toStrictEqual(value);
    expect(parsed(JSON.stringify(value, null, '\t'))).toStrictEqual(value);
  });

  it('keeps the text of keys that are not strings', () => {
    expect(parsed('1: a\n1.0: b\ntrue: c\nnull: d\n')).toStrictEqual({
      1: 'a',
      '1.0': 'b',
      true: 'c',
      null: 'd',
    });
  });

  it('treats __proto__ like any other name', () => {
    const value = parsed('__proto__: {polluted: 1}\nconstructor: 2\n');
    expect(Object.keys(value)).toStrictEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect('polluted' in value).toBe(false);
  });
});

describe('parseDocument with aliases and merges', () => {
  it('uses the last anchor before an alias', () => {
    const text = 'a: &x 1\nb: *x\nc: &x [2, *x]\n';
    expect(problemsOf(text)).toStrictEqual([
      'a.yaml:3:11 error: the alias "*x" is inside the value that it names → a value cannot contain itself: remove the alias',
    ]);
    expect(parsed('a: &x 1\nb: *x\nc: &x 2\nd: *x\n')).toStrictEqual({ a: 1, b: 1, c: 2, d: 2 });
    expect(parsed('a: &x [&x 1, *x]\nb: *x\n')).toStrictEqual({ a: [1, 1], b: 1 });
    expect(parsed('&k a: 1\nb: *k\n')).toStrictEqual({ a: 1, b: 'a' });
  });

  it('merges mappings, with priority for own keys', () => {
    const text =
      'x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {c: 5, <<: [*x, *y]}\nw:\n  <<: *y\n  d: 6\n';
    const value = parsed(text);
    expect(value.z).toStrictEqual({ c: 5, a: 1, b: 2 });
    expect(value.w).toStrictEqual({ d: 6, b: 3, c: 4 });
  });

  it('locates a merged value at its source, and an aliased value at the alias', () => {
    const document = parseDocument('x: &x\n  a: [1]\ny:\n  <<: *x\nz: *x\n', 'a.yaml');
    expect(document.locate(['y', 'a', 0])).toMatchObject({ line: 2, column: 7 });
    expect(document.locate(['y', 'a'], 'key')).toMatchObject({ line: 2, column: 3 });
    expect(document.locate(['z'])).toMatchObject({ line: 5, column: 4 });
    expect(document.locate(['z', 'a'])).toMatchObject({ line: 2, column: 6 });
  });

  it('merges __proto__ without harm', () => {
    const { y } = parsed('x: &x {__proto__: {polluted: 1}}\ny: {<<: *x}\n');
    expect(Object.keys(y as object)).toStrictEqual(['__proto__']);
    expect('polluted' in (y as object)).toBe(false);
  });

  it.each([
    [
      '<<: 3',
      'a.yaml:1:5 error: << must name a mapping, or a list of mappings, but is 3 → write "<<: *name", with the mapping marked as "&name" above',
    ],
    [
      'b: &base {}\na: *bsae',
      'a.yaml:2:4 error: no anchor "&bsae" precedes this alias → did you mean "*base"?',
    ],
    [
      'a: *.py',
      'a.yaml:1:4 error: no anchor "&.py" precedes this alias → put a text that begins with * in quotes',
    ],
    [
      'a: &m {<<: *m}',
      'a.yaml:1:12 error: the alias "*m" is inside the value that it names → a value cannot contain itself: remove the alias',
    ],
  ])('refuses %s', (text, problem) => {
    expect(problemsOf(text)).toStrictEqual([problem]);
  });
});

describe('locate', () => {
  const text = '# head\nmodel:\n  a: 1\n  "b c": {x: [10, 20]}\n  é😀: z\nnothing:\n';
  const document = parseDocument(text, 'a.yaml');

  it.each([
    [['model', 'a'], 'value', 3, 6],
    [['model', 'a'], 'key', 3, 3],
    [['model', 'b c', 'x', 1], 'value', 4, 19],
    [['model', 'b c', 'x', '1'], 'value', 4, 19],
    [['model', 'é😀'], 'value', 5, 7],
    [['model'], 'value', 3, 3],
    [['model'], 'key', 2, 1],
    [['nothing'], 'value', 6, 9],
    [[], 'value', 2, 1],
    [['model', 'missing', 'deep'], 'value', 2, 1],
    [['model', 'b c', 'x', 7], 'value', 4, 11],
    [['missing'], 'key', 2, 1],
    [['__proto__'], 'value', 2, 1],
  ] as const)('finds the position of %j (%s)', (path, of, atLine, column) => {
    expect(document.locate(path, of)).toMatchObject({ file: 'a.yaml', line: atLine, column });
  });

  it('quotes the line, truncated around the column', () => {
    expect(document.locate(['model', 'a']).excerpt).toBe('  a: 1');
    const long = parseDocument(
      `{a: "${'x'.repeat(300)}", b: 1, c: "${'y'.repeat(300)}"}`,
      'a.json',
    );
    const excerpt = long.locate(['b']).excerpt ?? '';
    expect(excerpt).toContain('", b: 1, c: "');
    expect(excerpt.length).toBeLessThanOrEqual(102);
    expect(excerpt).toMatch(/^…x+.*y+…$/);
  });

  it('escapes control characters', () => {
    const evil = parseDocument('a: "\u202e\u009b31m"\n', 'a.yaml');
    expect(evil.locate(['a']).excerpt).toBe('a: "\\u202e\\u009b31m"');
  });
});

describe('parseDocument of bytes', () => {
  const text = 'a: é😀\nb: 2\n';
  const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le');

  it.each([
    ['UTF-8', Buffer.from(text)],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${text}`)],
    ['UTF-16 LE', utf16],
    ['UTF-16 BE', Buffer.from(utf16).swap16()],
    ['CRLF', Buffer.from(text.replaceAll('\n', '\r\n'))],
    ['CR', Buffer.from(text.replaceAll('\n', '\r'))],
  ])('reads %s', (_, bytes) => {
    const document = parseDocument(bytes, 'a.yaml');
    expect(document.value).toStrictEqual({ a: 'é😀', b: 2 });
    expect(document.locate(['b'])).toMatchObject({ line: 2, column: 4, excerpt: 'b: 2' });
  });

  it.each([
    [
      'UTF-16 without a byte order mark',
      Buffer.from(text, 'utf16le'),
      'a is not a text file: it contains NUL bytes',
    ],
    ['NUL', Buffer.from('a: \0'), 'a is not a text file: it contains NUL bytes'],
    [
      'Latin-1',
      Buffer.from('a: 1\nb: é\n', 'latin1'),
      'a is not UTF-8 text: byte 8, on line 2, is wrong',
    ],
    [
      'half a character',
      Buffer.from('a: é').subarray(0, 4),
      'a is not UTF-8 text: byte 3, on line 1, is wrong',
    ],
    [
      'lone surrogate',
      Buffer.from([0xff, 0xfe, 0, 0xd8, 0x61, 0]),
      'a begins as UTF-16 text, but is not',
    ],
    ['odd UTF-16 LE', Buffer.from([0xff, 0xfe, 0x61]), 'a begins as UTF-16 text, but is not'],
    [
      'odd UTF-16 BE',
      Buffer.from([0xfe, 0xff, 0x00, 0x61, 0x61]),
      'a begins as UTF-16 text, but is not',
    ],
  ])('refuses %s', (_, bytes, message) => {
    const error = userError(() => parseDocument(bytes, 'a'));
    expect(error).toMatchObject({ code: 'refused-file', message });
  });

  it('accepts U+FFFD in the text', () => {
    expect(parsed(Buffer.from('a: \ufffd'))).toStrictEqual({ a: '\ufffd' });
  });
});
