import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { sweepOf } from '../../src/config/overrides.js';

const sets = (...flags: string[]) =>
  sweepOf(flags)
    .points()
    .map(({ set }) => set);

describe('sweepOf', () => {
  it('makes the product of lists, with the first flag as the outer loop', () => {
    const sweep = sweepOf(['a=1,2', 'c=x', 'b=3,4,5']);
    expect(sweep.keys).toEqual(['a', 'b']);
    expect(sweep.size).toBe(6);
    expect(sweep.points().map(({ chosen }) => chosen.join())).toEqual([
      '1,3',
      '1,4',
      '1,5',
      '2,3',
      '2,4',
      '2,5',
    ]);
    expect(sweep.points()[4]).toEqual({ set: ['a=2', 'c=x', 'b=4'], chosen: ['2', '4'] });
  });

  it('keeps flags without lists unchanged', () => {
    expect(sweepOf([])).toMatchObject({ keys: [], size: 1 });
    expect(sets()).toEqual([[]]);
    expect(sets('a.b=1', 'c =', 'nonsense')).toEqual([['a.b=1', 'c =', 'nonsense']]);
  });

  it.each([
    ['[1, 2]', ['[1, 2]']],
    ['[1, 2],[3]', ['[1, 2]', '[3]']],
    ['{a: 1, b: [2, 3]}, 4', ['{a: 1, b: [2, 3]}', '4']],
    ['["x]", 1],2', ['["x]", 1]', '2']],
    ['"a,b"', ['"a,b"']],
    ['"a,b",c', ['"a,b"', 'c']],
    [String.raw`"a\",b",c`, [String.raw`"a\",b"`, 'c']],
    ["'it''s, so', b", ["'it''s, so'", 'b']],
    ["it's, so", ["it's", 'so']],
    ['a[0], b', ['a[0]', 'b']],
    ['!tag [1, 2], 3', ['!tag [1', '2]', '3']],
    ['"open, and so on', ['"open, and so on']],
    [' 1 , 2 ', ['1', '2']],
  ])('splits %s', (value, items) => {
    expect(sets(`key=${value}`)).toEqual(
      items.length === 1 ? [[`key=${value}`]] : items.map((item) => [`key=${item}`]),
    );
  });

  it('keeps the spelling of a path', () => {
    expect(sets('a."b,c".d=1,2')).toEqual([['a."b,c".d=1'], ['a."b,c".d=2']]);
    expect(sweepOf(['a["b"]=1,2']).keys).toEqual(['a.b']);
  });

  it.each(['a=1,', 'a=,1', 'a=1,,2', 'a=,'])('refuses the empty value of %s', (flag) => {
    expect(() => sweepOf([flag])).toThrow(UserError);
  });

  it.each([[['a.b=1,2', 'a.b=3']], [['a.b=1', 'a["b"]=2,3']], [['a.b=1,2', 'a.b=1,2']]])(
    'refuses %j, which set one key twice',
    (flags) => {
      expect(() => sweepOf(flags)).toThrow('a.b has several values, and is set again');
    },
  );

  it('pairs the items of lists if requested', () => {
    const sweep = sweepOf(['a=1,2', 'c=x', 'b=3,4'], true);
    expect(sweep).toMatchObject({ keys: ['a', 'b'], size: 2 });
    expect(sweep.points()).toEqual([
      { set: ['a=1', 'c=x', 'b=3'], chosen: ['1', '3'] },
      { set: ['a=2', 'c=x', 'b=4'], chosen: ['2', '4'] },
    ]);
    expect(sweepOf(['c=x'], true).points()).toEqual([{ set: ['c=x'], chosen: [] }]);
    expect(() => sweepOf(['a=1,2', 'b=1,2,3'], true)).toThrow('a has 2 values, and b has 3');
  });

  it('counts points without creating them', () => {
    const values = Array.from({ length: 1000 }, (_, index) => index).join();
    expect(sweepOf(['a', 'b', 'c', 'd'].map((key) => `${key}=${values}`)).size).toBe(1e12);
  });

  it('keeps plain values unchanged', () => {
    const word = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,5}$/);
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (words) => {
        expect(sets(`k=${words.join(',')}`)).toEqual(words.map((each) => [`k=${each}`]));
      }),
    );
  });
});
