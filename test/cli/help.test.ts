import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMAND_GROUPS } from '../../src/cli/help.js';
import { inPackage, readJson } from '../fixtures.js';
import { runHere } from '../run-here.js';

const TERMINAL = { columns: 80, rows: 24 };

/** Names such as `compare` and `kv-projector params`. */
const COMMANDS = readdirSync(inPackage('src/commands'), { recursive: true })
  .map(String)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replace(/\.ts$/, '').replaceAll(path.sep, ' '));

const MANIFEST = readJson<{
  commands: Record<string, { flags: Record<string, { hidden?: boolean }> }>;
}>('oclif.manifest.json');

const linesOf = async (...words: string[]) => {
  const { stdout, stderr, code } = await runHere(words, { terminal: TERMINAL });
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  return stdout.trimEnd().split('\n');
};

describe('help', () => {
  it('has every command in one group', () => {
    const grouped = Object.values(COMMAND_GROUPS).flat();
    const first = new Set(COMMANDS.map((command) => command.split(' ')[0]));
    expect(grouped.toSorted()).toEqual([...first].toSorted());
  });

  it('of the program fits on the screen, and lists the commands by group', async () => {
    const lines = await linesOf('-h');
    expect(lines.length).toBeLessThan(24);
    expect(lines.indexOf('Design')).toBeLessThan(lines.indexOf('Run and convert'));
    const text = lines.join('\n');
    for (const command of COMMANDS) expect(text).toContain(command.split(' ')[0]);
    const examples = [...(lines[0] ?? '').matchAll(/minimind (.*?)(?= {2}|$)/g)];
    expect(examples).toHaveLength(2);
    for (const [, example = ''] of examples) {
      expect((await runHere(example.split(' '))).code).toBe(0);
    }
    expect(await linesOf()).toEqual(lines);
  });

  it.each(COMMANDS)('of %s with -h fits on the screen, with examples', async (command) => {
    const lines = await linesOf(...command.split(' '), '-h');
    expect(lines.length, lines.join('\n')).toBeLessThan(24);
    // An example is never wrapped, because a wrapped one cannot be pasted.
    const others = lines.filter((line) => !line.startsWith('  minimind '));
    expect(Math.max(...others.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines[0]).toMatch(/^[A-Z].*\.$/);
    expect(lines.filter((line) => line.startsWith('  minimind ')).length).toBeGreaterThan(0);
  });

  it.each(COMMANDS)('of %s with --help has the examples first and every flag', async (command) => {
    const text = (await linesOf(...command.split(' '), '--help')).join('\n');
    const { flags } = MANIFEST.commands[command.replace(' ', ':')] ?? { flags: {} };
    expect(text.indexOf('\nExamples\n')).toBeLessThan(text.indexOf('\nUsage\n'));
    expect(text).toContain('\nExamples\n');
    // The server has a protocol instead of an answer.
    expect(Object.keys(flags)).toContain(command === 'mcp' ? 'root' : 'json');
    for (const [name, { hidden = false }] of Object.entries(flags)) {
      expect(new RegExp(`^  (-\\w, )?--${name}( |$)`, 'm').test(text), name).toBe(!hidden);
    }
    expect(text).not.toMatch(/<%|undefined|<option>/);
  });

  it.each([
    ['schema', '  # yaml-language-server: $schema=./hybrid.schema.json'],
    ['completion', "  zsh:  echo 'source <(minimind completion zsh)' >> ~/.zshrc (after compinit)"],
    [
      'completion',
      '  PowerShell: minimind completion powershell | Out-String | Invoke-Expression, in $PROFILE',
    ],
  ])('of %s keeps what is to be copied on one line: %s', async (command, line) => {
    expect(await linesOf(command, '--help')).toContain(line);
  });

  it.each([
    ['help', 'profile'],
    ['profile', 'help'],
    ['profile', '-?'],
    ['help', 'kv-projector', 'init'],
    ['kv-projector', 'init', 'help'],
  ])('is asked for by minimind %s %s', async (...words) => {
    const names = words.filter((word) => !['help', '-?'].includes(word));
    expect((await linesOf(...words)).join('\n')).toContain(`minimind ${names.join(' ')} `);
  });

  it('is not shown for --help after --', async () => {
    const { stdout } = await runHere(['profile', '--', '--help']);
    expect(stdout).not.toContain('Usage');
  });
});
