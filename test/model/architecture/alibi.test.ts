import { expect, test } from 'vitest';
import { alibiSlopes } from '../../../src/model/architecture/masks.js';

test('eight heads have slopes 1/2 to 1/256, as in the paper', () => {
  expect([...alibiSlopes(8)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((power) => 2 ** -power));
});

test('the slopes of sixteen heads begin with 1/sqrt(2), as in the paper', () => {
  const slopes = alibiSlopes(16);
  expect(slopes[0]).toBeCloseTo(Math.SQRT1_2, 7);
  expect(slopes[15]).toBeCloseTo(2 ** -8, 7);
});

// build_alibi_tensor of transformers for 12 heads: the slopes of 8, then every other slope of 16.
test('heads beyond a power of two use every other slope of the next power', () => {
  const [eight, sixteen] = [alibiSlopes(8), alibiSlopes(16)];
  expect([...alibiSlopes(12)]).toEqual([...eight, sixteen[0], sixteen[2], sixteen[4], sixteen[6]]);
  expect([...alibiSlopes(1)]).toEqual([2 ** -8]);
});
