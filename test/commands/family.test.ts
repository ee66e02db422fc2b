import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-family-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Checkpoint of qwen3 with an unknown type in its config. */
const mystery = path.join(folder, 'mystery');
fs.mkdirSync(mystery);
for (const file of ['config.json', 'model.safetensors']) {
  const bytes = fs.readFileSync(inPackage('fixtures/hf/qwen3', file));
  fs.writeFileSync(path.join(mystery, file), bytes);
}
const config = path.join(mystery, 'config.json');
const text = fs.readFileSync(config, 'utf8');
fs.writeFileSync(config, text.replace('"model_type": "qwen3"', '"model_type": "mystery"'));

it('compare reads a config of an unknown type with --family', async () => {
  // Without it, only its sizes are known.
  const sizes = JSON.parse((await runHere(['compare', mystery, '--json'])).stdout);
  expect(sizes.rows).toMatchObject([{ isDescribed: false, parameters: 35_616 }]);
  const { code, stdout } = await runHere(['compare', mystery, '--family', 'qwen3', '--json']);
  expect(code).toBe(0);
  expect(stdout).toContain('"qwen3"');
});

it('inspect counts the parameters of an unknown type with --family', async () => {
  const args = ['inspect', mystery, '--json'];
  expect(JSON.parse((await runHere(args)).stdout).model).toBeNull();
  const { model, parameters } = JSON.parse((await runHere([...args, '--family', 'qwen3'])).stdout);
  expect(model.family).toBe('qwen3');
  expect(parameters).toBe(35_616);
});

it('inspect refuses a family that does not fit the config', async () => {
  const { code, stderr } = await runHere(['inspect', mystery, '--family', 'mamba2']);
  expect(code).toBe(2);
  expect(stderr).toContain('is not valid');
});

it('convert-checkpoint keeps the config and its unknown model_type with --family', async () => {
  const out = path.join(folder, 'out');
  const args = ['convert-checkpoint', mystery, out, '--dtype', 'bf16', '--family', 'qwen3'];
  const { code, stderr } = await runHere(args);
  expect(stderr).not.toContain('by its names alone');
  expect(code).toBe(0);
  const written = JSON.parse(fs.readFileSync(path.join(out, 'config.json'), 'utf8'));
  expect(written.model_type).toBe('mystery');
});

/** The words of the next command in an answer. */
const nextIn = (stdout: string) =>
  /^Next: minimind (.*)$/m
    .exec(stdout)?.[1]
    ?.replace(/ {4}Details.*$/, '')
    .split(' ');

it.each(['validate', 'profile', 'fit', 'train-plan'])(
  'the next command of %s is on the same model',
  async (command) => {
    const words = [config, '--family', 'qwen3', '--set', 'model.intermediate_size=40'];
    const next = nextIn((await runHere([command, ...words])).stdout) ?? [];
    expect(next).toEqual(expect.arrayContaining(words));
    expect(await runHere(next)).toMatchObject({ code: 0 });
  },
);

it.each(['validate', 'profile', 'fit', 'train-plan'])(
  '%s of standard input has no next command, which could not read it again',
  async (command) => {
    const input = fs.readFileSync(inPackage('configs/hybrid/tiny.yaml'));
    const { code, stdout } = await runCli([command, '-'], { input });
    expect(code).toBe(0);
    expect(nextIn(stdout)).toBeUndefined();
  },
);
