import { expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const answerOf = async (line: string) => {
  const { stdout } = await runHere(['fit', ...line.split(' '), '--for', 'serving', '--json']);
  const { cluster, serving } = JSON.parse(stdout) as {
    cluster: { gpus: number };
    serving: { setting: Record<string, unknown>; fit: { total: unknown } };
  };
  return { gpus: cluster.gpus, setting: serving.setting, total: serving.fit.total };
};

it.each([
  ['qwen3-0.6b --gpu h100 --tensor-parallel 2', 'qwen3-0.6b --gpu 2xh100 --tensor-parallel 2'],
  [
    'qwen3-0.6b --gpu h100 --tensor-parallel 2 --pipeline-parallel 2',
    'qwen3-0.6b --gpu h100 --gpus 4 --tensor-parallel 2 --pipeline-parallel 2',
  ],
  [
    'qwen3-30b-a3b --gpu h100 --expert-parallel 4',
    'qwen3-30b-a3b --gpu 4xh100 --expert-parallel 4',
  ],
  // Copies of the attention of a model without experts are replicas.
  ['qwen3-0.6b --gpu h100 --dp-attention 2', 'qwen3-0.6b --gpu 2xh100 --tensor-parallel 1'],
])('counts the GPUs that share a model: %s', async (line, same) => {
  const answer = await answerOf(line);
  expect(answer.gpus).toBeGreaterThan(1);
  expect(answer).toEqual(await answerOf(same));
});

it('keeps a count that the user gave', async () => {
  const { code, stderr } = await runHere(
    'fit qwen3-0.6b --gpu h100 --gpus 1 --tensor-parallel 2 --for serving'.split(' '),
  );
  expect(code).toBe(2);
  expect(stderr).toContain('--tensor-parallel');
});
