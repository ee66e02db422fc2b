import { expect, it } from 'vitest';
import { decodingKeys } from '../../../src/engine/calls.js';
import { chunkWindow } from '../../../src/model/architecture/constructors/attention-layers.js';
import { firstVisibleKey, visiblePairs } from '../../../src/model/architecture/masks.js';

const window = chunkWindow(4);

it('a position sees the keys of its own chunk', () => {
  const first = Array.from({ length: 10 }, (_, at) => firstVisibleKey(at, 10, window));
  expect(first).toEqual([0, 0, 0, 0, 4, 4, 4, 4, 8, 8]);
  expect([...decodingKeys(3, 3, window, 10)]).toEqual([0, 4, 4]);
});

it('visiblePairs counts the pairs of a query and a visible key', () => {
  const pairs = Array.from({ length: 10 }, (_, at) => at - firstVisibleKey(at, 10, window) + 1);
  expect(visiblePairs(10, window)).toBe(BigInt(pairs.reduce((sum, count) => sum + count, 0)));
});
