/** One rule for counts: `inspect`, `verify` and `convert-checkpoint` count tensors once, under however many names. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const OLD = 'fixtures/old-checkpoint/trained-random-start';

/** A file, what `verify` takes, and its distinct tensors: the names of PyTorch's state dict, tied ones once. */
const FILES = [
  ['fixtures/hf/llama-tied-rope3', ['fixtures/hf/llama-tied-rope3'], 20],
  ['fixtures/hf/mixtral-saved', ['fixtures/hf/mixtral-saved'], 41],
  ['fixtures/hybrid/shared-lowrank-tied', ['fixtures/hybrid/shared-lowrank-tied'], 107],
  // Buffers of RoPE, which follow from the config, are not in the file.
  [`${OLD}/checkpoint_step_30.pt`, [`${OLD}/config.yaml`, `${OLD}/checkpoint_step_30.pt`], 109],
] as const;

describe('the number of tensors', () => {
  it.each(FILES)('of %s is the same everywhere', async (file, verified, tensors) => {
    const words = (...args: string[]) => runHere([...args, '-q']);
    const inspected = await words('inspect', file);
    expect(inspected.stdout.split('\n')[0]).toContain(` ${tensors} tensors `);
    const checked = await words('verify', ...verified);
    expect(checked.stdout).toMatch(new RegExp(`^matches: ${tensors} tensors\n`));
    const plan = await words(
      'convert-checkpoint',
      file,
      'x.safetensors',
      '--dry-run',
      '--dtype',
      'bf16',
      '--json',
    );
    expect(JSON.parse(plan.stdout).input.tensors).toBe(tensors);
  });
});

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-counts-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const LLAMA = 'fixtures/hf/llama';
const TIED = 'fixtures/hf/llama-tied-rope3';
const MIXTRAL = 'fixtures/hf/mixtral-saved';
const HYBRID = 'fixtures/hybrid/shared-lowrank-tied';

/**
 * A conversion, and the tensors of the file that it writes. GGUF has a tensor for the three projections of all experts
 * of a layer (8 experts become 1 in each of 3) and `rope_freqs` for the factors of Llama 3; a packed weight has four
 * tensors (compressed-tensors: packed, scale, zero point, shape).
 */
const WRITTEN = [
  [LLAMA, 'a.gguf', ['--container', 'gguf'], 21],
  [LLAMA, 'b.gguf', ['--dtype', 'q8_0'], 21],
  [TIED, 'c.gguf', ['--container', 'gguf'], 20 + 1],
  [MIXTRAL, 'd.gguf', ['--container', 'gguf'], 41 - 2 * 3 * 3],
  [LLAMA, 'e', ['--quantize', 'int4'], 21 + 3 * 13],
  [LLAMA, 'f', ['--quantize', 'int8'], 21 + 3 * 13],
  [TIED, 'g', ['--quantize', 'int4', '--shard-size', '20kB'], 20 + 3 * 12],
  [HYBRID, 'h', ['--quantize', 'int4'], undefined],
] as const;

describe('the number of tensors of what convert-checkpoint writes', () => {
  it.each(WRITTEN)('%s as %s is the same everywhere', async (from, name, flags, tensors) => {
    const file = path.join(folder, name);
    const json = async (...args: string[]) =>
      JSON.parse((await runHere([...args, '--json', '-q'])).stdout);
    const made = await json('convert-checkpoint', from, file, ...flags);
    const { totals, aliases } = await json('inspect', file);
    const { counts } = await json('verify', file);
    const again = await json(
      'convert-checkpoint',
      file,
      path.join(folder, 'x.pt'),
      '--dtype',
      'bf16',
      '--dry-run',
    );
    const found = {
      inspect: totals.distinctTensors,
      verify: counts.tensors,
      output: made.output.tensors,
      input: again.input.tensors,
    };
    const expected = tensors ?? found.inspect;
    expect(found).toEqual({
      inspect: expected,
      verify: expected,
      output: expected,
      input: expected,
    });
    // Tied names that safetensors files keep as metadata are names too.
    expect(counts.stored).toBe(totals.tensors + Object.keys(aliases).length);
  });

  it('of an ONNX file is without the constants of its graph', async () => {
    const file = path.join(folder, 'm.onnx');
    await runHere(['export', 'hybrid/tiny', '--random', '--save', file, '-q']);
    const first = async (...args: string[]) =>
      (await runHere([...args, '-q'])).stdout.split('\n')[0];
    const counted = /^matches: (\d+) tensors$/.exec((await first('verify', file)) ?? '')?.[1];
    expect(Number(counted)).toBeGreaterThan(60);
    expect(await first('inspect', file)).toContain(` ${counted} tensors `);
  });
});
