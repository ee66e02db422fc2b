import { expect, it } from 'vitest';
import { measureMemory } from '../../src/engine/memory-bandwidth.js';

it('the memory is read by threads, at a rate with a spread', async () => {
  const { least, median, most } = await measureMemory(2, 64 * 2 ** 20);
  expect(least).toBeGreaterThan(1e8);
  expect(median).toBeGreaterThanOrEqual(least);
  expect(most).toBeGreaterThanOrEqual(median);
  expect(most).toBeLessThan(1e13);
});
