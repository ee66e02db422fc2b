import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import type { ByteSink } from '../../../src/base/files/write-whole.js';
import { writeWhole } from '../../../src/base/files/write-whole.js';

let folder = '';
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

const inFolder = (name: string) => path.join(folder, name);
const content = (text: string) => async (sink: ByteSink) => sink.write(Buffer.from(text));
const never = async () => {
  throw new Error('was asked for content');
};

describe('writeWhole', () => {
  it('writes a file and leaves no others', async () => {
    await writeWhole(inFolder('a'), false, content('text'));
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('text');
    expect(fs.readdirSync(folder)).toEqual(['a']);
  });

  it('writes pieces of any size in order, and lets their memory be reused', async () => {
    const sizes = [1, 3, 2 ** 18, 2 ** 18 - 1, 2, 2 ** 18 + 1, 0, 2 ** 19, 5];
    const expected: Buffer[] = [];
    await writeWhole(inFolder('a'), false, async (sink) => {
      const memory = Buffer.alloc(2 ** 19);
      let position = 0;
      for (const [index, size] of sizes.entries()) {
        expect(sink.position).toBe(position);
        const piece = memory.subarray(0, size).fill(index + 1);
        expected.push(Buffer.from(piece));
        await sink.write(piece);
        position += size;
      }
    });
    expect(fs.readFileSync(inFolder('a')).equals(Buffer.concat(expected))).toBe(true);
  });

  it('shows no part of the file before it is whole', async () => {
    await writeWhole(inFolder('a'), false, async (sink) => {
      await sink.write(Buffer.alloc(2 ** 20));
      expect(fs.existsSync(inFolder('a'))).toBe(false);
      expect(fs.readdirSync(folder)).toHaveLength(1);
    });
    expect(fs.statSync(inFolder('a')).size).toBe(2 ** 20);
  });

  it('refuses a name that is taken before it asks for content, unless forced', async () => {
    fs.writeFileSync(inFolder('a'), 'old');
    const attempt = writeWhole(inFolder('a'), false, never);
    await expect(attempt).rejects.toMatchObject({
      code: 'usage',
      message: `${inFolder('a')} exists already`,
      suggestion: expect.stringContaining('--force'),
    });
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('old');
    await writeWhole(inFolder('a'), true, content('new'));
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('new');
    expect(fs.readdirSync(folder)).toEqual(['a']);
  });

  it('does not replace a file that took the name meanwhile', async () => {
    const attempt = writeWhole(inFolder('a'), false, async (sink) => {
      fs.writeFileSync(inFolder('a'), 'other');
      await sink.write(Buffer.from('mine'));
    });
    await expect(attempt).rejects.toMatchObject({ code: 'usage' });
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('other');
    expect(fs.readdirSync(folder)).toEqual(['a']);
  });

  it('keeps the old file when the content fails, and rethrows the error', async () => {
    fs.writeFileSync(inFolder('a'), 'old');
    const failure = new Error('no more');
    const attempt = writeWhole(inFolder('a'), true, async (sink) => {
      await sink.write(Buffer.alloc(2 ** 20));
      throw failure;
    });
    await expect(attempt).rejects.toBe(failure);
    expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('old');
    expect(fs.readdirSync(folder)).toEqual(['a']);
  });

  it('writes through a link to its target, and keeps its permissions', async () => {
    fs.mkdirSync(inFolder('elsewhere'));
    fs.writeFileSync(inFolder('elsewhere/real'), 'old', { mode: 0o600 });
    fs.symlinkSync('elsewhere/real', inFolder('link'));
    await writeWhole(inFolder('link'), true, content('new'));
    expect(fs.readFileSync(inFolder('elsewhere/real'), 'utf8')).toBe('new');
    expect(fs.statSync(inFolder('elsewhere/real')).mode & 0o777).toBe(0o600);
    expect(fs.lstatSync(inFolder('link')).isSymbolicLink()).toBe(true);
    expect(fs.readdirSync(inFolder('elsewhere'))).toEqual(['real']);
  });

  it('accepts the longest name of the system, and refuses a longer one beforehand', async () => {
    await writeWhole(inFolder('a'.repeat(255)), false, content('text'));
    expect(fs.readdirSync(folder)).toEqual(['a'.repeat(255)]);
    const attempt = writeWhole(inFolder('a'.repeat(256)), false, never);
    await expect(attempt).rejects.toThrow('ENAMETOOLONG');
    await expect(attempt).rejects.toBeInstanceOf(UserError);
  });

  it.each([
    ['is empty', () => ''],
    ['is a folder', () => folder],
    ['there is no such folder', () => inFolder('no/such/a')],
    [
      'there is no such folder',
      () => {
        fs.writeFileSync(inFolder('file'), '');
        return inFolder('file/a');
      },
    ],
  ])('refuses beforehand: %s', async (message, target) => {
    const attempt = writeWhole(target(), true, never);
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.toMatchObject({ code: 'usage' });
  });

  it('reports a full disk with the path and a suggestion', async () => {
    const attempt = writeWhole('/dev/full', true, async (sink) => {
      await sink.write(Buffer.alloc(2 ** 20));
    });
    await expect(attempt).rejects.toMatchObject({
      code: 'system',
      message: expect.stringMatching(/^cannot write \/dev\/full, after 0 bytes: ENOSPC/),
      suggestion: 'free some space, or write to another disk',
    });
  });

  it('reports a disk that is full only at the end', async () => {
    await expect(writeWhole('/dev/full', false, content('x'))).rejects.toThrow('ENOSPC');
  });

  it('writes to a device as it is', async () => {
    await writeWhole('/dev/null', false, content('text'));
    expect(fs.statSync('/dev/null').isCharacterDevice()).toBe(true);
  });

  describe('where hard links are not possible', () => {
    beforeEach(() => {
      vi.spyOn(fs, 'linkSync').mockImplementation(() => {
        throw Object.assign(new Error('EPERM: operation not permitted'), { code: 'EPERM' });
      });
    });
    afterEach(() => vi.restoreAllMocks());

    it('writes a file', async () => {
      await writeWhole(inFolder('a'), false, content('text'));
      expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('text');
      expect(fs.readdirSync(folder)).toEqual(['a']);
    });

    it('does not replace a file that took the name meanwhile', async () => {
      const attempt = writeWhole(inFolder('a'), false, async () => {
        fs.writeFileSync(inFolder('a'), 'other');
      });
      await expect(attempt).rejects.toThrow('exists already');
      expect(fs.readFileSync(inFolder('a'), 'utf8')).toBe('other');
    });
  });

  it('leaves nothing behind when the process ends', () => {
    const source = pathToFileURL(path.resolve('src/base/files/write-whole.ts')).href;
    const script = `
      import fs from 'node:fs';
      import { writeWhole } from ${JSON.stringify(source)};
      void writeWhole(${JSON.stringify(inFolder('a'))}, false, async (sink) => {
        await sink.write(Buffer.alloc(2 ** 20));
        process.stdout.write(String(fs.readdirSync(${JSON.stringify(folder)}).length));
        process.exit(7);
      });`;
    fs.mkdirSync(inFolder('scripts'));
    fs.writeFileSync(inFolder('scripts/end.mjs'), script);
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', inFolder('scripts/end.mjs')],
      { encoding: 'utf8' },
    );
    expect([status, stdout], stderr).toEqual([7, '2']);
    expect(fs.readdirSync(folder)).toEqual(['scripts']);
  });
});
