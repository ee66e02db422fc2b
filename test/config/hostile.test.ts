import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkDocument } from '../../src/config/check-document.js';
import { parseDocument } from '../../src/config/document.js';
import { invalidConfig } from '../../src/config/document-problems.js';
import { MAX_DOCUMENT_BYTES } from '../../src/config/source.js';
import { isWhole, sampled } from '../sampled.js';
import { line, problemsOfReading, userError } from './support.js';

/** Characters of a document. With all, a quadratic parser would take minutes. */
const SIZE = isWhole ? 125_000 : 50_000;

const repeated = (text: string, before = '', after = '') =>
  before + text.repeat(Math.floor(SIZE / text.length)) + after;

/** Numbered pieces up to `size` characters. */
function numbered(piece: (i: number) => string, size = SIZE): string {
  const pieces: string[] = [];
  for (let length = 0, i = 0; length < size; i++) {
    const next = piece(i);
    pieces.push(next);
    length += next.length;
  }
  return pieces.slice(0, -1).join('');
}

const TOO_DEEP = 'nested deeper than 100 levels';
const firstMessage = (text: string) =>
  problemsOfReading(() => parseDocument(text, 'f'))[0]?.message;

describe('nesting', () => {
  const nested = [
    ['lists in brackets', repeated('[', 'a: ')],
    ['closed lists', `a: ${'['.repeat(SIZE / 2)}${']'.repeat(SIZE / 2)}`],
    ['mappings in brackets', repeated('{a: ')],
    ['lists on one line', repeated('- ')],
    ['explicit keys', repeated('? ')],
    ['indented mappings', numbered((i) => `${' '.repeat(i)}a:\n`)],
    ['keys on one line', repeated('a: ')],
    [
      'aliases',
      numbered(
        (i) => `a${i}: &a${i} ${'['.repeat(9)}${i === 0 ? 1 : `*a${i - 1}`}${']'.repeat(9)}\n`,
      ),
    ],
  ] as const;
  it.each(sampled(nested, 2))('of %s is refused', (_, text) => {
    expect(firstMessage(text)).toBe(TOO_DEEP);
  });

  it('is allowed up to a hundred levels', () => {
    const nested = (depth: number) => `a: ${'['.repeat(depth)}${']'.repeat(depth)}`;
    expect(parseDocument(nested(99), 'f').value).toHaveProperty('a');
    expect(firstMessage(nested(100))).toBe(TOO_DEEP);
  });
});

describe('a document with too many values', () => {
  const documents: [string, (count: number) => string][] = [
    ['numbers', (count) => `a: [${'1,'.repeat(count)}]`],
    ['aliases', (count) => `a: &a {x: 1}\nb:\n  <<: [${'*a,'.repeat(count)}]`],
    ['mappings', (count) => `a: [${'{},'.repeat(count)}]`],
    ['lines', (count) => 'a:\n'.repeat(count)],
    ['dashes', (count) => `a:\n${' -\n'.repeat(count)}`],
  ];
  it.each(sampled(documents, 3))('is refused: %s', (_, text) => {
    expect(firstMessage(text(150_001))).toBe('the document has more than 150,000 values');
    expect(String(firstMessage(text(20_000)))).not.toContain('150,000');
  });

  it('is not refused for blank lines and comments', () => {
    expect(parseDocument(`${'\n#\n'.repeat(200_000)}a: 1`, 'f').value).toEqual({ a: 1 });
  });
});

describe('aliases that multiply', () => {
  it('are refused in a few bytes', () => {
    const laughs = Array.from({ length: 30 }, (_, i) => {
      const items = i === 0 ? '1' : Array.from({ length: 10 }, () => `*a${i - 1}`).join(',');
      return `a${i}: &a${i} [${items}]`;
    });
    expect(firstMessage(laughs.join('\n'))).toMatch(
      /multiply this document to more than 1,000,000/,
    );
  });

  it('are refused in merges', () => {
    const keys = numbered((i) => `k${i}: 1,`, 20_000);
    const text = `m: &m {${keys}}\n${numbered((i) => `m${i}: {<<: *m}\n`, 20_000)}`;
    expect(firstMessage(text)).toMatch(/multiply this document/);
  });

  it('are shared, not copied, below the limit', () => {
    const { value } = parseDocument('a: &a [1, 2]\nb: [*a, *a]\n', 'f');
    const [first, second] = value.b as unknown[];
    expect(first).toBe(second);
  });

  it('are resolved among many anchors', () => {
    const text = `a:\n${numbered((i) => `- &a${i} ${i}\n- *a${i}\n`)}`;
    const list = parseDocument(text, 'f').value.a as number[];
    expect(list.slice(-2)).toStrictEqual([list.length / 2 - 1, list.length / 2 - 1]);
  });
});

describe('the size of a document', () => {
  it('is limited', () => {
    const error = userError(() => parseDocument(`a: ${'x'.repeat(MAX_DOCUMENT_BYTES)}`, 'f'));
    expect(error.code).toBe('refused-file');
    expect(error.message).toBe('f is larger than 1 MB, the most that is read as a config');
  });

  it('is counted in bytes', () => {
    const text = `a: ${'é'.repeat(MAX_DOCUMENT_BYTES / 2)}`;
    expect(userError(() => parseDocument(text, 'f')).code).toBe('refused-file');
  });

  it('may be one large value below the limit', () => {
    const long = 'x'.repeat(MAX_DOCUMENT_BYTES - 10);
    expect(parseDocument(`a: ${long}`, 'f').value).toStrictEqual({ a: long });
    expect(parseDocument(`a: "${long}"`, 'f').value).toStrictEqual({ a: long });
    expect(firstMessage(`a: ${'9'.repeat(MAX_DOCUMENT_BYTES - 10)}`)).toBe(
      `${'9'.repeat(60)}… is beyond 2^53 − 1`,
    );
    expect(firstMessage(`${long}: 1`)).toBe('a key is longer than 1024 characters');
  });
});

describe('many mistakes', () => {
  it.each([
    ['keys twice', repeated('a: 1\n'), /^the key "a" occurs twice/],
    ['tabs', repeated('\ta: 1\n'), /^a tab/],
    ['quotes', repeated('- "a\n'), /^a double quote is not closed/],
    ['bad values', repeated('- @\n'), /^a value cannot begin with "@"/],
    [
      'aliases without an anchor',
      numbered((i) => `${i === 0 ? 'a:\n' : ''}${i < SIZE / 25 ? `- &a${i} 1\n` : `- *b${i}\n`}`),
      /^no anchor/,
    ],
    ['tags', repeated('- !a 1\n', 'a:\n'), /^the tag "!a"/],
    ['closing brackets', repeated('}\n'), /^a closing bracket/],
  ])('are counted after the fiftieth: %s', (_, text, message) => {
    const problems = problemsOfReading(() => parseDocument(text, 'f'));
    expect(problems).toHaveLength(51);
    expect(problems[0]?.message).toMatch(message);
    expect(problems[50]?.message).toMatch(/^and [\d,]+ more errors$/);
  });

  it.each([
    ['commas', repeated(',', '{', '}')],
    ['stars', repeated('* ')],
    ['brackets', repeated(']', 'a: ')],
    ['escapes', repeated('\\q', 'a: "', '"')],
  ])('on one line are reported once: %s', (_, text) => {
    expect(userError(() => parseDocument(text, 'f')).problems).toHaveLength(1);
  });

  it('are reported once for many documents in a file', () => {
    expect(firstMessage(repeated('---\n'))).toBe('a second document begins here');
  });

  it('in keys and values are counted after the fiftieth, errors first', () => {
    const schema = z.looseObject({ a: z.record(z.string(), z.int()) });
    const text = `{${numbered((i) => `u${i}: 1,`)} a: {${numbered((i) => `k${i}: x,`)}}}`;
    const { value, problems } = checkDocument(parseDocument(text, 'f'), { schema });
    expect(value).toBeUndefined();
    expect(problems.slice(0, 50).every(({ severity }) => severity === 'error')).toBe(true);
    expect(problems.slice(50).map(line)).toStrictEqual([
      expect.stringMatching(/^f error: and [\d,]+ more errors$/),
      expect.stringMatching(/^f warning: and [\d,]+ more warnings$/),
    ]);
  });

  it.runIf(isWhole)('are counted in full', () => {
    const text = `a: 1\n${'a: 1\n'.repeat(70_000)}b: 1\n`;
    const checked = checkDocument(parseDocument(text, 'f'), { schema: z.looseObject({}) });
    expect(checked).toMatchObject({ errors: 70_000, warnings: 1 });
    expect(checked.problems.at(50)?.message).toBe('and 69,950 more errors');
    expect(invalidConfig('f', checked.problems, checked.errors).message).toBe(
      'f is not valid: 70,000 errors',
    );
  });

  it('of unknown keys are counted after the fiftieth', () => {
    const schema = z.strictObject({ num_layers: z.int().optional() });
    const document = parseDocument(
      numbered((i) => `k${i}: 1\n`),
      'f',
    );
    const { problems } = checkDocument(document, { schema });
    expect(problems).toHaveLength(51);
    expect(problems[50]?.message).toBe(
      `and ${(Object.keys(document.value).length - 50).toLocaleString('en-US')} more errors`,
    );
  });
});
