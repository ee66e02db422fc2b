import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import {
  COMMANDS,
  type CommandName,
  SETTINGS,
  type SettingName,
} from '../../src/base/text/setting.js';
import { COMMAND_WORDS, OWN_FLAGS, SETTING_FLAGS } from '../../src/cli/setting-flags.js';
import { inPackage } from '../fixtures.js';

interface Manifest {
  readonly commands: Readonly<
    Record<string, { readonly flags: Readonly<Record<string, unknown>> }>
  >;
}

const { commands } = JSON.parse(readFileSync(inPackage('oclif.manifest.json'), 'utf8')) as Manifest;

const idOf = (name: CommandName) => COMMAND_WORDS[name].replaceAll(' ', ':');

describe('the table of flags', () => {
  it('has a flag of a command for each setting', () => {
    const flags = new Set(Object.values(commands).flatMap((each) => Object.keys(each.flags)));
    expect(Object.values(SETTING_FLAGS).filter((flag) => !flags.has(flag))).toEqual([]);
    expect(Object.keys(SETTING_FLAGS)).toEqual(Object.keys(SETTINGS));
  });

  it('has another flag only where the command lacks the usual one', () => {
    for (const [command, own] of Object.entries(OWN_FLAGS)) {
      const { flags } = commands[idOf(command as CommandName)] ?? { flags: {} };
      for (const [name, flag] of Object.entries(own)) {
        expect(Object.keys(flags)).toContain(flag);
        expect(Object.keys(flags)).not.toContain(SETTING_FLAGS[name as SettingName]);
      }
    }
  });

  it('has the words of each command', () => {
    const names = Object.keys(COMMANDS) as CommandName[];
    expect(names.map(idOf).toSorted()).toEqual(Object.keys(commands).toSorted());
  });

  it('is read at each start, so it imports types only', () => {
    const text = readFileSync(inPackage('src/cli/setting-flags.ts'), 'utf8');
    expect([...text.matchAll(/^import (?!type )/gm)]).toEqual([]);
  });
});

/** Lines with flags of other programs. No other line below the command line has one. */
const OTHER_PROGRAMS: Readonly<Record<string, readonly [lines: number, reason: string]>> = {
  'scale/launch.ts': [8, 'sbatch, node and GNU parallel, in the jobs that are written for them'],
  'scale/task-index.ts': [1, 'the array of sbatch'],
  'report/parts-report.ts': [1, 'the array of sbatch'],
  'engine/adapters/adapters.ts': [1, 'node, in a process that looks for WebGPU'],
  'engine/adapters/system-adapters.ts': [2, 'nvidia-smi'],
  'engine/onnx/library.ts': [2, 'npm, and the install script of ONNX Runtime'],
  'engine/select/installation.ts': [3, 'npm'],
  'language/data/files/parquet-rows.ts': [1, 'node, in the process that reads Parquet'],
  'base/text/hub-names.ts': [1, 'hf, which downloads models'],
  'input/hub/needs-download.ts': [1, 'hf, which downloads models'],
  'base/files/early-end.ts': [1, 'node, in the thread that hears signals'],
};

describe('texts below the command line', () => {
  it('have no flags but those of other programs', () => {
    const found: Record<string, number> = {};
    const src = inPackage('src');
    for (const name of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
      const file = name.replaceAll(path.sep, '/');
      if (!file.endsWith('.ts') || /^(?:cli|commands)\//.test(file)) continue;
      const lines = readFileSync(path.join(src, name), 'utf8').split('\n');
      const count = lines.filter(hasFlag).length;
      if (count > 0) found[file] = count;
    }
    expect(found).toEqual(
      Object.fromEntries(Object.entries(OTHER_PROGRAMS).map(([file, [count]]) => [file, count])),
    );
    const total = Object.values(found).reduce((sum, count) => sum + count, 0);
    expect(total).toBeLessThanOrEqual(22);
  });
});

/** Functions whose text depends on the spelling. */
const SPELLED = ['setting', 'settingWords', 'settingsLine', 'commandText', 'nextCommand'];

describe('texts with settings', () => {
  it('are made when they are needed, not when their module is loaded', () => {
    const early: string[] = [];
    const src = inPackage('src');
    for (const name of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts')) continue;
      const text = readFileSync(path.join(src, name), 'utf8');
      if (!text.includes('text/setting.js')) continue;
      const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest);
      const visit = (node: ts.Node): void => {
        if (ts.isFunctionLike(node)) return;
        if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
          if (SPELLED.includes(node.expression.text))
            early.push(`${name}: ${node.expression.text}`);
        }
        ts.forEachChild(node, visit);
      };
      visit(source);
    }
    expect(early).toEqual([]);
  });
});

/** Whether a line of code has a flag in a string, whole or begun as `--${name}`. */
const hasFlag = (line: string): boolean =>
  !/^\s*(?:\*|\/\/|\/\*)/.test(line) && /['"`]/.test(line) && /(?<![\w-])--[a-z$]/.test(line);
