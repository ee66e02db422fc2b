import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Problem, UserError } from '../../src/base/errors.js';
import { errorJson } from '../../src/report/kit/error-json.js';
import { textWidth } from '../../src/report/kit/layout.js';
import { errorText, problemsText } from '../../src/report/kit/problems.js';
import type { RenderOptions } from '../../src/report/kit/report.js';
import { colours } from '../../src/report/render/colours.js';
import { withTone } from '../../src/report/render/table.js';
import { forbiddenIn, hostileText } from './hostile.js';

const plain = (width: number): RenderOptions => ({ width, colourLevel: 0 });
const WIDE = plain(Number.POSITIVE_INFINITY);

const factorized: Problem = {
  severity: 'error',
  file: 'configs/bad.yaml',
  line: 3,
  column: 16,
  path: 'model.srte_encoding',
  message: 'must be "learnable" or "sincos", but is "factorized"',
  suggestion: 'write srte_encoding: learnable, with srte_factorized_rank for the rank',
  excerpt: 'srte_encoding: factorized',
};

describe('a message with a long name', () => {
  const message = 'x'.repeat(1e6);

  it('is cut', () => {
    const error = new UserError('usage', message, { problems: [{ ...factorized, message }] });
    expect(errorText(error, WIDE).length).toBeLessThan(5000);
    expect(JSON.stringify(errorJson(error)).length).toBeLessThan(5000);
    expect(problemsText([{ ...factorized, message }], WIDE).length).toBeLessThan(2500);
  });
});

describe('problemsText', () => {
  it('shows place, path, message, excerpt and suggestion', () => {
    expect(problemsText([factorized], WIDE)).toBe(
      `error: configs/bad.yaml:3:16: model.srte_encoding: must be "learnable" or "sincos", but is "factorized"
  3 │ srte_encoding: factorized
    │                ^
  → write srte_encoding: learnable, with srte_factorized_rank for the rank
`,
    );
  });

  it('wraps to the width of the terminal', () => {
    expect(problemsText([factorized], plain(50))).toBe(
      `error: configs/bad.yaml:3:16: model.srte_encoding:
  must be "learnable" or "sincos", but is
  "factorized"
  3 │ srte_encoding: factorized
    │                ^
  → write srte_encoding: learnable, with
    srte_factorized_rank for the rank
`,
    );
  });

  it('shows an override, and its path once', () => {
    const problem: Problem = {
      severity: 'warning',
      file: '--set',
      excerpt: 'model.num_heads=0',
      path: 'model.num_heads',
      message: 'must be at least 1',
    };
    expect(problemsText([problem], WIDE)).toBe(
      'warning: --set model.num_heads=0: must be at least 1\n',
    );
    expect(problemsText([{ ...problem, path: 'model' }], WIDE)).toBe(
      'warning: --set model.num_heads=0: model: must be at least 1\n',
    );
  });

  it('leaves out missing parts', () => {
    const problem: Problem = { severity: 'error', file: 'a.yaml', message: 'is empty' };
    const shown = (more: Partial<Problem>) => problemsText([{ ...problem, ...more }], WIDE);
    expect(shown({})).toBe('error: a.yaml: is empty\n');
    expect(shown({ line: 7 })).toBe('error: a.yaml:7: is empty\n');
    expect(shown({ line: 7, excerpt: 'a: 1' })).toBe('error: a.yaml:7: is empty\n  7 │ a: 1\n');
    expect(shown({ line: 7, column: 1, excerpt: '' })).toBe(
      'error: a.yaml:7:1: is empty\n  7 │\n    │ ^\n',
    );
  });

  it('separates problems of several lines by empty lines', () => {
    const short: Problem = { severity: 'warning', file: 'a', message: 'b' };
    expect(problemsText([], WIDE)).toBe('');
    expect(problemsText([short, short], WIDE)).toBe('warning: a: b\nwarning: a: b\n');
    expect(problemsText([short, { ...short, suggestion: 'c' }], WIDE)).toBe(
      'warning: a: b\n\nwarning: a: b\n  → c\n',
    );
  });

  it('colours severity, frame, caret and suggestion', () => {
    const [head, excerpt, caret, suggestion] = problemsText([factorized], {
      ...WIDE,
      colourLevel: 1,
    }).split('\n');
    expect(head?.startsWith('\x1b[31merror:\x1b[39m configs')).toBe(true);
    expect(excerpt).toBe('\x1b[2m  3 │\x1b[22m srte_encoding: factorized');
    expect(caret).toBe(`\x1b[2m    │\x1b[22m ${' '.repeat(15)}\x1b[31m^\x1b[39m`);
    expect(suggestion?.startsWith('  \x1b[36m→\x1b[39m write')).toBe(true);
    const warning = problemsText([{ ...factorized, severity: 'warning' }], {
      ...WIDE,
      colourLevel: 1,
    });
    expect(warning.startsWith('\x1b[35mwarning:\x1b[39m')).toBe(true);
  });
});

describe('the caret', () => {
  /** The shown excerpt and the character above the caret. */
  function above(excerpt: string, column: number, width = 200): [string, string | undefined] {
    const problem = { ...factorized, line: 12, column, excerpt, suggestion: '' };
    const shown = problemsText([problem], plain(width)).split('\n');
    const at = shown.findIndex((line) => line.startsWith('  12 │'));
    const text = shown[at]?.slice(7) ?? '';
    const caretLine = shown[at + 1] ?? '';
    expect(caretLine).toMatch(/^ {5}│ *\^$|^ {2}→$/);
    if (!caretLine.endsWith('^')) return [text, undefined];
    const columns = textWidth(caretLine) - 1 - 7;
    const pointed = Array.from(text).find(
      (_, index, all) => textWidth(all.slice(0, index).join('')) === columns,
    );
    return [text, pointed];
  }

  it.each([
    ['at the beginning', 'a: b', 1, 'a: b', 'a'],
    ['after the end', 'a:', 3, 'a:', undefined],
    ['after leading spaces', '    a: b', 8, '    a: b', 'b'],
    ['after wide characters', '名前: 値x', 6, '名前: 値x', 'x'],
    ['after emoji', '🙂: b', 4, '🙂: b', 'b'],
    ['after a combining accent', 'e\u0301: b', 5, 'e\u0301: b', 'b'],
    ['after a raw tab', '\tb: 1', 2, '\\tb: 1', 'b'],
    ['after a raw escape', '\x1b[31mb', 6, '\\x1b[31mb', 'b'],
    ['after an escaped tab', '\\tb: 1', 2, '\\tb: 1', 'b'],
    ['after other escapes', '\\u202e\\u{e0001}\\x9bb', 4, '\\u202e\\u{e0001}\\x9bb', 'b'],
    ['after a backslash', 'C:\\data b', 9, 'C:\\data b', 'b'],
    ['far beyond the end', 'ab', 99, 'ab', undefined],
  ])('is placed %s', (_, excerpt, column, text, pointed) =>
    expect(above(excerpt, column)).toEqual([text, pointed]),
  );

  it('is left out when the excerpt was cut off before it', () => {
    expect(above('…cut: off', 60)).toEqual(['…cut: off', undefined]);
  });

  it('stays visible on a narrow terminal', () => {
    const excerpt = `${'a'.repeat(40)}X${'b'.repeat(40)}`;
    expect(above(excerpt, 41, 40)).toEqual([`…${'a'.repeat(16)}X${'b'.repeat(14)}…`, 'X']);
    expect(above(excerpt, 3, 40)).toEqual([`${'a'.repeat(32)}…`, 'a']);
    expect(above(`${'名'.repeat(40)}X`, 41, 40)).toEqual([`…${'名'.repeat(8)}X`, 'X']);
  });

  it('is left out with the excerpt on a terminal that is too narrow', () => {
    const problem = { ...factorized, line: 123_456_789_012 };
    expect(problemsText([problem], plain(20))).not.toContain('│');
    expect(problemsText([problem], plain(40))).toContain('│');
  });
});

describe('errorText', () => {
  it('has the message, the problems and the suggestion', () => {
    const error = new UserError('invalid-config', 'bad.yaml is not a valid config.', {
      problems: [{ severity: 'error', file: 'bad.yaml', line: 1, message: 'is odd' }],
      suggestion: 'mend it',
    });
    expect(errorText(error, WIDE)).toBe(
      'error: bad.yaml is not a valid config.\nerror: bad.yaml:1: is odd\n  → mend it\n',
    );
  });

  it('has no empty lines without problems', () => {
    const error = new UserError('usage', 'there is no command "x"', { suggestion: 'see --help' });
    expect(errorText(error, WIDE)).toBe('error: there is no command "x"\n  → see --help\n');
    expect(errorText(new UserError('usage', 'no'), WIDE)).toBe('error: no\n');
  });

  it('indents further lines of a message, so that none looks like an error', () => {
    const error = new UserError('usage', 'cannot read a\nerror: all is lost\x1b[2J');
    expect(errorText(error, WIDE)).toBe('error: cannot read a\n  error: all is lost\\x1b[2J\n');
  });
});

describe('errorJson', () => {
  it('matches docs/schemas/error.schema.json', () => {
    const error = new UserError('invalid-config', 'bad', { problems: [factorized] });
    expect(errorJson(error)).toStrictEqual({
      schema: 'minimind/error@1',
      code: 'invalid-config',
      message: 'bad',
      problems: [factorized],
    });
    expect(errorJson(new UserError('usage', 'no', { suggestion: 'yes' }))).toStrictEqual({
      schema: 'minimind/error@1',
      code: 'usage',
      message: 'no',
      suggestion: 'yes',
      problems: [],
    });
  });
});

describe('any error', () => {
  const problem: fc.Arbitrary<Problem> = fc.record(
    {
      severity: fc.constantFrom('error' as const, 'warning' as const),
      file: hostileText,
      line: fc.integer({ min: 1, max: 2000 }),
      column: fc.integer({ min: 1, max: 60 }),
      path: hostileText,
      message: hostileText,
      suggestion: hostileText,
      excerpt: hostileText,
    },
    { requiredKeys: ['severity', 'file', 'message'] },
  );
  const error = fc
    .tuple(hostileText, fc.array(problem, { maxLength: 3 }), fc.option(hostileText, { nil: '' }))
    .map(
      ([message, problems, suggestion]) =>
        new UserError('usage', message, { problems, suggestion }),
    );

  it('has a harmless text that fits the width and is the same in colour', () => {
    fc.assert(
      fc.property(error, fc.integer({ min: 20, max: 100 }), (any, width) => {
        const text = errorText(any, plain(width));
        expect(forbiddenIn(text.replaceAll('\n', ''))).toEqual([]);
        expect(text).toMatch(/^error:/);
        expect(text).toMatch(/[^\n]\n$/);
        for (const line of text.split('\n')) {
          expect(textWidth(line)).toBeLessThanOrEqual(width);
          expect(line).toBe(line.trimEnd());
        }
        const coloured = errorText(any, { width, colourLevel: 3 });
        expect(stripVTControlCharacters(coloured)).toBe(text);
      }),
    );
  });
});

it('colours of level 0 do not change text', () => {
  expect(withTone(colours(0), 'bad', 'x')).toBe('x');
  expect(withTone(colours(3), 'bad', 'x')).toBe('\x1b[31mx\x1b[39m');
});
