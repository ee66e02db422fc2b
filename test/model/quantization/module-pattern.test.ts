import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { modulePatterns } from '../../../src/model/quantization/module-pattern.js';

const matches = (pattern: string, name: string) => modulePatterns([pattern]).matches(name);

describe('patterns of modules', () => {
  it.each([
    ['lm_head', 'lm_head', true],
    ['lm_head', 'model.lm_head', false],
    ['model.layers.1', 'model.layers.10.mlp', true],
    ['model.layers.1.', 'model.layers.10.mlp', true],
    ['.*gate$', 'a.mlp.gate', true],
    ['.*gate$', 'a.mlp.gate_proj', false],
    ['^.*\\.(q|k)_proj', 'x.k_proj', true],
    ['a|b', 'bc', true],
    ['layers\\.\\d+\\.mlp', 'layers.12.mlp', true],
    ['layers\\.[0-3]\\.mlp', 'layers.4.mlp', false],
    ['x?y+z*', 'yyy', true],
    ['x+y', 'y', false],
    ['', 'anything', true],
  ])('match %j with %j: %j', (pattern, name, expected) => {
    expect(matches(pattern, name)).toBe(expected);
  });

  it.each(['(?<!a)b', '(a', 'a{2}', '[z-a]', '\\bx', '(a|b)*', '*', '('.repeat(9)])(
    'match every name when they are not supported: %j',
    (pattern) => {
      expect(modulePatterns([pattern, 'x'])).toMatchObject({ notUnderstood: [pattern] });
      expect(modulePatterns([pattern, 'x']).matches('x')).toBe(true);
    },
  );

  it('match like regular expressions', () => {
    const letters = fc.constantFrom('a', 'b', '.', 'a*', '.*', 'b+', 'a?', '[ab]', '\\.', '(a|b.)');
    const patterns = fc.array(letters, { maxLength: 6 }).map((parts) => parts.join(''));
    const names = fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 8 });
    fc.assert(
      fc.property(patterns, fc.boolean(), names, (text, isClosed, parts) => {
        const pattern = isClosed ? `${text}$` : text;
        const name = parts.join('');
        expect(matches(pattern, name)).toBe(new RegExp(`^(?:${pattern})`).test(name));
      }),
    );
  });

  it('are matched without backtracking', () => {
    expect(matches(`${'a*'.repeat(40)}c`, 'a'.repeat(200))).toBe(false);
    expect(modulePatterns(['(a|b)'.repeat(30)]).notUnderstood).toHaveLength(1);
  });
});
