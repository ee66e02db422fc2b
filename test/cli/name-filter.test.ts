import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { filterByName } from '../../src/cli/name-filter.js';

const entries = new Map([
  ['embed.weight', 1],
  ['layers.0.srte.freqs', 2],
  ['layers.1.srte.freqs', 3],
]);

/** Error if nothing matches. */
function refusalOf(glob: string, among: ReadonlyMap<string, unknown> = entries) {
  try {
    filterByName(among, glob);
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('not refused');
}

describe('filterByName', () => {
  it('keeps matching entries in their order', () => {
    expect([...filterByName(entries, '*.freqs')]).toEqual([
      ['layers.0.srte.freqs', 2],
      ['layers.1.srte.freqs', 3],
    ]);
    expect(filterByName(entries, undefined)).toBe(entries);
  });

  it.each([
    ['srte', 'did you mean "*srte*"?'],
    ['embed.wieght', 'did you mean "embed.weight"?'],
    ['*.nonsense', '--tensors lists them all; the first is "embed.weight"'],
  ])('suggests a pattern for %j', (glob, suggestion) => {
    const error = refusalOf(glob);
    expect(error.message).toBe(`--filter: no tensor has a name like "${glob}"`);
    expect(error.suggestion).toBe(suggestion);
    expect(error.code).toBe('usage');
  });

  it('reports that there are no tensors', () => {
    expect(refusalOf('*', new Map()).suggestion).toBe('there are no tensors');
  });

  it('refuses too many braces with a user error', () => {
    expect(refusalOf('{a,b}'.repeat(20)).message).toMatch(/^--filter: .*more than 1000 patterns$/);
  });
});
