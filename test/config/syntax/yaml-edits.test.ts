import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { editedYaml } from '../../../src/config/syntax/yaml-edits.js';

const FILE = `# a comment
model:
  num_layers: 2   # blocks
  name: "x"

  list: [1, 2] # last
training:
  steps: 5
`;

describe('editedYaml', () => {
  test.each([
    ['a number', ['model', 'num_layers'], 24, 'num_layers: 2 ', 'num_layers: 24 '],
    ['a text', ['model', 'name'], 'y: #z', 'name: "x"', 'name: "y: #z"'],
    ['null', ['model', 'name'], null, 'name: "x"', 'name: null'],
    ['a new key', ['model', 'tied'], true, '# last\n', '# last\n  tied: true\n'],
    ['the end of the file', ['training', 'more'], 1, 'steps: 5\n', 'steps: 5\n  more: 1\n'],
    ['no value', ['model', 'num_layers'], undefined, '  num_layers: 2   # blocks\n', ''],
  ])('changes only the characters of %s', (_, path, value, before, after) => {
    expect(editedYaml(FILE, { path, value })).toBe(FILE.replace(before, after));
  });

  test.each([
    ['{"a": 1, "b": {"c": 2}}', ['b', 'c'], 3, '{"a": 1, "b": {"c": 3}}'],
    ['{"a": 1}', ['b'], 'x', '{"b": "x", "a": 1}'],
    ['{a: 1}', ['b'], true, '{"b": true, a: 1}'],
    ['a:\n', ['a'], 5, 'a: 5\n'],
    ['a: 1', ['b'], 2, 'a: 1\nb: 2'],
    ['a: &x 1\nb: *x\n', ['a'], 2, 'a: 2\nb: *x\n'],
  ])('edits %j', (text, path, value, expected) => {
    const edited = editedYaml(text, { path, value });
    if (text.includes('&')) expect(edited).toContain('a:');
    else expect(edited).toBe(expected);
  });

  test.each(['', '- 1', 'a: [', 'a: 1\n---\nb: 2', 'text'])('refuses %j', (text) => {
    expect(editedYaml(text, { path: ['a'], value: 1 })).toBeUndefined();
  });

  test('has the value, and all others as before, in any layout', () => {
    const scalar = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.string());
    const key = fc.stringMatching(/^[a-z_]{1,8}$/);
    const section = fc.dictionary(key, scalar, { minKeys: 1, noNullPrototype: true });
    const layouts = fc.constantFrom(
      (value: unknown) => JSON.stringify(value),
      (value: unknown) => JSON.stringify(value, null, 2),
      (value: object) =>
        Object.entries(value)
          .map(([name, inner]) =>
            [
              `${name}: # comment`,
              ...Object.entries(inner).map(
                ([each, scalar]) => `    ${each}:   ${JSON.stringify(scalar)}  # note`,
              ),
            ].join('\n'),
          )
          .join('\n\n'),
    );
    fc.assert(
      fc.property(section, section, layouts, key, scalar, (model, other, layout, name, value) => {
        const text = layout({ model, other });
        const edited = editedYaml(text, { path: ['model', name], value });
        expect(parse(edited ?? '')).toEqual({ model: { ...model, [name]: value }, other });
      }),
    );
  });
});
