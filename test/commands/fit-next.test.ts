import { describe, expect, it } from 'vitest';
import { wordsOf } from '../cli/user-folder.js';
import { runHere } from '../run-here.js';

// The line under `Next:` answers the question: it runs, and the model then fits.

async function nextOf(words: readonly string[]): Promise<string[]> {
  const { stdout } = await runHere(words);
  const [, line] = /^Next: minimind (.*?)(?: {4}Details:.*)?$/m.exec(stdout) ?? [];
  if (line === undefined) throw new Error(`no next command in\n${stdout}`);
  return wordsOf(line);
}

const fitsAfter = async (words: readonly string[]) => {
  const next = await nextOf(words);
  const { code, stderr } = await runHere([...next, '--check']);
  expect({ code, stderr: code === 0 ? '' : stderr }, next.join(' ')).toEqual({
    code: 0,
    stderr: '',
  });
  return next.join(' ');
};

describe('the next command of fit', () => {
  it('replaces the number in the name of the GPUs by another one', async () => {
    const next = await fitsAfter(['fit', 'qwen3-8b', '--gpu', '2x3090', '--users', '300']);
    expect(next).toContain('--gpu 3090 --gpus 8');
  });

  it('replaces the number after a name, and of a machine of a cloud', async () => {
    for (const gpu of ['3090x2', 'dual 3090', 'g5.12xlarge']) {
      await fitsAfter(['fit', 'qwen3-8b', '--gpu', gpu, '--users', '300']);
    }
  });

  it('proposes no system memory for users of a model that the GPUs hold', async () => {
    const { stdout } = await runHere(['fit', 'qwen3-8b', '--gpu', '3090', '--users', '300']);
    expect(stdout).not.toContain('with RAM');
    await fitsAfter(['fit', 'qwen3-8b', '--gpu', '3090', '--users', '300']);
  });

  it('proposes system memory for all users of a model that the GPUs do not hold', async () => {
    const next = await fitsAfter(['fit', 'qwen3-30b-a3b', '--gpu', '4060', '--users', '2']);
    expect(next).toContain('--ram');
  });

  it('keeps the tokens of adapters before it shortens them', async () => {
    const next = await fitsAfter(['fit', 'qwen3-8b', '--gpu', '2x3090', '--for', 'lora']);
    expect(next).toContain('--loss chunked');
    expect(next).not.toContain('--context');
    const shorter = await fitsAfter(['fit', 'qwen3-1.7b', '--gpu', '4060 laptop', '--for', 'lora']);
    expect(shorter).toContain('--loss chunked --context');
  });

  it('shows the hardware for adapters that no change makes fit', async () => {
    const asked = ['--for', 'lora', '--rank', '8', '--zero', '3', '--reserve', '1GB'];
    const next = await nextOf(['fit', 'qwen3-8b', '--gpu', '2x4060 laptop', ...asked]);
    expect(next.join(' ')).toBe('fit qwen3-8b --for lora --rank 8 --reserve 1GB --gpu all');
    expect((await runHere(next)).code).toBe(0);
  });
});

describe('the speed of a user', () => {
  it('is the same for users that are asked for and for those of a speed', async () => {
    const words = ['fit', 'llama-3.1-8b', '--gpu', '3090', '--gpus', '2', '--context', '8192'];
    const { throughput } = JSON.parse((await runHere([...words, '--json'])).stdout).serving;
    const { users, userTokensPerSecond, tokensPerSecond } = throughput.atSpeed;
    const { stdout } = await runHere([...words, '--users', String(users), '--json']);
    const { speed } = JSON.parse(stdout).serving.users;
    expect(speed.afterFirstToken.value).toBe(userTokensPerSecond.value);
    expect(speed.total.limit.value).toBe(tokensPerSecond.limit.value);
  });

  it('has one row for each number of users, the fewest first', async () => {
    const words = ['fit', 'llama-3.1-8b', '--gpu', '3090', '--gpus', '2', '--context', '8192'];
    for (const users of [8, 9, 10, 11]) {
      const { stdout } = await runHere([...words, '--users', String(users)]);
      const counts = [...stdout.matchAll(/^ +(\d+) +[\d.]+ +[\d.]+ +[\d.]+–/gm)].map(([, n]) =>
        Number(n),
      );
      expect(counts).toEqual([...new Set([8, users, 10])].sort((a, b) => a - b));
    }
  });

  it('includes the wait where users wait for a place', async () => {
    const words = ['fit', 'llama-3.1-8b', '--gpu', '3090', '--users', '7', '--context', '8192'];
    const { stdout } = await runHere([...words, '--json']);
    const { speed } = JSON.parse(stdout).serving.users;
    expect(speed.afterFirstToken).toBeUndefined();
    expect((await runHere(words)).stdout).toContain(
      `${Number(speed.each.expected.value.toPrecision(3))} tokens/s each`,
    );
  });
});
