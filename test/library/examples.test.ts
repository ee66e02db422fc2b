/** The examples of the documentation print what they say. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inPackage, ROOT } from '../fixtures.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

beforeAll(() => {
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(ROOT, path.join(folder, 'node_modules/minimind'), 'junction');
  fs.symlinkSync(inPackage('fixtures'), path.join(folder, 'fixtures'), 'junction');
});

const examplesOf = (page: string): string[] =>
  [...fs.readFileSync(inPackage(page), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(
    ([, code = '']) => code,
  );

/** Output that an example promises. */
const printedBy = (code: string): string[] =>
  [...code.matchAll(/console\.log\(.*?\); \/\/ (.+)$/gm)].map(([, text = '']) => text);

describe.each(['docs/library.md', 'README.md', 'README.zh-CN.md'])('%s', (page) => {
  const examples = examplesOf(page);

  test('has examples', () => expect(examples.length).toBeGreaterThan(0));

  test.each(examples.map((code, at) => [at + 1, code] as const))('example %d', (_, code) => {
    const expected = printedBy(code);
    expect(expected.length).toBeGreaterThan(0);
    const program = path.join(folder, 'example.mjs');
    fs.writeFileSync(program, code);
    const printed = execFileSync(process.execPath, [program], { cwd: folder, encoding: 'utf8' });
    expect(printed.trimEnd().split('\n')).toEqual(expected);
  });
});

test('the library is loaded by require too', () => {
  const code = `
    const { countParameters } = require('minimind');
    const browser = require('minimind/browser');
    console.log(typeof countParameters, typeof browser.countParameters);`;
  const program = path.join(folder, 'required.cjs');
  fs.writeFileSync(program, code);
  const words = ['--no-warnings', program];
  const printed = execFileSync(process.execPath, words, { cwd: folder, encoding: 'utf8' });
  expect(printed).toBe('function function\n');
});
