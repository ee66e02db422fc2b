import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  isTemporaryFile,
  removeStaleFiles,
  TemporaryFolder,
  temporaryFileName,
  temporaryName,
} from '../../../src/base/files/temporary.js';
import { writeWhole } from '../../../src/base/files/write-whole.js';
import { folderOf } from '../../checkpoint/temp-folder.js';

const { TMPDIR } = process.env;
afterEach(() => {
  vi.restoreAllMocks();
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
});

/** The part of a name that all processes of this machine and container share. */
const SPACE = temporaryName().split('-')[2] ?? '';
/** Name of a temporary file of a process. */
const nameOf = (pid: number, space = SPACE) => `.minimind-${pid}-${space}-${randomUUID()}.tmp`;
const ELSEWHERE = '0123abcd';
/** Beyond the process ids of Linux. */
const DEAD = 2 ** 22 + 1;

/** Runs a program that is killed while it writes. */
function kill(program: string): void {
  const script = `
    import { writeWhole } from ${JSON.stringify(pathToFileURL(path.resolve('src/base/files/write-whole.ts')).href)};
    import { TemporaryFolder } from ${JSON.stringify(pathToFileURL(path.resolve('src/base/files/temporary.ts')).href)};
    const die = () => process.kill(process.pid, 'SIGKILL');
    ${program}`;
  const { signal } = spawnSync(process.execPath, [
    '--import',
    'tsx',
    '--input-type=module',
    '-e',
    script,
  ]);
  expect(signal).toBe('SIGKILL');
}

describe('files that a killed process left', () => {
  it('are removed when the next file is written there', async () => {
    const folder = folderOf({});
    const file = path.join(folder, 'a');
    kill(`await writeWhole(${JSON.stringify(file)}, false, async (sink) => {
      await sink.write(Buffer.alloc(2 ** 20));
      die();
    });`);
    expect(fs.readdirSync(folder)).toEqual([expect.stringMatching(/\.tmp$/)]);
    await writeWhole(path.join(folder, 'b'), false, (sink) => sink.write(Buffer.from('b')));
    expect(fs.readdirSync(folder)).toEqual(['b']);
  });

  it('are removed from the temporary folder when the next one is created there', () => {
    const parent = fs.realpathSync(folderOf({}));
    kill(`process.env.TMPDIR = ${JSON.stringify(parent)}; new TemporaryFolder(); die();`);
    expect(fs.readdirSync(parent)).toHaveLength(1);
    process.env.TMPDIR = parent;
    const folder = new TemporaryFolder();
    expect(fs.readdirSync(parent)).toEqual([path.basename(folder.path)]);
    folder.remove();
    expect(fs.readdirSync(parent)).toEqual([]);
  });

  it.each([
    ['is running', nameOf(process.ppid)],
    ['is the current one', temporaryFileName()],
    ['may run in another container', nameOf(DEAD, ELSEWHERE)],
  ])('stay when the process %s', (_, name) => {
    const folder = folderOf({ [name]: '' });
    expect(isTemporaryFile(name)).toBe(true);
    removeStaleFiles(folder);
    expect(fs.readdirSync(folder)).toEqual([name]);
  });

  it('stay when they are another user’s or have only a similar name', () => {
    const names = [nameOf(DEAD), `.minimind-${DEAD}.tmp`, 'minimind-notes'].sort();
    const folder = folderOf(Object.fromEntries(names.map((name) => [name, ''])));
    vi.spyOn(process, 'getuid').mockReturnValue(12345);
    removeStaleFiles(folder);
    expect(fs.readdirSync(folder)).toEqual(names);
    vi.restoreAllMocks();
    removeStaleFiles(folder);
    expect(fs.readdirSync(folder)).toHaveLength(2);
  });
});

describe('files that another container or machine left', () => {
  const age = (file: string, hours: number) => {
    const time = Date.now() / 1000 - hours * 3600;
    fs.utimesSync(file, time, time);
  };

  it('stay for a day', () => {
    const names = [nameOf(DEAD, ELSEWHERE), nameOf(process.pid, ELSEWHERE)];
    const folder = folderOf(Object.fromEntries(names.map((name) => [name, ''])));
    for (const name of names) age(path.join(folder, name), 23);
    removeStaleFiles(folder);
    expect(fs.readdirSync(folder).sort()).toEqual(names.sort());
    for (const name of names) age(path.join(folder, name), 25);
    removeStaleFiles(folder);
    expect(fs.readdirSync(folder)).toEqual([]);
  });
});

describe('a file with a similar name', () => {
  const [hidden, plain] = [nameOf(DEAD), nameOf(DEAD).slice(1, -4)];

  it.each([
    ['a hidden folder', `${hidden}/notes`],
    ['a file without the dot', hidden.slice(1)],
    ['a hidden file without an ending', `.${plain}`],
    ['a file named as a folder', plain],
    ['a folder with more to its name', `${plain}-old/notes`],
  ])('is not removed: %s', (_, name) => {
    const folder = folderOf({ [name]: 'mine' });
    removeStaleFiles(folder);
    expect(fs.readFileSync(path.join(folder, name), 'utf8')).toBe('mine');
  });
});

describe('a folder for temporary files', () => {
  it('is accessible to this user only', () => {
    const folder = new TemporaryFolder();
    expect(fs.statSync(folder.path).mode & 0o777).toBe(0o700);
    folder.remove();
    expect(fs.existsSync(folder.path)).toBe(false);
    folder.remove();
  });

  it('gives a system error with a suggestion when it cannot be created', () => {
    process.env.TMPDIR = path.join(folderOf({}), 'nowhere');
    expect(() => new TemporaryFolder()).toThrow(
      expect.objectContaining({
        code: 'system',
        suggestion: 'set TMPDIR to a folder that can be written to',
      }),
    );
  });
});
