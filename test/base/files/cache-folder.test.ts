import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCacheFolder } from '../../../src/base/files/cache-folder.js';
import { onTestEnd } from '../../cleanup.js';
import { runCli } from '../../run-cli.js';
import { isWhole } from '../../sampled.js';

describe('a cache folder', () => {
  it('is created with its parent folders, accessible to the user only', () => {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    onTestEnd(() => fs.rmSync(home, { recursive: true }));
    const folder = path.join(home, 'a/b/c');
    makeCacheFolder(folder);
    makeCacheFolder(folder);
    const modes = ['a', 'a/b', 'a/b/c'].map((name) => fs.statSync(path.join(home, name)).mode);
    expect(modes.map((mode) => mode & 0o777)).toEqual([0o700, 0o700, 0o700]);
    fs.writeFileSync(path.join(folder, 'file'), '');
    expect(() => makeCacheFolder(path.join(folder, 'file/d'))).toThrow(/ENOTDIR/);
  });

  // Where no folder can be made, the recursive call of Node never ends.
  it.runIf(fs.existsSync('/proc/self'))('cannot be created below /proc', () => {
    expect(() => makeCacheFolder('/proc/x/y/minimind')).toThrow(/ENOENT/);
  });

  // Measuring this machine takes seconds.
  it.runIf(isWhole && fs.existsSync('/proc/self'))('is optional for commands', () => {
    const words = ['fit', 'minimind2-small', '--this-machine', '--quiet'];
    const env = { XDG_CACHE_HOME: '/proc/x/y' };
    expect(runCli(words, { env })).toMatchObject({ code: 0, stdout: expect.stringMatching(/./) });
  });
});
