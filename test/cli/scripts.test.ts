import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SCRIPT_COMMANDS } from '../../src/cli/foreign/scripts.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { isWhole } from '../sampled.js';

/** Commands that take longer than the others together; their shorter siblings run in every suite. */
const LONG = /^(?:quick-test|kv-projector verify)/;

const page = fs.readFileSync(inPackage('docs/scripts.md'), 'utf8');

describe('the page of scripts', () => {
  it('has the table of the program', () => {
    const rows = SCRIPT_COMMANDS.map(
      ({ command, does, scripts }) =>
        `| ${scripts.map((name) => `\`${name}\``).join(', ')} | \`minimind ${command}\` | ${does} |`,
    );
    const written = page.split('\n').filter((line) => line.startsWith('| `'));
    expect(written).toEqual(rows);
  });

  it('is named in the README', () => {
    expect(fs.readFileSync(inPackage('README.md'), 'utf8')).toContain('(docs/scripts.md)');
  });

  it('names each script once', () => {
    const names = SCRIPT_COMMANDS.flatMap(({ scripts }) => scripts);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('a script in place of a command', () => {
  const rows = SCRIPT_COMMANDS.map(({ command, scripts }) => [scripts[0] ?? '', command] as const);

  it.each(rows.filter(([, command]) => isWhole || !LONG.test(command)))(
    '%s is answered with a command that runs: %s',
    async (script, command) => {
      const { code, stderr } = await runHere(['python', `tests/${script}`]);
      expect(code).toBe(2);
      expect(stderr).toBe(
        `error: expected a command, found the script "tests/${script}"\n  → write minimind ${command}\n`,
      );
      const ran = await runHere(command.split(' '));
      expect({ code: ran.code, stderr: ran.stderr }).toEqual({
        code: 0,
        stderr: expect.not.stringMatching(/^(?:error|warning)/m),
      });
      expect(ran.stdout).not.toBe('');
    },
    120_000,
  );

  const quickTest = 'minimind quick-test hybrid/recommended';
  it.each([
    ['quick_test.py', quickTest],
    ['quick_test', quickTest],
    ['./quick_test.py --device cuda', quickTest],
    ['QUICK_TEST.PY', quickTest],
    ['python3 -m tests.quick_test', quickTest],
    [
      'torchrun --nproc_per_node 2 trainer/train_pretrain.py',
      'minimind train-plan minimind2-small',
    ],
    ['profile profile_weight_size.py', 'minimind profile hybrid/recommended'],
    ['verify_mlp_upgrades.py', 'minimind kv-projector verify'],
    ['unheard_of.py', 'docs/scripts.md'],
    ['bash', 'docs/scripts.md'],
  ])('is understood as people write it: %s', async (line, advice) => {
    const { code, stderr } = await runHere(line.split(' '));
    expect(code).toBe(2);
    expect(stderr).toContain(advice);
    expect(stderr).not.toContain('did you mean');
  });
});
