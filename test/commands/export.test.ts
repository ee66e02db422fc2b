import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const MODEL = 'fixtures/hf/llama';
const CONFIG = 'configs/hybrid/tiny.yaml';

let folder = '';
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterEach(() => fs.rmSync(folder, { recursive: true }));
const out = (name = 'model.onnx') => path.join(folder, name);
const exported = (...args: string[]) => runHere(['export', ...args]);

describe('export', () => {
  it('reports the written file, and leaves no other file', async () => {
    const { code, stdout, stderr } = await exported(MODEL, '--save', out());
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Wrote .*model\.onnx: 129\.4 kB, weights of fixtures\/hf\/llama$/m);
    expect(stdout).toMatch(/^ +input +input_ids int64 \[batch, sequence\]$/m);
    expect(stdout).toMatch(/^ +output +logits float32 \[batch, sequence, 97\]$/m);
    expect(fs.readdirSync(folder)).toEqual(['model.onnx']);
  });

  it('has exact figures in JSON', async () => {
    const { stdout } = await exported(MODEL, '--save', out(), '--json');
    const { files, weights, operators, checkpoint, seed, positions } = JSON.parse(stdout);
    expect(files).toEqual([{ path: out(), bytes: fs.statSync(out()).size }]);
    const stored = fs.statSync(inPackage(MODEL, 'model.safetensors')).size;
    expect(weights.bytes).toBe(weights.elements * 4);
    // A safetensors file of float32 has its tensors and a header of a few kilobytes.
    expect(stored - weights.bytes).toBeGreaterThan(0);
    expect(stored - weights.bytes).toBeLessThan(4096);
    expect({ checkpoint, seed, positions }).toEqual({
      checkpoint: MODEL,
      seed: null,
      positions: 64,
    });
    const { count } = operators.find(
      ({ operator }: { operator: string }) => operator === 'MultiHeadAttention',
    );
    expect(count).toBe(2);
  });

  it.each([
    ['experts, which it writes one by one', 'mixtral', []],
    ['experts in groups of 8 bits', 'mixtral', ['--weights', 'int8']],
    ['transposed experts, in another file', 'gpt-oss-7-2', ['--external-data']],
    ['transposed weights of 4 bits', 'gpt2', ['--weights', 'int4']],
    ['rows that do not fill their groups', 'gpt2-inner-scaled', ['--weights', 'int8']],
  ] as [string, string, string[]][])('can be read again with %s', async (_, name, flags) => {
    const model = `fixtures/hf/${name}`;
    expect((await exported(model, ...flags, '--save', out())).code).toBe(0);
    const args = [model, out(), '--values', model, '--json'];
    const { matches, counts, values } = JSON.parse((await runHere(['verify', ...args])).stdout);
    expect({ matches, missing: values.missing, beyond: values.beyond }).toEqual({
      matches: true,
      missing: [],
      beyond: [],
    });
    expect(values.compared).toBe(counts.described);
    const parametersOf = async (file: string) =>
      JSON.parse((await runHere(['inspect', file, '--json'])).stdout).parameters;
    expect(await parametersOf(out())).toBe(await parametersOf(model));
  });

  it('writes the weights next to the graph with --external-data', async () => {
    const { code } = await exported(MODEL, '--save', out(), '--external-data');
    expect(code).toBe(0);
    expect(fs.readdirSync(folder).sort()).toEqual(['model.onnx', 'model.onnx.data']);
  });

  it('writes the same random weights for the same seed, and others for another seed', async () => {
    const bytes = async (seed: string) => {
      expect(
        (await exported(CONFIG, '--random', '--seed', seed, '--save', out(), '--force')).code,
      ).toBe(0);
      return fs.readFileSync(out());
    };
    const first = await bytes('1');
    expect((await bytes('1')).equals(first)).toBe(true);
    expect((await bytes('2')).equals(first)).toBe(false);
  });

  it('writes weights of bfloat16 as float32', async () => {
    const half = out('half');
    const given = 'fixtures/hybrid/shared-lowrank-tied';
    expect((await runHere(['convert-checkpoint', given, half, '--dtype', 'bf16'])).code).toBe(0);
    const { code, stdout } = await exported(half, '--save', out(), '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout).weights.dtype).toBe('F32');
  });
});

describe('a user error of export', () => {
  it.each([
    [[CONFIG], 'is a config without weights'],
    [[MODEL, '--random'], 'is a checkpoint; --random requires a config'],
    [[MODEL, '--checkpoint', MODEL], 'is a checkpoint, and so is --checkpoint'],
    [[CONFIG, '--checkpoint', MODEL], 'does not match'],
    [[CONFIG, '--checkpoint', MODEL, '--random'], 'cannot be used together'],
  ])('has exit code 2 and writes no file: %j', async (args, message) => {
    const { code, stdout, stderr } = await exported(...args, '--save', out());
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it.each([
    ['no file', [], '--save is required'],
    ['standard output', ['--save', '-'], '--save: expected a file, found "-"'],
    ['a missing folder', ['--save', 'no-such-folder/model.onnx'], 'there is no such folder'],
    ['a folder', ['--save', 'src'], 'src is a folder'],
    ['a device', ['--save', '/dev/null'], 'neither a file nor a folder'],
  ])('is reported for %s', async (_, args, message) => {
    const { code, stderr } = await exported(MODEL, ...args);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });

  it('refuses another ending before it reads the model', async () => {
    const { code, stderr } = await exported('no-such-model', '--save', 'model.pt');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'error: --save: expected a .onnx file, found model.pt\n' +
        '  → write minimind convert-checkpoint no-such-model model.pt\n',
    });
  });

  it.each(['model.onnx', 'model.onnx.data'])('keeps an existing %s', async (name) => {
    fs.writeFileSync(out(name), 'mine');
    const args = [MODEL, '--save', out(), '--external-data'];
    const { code, stderr } = await exported(...args);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `error: ${out(name)} exists already\n  → choose another name, or replace it with --force\n`,
    });
    expect(fs.readdirSync(folder)).toEqual([name]);
    expect(fs.readFileSync(out(name), 'utf8')).toBe('mine');
    expect((await exported(...args, '--force')).code).toBe(0);
    expect(fs.statSync(out(name)).size).toBeGreaterThan(4);
  });

  it.each(['model.safetensors', 'config.json'])('keeps the input %s', async (name) => {
    fs.cpSync(inPackage(MODEL), folder, { recursive: true });
    const before = fs.readFileSync(out(name));
    const { code, stderr } = await exported(folder, '--save', out(name), '--force');
    expect(code).toBe(2);
    expect(stderr).toContain('is read, and would be replaced');
    expect(fs.readFileSync(out(name)).equals(before)).toBe(true);
  });
});

describe('Ctrl-C during export', () => {
  it('leaves no files', async () => {
    const args = [CONFIG, '--random', '--external-data', '--set', 'model.vocab_size=2000000'];
    const run = [inPackage('bin/run.js'), 'export', ...args, '--save', out()];
    const child = spawn(process.execPath, run, { cwd: inPackage(), stdio: 'ignore' });
    const closed = new Promise((resolve) =>
      child.on('close', (code, signal) => resolve(code ?? signal)),
    );
    while (fs.readdirSync(folder).length === 0 && child.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    child.kill('SIGINT');
    // The thread ends it where it is busy.
    expect([130, 'SIGINT']).toContain(await closed);
    expect(fs.readdirSync(folder)).toEqual([]);
  });
});
