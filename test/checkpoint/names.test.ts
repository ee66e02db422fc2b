import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { NAME_RULES, ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { canonicalNames, layerNumber } from '../../src/checkpoint/names.js';

const strip = (...names: string[]) => [...canonicalNames(names, 'm.pt').values()];

describe('canonicalNames', () => {
  it.each([
    [['a.weight'], ['a.weight']],
    [
      ['module.a', 'module.b'],
      ['a', 'b'],
    ],
    [
      ['_orig_mod.a', '_orig_mod.b'],
      ['a', 'b'],
    ],
    [
      ['module._orig_mod.a', 'module._orig_mod.b'],
      ['a', 'b'],
    ],
    [
      ['_orig_mod.module.a', '_orig_mod.module.b'],
      ['a', 'b'],
    ],
    [
      ['module.module.a', 'module.b'],
      ['module.a', 'b'],
    ],
    // A prefix of only some names belongs to the model.
    [
      ['module.a', 'b'],
      ['module.a', 'b'],
    ],
    [
      ['_orig_mod.a', 'b'],
      ['_orig_mod.a', 'b'],
    ],
    // Inside a name, it is removed even if other names lack it.
    [
      ['layers.0._orig_mod.a', 'b'],
      ['layers.0.a', 'b'],
    ],
    [['layers.0._orig_mod._orig_mod.a'], ['layers.0.a']],
    [
      ['module._orig_mod.a', 'module.b'],
      ['a', 'b'],
    ],
    // Not a complete part of the name.
    [['a.x_orig_mod.b'], ['a.x_orig_mod.b']],
    [['a._orig_mod'], ['a._orig_mod']],
    [['modules.a'], ['modules.a']],
    [['module'], ['module']],
    [[], []],
  ])('maps %j to %j', (names, canonical) => expect(strip(...names)).toEqual(canonical));

  it('keeps the names of the file as keys, in their order', () => {
    const names = ['module.__proto__', 'module.0', 'module.constructor'];
    expect([...canonicalNames(names, 'm.pt')]).toEqual([
      ['module.__proto__', '__proto__'],
      ['module.0', '0'],
      ['module.constructor', 'constructor'],
    ]);
  });

  const refused = (...names: string[]) => {
    try {
      canonicalNames(names, 'm.pt');
    } catch (error) {
      return error;
    }
    return undefined;
  };

  it('refuses two names that become one', () => {
    const error = refused('layers.0.a', 'layers.0._orig_mod.a');
    expect(ruleOf(error)).toBe('names-collide');
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).problems[0]).toMatchObject({
      file: 'm.pt',
      path: 'tensor "layers.0._orig_mod.a"',
      message: 'is "layers.0.a" without the prefixes of wrappers, and so is tensor "layers.0.a"',
    });
  });

  it('has one rule', () => {
    expect(Object.keys(NAME_RULES)).toEqual(['names-collide']);
  });

  it('is fast for names of 100,000 prefixes', () => {
    const deep = `${'._orig_mod'.repeat(100_000)}x`;
    expect(strip(deep)).toEqual(['._orig_modx']);
    expect(strip(`${'module.'.repeat(100_000)}a`)).toEqual(['a']);
  });
});

describe('layerNumber', () => {
  it.each([
    ['0', 0],
    ['7', 7],
    ['10', 10],
    ['99999', 99_999],
    ['100000', undefined],
    ['00', undefined],
    ['07', undefined],
    ['-1', undefined],
    ['1.0', undefined],
    ['٣', undefined],
    ['', undefined],
    ['a', undefined],
  ])('of %j is %s', (text, number) => expect(layerNumber(text)).toBe(number));
});
