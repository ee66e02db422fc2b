import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../src/config/document.js';
import { line, problemsOfReading, userError } from './support.js';

const problemsOf = (text: string) => problemsOfReading(() => parseDocument(text, 'f')).map(line);

describe('bad syntax', () => {
  it.each([
    [
      'a:\n\tb: 1',
      'f:2:1 error: a tab is used as indentation → indent with spaces: YAML does not allow tabs',
    ],
    [
      '\ta: 1',
      'f:1:1 error: a tab is used as indentation → indent with spaces: YAML does not allow tabs',
    ],
    ['a: 1\nb: "x\nc: 2\n', 'f:2:4 error: a double quote is not closed → add the closing "'],
    ["a: 'x", "f:1:4 error: a single quote is not closed → add the closing '"],
    ['a: {b: 1', 'f:1:4 error: a { is not closed → add the closing }'],
    ['{"a": [1, 2', 'f:1:7 error: a [ is not closed → add the closing ]'],
    [
      'a: b: c',
      'f:1:4 error: another key or list begins inside this value → check the indentation of the next lines, and quote a value that contains ": "',
    ],
    [
      'a: 1\nb',
      'f:2:1 error: this line is not "key: value" → write "key: value", with a space after the colon',
    ],
    [
      'a:\n  b: 1\n c: 2',
      'f:3:1 error: the indentation does not fit the lines above → indent all keys of one mapping by the same number of spaces, and close every bracket',
    ],
    ['a: @x', 'f:1:4 error: a value cannot begin with "@" → put the value in quotes'],
    [
      'a: "\\q"',
      'f:1:5 error: this backslash begins no escape that YAML knows → write \\\\ for a backslash, or use single quotes',
    ],
    ['a: ]', 'f:1:4 error: a closing bracket has no opening one → remove it'],
    ['{"a" 1}', 'f:1:6 error: a comma is missing → add a comma'],
    [
      'a: - b',
      'f:1:4 error: a list cannot begin on the line of its key → put each item on a line of its own, or write the list as [a, b]',
    ],
    [
      'a: "b" c',
      'f:1:8 error: this text belongs to nothing: the value before it has ended → put the whole value in quotes, or write "key: value" on a line of its own',
    ],
    [
      'a: 1\n---\nb: 2',
      'f:2:1 error: a second document begins here → keep one document, and remove the line "---" before the other',
    ],
    [
      'a: !!python/object:os.system {}',
      'f:1:4 error: the tag "!!python/object:os.system" does not fit or is not known here → remove the tag: a config needs none',
    ],
    [
      'a: !foo 1',
      'f:1:4 error: the tag "!foo" does not fit or is not known here → remove the tag: a config needs none',
    ],
    [
      'a: !!binary aGk=',
      'f:1:4 error: the tag "!!binary" does not fit or is not known here → remove the tag: a config needs none',
    ],
    [
      'a: "\u0007"',
      'f:1:5 error: control character in the text → remove it, or write it as an escape in double quotes, as in "\\u0007"',
    ],
    ['a: &x &y 1', 'f:1:7 error: a value can have only one anchor'],
    ['%FOO\n---\na: 1', 'f:1:1 error: unknown directive %FOO'],
  ])('is reported with a suggestion: %j', (text, problem) => {
    expect(problemsOf(text)).toStrictEqual([problem]);
  });

  it('is reported once for each line', () => {
    const problems = problemsOf('a: @ @\nb: "\\q\\q"\nc: 1\nd: %\n');
    expect(problems.map((problem) => problem.split(' ', 1)[0])).toStrictEqual([
      'f:1:4',
      'f:2:5',
      'f:4:4',
    ]);
  });
});

describe('a document that is not a config', () => {
  it.each([
    ['', 'f:1 error: the document is empty → write at least one line such as "key: value"'],
    [
      '# nothing\n',
      'f:1:1 error: the document is empty → write at least one line such as "key: value"',
    ],
    ['null', 'f:1:1 error: the document is empty → write at least one line such as "key: value"'],
    [
      '\n- a\n',
      'f:2:1 error: must be a mapping of keys to values, but is a list → write lines such as "key: value"',
    ],
    [
      '3',
      'f:1:1 error: must be a mapping of keys to values, but is 3 → write lines such as "key: value"',
    ],
    [
      'a:1',
      'f:1:1 error: must be a mapping of keys to values, but is "a:1" → put a space after the colon: "key: value"',
    ],
  ])('is refused: %j', (text, problem) => {
    expect(problemsOf(text)).toStrictEqual([problem]);
  });
});

it('the problem of an empty document has no excerpt', () => {
  const [problem] = problemsOfReading(() => parseDocument(' \n\n', 'f'));
  expect(problem).toStrictEqual({
    severity: 'error',
    file: 'f',
    line: 1,
    message: 'the document is empty',
    suggestion: 'write at least one line such as "key: value"',
  });
});

describe('the message about an invalid document', () => {
  it.each([
    ['a: [', 'f is not valid: 1 error'],
    ['a: @\nb: @', 'f is not valid: 2 errors'],
    ['- !x 1\n- *y', 'f is not valid: 3 errors'],
    [`a:\n${'- @\n'.repeat(5000)}`, 'f is not valid: 5,000 errors'],
  ])('counts its errors (%#)', (text, message) => {
    expect(userError(() => parseDocument(text, 'f')).message).toBe(message);
  });
});

describe('keys and numbers that are not allowed', () => {
  it.each([
    [
      'a: 1\nb:\n  c: 2\n"a": 3\n',
      'f:4:1 error: the key "a" occurs twice in this mapping; the first is at 1:1 → remove one of them',
    ],
    [
      '{"1": 0, 1: 0}',
      'f:1:10 error: the key "1" occurs twice in this mapping; the first is at 1:2 → remove one of them',
    ],
    [
      'a: 9007199254740993',
      'f:1:4 error: 9007199254740993 is beyond 2^53 − 1 → larger integers cannot be read exactly: write a smaller one',
    ],
    [
      'a: 0x20000000000000',
      'f:1:4 error: 0x20000000000000 is beyond 2^53 − 1 → larger integers cannot be read exactly: write a smaller one',
    ],
    ['a: 1e999', 'f:1:4 error: 1e999 is too large for a number → write a smaller number'],
    [
      '[a]: 1',
      'f:1:1 error: a key must be a text, but is a list → put a key that begins with a bracket in quotes',
    ],
    [
      '? {a: 1}\n: 1',
      'f:1:3 error: a key must be a text, but is a mapping → put a key that begins with a bracket in quotes',
    ],
  ])('are reported: %j', (text, problem) => {
    expect(problemsOf(text)).toStrictEqual([problem]);
  });

  it('are reported with their line', () => {
    const problems = problemsOfReading(() => parseDocument('a: 1\na: 2', 'f'));
    expect(problems.map(({ excerpt }) => excerpt)).toStrictEqual(['a: 2']);
  });
});
