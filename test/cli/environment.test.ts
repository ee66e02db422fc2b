/** What the program loads and says depends on its own files, not on the user's folders. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { inPackage, ROOT } from '../fixtures.js';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-home-'));
const evidence = path.join(home, 'hook-ran');

/** The help, in colour, in an environment that holds nothing but `env`. */
function help(env: Record<string, string>, options: { cwd?: string; uid?: number } = {}) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [inPackage('bin/run.js'), '--help'],
    { cwd: ROOT, env: { FORCE_COLOR: '1', ...env }, encoding: 'utf8', ...options },
  );
  return { status, stdout, stderr };
}

function write(folder: string, files: Record<string, string | object>): string {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}

/** A folder with a plugin, as the command library would install it, whose hooks leave evidence. */
const plugin = (folder: string) =>
  write(folder, {
    'package.json': {
      name: 'plugins',
      dependencies: { planted: '1.0.0' },
      oclif: {
        plugins: [
          { name: 'planted', type: 'user', tag: 'latest' },
          { name: 'planted', type: 'link', root: path.join(folder, 'node_modules/planted') },
        ],
        hooks: { init: './hook.js' },
      },
    },
    'hook.js': hook,
    'node_modules/planted/package.json': {
      name: 'planted',
      version: '1.0.0',
      oclif: { hooks: { init: './hook.js' } },
    },
    'node_modules/planted/hook.js': hook,
    // Colours of the help.
    'theme.json': { bin: 'red', command: 'red', sectionHeader: '#ff0000' },
    'tsconfig.json': { compilerOptions: { rootDir: 'src', outDir: 'dist' } },
    '.oclifrc.js': hook,
  });

const hook = `module.exports = async () => require('node:fs').writeFileSync(${JSON.stringify(evidence)}, '');`;

let usual: ReturnType<typeof help>;

beforeAll(() => {
  usual = help({ HOME: home });
  expect(usual).toMatchObject({ status: 0, stderr: '' });
});
afterEach(() => fs.rmSync(evidence, { force: true }));
afterAll(() => fs.rmSync(home, { recursive: true, force: true }));

describe('a plugin in', () => {
  const folder = path.join(home, 'planted');
  const inside = path.join(folder, 'minimind');
  const places: Record<string, [string, Record<string, string>]> = {
    'the data folder': [path.join(folder, '.local/share/minimind'), { HOME: folder }],
    'the config folder': [path.join(folder, '.config/minimind'), { HOME: folder }],
    'the cache folder': [path.join(folder, '.cache/minimind'), { HOME: folder }],
    'the folder for temporary files': [
      path.join(folder, '.local/share/minimind'),
      { HOME: '', TMPDIR: folder },
    ],
    XDG_DATA_HOME: [inside, { HOME: home, XDG_DATA_HOME: folder }],
    XDG_CONFIG_HOME: [inside, { HOME: home, XDG_CONFIG_HOME: folder }],
    LOCALAPPDATA: [inside, { HOME: home, LOCALAPPDATA: folder }],
    MINIMIND_DATA_DIR: [inside, { HOME: home, MINIMIND_DATA_DIR: inside }],
    MINIMIND_CONFIG_DIR: [inside, { HOME: home, MINIMIND_CONFIG_DIR: inside }],
  };

  it.each(Object.entries(places))('%s is not loaded', (_, [place, env]) => {
    plugin(place);
    // In development the command library loads more.
    expect(help({ NODE_ENV: 'development', ...env })).toEqual(usual);
    expect(fs.existsSync(evidence)).toBe(false);
    fs.rmSync(folder, { recursive: true });
  });

  it('the current folder is not loaded', () => {
    const cwd = plugin(path.join(home, 'project'));
    expect(help({ HOME: home, NODE_ENV: 'development' }, { cwd })).toEqual(usual);
    expect(fs.existsSync(evidence)).toBe(false);
  });
});

describe('without a home that can be used', () => {
  const unreadable = path.join(home, 'unreadable');
  const full = path.join(home, 'file');
  beforeAll(() => {
    fs.mkdirSync(path.join(unreadable, '.local/share/minimind'), { recursive: true });
    fs.writeFileSync(path.join(unreadable, '.local/share/minimind/package.json'), '{');
    fs.chmodSync(unreadable, 0);
    fs.writeFileSync(full, '');
  });
  afterAll(() => fs.chmodSync(unreadable, 0o700));

  it.each([
    ['there is none', { HOME: '/nonexistent' }],
    ['it may not be read', { HOME: unreadable }],
    ['it may not be written', { HOME: '/proc' }],
    ['it is a file', { HOME: full }],
    ['it is a relative path', { HOME: 'home' }],
    ['it is empty', { HOME: '' }],
    ['it is not set', {}],
  ])('%s: answers as ever, and says nothing of it', (_, env) => {
    expect(help(env)).toEqual(usual);
  });

  const other = 54_321;
  // Only root can become another user, who may not be able to read this folder.
  const canBecomeOther =
    process.getuid?.() === 0 && help({ HOME: '/', SHELL: '/bin/sh' }, { uid: other }).status === 0;
  it.runIf(canBecomeOther)('there is no such user: answers as ever', () => {
    for (const env of [{}, { HOME: '/root' }, { HOME: unreadable }]) {
      expect(help(env, { uid: other })).toEqual(usual);
    }
  });
});
