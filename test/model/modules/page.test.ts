import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as random from '../../../src/base/random/index.js';
import * as modules from '../../../src/model/modules/index.js';
import { inPackage, ROOT } from '../../fixtures.js';

/** A program of the page, and its output below it. */
const SHOWN = /^```js\n([\s\S]*?)^```\n\n```text\n[\s\S]*?^```$/gm;

/** Outputs of programs that import the package by name. One process in the package's folder runs them all. */
function printed(programs: readonly string[]): readonly string[] {
  const runner = `
    const write = process.stdout.write.bind(process.stdout);
    const outputs = [];
    process.stdout.write = (text) => {
      outputs.push(outputs.pop() + text);
      return true;
    };
    for (const program of ${JSON.stringify(programs)}) {
      outputs.push('');
      const resolved = program.replaceAll(/ from '(.+?)'/g, (_, name) => \` from '\${import.meta.resolve(name)}'\`);
      await import('data:text/javascript,' + encodeURIComponent(resolved));
    }
    write(JSON.stringify(outputs));
  `;
  const args = ['--input-type=module', '--eval', runner];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** `vitest run test/model/modules/page.test.ts -u` writes the current output of the programs. */
describe('docs/modules.md', () => {
  const file = inPackage('docs/modules.md');
  const page = fs.readFileSync(file, 'utf8');

  it('shows every program with its output', async () => {
    const programs = [...page.matchAll(SHOWN)];
    expect(programs).toHaveLength(page.match(/^```js$/gm)?.length ?? 0);
    expect(programs.length).toBeGreaterThan(4);
    const outputs = [...printed(programs.map(([, program = '']) => program))];
    const now = page.replace(
      SHOWN,
      (_, program: string) => `\`\`\`js\n${program}\`\`\`\n\n\`\`\`text\n${outputs.shift()}\`\`\``,
    );
    await expect(now).toMatchFileSnapshot(file);
  });

  it.each([modules, random])('names all exports', (exported) => {
    const names = Object.keys(exported);
    expect(names.length).toBeGreaterThan(1);
    for (const name of names) expect(page).toContain(name);
  });
});
