/** Axes of serving, as a user asks for them: latencies, what they apply to, and what a server's command makes of them. */
import { expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const fitOf = (line: string) => runHere(['fit', ...line.split(' ')]);

it.each([
  'qwen3-8b --gpu dgx-h100 --gpus 8 --pipeline-parallel 8',
  'deepseek-v3 --gpu dgx-h200 --gpus 8 --dp-attention 8 --p95 10s',
])('a lone prompt is not divided: %s', async (line) => {
  const load = '--for serving --qps 0.01 --prompt-tokens 2000 --output-tokens 1 --json';
  const { stdout } = await fitOf(`${line} ${load}`);
  const { fit: found } = JSON.parse(stdout).serving;
  expect(found.load.expected.p95Seconds.value).toBeGreaterThanOrEqual(
    found.prefill.seconds.lower.value,
  );
});

it.each([
  ['qwen3-30b-a3b --gpu all --dp-attention 8', '--dp-attention requires hardware'],
  ['qwen3-8b --gpu dgx-h200 --gpus 8 --for serving --expert-parallel all', 'routed experts'],
  [
    'qwen3-30b-a3b --for serving --gpu 4090 --gpus 2 --ram 64GB --pipeline-parallel 2',
    '--pipeline-parallel needs the whole model on GPUs',
  ],
  [
    'qwen3-30b-a3b --for serving --gpu h100 --gpus 8 --runtime llama.cpp --dp-attention 8',
    'llama.cpp does not have it',
  ],
])('refuses axes that change nothing: %s', async (line, message) => {
  const { code, stderr } = await fitOf(line);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});
