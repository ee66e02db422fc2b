import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const answer = (line: string) => runHere(['fit', ...line.split(' ')]);

describe('axes of a training', () => {
  it('are named where adapters do not use them', async () => {
    const line = 'qwen3-30b-a3b --for qlora --gpu dgx-h100 --gpus 8';
    const idle = await answer(`${line} --tensor-parallel 4 --expert-parallel 8`);
    expect(idle.code).toBe(0);
    expect(idle.stderr).toContain('--tensor-parallel and --expert-parallel are not used');
    const cut = await answer(`${line} --context-parallel 8`);
    expect(cut.stderr).not.toContain('not used');
    expect(cut.stdout).toMatch(/full recompute, context parallel 8, ZeRO-3$/m);
  });

  it('have no degree of experts that nobody divides', async () => {
    const line = 'qwen3-30b-a3b --for training --gpu dgx-h100 --gpus 8 --tensor-parallel 4';
    const { code, stderr } = await answer(`${line} --expert-tensor-parallel 1`);
    expect(code).toBe(2);
    expect(stderr).toContain('add --expert-parallel 4');
  });

  it.each([
    // DeepSeek-V3 has 61 blocks: 64 stages would be too many.
    ['blocks', 'deepseek-v3 --gpu dgx-h100 --gpus 64 --pipeline-parallel 62', 'write 32'],
    ['stages', 'deepseek-v3 --gpu dgx-h100 --gpus 64 --pipeline-parallel 60', 'write 32'],
    ['experts', 'qwen3-30b-a3b --gpu h100 --gpus 9 --expert-parallel all', 'write 1'],
  ])('advise what is possible: %s', async (_, line, advice) => {
    const { code, stderr } = await answer(`${line} --for training`);
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`${advice}$`, 'm'));
  });

  it('have no part of less than nothing', async () => {
    const line = 'gpt-oss-120b --for training --gpu dgx-b200 --gpus 16 --zero 1';
    const { stdout } = await answer(`${line} --expert-parallel 16`);
    expect(stdout).toMatch(/memory +state 124\.8 \+ (?!activations).*= 133\.8 of/);
    expect(stdout).not.toMatch(/\+ rest −/);
  });
});
