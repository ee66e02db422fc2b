import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FAMILY_NAMES } from '../src/model/architecture/families.js';
import { commandNames, inPackage, readJson } from './fixtures.js';
import { runCli } from './run-cli.js';
import { runHere } from './run-here.js';

/** Checks both languages in the same way. */
describe.each(['README.md', 'README.zh-CN.md'])('%s', (name) => {
  const readme = fs.readFileSync(inPackage(name), 'utf8');

  /** Contents of all fenced blocks of a language. */
  const blocks = (language: string) =>
    [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
      ([, text = '']) => text,
    );

  it('shows the answer of its first line', async () => {
    const [line = ''] = blocks('console');
    const { stdout } = await runHere(line.trim().split(' npx minimind ')[1]?.split(' ') ?? []);
    expect(blocks('text')).toEqual([stdout]);
  });

  it('shows commands that work as described', async () => {
    const [, list = ''] = blocks('console');
    const runs = [];
    for (const line of list.trim().split('\n')) runs.push(await runHere(line.split(' ').slice(1)));
    const [limits, published, load, check] = runs;
    expect(limits?.code).toBe(0);
    expect(limits?.stdout).toMatch(/^--max-memory .* kept$/m);
    expect(published?.stdout).toMatch(/^the tied head counted a second time /m);
    expect(load?.stdout).toMatch(/^ {2}load +100 requests\/s need 1 GPU: /m);
    expect(check?.stdout).toMatch(/^Does not fit on 8 × NVIDIA H100 /m);
    expect(check?.code).toBe(1);
  });

  it('names every family', () => {
    for (const family of FAMILY_NAMES) expect(readme).toContain(`\`${family}\``);
  });

  it('shows a config that is valid', () => {
    const [config = ''] = blocks('yaml');
    expect(runCli(['validate', '-', '--strict'], { input: config }).code).toBe(0);
  });

  it('has the two lines of the whole set-up', () => {
    const console = blocks('console');
    expect([console[0], console.at(-1)]).toEqual([
      'npm ci && npx minimind fit fixtures/hf-configs/qwen3-8b --gpu 4090\n',
      'npm ci && npm test\n',
    ]);
  });

  it('names every command', () => {
    for (const name of commandNames()) expect(readme).toContain(`| \`minimind ${name}`);
  });

  it('lists only existing commands', () => {
    const named = [...readme.matchAll(/^\| `minimind ([a-z-]+(?: [a-z][a-z-]*)?)/gm)];
    expect(named.map(([, name]) => name).sort()).toEqual(commandNames());
  });
});

it('README.md describes each command with its summary', () => {
  const readme = fs.readFileSync(inPackage('README.md'), 'utf8');
  const { commands } = readJson<{ commands: Record<string, { summary: string }> }>(
    'oclif.manifest.json',
  );
  for (const [id, { summary }] of Object.entries(commands)) {
    expect(readme).toContain(`| \`minimind ${id.replace(':', ' ')}\` | ${summary} |`);
  }
});
