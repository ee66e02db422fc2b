import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as random from '../../../src/base/random/index.js';
import * as modules from '../../../src/model/modules/index.js';
import { inPackage, ROOT } from '../../fixtures.js';

/** A program of the page, and its output below it. */
const SHOWN = /^```js\n([\s\S]*?)^```\n\n```text\n[\s\S]*?^```$/gm;

/** Output of a program that imports the package by name, run in the package's folder. */
function printed(program: string): string {
  const args = ['--input-type=module', '--eval', program];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect({ program, status, stderr }).toEqual({ program, status: 0, stderr: '' });
  return stdout;
}

/** `vitest run test/model/modules/page.test.ts -u` writes the current output of the programs. */
describe('docs/modules.md', () => {
  const file = inPackage('docs/modules.md');
  const page = fs.readFileSync(file, 'utf8');

  it('shows every program with its output', async () => {
    const programs = [...page.matchAll(SHOWN)];
    expect(programs).toHaveLength(page.match(/^```js$/gm)?.length ?? 0);
    expect(programs.length).toBeGreaterThan(4);
    const now = page.replace(
      SHOWN,
      (_, program: string) => `\`\`\`js\n${program}\`\`\`\n\n\`\`\`text\n${printed(program)}\`\`\``,
    );
    await expect(now).toMatchFileSnapshot(file);
  });

  it.each([modules, random])('names all exports', (exported) => {
    const names = Object.keys(exported);
    expect(names.length).toBeGreaterThan(1);
    for (const name of names) expect(page).toContain(name);
  });
});
