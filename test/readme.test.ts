import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { FAMILY_NAMES } from '../src/architecture/families.js';
import { commandNames, inPackage } from './fixtures.js';
import { runCli } from './run-cli.js';
import { runHere } from './run-here.js';

/** Both languages show the same things. */
describe.each(['README.md', 'README.zh-CN.md'])('%s', (name) => {
  const readme = fs.readFileSync(inPackage(name), 'utf8');

  /** The contents of all fenced blocks of a language. */
  const blocks = (language: string) =>
    [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
      ([, text = '']) => text,
    );

  it('shows the comparison as it is printed', async () => {
    expect(blocks('text')[0]).toBe(
      (await runHere(['compare-srte', 'configs/hybrid/original.yaml'])).stdout,
    );
  });

  it('shows the errors as they are printed', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    const mistakes =
      'model:\n  num_hidden_layers: 24\n  srte_encoding: factorized\n  num_heads: 48\n';
    fs.writeFileSync(path.join(folder, 'model.yaml'), mistakes);
    const { stderr } = await runHere(['validate', 'model.yaml'], { cwd: folder });
    fs.rmSync(folder, { recursive: true });
    expect(blocks('text')[1]).toBe(stderr);
  });

  it('shows a sweep as it is printed', async () => {
    const line = blocks('console').find((text) => text.includes('=8,2,1 '));
    const sweep = line?.split('\n').find((text) => text.includes(' --set '));
    const { stdout } = await runHere(sweep?.trim().split(' ').slice(1) ?? []);
    expect(blocks('text')[2]).toBe(stdout);
  });

  it('tells of fit what it answers', async () => {
    const lines = blocks('console').find((text) => text.includes(' fit ')) ?? '';
    const [alone, loaded, measured] = lines.trim().split('\n');
    const answer = async (line = '') => (await runHere(line.split(' ').slice(1))).stdout;
    const first = await answer(alone);
    expect(first).toMatch(/^Serving fits on 8 × NVIDIA H100 .* users .*; training does not fit$/m);
    expect(first).toMatch(/ 13\.[34]\d*B parameters$/m);
    expect(first).toMatch(/^ {2}to train +--/m);
    expect(first).toMatch(/per replica × 8 = /);
    const second = await answer(loaded);
    expect(second).toMatch(/^ {2}load +100 requests\/s need 1 GPU: /m);
    expect(await answer(`${loaded} --details`)).toMatch(/^Assumed: Poisson /m);
    expect(measured).toMatch(/ --this-machine /);
  });

  it('names every family', () => {
    for (const family of FAMILY_NAMES) expect(readme).toContain(`\`${family}\``);
  });

  it('shows a conversion as it is printed', async () => {
    const line = blocks('console').find((text) => text.includes(' convert-checkpoint '));
    const [input = '', output = '', ...flags] = line?.trim().split(' ').slice(2) ?? [];
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    fs.mkdirSync(path.join(folder, path.dirname(input)), { recursive: true });
    fs.copyFileSync(inPackage(input), path.join(folder, input));
    const args = ['convert-checkpoint', input, output, ...flags];
    const { stdout } = await runHere(args, { cwd: folder });
    fs.rmSync(folder, { recursive: true });
    const shown = blocks('text')[3] ?? '';
    expect(stdout.slice(0, shown.length)).toBe(shown);
    expect(shown).toContain('SRTE error by layer');
  });

  it('shows a config that is valid', () => {
    const [config = ''] = blocks('yaml');
    expect(runCli(['validate', '-', '--strict'], { input: config }).code).toBe(0);
  });

  it('has the two lines that do all the set-up', () => {
    expect(blocks('console').slice(0, 2)).toEqual([
      'npm ci && npx minimind compare-srte configs/hybrid/original.yaml\n',
      'npm ci && npm test\n',
    ]);
  });

  it('names every command', () => {
    for (const name of commandNames()) expect(readme).toContain(`| \`minimind ${name}`);
  });

  it('lists no command that is not there', () => {
    const named = [...readme.matchAll(/^\| `minimind ([a-z-]+(?: [a-z][a-z-]*)?)/gm)];
    expect(named.map(([, name]) => name).sort()).toEqual(commandNames());
  });
});
