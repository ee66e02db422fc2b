import { describe, expect, it } from 'vitest';
import { type Fold, folded } from '../../../src/model/diagram/fold.js';

const textOf = (fold: Fold<string>): string =>
  (fold.count > 1 ? `${fold.count}×` : '') +
  (Array.isArray(fold.of)
    ? `(${(fold.of as Fold<string>[]).map(textOf).join(' ')})`
    : String(fold.of));

describe('folded', () => {
  it.each([
    ['aaaa', '4×a'],
    ['abab', '2×(a b)'],
    ['lllllglllllgll', '2×(5×l g) 2×l'],
    ['ddmmmm', '2×d 4×m'],
    ['aabaab', '2×(2×a b)'],
    ['abc', 'a b c'],
    ['', ''],
  ])('folds %s', (letters, expected) => {
    const items = [...letters];
    expect(folded(items, items).map(textOf).join(' ')).toBe(expected);
  });
});
