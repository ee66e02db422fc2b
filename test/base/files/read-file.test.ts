import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { beginMounts, mount } from '../../../src/base/files/mounted.js';
import { readFileAtMost, readText } from '../../../src/base/files/read-file.js';
import { inPackage } from '../../fixtures.js';
import { runHere } from '../../run-here.js';

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  fs.writeFileSync(path.join(folder, 'ten.txt'), '0123456789');
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const at = (name: string) => path.join(folder, name);

function pipeAt(...names: string[]): string {
  const place = at(path.join(...names));
  fs.mkdirSync(path.dirname(place), { recursive: true });
  execFileSync('sh', ['-c', 'mkfifo "$0"', place]);
  return place;
}

const hasPipes = process.platform !== 'win32';

describe('readFileAtMost', () => {
  it('reads a whole file up to the bound', async () => {
    expect(String(await readFileAtMost(at('ten.txt'), { most: 10 }))).toBe('0123456789');
    expect(await readFileAtMost(at('ten.txt'), { most: 9 })).toBeUndefined();
  });

  it('fails with the system error for a folder and a missing file', async () => {
    await expect(readFileAtMost(folder, { most: 1 })).rejects.toMatchObject({ code: 'EISDIR' });
    await expect(readFileAtMost(at('no'), { most: 1 })).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it.skipIf(!fs.existsSync('/dev/zero'))('reads no more of a device than the bound', async () => {
    expect(await readFileAtMost('/dev/zero', { most: 1e6 })).toBeUndefined();
    expect(await readFileAtMost('/dev/null', { most: 1e6 })).toHaveLength(0);
  });

  it.skipIf(!hasPipes)('refuses a pipe that was found, without waiting', async () => {
    const pipe = pipeAt('found');
    await expect(readFileAtMost(pipe, { most: 10, isFound: true })).rejects.toMatchObject({
      code: 'refused-file',
      message: `expected a regular file at ${pipe}, found a named pipe`,
    });
  });
});

describe('readText', () => {
  const read = (place: string) => readText(place, { most: 9, suggestion: 'cut it' });

  it('names the fault of a file', async () => {
    await expect(read(at('ten.txt'))).rejects.toMatchObject({
      code: 'refused-file',
      message: `${at('ten.txt')} is larger than 0.000009 MB, the most that is read`,
      suggestion: 'cut it',
    });
    fs.writeFileSync(at('bytes'), Buffer.from([0xff, 0xfe]));
    await expect(read(at('bytes'))).rejects.toThrow('is not UTF-8 text');
    await expect(read(folder)).rejects.toThrow('is a folder where a file should be');
    await expect(read(at('no'))).rejects.toThrow('there is no file or folder');
  });

  it('keeps the advice of a mounted folder', async () => {
    const error = new UserError('system', 'the hub is busy', { suggestion: 'try again later' });
    const unused = () => {
      throw new Error('not used');
    };
    mount('hf:org/busy', {
      names: new Set(['merges.txt']),
      open: unused,
      read: () => Promise.reject(error),
      willOpen: unused,
    });
    try {
      await expect(read('hf:org/busy/merges.txt')).rejects.toBe(error);
    } finally {
      beginMounts();
    }
  });
});

describe('commands', () => {
  it.skipIf(!hasPipes).each(['config.yaml', 'config.yml', 'config.json'])(
    'refuse a pipe named %s in a folder',
    async (name) => {
      const pipe = pipeAt(`model-${name}`, name);
      const { code, stderr } = await runHere(['profile', path.dirname(pipe)]);
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: expect.stringContaining(`expected a regular file at ${pipe}, found a named pipe`),
      });
    },
  );

  it.skipIf(!hasPipes)('refuse a pipe that is the config of a checkpoint', async () => {
    const pipe = pipeAt('beside', 'config.yaml');
    const checkpoint = path.join(path.dirname(pipe), 'model.safetensors');
    const header = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
    const length = Buffer.alloc(8);
    length.writeUInt32LE(header.length);
    fs.writeFileSync(checkpoint, Buffer.concat([length, Buffer.from(header), Buffer.alloc(4)]));
    const { code, stderr } = await runHere(['profile', checkpoint]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(`expected a regular file at ${pipe}, found a named pipe`),
    });
  });

  it.skipIf(!fs.existsSync('/dev/zero')).each([
    ['quick-test', inPackage('configs/hybrid/recommended.yaml'), '--ids', '/dev/zero'],
    [
      'compare',
      '--tokenizer',
      '/dev/zero',
      '--text',
      '/dev/zero',
      inPackage('configs/hybrid/original.yaml'),
    ],
    ['fit', inPackage('configs/hybrid/original.yaml'), '--hardware', '/dev/zero'],
    ['profile', '/dev/zero'],
  ])('read a bounded part of a device: %s', async (...args) => {
    const { code, stderr } = await runHere(args);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('is larger than'),
    });
  });
});
