import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_DOCUMENT_BYTES } from '../../src/config/decode.js';
import { readDocument } from '../../src/config/read.js';
import { rejection } from './support.js';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'config-'));
  writeFileSync(join(folder, 'small.yaml'), 'a: 1\n');
  mkdirSync(join(folder, 'sub'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function* chunks(...texts: (string | Buffer)[]): AsyncGenerator<string | Buffer> {
  yield* texts;
}

describe('readDocument', () => {
  it('reads a file, and keeps its name', async () => {
    const path = join(folder, 'small.yaml');
    const document = await readDocument(path);
    expect(document.value).toStrictEqual({ a: 1 });
    expect(document.locate(['a'])).toStrictEqual({
      file: path,
      line: 1,
      column: 4,
      excerpt: 'a: 1',
    });
  });

  it('reads standard input, also when it comes in pieces', async () => {
    const [head, tail] = [Buffer.from('a: é').subarray(0, 4), Buffer.from('a: é').subarray(4)];
    const document = await readDocument('-', chunks(head, tail));
    expect(document).toMatchObject({ file: '<stdin>', value: { a: 'é' } });
  });

  it.each([
    ['smal.yaml', 'small.yaml'],
    ['small', 'small.yaml'],
    ['small.yml', 'small.yaml'],
    ['other.yaml', undefined],
    ['sbu', undefined],
  ])('suggests a file for %s', async (name, suggested) => {
    const error = await rejection(readDocument(join(folder, name)));
    expect(error.code).toBe('usage');
    expect(error.message).toBe(`there is no file "${join(folder, name)}"`);
    expect(error.suggestion).toBe(suggested && `did you mean "${join(folder, suggested)}"?`);
  });

  it.each(['nowhere/at/all.yaml', 'small.yaml/x', 'x'.repeat(5000), '', 'a\0b'])(
    'has no file where there can be none (%#)',
    async (name) => {
      const path = name === '' ? '' : join(folder, name);
      const error = await rejection(readDocument(path));
      expect(error.code).toBe('usage');
      expect(error.message).toMatch(/^there is no file "/);
    },
  );

  it('refuses a folder', async () => {
    const error = await rejection(readDocument(folder));
    expect(error).toMatchObject({ code: 'usage', suggestion: 'name a file in it' });
  });

  it.skipIf(process.getuid?.() === 0 || process.platform === 'win32')(
    'says when the system does not let it',
    async () => {
      const path = join(folder, 'secret.yaml');
      writeFileSync(path, 'a: 1');
      chmodSync(path, 0);
      const error = await rejection(readDocument(path));
      expect(error).toMatchObject({ code: 'system', message: `no permission to read "${path}"` });
    },
  );

  it('says when standard input fails', async () => {
    const failing = async function* (): AsyncGenerator<string> {
      yield 'a: 1';
      throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
    };
    const error = await rejection(readDocument('-', failing()));
    expect(error).toMatchObject({
      code: 'system',
      message: 'cannot read "<stdin>": EIO: i/o error, read',
    });
  });

  it('does not hide a bug behind a message', async () => {
    const buggy = async function* (): AsyncGenerator<string> {
      yield 'a: 1';
      throw new TypeError('x is not a function');
    };
    await expect(readDocument('-', buggy())).rejects.toThrow(TypeError);
  });

  it('refuses what is too large, before and while it reads', async () => {
    const path = join(folder, 'large.yaml');
    writeFileSync(path, Buffer.alloc(MAX_DOCUMENT_BYTES + 1, 'a'));
    expect(await rejection(readDocument(path))).toMatchObject({ code: 'refused-file' });

    let read = 0;
    const endless = async function* (): AsyncGenerator<Buffer> {
      for (;;) {
        read += 65536;
        yield Buffer.alloc(65536, '#');
      }
    };
    expect(await rejection(readDocument('-', endless()))).toMatchObject({ code: 'refused-file' });
    expect(read).toBeLessThan(2 * MAX_DOCUMENT_BYTES);
  });

  it.skipIf(!existsSync('/dev/zero'))('does not read a device for ever', async () => {
    expect(await rejection(readDocument('/dev/zero'))).toMatchObject({ code: 'refused-file' });
  });

  it.skipIf(process.platform === 'win32')('reads a named pipe', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
    const document = readDocument(pipe);
    execFileSync('sh', ['-c', 'printf "a: 2" > "$0"', pipe]);
    expect((await document).value).toStrictEqual({ a: 2 });
  });

  it('names the file in problems', async () => {
    const path = join(folder, 'bad.yaml');
    writeFileSync(path, 'a: [');
    const error = await rejection(readDocument(path));
    expect(error).toMatchObject({
      code: 'invalid-config',
      problems: [{ file: path, line: 1, column: 4 }],
    });
  });
});
