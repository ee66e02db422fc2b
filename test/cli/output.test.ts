import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeFileWhole } from '../../src/cli/output.js';
import { renderOptions } from '../../src/cli/terminal.js';

let folder = '';
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

describe('writeFileWhole', () => {
  const inFolder = (name: string) => path.join(folder, name);

  it('writes, and leaves nothing beside', () => {
    writeFileWhole(inFolder('a'), 'text', false);
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('text');
    expect(fs.readdirSync(folder)).toEqual(['a']);
  });

  it('keeps what is there, unless forced', () => {
    fs.writeFileSync(inFolder('a'), 'old');
    expect(() => writeFileWhole(inFolder('a'), 'new', false)).toThrow('exists already');
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('old');
    writeFileWhole(inFolder('a'), 'new', true);
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('new');
    expect(fs.readdirSync(folder)).toEqual(['a']);
  });

  it('writes through a link to what it leads to', () => {
    fs.writeFileSync(inFolder('real'), 'old');
    fs.symlinkSync('real', inFolder('link'));
    writeFileWhole(inFolder('link'), 'new', true);
    expect(fs.readFileSync(inFolder('real'), 'utf8')).toBe('new');
    expect(fs.lstatSync(inFolder('link')).isSymbolicLink()).toBe(true);
  });

  it('keeps the permissions of what it replaces', () => {
    fs.writeFileSync(inFolder('a'), 'old', { mode: 0o600 });
    writeFileWhole(inFolder('a'), 'new', true);
    expect(fs.statSync(inFolder('a')).mode & 0o777).toBe(0o600);
  });

  it('takes a name as long as the system does, and refuses a longer one', () => {
    writeFileWhole(inFolder('a'.repeat(255)), 'text', false);
    expect(fs.readdirSync(folder)).toEqual(['a'.repeat(255)]);
    expect(() => writeFileWhole(inFolder('a'.repeat(256)), 'text', false)).toThrow(/ENAMETOOLONG/);
    expect(() => writeFileWhole('', 'text', false)).toThrow('is empty');
    expect(fs.readdirSync(folder)).toHaveLength(1);
  });

  it('does not replace a device', () => {
    writeFileWhole('/dev/null', 'text', true);
    expect(fs.statSync('/dev/null').isCharacterDevice()).toBe(true);
  });

  it('says what is wrong with a place', () => {
    expect(() => writeFileWhole(folder, 'text', true)).toThrow('is a folder');
    expect(() => writeFileWhole(inFolder('no/such/a'), 'text', false)).toThrow('no such folder');
    fs.writeFileSync(inFolder('a'), '');
    expect(() => writeFileWhole(inFolder('a/b'), 'text', false)).toThrow('no such folder');
    expect(() => writeFileWhole('/dev/full', 'text', false)).toThrow(/ENOSPC/);
  });
});

describe('renderOptions', () => {
  const terminal = { isTTY: true, columns: 100, getColorDepth: () => 8 };
  const pipe = { ...terminal, isTTY: false };

  it('takes width and colours from the terminal, none from a pipe', () => {
    expect(renderOptions(terminal, false, {})).toEqual({ width: 100, colourLevel: 2 });
    expect(renderOptions(pipe, false, {})).toEqual({ width: Infinity, colourLevel: 0 });
  });

  it.each([
    [{ NO_COLOR: '1' }, false, 0],
    [{ NO_COLOR: '' }, false, 2],
    [{ FORCE_COLOR: '3' }, false, 3],
    [{ FORCE_COLOR: '0' }, false, 0],
    [{ FORCE_COLOR: '', NO_COLOR: '1' }, false, 1],
    [{ FORCE_COLOR: '1' }, true, 0],
  ] as const)('%j, --no-color %s: level %d', (env, noColor, level) => {
    expect(renderOptions(terminal, noColor, env).colourLevel).toBe(level);
  });
});
