import { describe, expect, it } from 'vitest';
import { steps } from '../../src/cli/progress.js';

/** Stream, and a timer that rings only by hand. */
function testEnvironment(isTTY: boolean, columns = 80) {
  const written: string[] = [];
  const timer = { milliseconds: 0, ring: () => {}, isStopped: false };
  const stream = {
    isTTY,
    columns,
    write: (text: string) => {
      written.push(text);
      return true;
    },
  };
  const every = (milliseconds: number, ring: () => void) => {
    Object.assign(timer, { milliseconds, ring });
    return () => {
      timer.isStopped = true;
    };
  };
  const clock = { milliseconds: 0 };
  const environment = { stream, every, now: () => clock.milliseconds };
  return { written, timer, clock, environment };
}

it.each([true, false])('steps show nothing before the first step, terminal: %s', (isTTY) => {
  const { written, timer, environment } = testEnvironment(isTTY);
  steps({ quiet: false }, environment);
  timer.ring();
  expect(written).toEqual([]);
});

describe('steps on a terminal', () => {
  it('show nothing for work of less than a second', () => {
    const { written, timer, environment } = testEnvironment(true);
    const { doing, end } = steps({ quiet: false }, environment);
    expect(timer.milliseconds).toBe(1000);
    doing('checking forward');
    end();
    expect(written).toEqual([]);
    expect(timer.isStopped).toBe(true);
  });

  it('show the current step in one line, and clear it', () => {
    const { written, timer, environment } = testEnvironment(true);
    const { doing, end } = steps({ quiet: false }, environment);
    doing('checking forward');
    timer.ring();
    doing('checking cache');
    end();
    end();
    expect(written).toEqual(['\rchecking forward …\x1b[K', '\rchecking cache …\x1b[K', '\r\x1b[K']);
  });

  it('show the time of the task', () => {
    const { written, timer, clock, environment } = testEnvironment(true);
    const { doing, end } = steps({ quiet: false }, environment);
    doing('[2/7] causality');
    clock.milliseconds = 12_300;
    timer.ring();
    end();
    expect(written[0]).toBe('\r[2/7] causality … 12 s\x1b[K');
  });

  it('fit into their columns', () => {
    const { written, timer, environment } = testEnvironment(true, 10);
    const { doing, end } = steps({ quiet: false }, environment);
    doing('checking forward');
    timer.ring();
    end();
    expect(written[0]).toBe('\rchecking \x1b[K');
  });
});

describe('steps in a log', () => {
  it('write a line every ten seconds', () => {
    const { written, timer, environment } = testEnvironment(false);
    const { doing, end } = steps({ quiet: false }, environment);
    expect(timer.milliseconds).toBe(10_000);
    doing('checking forward');
    doing('checking cache');
    timer.ring();
    end();
    expect(written).toEqual(['checking cache …\n']);
  });

  it('write nothing with --quiet', () => {
    const { written, timer, environment } = testEnvironment(true);
    const { doing, end } = steps({ quiet: true }, environment);
    doing('checking forward');
    timer.ring();
    end();
    expect(written).toEqual([]);
  });
});
