import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { presetLike } from '../../../src/input/model-input/checkpoint/matching-preset.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import { onFileEnd } from '../../cleanup.js';
import { runHere } from '../../run-here.js';

// A checkpoint without a config is compared with all presets and published models, by its index alone.

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
onFileEnd(() => fs.rmSync(folder, { recursive: true }));

/** A safetensors file with the tensors of a model, whose zeros take no place on the disk. */
async function weightsOf(preset: string, set: readonly string[] = []): Promise<string> {
  const { model } = await loadModelFile(preset, { set });
  let end = 0;
  const header: Record<string, unknown> = {};
  for (const { name, shape, role } of tensorsOf(model)) {
    if (role === 'buffer') continue;
    const bytes = 2 * shape.reduce((product, size) => product * size, 1);
    header[name] = { dtype: 'F16', shape, data_offsets: [end, end + bytes] };
    end += bytes;
  }
  const json = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  const inner = fs.mkdtempSync(path.join(folder, 'model-'));
  const file = path.join(inner, 'weights.safetensors');
  fs.writeFileSync(file, Buffer.concat([size, json]));
  fs.truncateSync(file, size.length + json.length + end);
  return file;
}

async function likeOf(file: string): Promise<string | undefined> {
  const checkpoint = openCheckpoint(file);
  try {
    return await presetLike(checkpoint);
  } finally {
    checkpoint.close();
  }
}

describe('a checkpoint without a config', () => {
  it.each([
    'minimind/minimind2-small',
    'minimind/minimind2-moe',
    'minigpt/minigpt-tiny',
    'hybrid/tiny',
    'gpt_neox/pythia-70m',
    'qwen3/qwen3-0.6b',
    'gpt2/gpt2',
    'mamba/mamba-130m',
  ])('has the tensors of %s', async (preset) => {
    expect(await likeOf(await weightsOf(preset))).toBe(preset);
  });

  it('is like no preset with another size', async () => {
    const set = ['model.intermediate_size=1344'];
    expect(await likeOf(await weightsOf('minimind/minimind2-small', set))).toBeUndefined();
  });

  it('gets the whole line in each command that needs a config', async () => {
    const file = await weightsOf('minimind/minimind2-small');
    const cwd = path.dirname(file);
    const like = 'minimind/minimind2-small';
    const said = `weights.safetensors has no config, and there is none next to it; its tensors are those of ${like}`;
    const convert = ['convert-checkpoint', 'weights.safetensors'];
    for (const [words, advice] of [
      [['verify', 'weights.safetensors'], `write minimind verify ${like} weights.safetensors`],
      [
        ['quick-test', 'weights.safetensors'],
        `write ${like} in its place, and --checkpoint weights.safetensors`,
      ],
      [
        ['generate', 'weights.safetensors', '--ids', '1'],
        `write ${like} in its place, and --checkpoint weights.safetensors`,
      ],
      [['compare-srte', 'weights.safetensors'], `name one with --config ${like}`],
      [[...convert, 'out', '--quantize', 'int8'], `name one with --config ${like}`],
      [[...convert, 'out.gguf'], `name one with --config ${like}`],
      [[...convert, 'out', '--dtype', 'bf16', '--prove'], `name one with --config ${like}`],
    ] as const) {
      const { code, stderr } = await runHere(words, { cwd });
      expect({ code, stderr }).toEqual({ code: 2, stderr: `error: ${said}\n  → ${advice}\n` });
    }
    const { stdout } = await runHere(['profile', 'weights.safetensors'], { cwd });
    expect(stdout).toContain(`${said}; name one with --config ${like}`);
    const verified = await runHere(['verify', like, 'weights.safetensors'], { cwd });
    expect(verified).toMatchObject({ code: 0 });
  });

  it('gets a next line with the preset of its tensors from the commands that read the index alone', async () => {
    const file = await weightsOf('minimind/minimind2-small');
    const cwd = path.dirname(file);
    const like = 'minimind/minimind2-small';
    const inspected = await runHere(['inspect', 'weights.safetensors'], { cwd });
    expect(inspected.stdout).toContain(`  config  none; the tensors are those of ${like}\n`);
    expect(inspected.stdout).toContain(`\nNext: minimind verify ${like} weights.safetensors `);
    const profiled = await runHere(['profile', 'weights.safetensors'], { cwd });
    const words = ['profile', 'weights.safetensors', '--config', like];
    expect(profiled.stdout).toContain(`\nNext: minimind ${words.join(' ')} `);
    const { code, stderr } = await runHere(words, { cwd });
    expect({ code, errors: stderr.includes('warning') }).toEqual({ code: 0, errors: false });
    for (const command of ['inspect', 'profile']) {
      const { stdout } = await runHere([command, 'weights.safetensors', '--json'], { cwd });
      expect(JSON.parse(stdout)).toMatchObject({ like });
    }
  });

  it('is described by that preset, where a flag requires a description', async () => {
    const file = await weightsOf('minimind/minimind2-small');
    const { code, stderr } = await runHere(['fit', file, '--gpu', '3060', '--for', 'lora']);
    expect(code).toBe(2);
    const advice = '  → name one with --config minimind/minimind2-small, or leave it out\n';
    expect(stderr.endsWith(advice)).toBe(true);
    const words = ['--config', 'minimind/minimind2-small', '--gpu', '3060', '--for', 'lora'];
    expect(await runHere(['fit', file, ...words])).toMatchObject({ code: 0 });
  });

  it('of another size gets no preset from them', async () => {
    const file = await weightsOf('minimind/minimind2-small', ['model.intermediate_size=1344']);
    for (const command of ['inspect', 'profile']) {
      const { stdout } = await runHere([command, file, '--json']);
      expect(JSON.parse(stdout)).not.toHaveProperty('like');
    }
  });

  it('is not told to remove a flag that it does not have', async () => {
    const file = await weightsOf('minimind/minimind2-small');
    const words = ['convert-checkpoint', file, path.join(folder, 'out'), '--quantize', 'int8'];
    expect((await runHere(words)).stderr).not.toContain('--no-config');
    expect((await runHere([...words, '--no-config'])).stderr).toContain('remove --no-config');
  });
});
