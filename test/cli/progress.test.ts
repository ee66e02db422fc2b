import { describe, expect, it } from 'vitest';
import { progress } from '../../src/cli/progress.js';

/** Stream, and a clock that advances only by hand. */
function testEnvironment(isTTY: boolean, columns = 80) {
  const written: string[] = [];
  const clock = { time: 5000 };
  const stream = {
    isTTY,
    columns,
    write: (text: string) => {
      written.push(text);
      return true;
    },
  };
  return { written, clock, environment: { stream, now: () => clock.time } };
}

const CLEAR = '\r\x1b[K';

describe('progress on a terminal', () => {
  it('shows nothing for work of less than a second', () => {
    const { written, clock, environment } = testEnvironment(true);
    const { add, end } = progress({ quiet: false }, 'reading', 1e9, environment);
    clock.time += 999;
    add(1e9);
    end();
    expect(written).toEqual([]);
  });

  it('shows bytes, rate and time left in one line, and clears it', () => {
    const { written, clock, environment } = testEnvironment(true);
    const { add, end } = progress({ quiet: false }, 'reading', 1e9, environment);
    add(100e6);
    clock.time += 2000;
    add(300e6);
    expect(written).toEqual(['\rreading: 400.0 MB of 1.0 GB (40.0%), 200.0 MB/s, 3 s left\x1b[K']);
    end();
    end();
    expect(written.slice(1)).toEqual([CLEAR]);
  });

  it('shows counts other than bytes', () => {
    const { written, clock, environment } = testEnvironment(true);
    const { add, end } = progress({ quiet: false }, 'counting models', 1000, environment, String);
    clock.time += 2000;
    add(400);
    expect(written).toEqual(['\rcounting models: 400 of 1000 (40.0%), 200/s, 3 s left\x1b[K']);
    end();
  });

  it('draws at most ten lines per second', () => {
    const { written, clock, environment } = testEnvironment(true);
    const { add, end } = progress({ quiet: false }, 'reading', 1e9, environment);
    for (let step = 0; step < 300; step++) {
      clock.time += 10;
      add(1);
    }
    end();
    // Nothing in the first of three seconds, then ten lines per second, and one that clears.
    expect(written).toHaveLength(21 + 1);
  });

  it('fits into its columns', () => {
    const { written, clock, environment } = testEnvironment(true, 30);
    const { add, end } = progress({ quiet: false }, 'reading', 1e9, environment);
    clock.time += 2000;
    add(400e6);
    expect(written).toEqual(['\rreading: 400.0 MB of 1.0 GB (\x1b[K']);
    end();
  });

  it('clears its line at the end of the process', () => {
    const listeners = process.listenerCount('exit');
    const { clock, environment } = testEnvironment(true);
    const { add, end } = progress({ quiet: false }, 'reading', 1e9, environment);
    clock.time += 2000;
    add(1);
    expect(process.listenerCount('exit')).toBe(listeners + 1);
    end();
    expect(process.listenerCount('exit')).toBe(listeners);
  });
});

describe('progress in a log', () => {
  it('writes a line every ten seconds', () => {
    const { written, clock, environment } = testEnvironment(false);
    const { add, end } = progress({ quiet: false }, 'hashing', 36e9, environment);
    for (let second = 0; second < 25; second++) {
      clock.time += 1000;
      add(10e6);
    }
    end();
    expect(written).toEqual([
      'hashing: 100.0 MB of 36.0 GB (0.28%), 10.0 MB/s, 59 min 50 s left\n',
      'hashing: 200.0 MB of 36.0 GB (0.56%), 10.0 MB/s, 59 min 40 s left\n',
    ]);
  });

  it('shows hours', () => {
    const { written, clock, environment } = testEnvironment(false);
    const { add } = progress({ quiet: false }, 'hashing', 50e9, environment);
    clock.time += 10_000;
    add(100e6);
    expect(written).toEqual(['hashing: 100.0 MB of 50.0 GB (0.20%), 10.0 MB/s, 1 h 23 min left\n']);
  });

  it('does not divide by zero', () => {
    const { written, clock, environment } = testEnvironment(false);
    const { add } = progress({ quiet: false }, 'reading', 0, environment);
    clock.time += 10_000;
    add(0);
    expect(written).toEqual(['reading: 0 B of 0 B (–), 0 B/s\n']);
  });
});

it('progress is silent with --quiet', () => {
  const { written, clock, environment } = testEnvironment(true);
  const { add, end } = progress({ quiet: true }, 'reading', 1e9, environment);
  clock.time += 1e6;
  add(1);
  end();
  expect(written).toEqual([]);
});
