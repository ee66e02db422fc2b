import fs from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { UserError } from '../../src/base/errors.js';
import { ByteFile } from '../../src/checkpoint/byte-file.js';
import { ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { fileOf } from './byte-files.js';
import { fileIn, folderOf } from './temp-folder.js';

afterEach(() => {
  vi.restoreAllMocks();
});

function thrownBy(action: () => unknown): UserError {
  try {
    action();
  } catch (error) {
    return error as UserError;
  }
  throw new Error('nothing was thrown');
}

const systemError = (code: string) => Object.assign(new Error(`${code}: said no`), { code });

const bytes = Buffer.from('0123456789');

describe('reading a file', () => {
  it('returns the bytes at any position', async () => {
    const file = fileOf(bytes);
    expect(file.size).toBe(10);
    expect(file.read(3, 4).toString()).toBe('3456');
    expect(file.read(10, 0)).toHaveLength(0);
    const target = Buffer.alloc(4);
    file.readInto(target.subarray(1, 3), 8);
    expect(target.toString('latin1')).toBe('\x0089\0');
    await file.readIntoAsync(target, 0);
    expect(target.toString()).toBe('0123');
  });

  it('continues after a short read', async () => {
    const file = fileOf(bytes);
    const { readSync } = fs;
    vi.spyOn(fs, 'readSync').mockImplementation(((
      descriptor: number,
      target: Uint8Array,
      offset: number,
      length: number,
      position: number,
    ) => readSync(descriptor, target, offset, Math.min(3, length), position)) as typeof readSync);
    expect(file.read(1, 8).toString()).toBe('12345678');
  });

  it('refuses a file that was truncated', async () => {
    const path = fileIn('model.bin', bytes);
    const file = ByteFile.open(path);
    fs.truncateSync(path, 4);
    const error = thrownBy(() => file.read(2, 8));
    expect(ruleOf(error)).toBe('file-is-whole');
    expect(error.problems[0]).toMatchObject({ file: path, path: 'byte 4' });
    const late = file.readIntoAsync(new Uint8Array(8), 2);
    expect(await late.catch(ruleOf)).toBe('file-is-whole');
    file.close();
  });

  it('reports an error of the system with the path', async () => {
    const file = fileOf(bytes);
    vi.spyOn(fs, 'readSync').mockImplementation(() => {
      throw systemError('EIO');
    });
    expect(thrownBy(() => file.read(0, 1))).toMatchObject({
      code: 'system',
      message: `cannot read ${file.path}: EIO: said no`,
    });
    vi.spyOn(fs, 'read').mockImplementation(((...args: unknown[]) => {
      const done = args.at(-1) as (error: Error, count: number) => void;
      done(systemError('EIO'), 0);
    }) as typeof fs.read);
    await expect(file.readIntoAsync(new Uint8Array(1), 0)).rejects.toMatchObject({
      code: 'system',
      message: `cannot read ${file.path}: EIO: said no`,
    });
  });

  it('throws a bug after the file was closed', async () => {
    const file = ByteFile.open(fileIn('model.bin', bytes));
    file.close();
    file.close();
    expect(thrownBy(() => file.read(0, 1))).not.toHaveProperty('code');
    await expect(file.readIntoAsync(new Uint8Array(1), 0)).rejects.toThrow('after it was closed');
  });
});

describe('opening a file', () => {
  it.each(['no/such/file', 'a\0b', 'x'.repeat(5000)])('reports a missing file: %j', (path) => {
    expect(thrownBy(() => ByteFile.open(path))).toMatchObject({
      code: 'usage',
      message: `there is no file or folder ${path}`,
    });
  });

  it('reports a path below a file', () => {
    expect(thrownBy(() => ByteFile.open(`${fileIn('a', '')}/b`)).code).toBe('usage');
  });

  it('refuses folders, and closes them', () => {
    const openSync = vi.spyOn(fs, 'openSync');
    const closeSync = vi.spyOn(fs, 'closeSync');
    expect(ruleOf(thrownBy(() => ByteFile.open(folderOf({}))))).toBe('file-is-regular');
    expect(closeSync).toHaveBeenCalledTimes(openSync.mock.calls.length);
  });

  it.runIf(fs.existsSync('/dev/null'))('refuses devices', () => {
    expect(ruleOf(thrownBy(() => ByteFile.open('/dev/null')))).toBe('file-is-regular');
  });

  it.each([
    ['EACCES', 'check the permissions of the file'],
    ['EMFILE', 'allow more open files, as with: ulimit -n 16384'],
    ['EIO', undefined],
  ])('suggests a fix for %s', (code, suggestion) => {
    vi.spyOn(fs, 'openSync').mockImplementation(() => {
      throw systemError(code);
    });
    expect(thrownBy(() => ByteFile.open('model.pt'))).toMatchObject({
      code: 'system',
      message: `cannot read model.pt: ${code}: said no`,
      suggestion,
    });
  });
});
