import { describe, expect, it } from 'vitest';
import {
  ProcessorLimit,
  TimeLimit,
  TimeLimitExceeded,
} from '../../../src/base/files/time-limit.js';

const cell = new Int32Array(new SharedArrayBuffer(4));

/** Time that passes without computing, as for a process that a busy machine stops. */
const wait = (milliseconds: number) => Atomics.wait(cell, 0, 0, milliseconds);

const compute = (milliseconds: number) => {
  const before = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(before);
    if (user + system >= milliseconds * 1000) return;
  }
};

describe('a time limit', () => {
  it('returns the result of a call, and throws its errors', () => {
    const limit = new TimeLimit();
    expect(limit.run(1000, () => 7)).toBe(7);
    expect(() =>
      limit.run(1000, () => {
        throw new RangeError('too large');
      }),
    ).toThrow(new RangeError('too large'));
  });

  it('does not stop a call that waits', () => {
    let calls = 0;
    const work = () => {
      calls++;
      wait(300);
      return 'done';
    };
    expect(new TimeLimit().run(200, work)).toBe('done');
    expect(calls).toBeGreaterThan(1);
  });

  it('stops a call that computes', () => {
    const before = process.cpuUsage();
    expect(() => new TimeLimit().run(200, () => /^(a+)+$/.test(`${'a'.repeat(60)}b`))).toThrow(
      TimeLimitExceeded,
    );
    // Each try ends before 200 ms, or is the last: a busy machine makes at most four of them.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(2000);
  });

  it('stops a call that waits ten times as long', () => {
    const start = performance.now();
    expect(() => new TimeLimit().run(50, () => wait(10_000))).toThrow(TimeLimitExceeded);
    expect(performance.now() - start).toBeGreaterThanOrEqual(500);
  });
});

describe('a limit on processor time', () => {
  it('is exceeded by computing, not by waiting', () => {
    const limit = new ProcessorLimit(200);
    wait(400);
    expect(limit.isExceeded()).toBe(false);
    expect(limit.left).toBeGreaterThan(50);
    compute(200);
    expect(limit.isExceeded()).toBe(true);
    expect(limit.left).toBe(1);
  });

  it('is exceeded by waiting ten times as long', () => {
    const limit = new ProcessorLimit(30);
    wait(300);
    expect(limit.isExceeded()).toBe(true);
  });
});
