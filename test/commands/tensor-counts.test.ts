/** One rule for counts: `inspect`, `verify` and `convert-checkpoint` count tensors once, under however many names. */
import { describe, expect, it } from 'vitest';
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
