import { describe, expect, it } from 'vitest';
import { isAsciiOnly, renderOptions } from '../../src/cli/output.js';

describe('renderOptions', () => {
  const terminal = { isTTY: true, columns: 100, rows: 30, getColorDepth: () => 8 };
  const pipe = { ...terminal, isTTY: false };

  it('have width and colours of a terminal, and none for a pipe', () => {
    expect(renderOptions(terminal, false, {})).toEqual({
      width: 100,
      height: 30,
      colourLevel: 2,
      isAscii: false,
    });
    expect(renderOptions(pipe, false, {})).toEqual({
      width: Infinity,
      colourLevel: 0,
      isAscii: false,
    });
  });

  it('are 80 by 24 for a terminal without a size', () => {
    const unknown = { ...terminal, columns: 0, rows: 0 };
    expect(renderOptions(unknown, true, {})).toMatchObject({ width: 80, height: 24 });
  });

  it.each([
    [{ NO_COLOR: '1' }, false, 0],
    [{ NO_COLOR: '' }, false, 2],
    [{ FORCE_COLOR: '3' }, false, 3],
    [{ FORCE_COLOR: '0' }, false, 0],
    [{ FORCE_COLOR: '', NO_COLOR: '1' }, false, 1],
    [{ FORCE_COLOR: '1' }, true, 0],
  ] as const)('with %j and --no-color %s have colour level %d', (env, noColor, level) => {
    expect(renderOptions(terminal, noColor, env).colourLevel).toBe(level);
  });
});

describe('isAsciiOnly', () => {
  it.each([
    [{}, false],
    [{ LANG: 'en_US.UTF-8' }, false],
    [{ LANG: 'C.utf8' }, false],
    [{ LANG: 'C' }, true],
    [{ LANG: 'de_DE.ISO-8859-1' }, true],
    [{ LANG: 'C', LC_ALL: 'en_US.UTF-8' }, false],
    [{ LANG: 'en_US.UTF-8', LC_CTYPE: 'POSIX' }, true],
    [{ LANG: 'en_US.UTF-8', TERM: 'linux' }, true],
  ] as const)('is for %j: %s', (env, expected) => {
    expect(isAsciiOnly(env, 'linux')).toBe(expected);
  });

  it('ignores the locale of Unix on Windows', () => {
    expect(isAsciiOnly({ LANG: 'C' }, 'win32')).toBe(false);
  });
});
