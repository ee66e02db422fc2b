import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Questions } from '../../src/cli/dialogue.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

let folder = '';
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterEach(() => fs.rmSync(folder, { recursive: true }));

const init = (...args: string[]) => runHere(['init', ...args], { cwd: folder });
const read = (name: string) => fs.readFileSync(path.join(folder, name), 'utf8');

describe('init', () => {
  it('writes the config and its schema', async () => {
    const { stdout, code } = await init('tiny');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Wrote tiny\.yaml: hybrid\/tiny$/m);
    expect(stdout).toContain('Next: minimind profile tiny.yaml');
    const [, named = ''] = /\$schema=(\S+)/.exec(read('tiny.yaml')) ?? [];
    expect(named).toBe('./hybrid.schema.json');
    expect(JSON.parse(read(named)).type).toBe('object');
    expect((await runHere(['validate', 'tiny.yaml', '--strict'], { cwd: folder })).code).toBe(0);
  });

  it('keeps another file with the name of the schema, except with --force', async () => {
    fs.writeFileSync(path.join(folder, 'hybrid.schema.json'), 'mine');
    expect(JSON.parse((await init('tiny', '--json')).stdout).schemaFile).toBeNull();
    expect(read('hybrid.schema.json')).toBe('mine');
    expect((await init('tiny', '--force')).code).toBe(0);
    expect(read('hybrid.schema.json')).not.toBe('mine');
  });

  it.skipIf(process.platform === 'win32')('writes no schema next to a device', async () => {
    const { code, stdout } = await init('tiny', '--save', '/dev/null');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Wrote /dev/null: hybrid/tiny\n' });
    const json = JSON.parse((await init('tiny', '--save', '/dev/null', '--json')).stdout);
    expect(json.schemaFile).toBeNull();
    expect(fs.readdirSync('/dev')).not.toContain('hybrid.schema.json');
  });

  it('keeps an existing config', async () => {
    fs.writeFileSync(path.join(folder, 'tiny.yaml'), 'mine');
    expect((await init('tiny')).code).toBe(2);
    expect(fs.readdirSync(folder)).toEqual(['tiny.yaml']);
    expect(read('tiny.yaml')).toBe('mine');
  });

  it('asks no questions in a pipe', async () => {
    expect((await init()).stdout).toContain('Wrote recommended.yaml');
  });

  it.each([
    ['pretrain_optimized', 'hybrid/recommended'],
    ['configs/pretrain_optimized.yaml', 'hybrid/recommended'],
    ['pretrain_v1', 'hybrid/original'],
  ])('reads the published file name %s as %s', async (name, preset) => {
    const { stdout, stderr } = await init(name, '--json');
    expect(JSON.parse(stdout)).toMatchObject({ preset });
    expect(stderr).toBe(`${name} is the preset ${preset}\n`);
    expect((await init(name, '--save', '-', '--quiet')).stderr).toBe('');
    const profiled = await runHere(['profile', name], { cwd: folder });
    expect(profiled.stdout).toContain(`${preset.split('/')[1]} · hybrid`);
    expect(profiled.stderr).toBe(`${name} is the preset ${preset}\n`);
  });

  it('does not change the meaning of an existing file with such a name', async () => {
    fs.writeFileSync(
      path.join(folder, 'pretrain_v1.yaml'),
      fs.readFileSync(inPackage('configs/hybrid/tiny.yaml'), 'utf8'),
    );
    const { stdout, stderr } = await runHere(['profile', 'pretrain_v1.yaml'], { cwd: folder });
    expect(stdout).toContain('275K parameters');
    expect(stderr).toBe('');
  });

  it('writes no schema with --save -', async () => {
    expect((await init('tiny', '--save', '-')).stdout).toMatch(/^# yaml-language-server/);
    expect(fs.readdirSync(folder)).toEqual([]);
  });
});

describe('a question of init', () => {
  const CHOICES = ['hybrid', 'minimind'].map((name) => ({ name, text: 'a family', value: name }));

  function ask() {
    const [input, output] = [new PassThrough(), new PassThrough()];
    return { input, output, questions: new Questions(input, output) };
  }

  it.each([
    ['\n', 'hybrid'],
    ['2\n', 'minimind'],
    ['minimind\n', 'minimind'],
  ])('accepts %j', async (answer, value) => {
    const { input, questions } = ask();
    const choice = questions.choose('Family', CHOICES);
    input.write(answer);
    expect(await choice).toBe(value);
    questions.close();
  });

  it('is repeated after an invalid answer', async () => {
    const { input, output, questions } = ask();
    const choice = questions.choose('Family', CHOICES);
    input.write('3\n');
    setImmediate(() => input.write('1\n'));
    expect(await choice).toBe('hybrid');
    expect(String(output.read())).toContain('write a number from 1 to 2, or a name');
    questions.close();
  });

  it('is interrupted at the end of the input', async () => {
    const { input, questions } = ask();
    const choice = questions.choose('Family', CHOICES);
    input.end();
    await expect(choice).rejects.toMatchObject({
      code: 'interrupted',
      message: 'stopped; nothing was written',
    });
  });
});
