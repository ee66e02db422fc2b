import { describe, expect, it } from 'vitest';
import { guardHeap } from '../../../src/engine/tfjs/backends.js';

const MIB = 2 ** 20;

/** A heap that only counts bytes. */
function fakeModule(limit: number) {
  const sizes = new Map<number, number>();
  let next = 8;
  const used = () => [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  return {
    used,
    _malloc(bytes: number) {
      if (used() + bytes > limit) return 0;
      sizes.set(next, bytes);
      return next++;
    },
    _free: (address: number) => {
      sizes.delete(address);
    },
  };
}

describe('guardHeap', () => {
  it('throws an error for a failed allocation', () => {
    const module = fakeModule(100 * MIB);
    guardHeap(module);
    expect(module._malloc(30 * MIB)).toBeGreaterThan(0);
    expect(() => module._malloc(30 * MIB)).toThrow(/has no room for another \d+ MiB/);
    expect(module.used()).toBe(30 * MIB);
  });

  it('checks for free memory without using it', () => {
    const module = fakeModule(100 * MIB);
    const heap = guardHeap(module);
    heap.reserve(30 * MIB);
    expect(module.used()).toBe(0);
    expect(() => heap.reserve(40 * MIB)).toThrow('has no room');
    expect(heap.limitBytes).toBe(2 ** 32);
  });
});
