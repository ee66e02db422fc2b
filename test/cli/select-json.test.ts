import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectedFields, selectedText } from '../../src/cli/select-json.js';
import { runHere } from '../run-here.js';

const VALUE = {
  schema: 'minimind/x@1',
  total: 2 ** 60,
  memory: { bytes: 12, share: Number.NaN },
  rows: [{ name: 'a\u001b[31m' }, { name: 'b' }],
};

describe('--fields', () => {
  it('has the named fields, also of fields and of each element', () => {
    expect(selectedFields(VALUE, 'total, memory.bytes,rows.name')).toEqual({
      total: '1152921504606846976',
      'memory.bytes': 12,
      'rows.name': ['a\u001b[31m', 'b'],
    });
  });

  it.each([
    ['memry.bytes', 'did you mean memory.bytes?'],
    ['memory.kilograms', 'the fields here are bytes, share'],
    ['total.x', 'it has no fields'],
    ['__proto__', 'the fields here are schema, total, memory, rows'],
    [' , ', 'the fields here are schema, total, memory, rows'],
  ])('refuses %s', (names, suggestion) => {
    expect(() => selectedFields(VALUE, names)).toThrow(expect.objectContaining({ suggestion }));
  });
});

describe('--jq', () => {
  it('selects as jq: texts as they are, other values as JSON', async () => {
    expect(await selectedText(VALUE, '.memory, .total, (.rows | length), (keys | .[])')).toBe(
      '{"bytes":12,"share":"NaN"}\n1152921504606846976\n2\nmemory\nrows\nschema\ntotal\n',
    );
    expect(await selectedText(VALUE, 'empty')).toBe('');
  });

  it('escapes control characters of names', async () => {
    expect(await selectedText(VALUE, '.rows[].name')).toBe('a\\x1b[31m\nb\n');
  });

  it.each([
    ['.[', /^--jq: syntax error/],
    ['nothing(1)', /^--jq: nothing\/1 is not defined$/],
    ['.total.x', /^--jq: Cannot index string with/],
    ['error("own text")', /^--jq: own text$/],
  ])('refuses %s', async (expression, message) => {
    await expect(selectedText(VALUE, expression)).rejects.toThrow(message);
  });

  it('gives any texts and integers back', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.string(), fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer())),
        async (value) => {
          const whole = JSON.parse(JSON.stringify(value));
          expect(JSON.parse(await selectedText({ whole }, '.whole | tojson | fromjson'))).toEqual(
            whole,
          );
        },
      ),
      { numRuns: 15 },
    );
  });
});

describe('a command line', () => {
  const run = async (...words: string[]) => {
    const { stdout, stderr, code } = await runHere(['profile', 'hybrid/tiny', ...words]);
    return { stdout, stderr, code };
  };

  it('takes fields as --json=NAME and --fields NAME, and a jq expression', async () => {
    const expected = { stdout: '{\n  "family": "hybrid"\n}\n', code: 0 };
    expect(await run('--json=family')).toMatchObject(expected);
    expect(await run('--fields', 'family')).toMatchObject(expected);
    expect(await run('--jq', '.family')).toMatchObject({ stdout: 'hybrid\n', code: 0 });
  });

  it('refuses both, and another format', async () => {
    expect((await run('--jq', '.', '--fields', 'x')).stderr).toContain('cannot be used together');
    expect((await run('--jq', '.', '--format', 'csv')).stderr).toContain('--jq selects from JSON');
    expect((await run('--fields', 'x', '-o', 'x.csv')).code).toBe(2);
  });
});

describe('--json NAME,…, as gh has it', () => {
  const fields = { 'parameters.total.value': 275_200, file: 'hybrid/tiny' };

  it.each([
    'profile hybrid/tiny --json parameters.total.value,file',
    'profile --json parameters.total.value,file hybrid/tiny',
    'profile hybrid/tiny --json parameters.total.value,file --context 128',
    'profile hybrid/tiny --context 128 --JSON parameters.total.value,file',
    'profile --json=parameters.total.value,file hybrid/tiny',
  ])('is read in %s', async (line) => {
    const { code, stdout, stderr } = await runHere(line.split(' '));
    expect({ code, answer: JSON.parse(stdout) }).toEqual({ code: 0, answer: fields });
    if (line.includes('--json=')) return;
    expect(stderr).toMatch(
      /^reading this as: minimind profile .*--json --fields parameters\.total/,
    );
  });

  it.each([
    ['compare hybrid/tiny minimind2-small --json rows', 'rows'],
    ['validate hybrid/tiny --json files', 'files'],
    ['fit hybrid/tiny --gpu h100 --json serving', 'serving'],
    ['profile hybrid/tiny --json file', 'file'],
  ])('is read in %s', async (line, field) => {
    const { code, stdout } = await runHere(line.split(' '));
    expect({ code, fields: Object.keys(JSON.parse(stdout)) }).toEqual({ code: 0, fields: [field] });
  });

  it('names the unknown field, not a missing file', async () => {
    const { code, stderr } = await runHere(['profile', 'hybrid/tiny', '--json', 'parametres']);
    expect(code).toBe(2);
    expect(stderr).toContain('did you mean parameters?');
  });

  it.each([
    ['profile --json hybrid/tiny', 'hybrid/tiny'],
    ['profile --json tiny', 'tiny'],
    ['validate --json tiny minimind2-small', 'minimind2-small'],
  ])('is a model in %s', async (line, model) => {
    const { code, stdout, stderr } = await runHere(line.split(' '));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(model);
  });
});
