/** The program loads only its own files, and nothing from the user's folders. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { inPackage, ROOT } from '../fixtures.js';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-home-'));
const evidence = path.join(home, 'hook-ran');

/** Help in colour, in an environment of only `env`. */
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

/** Folder with a plugin, installed as by the command library. Its hooks leave evidence. */
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

describe('a plugin', () => {
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

  it.each(Object.entries(places))('in %s is not loaded', (_, [place, env]) => {
    plugin(place);
    // The command library loads more in development.
    expect(help({ NODE_ENV: 'development', ...env })).toEqual(usual);
    expect(fs.existsSync(evidence)).toBe(false);
    fs.rmSync(folder, { recursive: true });
  });

  it('in the current folder is not loaded', () => {
    const cwd = plugin(path.join(home, 'project'));
    expect(help({ HOME: home, NODE_ENV: 'development' }, { cwd })).toEqual(usual);
    expect(fs.existsSync(evidence)).toBe(false);
  });
});

describe('the help without a usable home', () => {
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
    ['a missing folder', { HOME: '/nonexistent' }],
    ['a folder without read permission', { HOME: unreadable }],
    ['a folder without write permission', { HOME: '/proc' }],
    ['a file', { HOME: full }],
    ['a relative path', { HOME: 'home' }],
    ['an empty value', { HOME: '' }],
    ['no value', {}],
  ])('is unchanged, without a warning: %s', (_, env) => {
    expect(help(env)).toEqual(usual);
  });

  const other = 54_321;
  // Only root can become another user, which may lack access to this folder.
  const canBecomeOther =
    process.getuid?.() === 0 && help({ HOME: '/', SHELL: '/bin/sh' }, { uid: other }).status === 0;
  it.runIf(canBecomeOther)('is unchanged for an unknown user', () => {
    for (const env of [{}, { HOME: '/root' }, { HOME: unreadable }]) {
      expect(help(env, { uid: other })).toEqual(usual);
    }
  });
});
