/** The GitHub Action and the hook of pre-commit, run as their programs run them. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { inPackage } from './fixtures.js';

const { inputs, runs } = parse(fs.readFileSync(inPackage('action.yml'), 'utf8'));
const [step] = runs.steps;

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  // npx, which would download the package.
  fs.mkdirSync(path.join(folder, 'bin'));
  const npx = `#!/bin/sh\n[ "$1 $2 $4" = "--yes --package minimind" ] || exit 99\necho "$3" > "${path.join(folder, 'package')}"\nshift 4\nexec "${process.execPath}" "${inPackage('bin/run.js')}" "$@"\n`;
  fs.writeFileSync(path.join(folder, 'bin/npx'), npx, { mode: 0o755 });
  fs.mkdirSync(path.join(folder, 'configs'));
  const model = (layers: number) =>
    `model_type: llama\nhidden_size: 64\nintermediate_size: 128\nnum_attention_heads: 4\nnum_hidden_layers: ${layers}\nvocab_size: 100\n`;
  fs.writeFileSync(path.join(folder, 'configs/small one.yaml'), model(2));
  fs.writeFileSync(path.join(folder, 'configs/large.yaml'), model(20));
  fs.writeFileSync(path.join(folder, 'wrong.yaml'), model(2).replace('heads: 4', 'heads: 5'));
  fs.writeFileSync(path.join(folder, '$(touch injected), 100%.yaml'), model(3));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Runs the step of the action with inputs. */
function acted(given: Readonly<Record<string, string>>) {
  const summary = path.join(folder, 'summary.md');
  fs.rmSync(summary, { force: true });
  const values: Record<string, string> = Object.fromEntries(
    Object.entries<{ default?: string }>(inputs).map(([name, each]) => [
      name,
      given[name] ?? each.default ?? '',
    ]),
  );
  const env = Object.fromEntries(
    Object.entries<string>(step.env).map(([name, value]) => {
      const input = /^\$\{\{ inputs\.(\w+) \}\}$/.exec(value)?.[1] ?? '';
      return [name, values[input] ?? expect.fail(`${name} is not an input`)];
    }),
  );
  // The shell of GitHub: `bash --noprofile --norc -eo pipefail {0}`.
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step.run],
    {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...env,
        PATH: `${path.join(folder, 'bin')}:${process.env.PATH}`,
        HOME: folder,
        GITHUB_STEP_SUMMARY: summary,
        GITHUB_WORKSPACE: folder,
        GITHUB_ACTION_PATH: inPackage('.'),
      },
    },
  );
  const table = fs.existsSync(summary) ? fs.readFileSync(summary, 'utf8') : '';
  return { status, stdout, stderr, table };
}

describe.skipIf(process.platform === 'win32')('the action', () => {
  it('reads no input in its script, which a pull request could write into', () => {
    expect(runs.steps).toHaveLength(1);
    expect(step.run).not.toContain('${{');
  });

  it('passes valid models, and adds a table to the summary', () => {
    const { status, stdout, table } = acted({ models: 'configs/*.yaml\n' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
    expect(table).toMatch(/\| .*small one.* \|/);
    expect(table).toMatch(/\| .*large.* \|/);
  });

  it('annotates mistakes at their lines, and fails', () => {
    const { status, stdout } = acted({ models: 'configs/*.yaml\nwrong.yaml', summary: 'false' });
    expect(status).toBe(1);
    expect(stdout).toMatch(/^::error file=wrong\.yaml,line=\d,col=\d+,title=[\w.]+::[^\n]+\n$/);
  });

  it('annotates a mistake once, also beside a limit', () => {
    const { status, stdout } = acted({
      models: 'configs/*.yaml\nwrong.yaml',
      limits: '--max-params 120k',
      summary: 'false',
    });
    expect(status).toBe(1);
    expect(stdout.match(/wrong\.yaml/g)).toHaveLength(1);
    expect(stdout).toMatch(/title=configs\/large\.yaml::error: parameters/);
  });

  it('reports a limit that it cannot read', () => {
    const { status, stdout } = acted({
      models: 'configs/large.yaml',
      limits: '--max-parms 120k',
      summary: 'false',
    });
    expect(status).toBe(1);
    expect(stdout).toContain('--max-parms');
  });

  it('reports a pattern without a file', () => {
    const { status, stdout } = acted({ models: 'nowhere/*.yaml', summary: 'false' });
    expect(status).toBe(1);
    expect(stdout).toContain('::error title=minimind::');
    expect(stdout).toContain('nowhere/*.yaml');
  });

  it('checks limits, also of names with special characters', () => {
    const { status, stdout } = acted({
      models: 'configs/*.yaml\n$(touch injected)*.yaml',
      limits: '--max-params 120k',
      summary: 'false',
    });
    expect(status).toBe(1);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => /title=([^:]*)::/.exec(line)?.[1])).toEqual([
      'configs/large.yaml',
      '$(touch injected)_ 100_.yaml',
    ]);
    expect(lines[0]).toMatch(/::error: .*parameters/);
    expect(fs.existsSync(path.join(folder, 'injected'))).toBe(false);
  });
});

it('runs the package of the version of the action, or the one that is named', () => {
  const used = () => fs.readFileSync(path.join(folder, 'package'), 'utf8').trim();
  const { version } = JSON.parse(fs.readFileSync(inPackage('package.json'), 'utf8'));
  acted({ models: 'configs/large.yaml' });
  expect(used()).toBe(`minimind@${version}`);
  acted({ models: 'configs/large.yaml', package: 'minimind@1.2.3' });
  expect(used()).toBe('minimind@1.2.3');
});

describe('the hook of pre-commit', () => {
  it('runs a command that exists, on the files it reads', () => {
    const [hook] = parse(fs.readFileSync(inPackage('.pre-commit-hooks.yaml'), 'utf8'));
    expect(hook).toMatchObject({ language: 'node', types_or: ['yaml', 'json'] });
    const [program, command] = hook.entry.split(' ');
    expect(program).toBe('minimind');
    expect(fs.existsSync(inPackage(`src/commands/${command}.ts`))).toBe(true);
  });
});
