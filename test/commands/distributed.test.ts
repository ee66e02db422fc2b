import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { folderOf } from '../checkpoint/temp-folder.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const FIXTURES = 'fixtures/distributed';
const CASES = fs
  .readdirSync(inPackage(FIXTURES), { withFileTypes: true })
  .filter((each) => each.isDirectory())
  .map(({ name }) => name);

/** Bytes of each tensor, in hexadecimal digits. */
function valuesIn(file: string): Map<string, string> {
  const checkpoint = openCheckpoint(file);
  try {
    return new Map(
      [...checkpoint.tensors]
        .map(([name, tensor]) => [name, Buffer.from(readTensor(tensor)).toString('hex')] as const)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  } finally {
    checkpoint.close();
  }
}

describe('convert-checkpoint of a checkpoint of several processes', () => {
  it.each(CASES)('%s becomes one PyTorch file of the state dict', async (name) => {
    const out = path.join(folderOf({}), 'model.pt');
    const { code, stderr } = await runHere([
      ...['convert-checkpoint', `${FIXTURES}/${name}`, out, '--container', 'pt'],
      ...['--no-config', '--check'],
    ]);
    expect(code, stderr).toBe(0);
    expect(valuesIn(out)).toEqual(valuesIn(inPackage(FIXTURES, `${name}.safetensors`)));
  });

  it('casts and names what is left out', async () => {
    const out = path.join(folderOf({}), 'model.safetensors');
    const { code, stdout } = await runHere([
      ...['convert-checkpoint', `${FIXTURES}/world2-nested`, out, '--dtype', 'bf16', '--json'],
    ]);
    expect(code).toBe(0);
    const { leftOut, input } = JSON.parse(stdout);
    expect(input.format).toBe('dcp');
    expect(leftOut.map(({ names }: { names: string[] }) => names)).toEqual([['optimizer']]);
  });
});

describe('a LoRA adapter', () => {
  it('is not compared by values', async () => {
    const words = ['verify', 'fixtures/hf/llama', 'fixtures/lora/llama-bf16', '--values'];
    const { code, stderr } = await runHere([...words, 'fixtures/hf/llama']);
    expect([code, stderr.replaceAll(/\s+/g, ' ')]).toEqual([
      2,
      expect.stringContaining('found the LoRA adapter fixtures/lora/llama-bf16'),
    ]);
  });

  it('is merged, and the output is the model of PEFT', async () => {
    const out = path.join(folderOf({}), 'model.safetensors');
    const args = ['convert-checkpoint', 'fixtures/hf/llama', out];
    const lora = 'fixtures/lora/llama-patterns';
    const { code, stdout, stderr } = await runHere([
      ...args,
      '--merge-lora',
      lora,
      '--check',
      '--json',
    ]);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout).adapter).toBe(lora);
    const [found, before] = [valuesIn(out), valuesIn(inPackage('fixtures/hf/llama'))];
    const changed = [...found.keys()].filter((name) => found.get(name) !== before.get(name));
    expect(changed).toEqual([...valuesIn(inPackage(`${lora}.safetensors`)).keys()]);
  });

  it('of another model is refused, and verify exits with 1', async () => {
    const lora = 'fixtures/lora/llama-bf16';
    const verified = await runHere(['verify', 'fixtures/hf/gpt2', lora, '--json']);
    expect(verified.code).toBe(1);
    expect(JSON.parse(verified.stdout).faults.length).toBe(3);
    const profiled = await runHere(['profile', 'fixtures/hf/gpt2', '--adapter', lora]);
    expect(profiled.code).toBe(2);
    expect(profiled.stderr).toContain('does not fit the model');
  });

  it('shows its parameters in inspect and profile, with the model that it names', async () => {
    const lora = 'fixtures/lora/qwen2-lora-bias';
    const inspected = JSON.parse((await runHere(['inspect', lora, '--json'])).stdout);
    const profiled = JSON.parse((await runHere(['profile', lora, '--json'])).stdout);
    expect(inspected.adapter).toEqual(profiled.adapter);
    // q: 4 × (32 + 32) + 32 biases, v: 4 × (32 + 16) + 16, in two layers.
    expect(profiled.adapter.parameters).toBe(2 * (4 * 64 + 32 + 4 * 48 + 16));
  });

  it('whose model is not there gives the line to write', async () => {
    const folder = folderOf({});
    fs.cpSync(inPackage('fixtures/lora/llama-bf16'), folder, { recursive: true });
    const { code, stderr } = await runHere(['verify', folder]);
    expect(code).toBe(2);
    expect(stderr).toContain('write minimind verify ../../hf/llama');
  });

  it('is no folder of another kind', async () => {
    const args = [
      'convert-checkpoint',
      'fixtures/hf/llama',
      'out',
      '--merge-lora',
      'fixtures/hf/gpt2',
    ];
    const { code, stderr } = await runHere(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is not a LoRA adapter')]);
  });
});
