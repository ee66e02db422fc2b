import { describe, expect, it } from 'vitest';
import { wordsOf } from '../cli/user-folder.js';
import { runHere } from '../run-here.js';

// Every change that `fit` shows for a rig can be added to the line that was typed, without a refusal.

/** The typed words with a shown change: its flags replace those of the same name. */
function withChange(words: readonly string[], change: string): string[] {
  const added = wordsOf(change);
  const names = added.filter((word) => word.startsWith('--'));
  const kept = words.filter(
    (word, at) => !names.includes(word) && !names.includes(words[at - 1] ?? ''),
  );
  return [...kept, ...added];
}

/** The shown changes and the next line of an answer, as lines. */
async function proposedLines(words: readonly string[]): Promise<string[][]> {
  const { stdout, stderr } = await runHere(words);
  expect(stderr).not.toContain('warning');
  const [, changes = ''] = /^ {2}to (?:train|serve) +(-.*?)(?: \(.*)?$/m.exec(stdout) ?? [];
  const [, next] = /^Next: minimind (.*?)(?: {4}Details:.*)?$/m.exec(stdout) ?? [];
  return [
    ...changes
      .split(' · ')
      .filter((change) => change !== '')
      .map((change) => withChange(words, change.replace(/, .*/, ''))),
    ...(next === undefined ? [] : [wordsOf(next)]),
  ];
}

describe('proposals for a rig, or for system memory', () => {
  it.each([
    'qwen3-32b --gpu 4090+3090 --for qlora',
    'qwen3-8b --gpu 5090+3090 --for lora',
    'qwen3-1.7b --gpu 4090+3090 --for training',
    'qwen3-14b --gpu 4060+4060 --dtype q4_k_m',
    'qwen3-14b --gpu 2x4060 --dtype q4_k_m',
    'qwen3-8b --gpu 2x3090 --for lora',
    'llama-3.3-70b --gpu 2x3090+4090',
    'qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --gpu-layers 20',
    'qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --cpu-experts 30',
    'qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --cpu-experts 10 --gpu-layers 40',
    'qwen3-32b --gpu cpu --ram 64GB',
    'qwen3-14b --gpu 4060 --ram 16GB --users 8',
    'llama-3.3-70b --gpu 3090+4090 --tensor-split 3,1 --dtype q4_k_m',
    'deepseek-v3 --gpu 4090 --ram 64GB',
  ])('%s: each of them fits', async (line) => {
    const lines = await proposedLines(['fit', ...line.split(' ')]);
    expect(lines).not.toHaveLength(0);
    for (const words of lines) {
      // The table of hardware has no verdict of its own.
      const check = words.at(-1) === 'all' ? [] : ['--check'];
      const { code, stderr } = await runHere([...words, ...check]);
      expect({ code, stderr: code === 0 ? '' : stderr }, words.join(' ')).toEqual({
        code: 0,
        stderr: '',
      });
    }
  });

  it('have a memory of the rig, not of GPUs that share each layer', async () => {
    const { stdout } = await runHere(['fit', 'llama-3.3-70b', '--gpu', '2x3090+4090']);
    expect(stdout).toMatch(/^Does not fit on .*: [\d.]+ GB too much for the GPUs$/m);
    expect(stdout).toMatch(/^ {2}memory +rtx-3090 [\d.]+ GB of 25\.4 GB · rtx-3090 /m);
    expect(stdout).not.toContain('share each layer');
  });

  it('are no other number of GPUs of several kinds, which does not say of which', async () => {
    const { stdout } = await runHere(['fit', 'qwen3-32b', '--gpu', '4090+3090', '--for', 'qlora']);
    expect(stdout).not.toContain('--gpus');
    expect(stdout).toMatch(/^ {2}to train +larger GPUs are needed$/m);
    expect(stdout).toContain('Next: minimind fit qwen3-32b --for qlora --gpu all');
  });
});
