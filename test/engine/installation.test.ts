import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { installationOf, installCommand } from '../../src/engine/select/installation.js';

const work = mkdtempSync(path.join(realpathSync(os.tmpdir()), 'minimind-installation-'));
afterAll(() => rmSync(work, { recursive: true }));

/** A folder for these tests with empty files, or folders where a name ends with a slash. */
function folder(name: string, ...files: string[]): string {
  const made = path.join(work, name);
  for (const file of ['./', ...files]) {
    const whole = path.join(made, file);
    mkdirSync(file.endsWith('/') ? whole : path.dirname(whole), { recursive: true });
    if (!file.endsWith('/')) writeFileSync(whole, '{}');
  }
  return made;
}

const PACKAGE = 'node_modules/minimind/package.json';
const project = folder('project', 'package.json', PACKAGE, 'src/deep/');
const unnamed = folder('unnamed', 'node_modules/.package-lock.json', PACKAGE);
const unix = folder('unix', `lib/${PACKAGE}`, 'bin/minimind');
const windows = folder('windows', PACKAGE, 'minimind.cmd');
const clone = folder('clone', 'package.json', 'node_modules/', 'configs/hybrid/');
const odd = folder("it's a project", 'package.json', PACKAGE);
const elsewhere = folder('elsewhere');

describe('an installation', () => {
  it.each([
    ['in a project', `${project}/node_modules/minimind`, 'project', project],
    [
      'of a package in a project',
      `${project}/node_modules/a/node_modules/minimind`,
      'project',
      project,
    ],
    ['of a scope', `${project}/node_modules/@a/b/node_modules/minimind`, 'project', project],
    ['in a folder without a package.json', `${unnamed}/node_modules/minimind`, 'project', unnamed],
    ['globally on Linux and macOS', `${unix}/lib/node_modules/minimind`, 'global', unix],
    ['of a global package', `${unix}/lib/node_modules/a/node_modules/minimind`, 'global', unix],
    ['globally on Windows', `${windows}/node_modules/minimind`, 'global', windows],
    ['of a clone', clone, 'clone', clone],
  ])('%s is recognised by its folder', (_, root, kind, prefix) => {
    expect(installationOf(root)).toEqual({ kind, prefix });
  });
});

describe('the command that installs a package', () => {
  const inProject = { kind: 'project', prefix: project } as const;
  const global = { kind: 'global', prefix: unix } as const;
  const inClone = { kind: 'clone', prefix: clone } as const;

  it.each([
    [inProject, project, 'npm install x@1'],
    [inProject, path.join(project, 'src/deep'), 'npm install x@1'],
    [inProject, elsewhere, `npm install --prefix ${project} x@1`],
    [inProject, clone, `npm install --prefix ${project} x@1`],
    // The current folder was removed.
    [inProject, null, `npm install --prefix ${project} x@1`],
    [global, project, `npm install --global --prefix ${unix} x@1`],
    [global, unix, `npm install --global --prefix ${unix} x@1`],
    [inClone, path.join(clone, 'configs/hybrid'), 'npm install --no-save x@1'],
    [inClone, elsewhere, `npm install --prefix ${clone} --no-save x@1`],
  ])('%o, in %s: %s', (installation, cwd, command) => {
    expect(installCommand('x@1', installation, cwd)).toBe(command);
  });

  it.skipIf(process.platform === 'win32')('quotes a path for the shell', () => {
    expect(installCommand('x@1', installationOf(`${odd}/node_modules/minimind`), elsewhere)).toBe(
      `npm install --prefix '${work}/it'\\''s a project' x@1`,
    );
  });

  it('is for this clone by default', () => {
    expect(installCommand('x@1')).toBe('npm install --no-save x@1');
  });
});
