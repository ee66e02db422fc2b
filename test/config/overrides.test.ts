import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../src/config/document.js';
import { applyOverrides } from '../../src/config/overrides.js';
import { line, problemsOfReading } from './support.js';

const TEXT = 'model:\n  layers: 3\n  list: [1, {x: 2}]\n  empty:\n';
const document = parseDocument(TEXT, 'a.yaml');
const withSets = (...sets: string[]) => applyOverrides(document, sets);
const problemsOf = (...sets: string[]) => problemsOfReading(() => withSets(...sets)).map(line);

describe('applyOverrides', () => {
  it.each([
    ['model.layers=4', ['model', 'layers'], 4],
    ['model.layers=', ['model', 'layers'], null],
    ['model.layers=1e-5', ['model', 'layers'], 1e-5],
    ['model.layers="4"', ['model', 'layers'], '4'],
    ['model.layers= true ', ['model', 'layers'], true],
    ['model.layers=a=b', ['model', 'layers'], 'a=b'],
    ['model.layers=two words', ['model', 'layers'], 'two words'],
    ['model.layers=[1, 2]', ['model', 'layers'], [1, 2]],
    ['model.layers={a: {b: 1}}', ['model', 'layers'], { a: { b: 1 } }],
    ['model.layers={a: 1}', ['model', 'layers', 'a'], 1],
    ['new=1', ['new'], 1],
    ['new.er.est=1', ['new', 'er', 'est'], 1],
    ['model.empty.x=1', ['model', 'empty', 'x'], 1],
    ['model.list.0=9', ['model', 'list', 0], 9],
    ['model.list[0]=9', ['model', 'list', 0], 9],
    ['model.list.1.x=9', ['model', 'list', 1, 'x'], 9],
    ['model.list.2=9', ['model', 'list', 2], 9],
    ['model.list[2].y=9', ['model', 'list', 2, 'y'], 9],
    ['a\\.b.c=1', ['a.b', 'c'], 1],
    ['"a.b".c=1', ['a.b', 'c'], 1],
    ["'a=b'=1", ['a=b'], 1],
    ['m["a.b"].c=1', ['m', 'a.b', 'c'], 1],
    ['m["a\\"b"]=1', ['m', 'a"b'], 1],
    ['two words=1', ['two words'], 1],
    ['größe=1', ['größe'], 1],
  ])('sets the value of %s', (set, path, value) => {
    let at: unknown = withSets(set).value;
    for (const key of path) at = (at as Record<string, unknown>)[key];
    expect(at).toStrictEqual(value);
  });

  it('does not change other values or the original document', () => {
    const changed = withSets('model.list.1.x=5', 'model.new=1');
    expect(changed.value).toStrictEqual({
      model: { layers: 3, list: [1, { x: 5 }], empty: null, new: 1 },
    });
    expect(document.value).toStrictEqual(parseDocument(TEXT, 'a.yaml').value);
    expect(document.has(['model', 'new'])).toBe(false);
    expect(document.locate(['model', 'list', 1, 'x'])).toMatchObject({ file: 'a.yaml' });
  });

  it('leaves a value alone that other overrides or other documents change further', () => {
    const both = ['model.empty={a: 1}', 'model.empty.b=2'];
    expect(withSets(...both).value.model).toMatchObject({ empty: { a: 1, b: 2 } });
    const other = parseDocument('other: 1\n', 'b.yaml');
    expect(applyOverrides(other, both.slice(0, 1)).value).toStrictEqual({
      other: 1,
      model: { empty: { a: 1 } },
    });
    expect(withSets(...both.slice(0, 1)).value.model).toMatchObject({ empty: { a: 1 } });
  });

  it('reports the fault of an override each time, with its own number', () => {
    const once = problemsOf('model.layers=#x');
    expect(problemsOf('model.layers=#x')).toStrictEqual(once);
    expect(once).toHaveLength(1);
    expect(withSets('a=1', 'model.layers=5').locate(['model', 'layers'])).toStrictEqual(
      withSets('model.layers=5').locate(['model', 'layers']),
    );
  });

  it('gives the same document after any list before, with the same faults and places', () => {
    const texts = [
      'model.layers=4',
      'model.list.1.x=9',
      'new.key=1',
      'model.layers.x=2',
      'x=[1',
      'model={}',
    ];
    const lists = fc.array(fc.array(fc.constantFrom(...texts), { maxLength: 5 }), { minLength: 2 });
    fc.assert(
      fc.property(lists, (all) => {
        for (const sets of all) {
          const fresh = applyOverrides(parseDocument(TEXT, 'a.yaml'), sets);
          const own = withSets(...sets);
          expect(own.value).toStrictEqual(fresh.value);
          expect(own.locate(['model', 'layers'])).toStrictEqual(fresh.locate(['model', 'layers']));
          expect(problemsOfReading(() => own)).toStrictEqual(problemsOfReading(() => fresh));
        }
      }),
      { numRuns: 30 },
    );
  });

  it('copies for a list only what its new overrides change', () => {
    const [one, other] = [withSets('a.b=1', 'c=2'), withSets('a.b=1', 'c=3')];
    expect(other.root.parts?.get('a')).toBe(one.root.parts?.get('a'));
    const long = Array.from({ length: 100 }, (_, at) => `m.k${at}=${at}`);
    expect(withSets(...long, 'c=1').value).toStrictEqual(withSets(...long, 'c=1').value);
  });

  it('gives priority to later overrides', () => {
    expect(withSets('a=1', 'a={b: 2}', 'a.c=3').value.a).toStrictEqual({ b: 2, c: 3 });
  });

  it('changes one alias without its anchor and other aliases', () => {
    const shared = parseDocument('a: &a {x: 1}\nb: *a\nc: {<<: *a}\n', 'a.yaml');
    expect(applyOverrides(shared, ['b.x=2']).value).toStrictEqual({
      a: { x: 1 },
      b: { x: 2 },
      c: { x: 1 },
    });
  });

  it('locates values in the file or in the override', () => {
    const changed = withSets('model.list.1.x=[5]');
    const override = { file: '--set', excerpt: 'model.list.1.x=[5]' };
    expect(changed.locate(['model', 'list', 1, 'x', 0])).toStrictEqual(override);
    expect(changed.locate(['model', 'list', 1, 'x'], 'key')).toMatchObject({ line: 3, column: 14 });
    expect(changed.locate(['model', 'layers'])).toMatchObject({ file: 'a.yaml', line: 2 });
    expect(withSets('new.key=1').locate(['new', 'key'], 'key')).toMatchObject({ file: '--set' });
  });

  it('does not pollute prototypes', () => {
    const { value } = withSets('__proto__.x=1', 'model.__proto__.y=2', 'constructor.prototype.z=3');
    expect(Object.keys(value)).toContain('__proto__');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect([{}, value, value.model].some((each) => 'x' in (each as object))).toBe(false);
    expect('y' in {} || 'z' in {}).toBe(false);
  });

  it('reports the fault of each override', () => {
    expect(
      problemsOf(
        'x',
        '=3',
        'a..b=2',
        '.a=1',
        'a.=1',
        'm["a.b=3',
        'model.layers.x=2',
        'model.list.x=1',
        'model.list.9=1',
        'x=a: b',
        'x=- b',
        'x=#x',
        'x=@y',
        'x=[1',
        'x=*y',
        'x=!foo y',
        'x=99999999999999999999',
        'x=1\n---\n2',
      ),
    ).toStrictEqual([
      '--set error: "x" has no = → write --set path.to.key=value',
      '--set error: "=3" has an empty key → write --set path.to.key=value',
      '--set error: "a..b=2" has an empty key → write --set path.to.key=value',
      '--set error: ".a=1" has an empty key → write --set path.to.key=value',
      '--set error: "a.=1" has an empty key → write --set path.to.key=value',
      '--set error: "m[\\"a.b=3" cannot be read from character 2 on → write --set path.to.key=value',
      '--set error: model.layers is 3, so it has no key "x" → set model.layers itself, or check the path',
      '--set error: model.list is a list of 2 items, and has no "x" → use an index from 0 to 1, or 2 to add an item',
      '--set error: model.list is a list of 2 items, and has no "9" → use an index from 0 to 1, or 2 to add an item',
      '--set error: the value "a: b" is a mapping → write {key: value} or [item, item], or put a text in quotes',
      '--set error: the value "- b" is a list → write {key: value} or [item, item], or put a text in quotes',
      '--set error: the value "#x" is a comment in YAML → put a value that begins with # in quotes inside the override',
      '--set error: a value cannot begin with "@" → put the value in quotes',
      '--set error: a [ is not closed → add the closing ]',
      '--set error: no anchor "&y" precedes this alias → put a text that begins with * in quotes',
      '--set error: the tag "!foo" does not fit or is not known here → remove the tag: a config needs none',
      '--set error: 99999999999999999999 is beyond 2^53 − 1 → larger integers cannot be read exactly: write a smaller one',
      '--set error: a second document begins here → keep one document, and remove the line "---" before the other',
    ]);
  });

  it('quotes the override with escapes', () => {
    const problems = problemsOfReading(() => withSets('a=[\u202e\u001b'));
    expect(problems.map(({ excerpt }) => excerpt)).toStrictEqual(['a=[\\u202e\\u001b']);
  });

  it('refuses too many levels', () => {
    expect(problemsOf(`${'a.'.repeat(200)}b=1`)).toStrictEqual([
      expect.stringContaining('its path has more than 100 keys'),
    ]);
    expect(problemsOf(`a=${'['.repeat(5000)}`)).toStrictEqual([
      '--set error: nested deeper than 100 levels → use fewer levels',
    ]);
  });
});
