import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';

const LINES = Array.from({ length: 500 }, (_, at) => `layer ${at}: ${at * 7} parameters`);
const DOCUMENT = LINES.join('\n');
const CHANGED = DOCUMENT.replace('1750', '1751');
const CELLS = LINES.join(' ');
const tree = (last: number) => ({ layers: LINES.map((name, at) => ({ name, at })), last });

/** Assertions that fail, with what their failures show and do not show. */
const FAILURES: readonly [name: string, fail: () => void, shown: readonly string[]][] = [
  [
    'toContain of a document',
    () => expect(DOCUMENT).toContain('layer 250: 1751 parameters'),
    ['  layer 250: 1751 parameters', '    251 | layer 250: 1750 parameters', 'of 500 lines'],
  ],
  [
    'toMatch of a document',
    () => expect(DOCUMENT).toMatch(/^layer 250: 1751 parameters$/m),
    ['  /^layer 250: 1751 parameters$/m', '    251 | layer 250: 1750 parameters'],
  ],
  [
    'not.toContain of a document',
    () => expect(DOCUMENT).not.toContain('250: 1750'),
    ['    251 | layer 250: 1750 parameters'],
  ],
  [
    'toContain of a long line',
    () => expect(CELLS).toContain('250: 1751'),
    ['  250: 1751', '      1 | …', 'layer 250: 1750 parameters'],
  ],
  [
    'toBe of a document',
    () => expect(DOCUMENT).toBe(CHANGED),
    ['- layer 250: 1751 parameters', '+ layer 250: 1750 parameters', '\n…\n'],
  ],
  [
    'toBe of a long line',
    () => expect(CELLS).toBe(CELLS.replace('1750', '1751')),
    ['layer 250: 1751 parameters', 'layer 250: 1750 parameters'],
  ],
  ['toBe of another document', () => expect(DOCUMENT).toBe(''), ['more lines of the diff']],
  ['toEqual of a large object', () => expect(tree(1)).toEqual(tree(2)), ['"last": 2', '"last": 1']],
  [
    'a check with a document as its message',
    () => expect(1, DOCUMENT).toBe(0),
    ['layer 0:', 'layer 499:', 'expected 1 to be +0', 'more lines'],
  ],
  [
    'an error with a document as its message',
    () => {
      throw new Error(DOCUMENT);
    },
    ['layer 0:', 'layer 499:', 'more lines'],
  ],
];

describe('the failure of', () => {
  const printed = new Map<string, string>();

  describe.each(FAILURES)('%s', (name, fail, shown) => {
    it.fails('is kept', () => {
      // After the hooks of test/setup.ts.
      onTestFinished(({ task }) => {
        const { diff = '', message = '', stack = '' } = task.result?.errors?.[0] ?? {};
        const lines = stack.split('\n').filter((line) => !/^ +at /.test(line));
        printed.set(name, stripVTControlCharacters([message, diff, ...lines].join('\n')));
      });
      fail();
    });

    it('is short and has what differs', () => {
      const text = printed.get(name) ?? expect.unreachable();
      for (const part of shown) expect(text.includes(part), part).toBe(true);
      expect(text.split('\n').length).toBeLessThan(50);
      expect(text.length).toBeLessThan(5000);
    });
  });
});
