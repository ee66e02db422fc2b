/** Memory and blocks of conversions, planned without reading a table. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  JAVASCRIPT,
  plannedMemory,
  resourcesFor,
} from '../../../src/convert/conversion/resources.js';
import type { SrtePlan } from '../../../src/convert/conversion/srte/srte-plan.js';

const SIZES = { positions: 65_536, hidden: 4096, sharing: 'shared' };

/** Plan of one pair from two tables. */
const LARGE = {
  source: { ...SIZES, rank: null, layers: 2 },
  target: { ...SIZES, rank: 2048 },
  tables: [{ form: 'low-rank', isMade: true, sources: [0, 1], replaces: [] }],
} as unknown as SrtePlan;
const WITHOUT = { maxMemory: undefined };

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a plan without --max-memory', () => {
  it('has 512 MB if they are enough', () => {
    expect(plannedMemory(null, WITHOUT, JAVASCRIPT, 1000).limitBytes).toBe(512e6);
  });

  it.each([
    ['a large pair', LARGE, 100],
    ['many tensors', null, 140_000],
    ['both', LARGE, 40_000],
  ])('has the required memory, with the blocks of a large limit: %s', (_, srte, tensors) => {
    const planned = plannedMemory(srte, WITHOUT, JAVASCRIPT, tensors);
    const ample = plannedMemory(srte, { maxMemory: 64e9 }, JAVASCRIPT, tensors);
    expect(planned.blockRows).toBe(ample.blockRows);
    expect(planned.limitBytes).toBeGreaterThan(512e6);
    expect(planned.limitBytes).toBeLessThan(1.5e9);
    expect(planned.peakBytes).toBeLessThanOrEqual(planned.limitBytes);
  });

  it.each([150e6, 170e6, 203e6, 900e6])(
    'is the same in a process of %d bytes',
    async (resident) => {
      const expected = plannedMemory(LARGE, WITHOUT, JAVASCRIPT, 100);
      vi.spyOn(process.memoryUsage, 'rss').mockReturnValue(resident);
      expect(plannedMemory(LARGE, WITHOUT, JAVASCRIPT, 100)).toEqual(expected);
      const job = { ...WITHOUT, engine: 'tfjs', threads: 1 } as const;
      const here = await resourcesFor(LARGE, job);
      await here.backend.close();
      expect(here.blockRows).toBe(expected.blockRows);
    },
  );
});

describe('a plan with --max-memory', () => {
  it('has smaller blocks, or is refused with the required memory', () => {
    const small = plannedMemory(LARGE, { maxMemory: 720e6 }, JAVASCRIPT, 100);
    const ample = plannedMemory(LARGE, { maxMemory: 64e9 }, JAVASCRIPT, 100);
    expect(small.blockRows).toBeLessThan(ample.blockRows);
    expect(small.limitBytes).toBe(720e6);
    expect(small.peakBytes).toBeLessThanOrEqual(720e6);
    const tooSmall = () => plannedMemory(LARGE, { maxMemory: 500e6 }, JAVASCRIPT, 100);
    expect(tooSmall).toThrow(/--max-memory 500\.0 MB is not enough: .* takes at least \d+\.\d MB/);
  });
});
