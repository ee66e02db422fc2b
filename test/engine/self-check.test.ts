import { describe, expect, it } from 'vitest';
import { productSpeed, selfCheck } from '../../src/engine/select/self-check.js';
import { type Faults, referenceEngine } from './reference-engine.js';

describe('the self-check', () => {
  it('expects the logits of float64 arithmetic', async () => {
    const { difference, passed } = await selfCheck(referenceEngine());
    // Only the rounding of the result to float32 remains.
    expect(difference).toBeLessThan(1e-7);
    expect(passed).toBe(true);
  });

  const wrong: Record<string, Faults> = {
    'no mask': { noMask: true },
    'a slightly wrong value': {
      alter: (path, { data }) => {
        if (path === 'layers.0.mamba.conv1d')
          for (const at of data.keys()) data[at] = (data[at] ?? 0) + 1e-3;
      },
    },
    'a slightly wrong expert': {
      alter: (path, { data }) => {
        if (path === 'blocks.0.mixture.experts.2')
          for (const at of data.keys()) data[at] = (data[at] ?? 0) + 1e-3;
      },
    },
    NaN: {
      alter: (path, { data }) => {
        if (path === 'norm') data.fill(Number.NaN);
      },
    },
  };
  it.each(Object.entries(wrong))('finds %s', async (_, faults) => {
    const { difference, limit, passed } = await selfCheck(referenceEngine(faults));
    expect(passed).toBe(false);
    expect(difference).toBeGreaterThan(limit);
  });
});

describe('the speed of a product', () => {
  it('is a number of operations per second', async () => {
    const speed = await productSpeed(referenceEngine());
    // Plain loops: more than a million, but less than a processor can.
    expect(speed).toBeGreaterThan(1e6);
    expect(speed).toBeLessThan(1e11);
  });
});
