import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Problem, UserError } from '../../src/base/errors.js';
import { annotations, errorAnnotations } from '../../src/report/kit/annotations.js';

const problem: Problem = {
  severity: 'error',
  file: '/repository/a,b:c.yaml',
  line: 3,
  column: 5,
  path: 'model.num_heads',
  message: 'is 100% wrong',
  suggestion: 'write 8',
};

it('writes a command for each problem, with the path from the folder of the repository', () => {
  expect(annotations([problem, { ...problem, severity: 'warning' }], '/repository')).toBe(
    '::error file=a%2Cb%3Ac.yaml,line=3,col=5,title=model.num_heads::is 100%25 wrong%0Awrite 8\n' +
      '::warning file=a%2Cb%3Ac.yaml,line=3,col=5,title=model.num_heads::is 100%25 wrong%0Awrite 8\n',
  );
});

it('names no file for standard input and overrides', () => {
  for (const file of ['<stdin>', '--set']) {
    expect(annotations([{ ...problem, file }], undefined)).toMatch(/^::error title=model/);
  }
});

it('writes one command for an error without problems', () => {
  const error = new UserError('usage', 'no model', { suggestion: 'name one' });
  expect(errorAnnotations(error, undefined)).toBe('::error title=minimind::no model%0Aname one\n');
});

it('keeps every text in its own command', () => {
  const text = fc.string({ unit: 'binary' });
  fc.assert(
    fc.property(text, text, text, (file, message, path) => {
      const written = annotations([{ ...problem, file: `x${file}`, message, path }], undefined);
      expect(written.split('\n')).toHaveLength(2);
      expect(written.match(/[\r\u2028]/)).toBeNull();
      const [, place = ''] = /^::error ([^:]*)::/.exec(written) ?? [];
      expect(place.split(',').map((each) => each.split('=')[0])).toEqual([
        ...['file', 'line', 'col', 'title'],
      ]);
    }),
  );
});
