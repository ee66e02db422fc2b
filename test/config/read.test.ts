import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocument } from '../../src/config/read.js';
import { MAX_DOCUMENT_BYTES } from '../../src/config/source.js';
import { rejection } from './support.js';

/** Arguments of Node.js before code that uses `readDocument`. */
const SCRIPT = [
  '--import',
  import.meta.resolve('tsx'),
  '--import',
  `data:text/javascript,${encodeURIComponent(
    `import { readDocument } from ${JSON.stringify(new URL('../../src/config/read.ts', import.meta.url).href)};
    globalThis.readDocument = readDocument;`,
  )}`,
  '--eval',
];

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'config-'));
  writeFileSync(join(folder, 'small.yaml'), 'a: 1\n');
  for (const name of ['bomb.yaml', 'ok.yaml', 'pair.yaml', 'pair.yml']) {
    writeFileSync(join(folder, name), 'a: 1\n');
  }
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

  it('reads standard input in pieces', async () => {
    const [head, tail] = [Buffer.from('a: é').subarray(0, 4), Buffer.from('a: é').subarray(4)];
    const document = await readDocument('-', { stdin: chunks(head, tail) });
    expect(document).toMatchObject({ file: '<stdin>', value: { a: 'é' } });
  });

  it.each([
    ['smal.yaml', 'small.yaml'],
    ['small', 'small.yaml'],
    ['small.yml', 'small.yaml'],
    ['other.yaml', undefined],
    ['sbu', undefined],
    // The extension matters only among equally similar names.
    ['nope.yaml', undefined],
    ['pairs.yml', 'pair.yml'],
    ['pairs.yaml', 'pair.yaml'],
  ])('suggests a file for %s', async (name, suggested) => {
    const error = await rejection(readDocument(join(folder, name)));
    expect(error.code).toBe('usage');
    expect(error.message).toBe(`there is no file "${join(folder, name)}"`);
    expect(error.suggestion).toBe(suggested && `did you mean "${join(folder, suggested)}"?`);
  });

  it.each(['nowhere/at/all.yaml', 'small.yaml/x', 'x'.repeat(5000), '', 'a\0b'])(
    'reports an impossible path as a missing file (%#)',
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
    'reports a missing permission',
    async () => {
      const path = join(folder, 'secret.yaml');
      writeFileSync(path, 'a: 1');
      chmodSync(path, 0);
      const error = await rejection(readDocument(path));
      expect(error).toMatchObject({ code: 'system', message: `no permission to read "${path}"` });
    },
  );

  it('reports an error of standard input', async () => {
    const failing = async function* (): AsyncGenerator<string> {
      yield 'a: 1';
      throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
    };
    const error = await rejection(readDocument('-', { stdin: failing() }));
    expect(error).toMatchObject({
      code: 'system',
      message: 'cannot read "<stdin>": EIO: i/o error, read',
    });
  });

  it('does not turn a bug into a user error', async () => {
    const buggy = async function* (): AsyncGenerator<string> {
      yield 'a: 1';
      throw new TypeError('x is not a function');
    };
    await expect(readDocument('-', { stdin: buggy() })).rejects.toThrow(TypeError);
  });

  it('refuses a file beyond the limit, before and during reading', async () => {
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
    expect(await rejection(readDocument('-', { stdin: endless() }))).toMatchObject({
      code: 'refused-file',
    });
    expect(read).toBeLessThan(2 * MAX_DOCUMENT_BYTES);
  });

  it.skipIf(!existsSync('/dev/zero'))('refuses an endless device', async () => {
    expect(await rejection(readDocument('/dev/zero'))).toMatchObject({ code: 'refused-file' });
  });

  it.skipIf(process.platform === 'win32')('reads a named pipe', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
    const reading = readDocument(pipe);
    // The writer starts later and pauses. Neither counts as the end of the file.
    const write = 'sleep 0.2; exec 3>"$0"; sleep 0.1; printf "a: " >&3; sleep 0.1; printf 2 >&3';
    const [document] = await Promise.all([reading, once(spawn('sh', ['-c', write, pipe]), 'exit')]);
    expect(document.value).toStrictEqual({ a: 2 });
  });

  it.skipIf(process.platform === 'win32')('can be interrupted at a pipe', async () => {
    const pipe = join(folder, 'silent');
    execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
    // The thread pool must not delay the handler, which is that of the command line.
    const child = spawn(process.execPath, [
      ...SCRIPT,
      `process.on('SIGINT', () => process.exit(130));
      readDocument(process.argv[1]);
      setTimeout(() => console.log('reading'), 100);`,
      pipe,
    ]);
    const [ready] = await once(child.stdout, 'data');
    expect(String(ready)).toBe('reading\n');
    child.kill('SIGINT');
    const deadline = setTimeout(() => child.kill('SIGKILL'), 10_000);
    expect(await once(child, 'close')).toStrictEqual([130, null]);
    clearTimeout(deadline);
  });

  it.skipIf(!existsSync('/bin/bash') || !existsSync('/dev/fd')).each([
    ['a: 3', 'echo "a: 3"', '{"a":3}'],
    ['a slow one', 'sleep 0.2; echo "a: 3"', '{"a":3}'],
    ['an empty one', 'true', 'f is not valid: 1 error'],
  ])('reads the output of a command: %s', (_, command, text) => {
    const code = `const print = ({ value, message }) =>
      console.log(message?.replace(/^\\S+/, 'f') ?? JSON.stringify(value));
    readDocument(process.argv[1]).then(print, print);`;
    const line = `"$@" <(${command})`;
    const output = execFileSync('/bin/bash', ['-c', line, '-', process.execPath, ...SCRIPT, code], {
      encoding: 'utf8',
      timeout: 20_000,
    });
    expect(output).toBe(`${text}\n`);
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
