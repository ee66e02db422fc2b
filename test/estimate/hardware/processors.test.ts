import { describe, expect, it } from 'vitest';
import { isOfWorkstation } from '../../../src/estimate/fit/places/system-speed.js';
import { knownProcessor } from '../../../src/estimate/hardware/processors.js';
import { systemMemory } from '../../../src/estimate/hardware/system-memory.js';

describe('a processor', () => {
  // Names of /proc/cpuinfo, and as people write them.
  it.each([
    ['AMD Ryzen 9 7950X 16-Core Processor', 2, 'DDR5-5200'],
    ['ryzen 7 5800x3d', 2, 'DDR4-3200'],
    ['5950x', 2, 'DDR4-3200'],
    ['AMD Ryzen 7 7840HS w/ Radeon 780M Graphics', 2, 'DDR5-5600'],
    ['AMD Ryzen AI 9 HX 370 w/ Radeon 890M', 2, 'LPDDR5X-7500'],
    ['AMD RYZEN AI MAX+ 395 w/ Radeon 8060S', 4, 'LPDDR5X-8000'],
    ['13th Gen Intel(R) Core(TM) i9-13900K', 2, 'DDR5-5600'],
    ['i5 12400', 2, 'DDR5-4800'],
    ['Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz', 2, 'DDR4-2667'],
    ['Intel(R) Core(TM) i9-10900X CPU @ 3.70GHz', 4, 'DDR4-2933'],
    ['Intel(R) Core(TM) Ultra 9 285K', 2, 'DDR5-6400'],
    ['AMD EPYC 7763 64-Core Processor', 8, 'DDR4-3200'],
    ['epyc 9374f', 12, 'DDR5-4800'],
    ['AMD EPYC 9655 96-Core Processor', 12, 'DDR5-6400'],
    ['AMD Ryzen Threadripper PRO 5995WX 64-Cores', 8, 'DDR4-3200'],
    ['threadripper 7980x', 4, 'DDR5-5200'],
    ['Intel(R) Xeon(R) Platinum 8480C', 8, 'DDR5-4800'],
    ['Intel(R) Xeon(R) Gold 6342 CPU @ 2.80GHz', 8, 'DDR4-3200'],
    ['Intel(R) Xeon(R) w9-3495X', 8, 'DDR5-4800'],
    ['Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz', 4, 'DDR4-2400'],
  ])('has the channels and memory of its family: %s', (name, channels, memory) => {
    expect(knownProcessor(name)).toMatchObject({ channels, memory });
  });

  it('has the bandwidth of its graphics, of Apple', () => {
    expect(knownProcessor('Apple M2 Pro')).toMatchObject({ bandwidth: 200e9 });
    expect(knownProcessor('m4')).toMatchObject({ bandwidth: 120e9 });
  });

  it.each(['', 'potato', 'Intel(R) Xeon(R) Processor @ 2.20GHz', 'M9'])(
    'is unknown: %j',
    (name) => {
      expect(knownProcessor(name)).toBeUndefined();
      expect(() => systemMemory(null, undefined, name)).toThrow(/unknown processor/);
    },
  );

  it.each([0, -1, Number.NaN])('has no memory of %s bytes', (bytes) => {
    expect(() => systemMemory(bytes, undefined)).toThrow(/expected system memory above 0/);
  });

  it('gives the system memory its channels', () => {
    const most = systemMemory(null, undefined, 'epyc 9374f');
    expect(most).toMatchObject({ bandwidth: 460.8e9, channels: 12, isAssumed: true });
    expect(isOfWorkstation(most)).toBe(true);
    expect(systemMemory(null, 'ddr4-2667', 'epyc 7763').bandwidth).toBeCloseTo(170.7e9, -8);
    expect(systemMemory(null, '4xddr4-2667', 'epyc 7763').channels).toBe(4);
    expect(systemMemory(null, '90GB/s', 'i9-14900k')).toMatchObject({
      bandwidth: 90e9,
      channels: 2,
    });
  });
});
