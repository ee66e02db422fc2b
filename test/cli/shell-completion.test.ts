import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { type CompletedCommand, completionScript, SHELLS } from '../../src/cli/shell-completion.js';
import { readJson } from '../fixtures.js';
import { runHere } from '../run-here.js';

const HOSTILE = `it's "$(touch /tmp/no)" \`x\` [a]: {b} \\ %s\n\u001b[31mred\u202e; (c) 'd`;

const COMMANDS: readonly CompletedCommand[] = [
  { name: 'list', summary: HOSTILE, argument: 'none', flags: [] },
  {
    name: 'draw',
    summary: 'Draw it.',
    argument: ['circle', '$(touch /tmp/no)'],
    flags: [
      { name: 'size', char: 's', summary: HOSTILE, takesValue: true, isRepeatable: false },
      {
        name: 'colour',
        summary: 'what colour',
        takesValue: true,
        isRepeatable: true,
        options: ['red', "'; $(touch /tmp/no) #"],
      },
      { name: 'fill', summary: HOSTILE, takesValue: false, isRepeatable: false },
    ],
  },
];

interface Shell {
  readonly shell: (typeof SHELLS)[number];
  readonly isInstalled: boolean;
}
const INSTALLED: readonly Shell[] = SHELLS.map((shell) => ({
  shell,
  isInstalled: spawnSync(shell, ['-c', ':']).status === 0,
}));
const hasShell = (name: string) =>
  INSTALLED.some((each) => each.shell === name && each.isInstalled);

/** Runs a script with arguments in `$1` and so on. A long text must be its input: arguments are limited to 128 KiB. */
function runShell(shell: string, script: string, input: string, ...args: string[]): string {
  const words = shell === 'fish' ? args : ['-', ...args];
  const { status, stdout, stderr } = spawnSync(shell, ['-c', script, ...words], {
    encoding: 'utf8',
    input,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

const manifest = () =>
  readJson<{ commands: Record<string, { flags: Record<string, { char?: string }> }> }>(
    'oclif.manifest.json',
  );

describe.each(INSTALLED)('the script for $shell', ({ shell, isInstalled }) => {
  const flagOf = (name: string) => (shell === 'fish' ? `-l ${name} ` : `--${name}`);

  it('has every command and every flag', async () => {
    const { code, stdout } = await runHere(['completion', shell]);
    expect(code).toBe(0);
    for (const [name, { flags }] of Object.entries(manifest().commands)) {
      for (const word of name.split(':')) expect(stdout).toContain(word);
      for (const flag of [...Object.keys(flags), 'help']) expect(stdout).toContain(flagOf(flag));
    }
  });

  test.skipIf(!isInstalled)('is valid syntax of the shell', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    const file = path.join(folder, 'script');
    for (const script of [
      (await runHere(['completion', shell])).stdout,
      completionScript(shell, 'it', COMMANDS),
    ]) {
      fs.writeFileSync(file, script);
      const { status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    }
    fs.rmSync(folder, { recursive: true });
  });

  it('has no control characters for any description', () => {
    const script = completionScript(shell, 'it', COMMANDS);
    expect(script.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it('is an object with --json', async () => {
    const { stdout } = await runHere(['completion', shell, '--json']);
    const script = (await runHere(['completion', shell])).stdout;
    expect(JSON.parse(stdout)).toEqual({ schema: 'minimind/completion@1', shell, script });
  });
});

describe.skipIf(!hasShell('bash'))('completion in bash', () => {
  /** Completions of the last word of each line, which is unfinished. One shell reads the script for all lines. */
  function completions(
    script: string,
    bin: string,
    lines: readonly (readonly string[])[],
  ): string[][] {
    const complete = `eval "$(cat)"
      while (( $# > 0 )); do
        COMP_WORDS=(${bin} "\${@:2:$1}"); COMP_CWORD=$1; shift $(( $1 + 1 ))
        COMPREPLY=(); _${bin}
        (( \${#COMPREPLY[@]} == 0 )) || printf '%s\\n' "\${COMPREPLY[@]}"
        printf '\\0'
      done`;
    const args = lines.flatMap((words) => [String(words.length), ...words]);
    return runShell('bash', complete, script, ...args)
      .split('\0')
      .slice(0, -1)
      .map((answer) => answer.split('\n').filter((line) => line));
  }

  const CASES: readonly (readonly [words: readonly string[], expected: readonly string[]])[] = [
    [['comp'], ['compare', 'compare-srte', 'completion', 'compress']],
    [['profile', '--opt'], ['--optimizer']],
    [
      ['profile', '--format', ''],
      ['table', 'json', 'csv', 'markdown', 'html', 'svg'],
    ],
    [['profile', '--format', 'c'], ['csv']],
    [['profile', '--format', '=', 'c'], ['csv']],
    [
      ['profile', '--recompute', '='],
      ['none', 'selective', 'operations', 'compiled', 'full'],
    ],
    [['profile', 'a.yaml', '--max-m'], ['--max-memory']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish', 'powershell'],
    ],
    [
      ['fit', '--gpu', 'rtx-409'],
      ['rtx-4090', 'rtx-4090-laptop'],
    ],
    [['profile', '--set', 'model.gate_r'], ['model.gate_rank=']],
    [['compare', '--columns', 'parameters-'], []],
    [
      ['profile', 'minimind2-'],
      ['minimind2-moe', 'minimind2-small'],
    ],
    [['--v'], ['--version']],
    // Words of other tools for a command.
    [['serv'], ['serve', 'server']],
    [
      ['serve', '--gpu', 'rtx-409'],
      ['rtx-4090', 'rtx-4090-laptop'],
    ],
    [['finetune', '--warm'], ['--warmup']],
    [['kv'], ['kv-projector', 'kv-cache']],
    [['kv-projector', 'pa'], ['params']],
    [['kv-projector', 'params', '--te'], ['--teacher']],
    [['kv-projector', 'params', '--dev'], []],
    // No completions, so bash completes file names.
    [['profile', '--output', ''], []],
    [['profile', '-o', ''], []],
  ];
  let answers: string[][] = [];
  beforeAll(async () => {
    const { stdout } = await runHere(['completion', 'bash']);
    const lines = CASES.map(([words]) => words);
    answers = completions(stdout, 'minimind', lines);
  });

  it.each(CASES.map(([words, expected], at) => [words, expected, at] as const))(
    'of minimind %j is %j',
    (_, expected, at) => {
      expect(answers).toHaveLength(CASES.length);
      expect(answers[at]).toEqual(expected);
    },
  );

  it('does not run code in a name', () => {
    const hostile = completionScript('bash', 'it', COMMANDS);
    const lines = [
      ['draw', '--colour', ''],
      ['draw', '$'],
    ];
    expect(completions(hostile, 'it', lines)).toEqual([
      ['red', "'; $(touch /tmp/no) #"],
      ['$(touch /tmp/no)'],
    ]);
  });
});

describe.skipIf(!hasShell('fish'))('completion in fish', () => {
  /** Completions of a line, without descriptions. */
  const completions = (script: string, line: string) =>
    runShell('fish', 'source -; complete -C $argv[1]', script, line)
      .split('\n')
      .filter((each) => each)
      .map((each) => each.split('\t')[0]);
  let script = '';
  beforeAll(async () => {
    script = (await runHere(['completion', 'fish'])).stdout;
  });

  it.each([
    ['minimind comp', ['compare', 'compare-srte', 'completion', 'compress']],
    ['minimind serve --gpu rtx-409', ['rtx-4090', 'rtx-4090-laptop']],
    ['minimind profile --opt', ['--optimizer']],
    ['minimind profile --format ', ['csv', 'html', 'json', 'markdown', 'svg', 'table']],
    ['minimind completion ', ['bash', 'fish', 'zsh']],
    ['minimind kv-projector pa', ['params']],
    ['minimind kv-projector params --te', ['--teacher']],
    ['minimind profile LICEN', ['LICENSE']],
    ['minimind list LICEN', []],
  ])('of %j is %j', (line, expected) => {
    expect(completions(script, line).sort()).toEqual(expected);
  });

  it('does not run code in a name', () => {
    const hostile = completionScript('fish', 'it', COMMANDS);
    expect(completions(hostile, 'it draw --colour ').sort()).toEqual([
      "'; $(touch /tmp/no) #",
      'red',
    ]);
  });
});
