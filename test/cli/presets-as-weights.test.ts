import { expect, it } from 'vitest';
import { runHere } from '../run-here.js';

/** Lines with the name of a model in the place of its weights, and what is proposed. */
const LINES: readonly (readonly [line: string, suggestion: string])[] = [
  ['convert-checkpoint qwen3-0.6b OUT', 'minimind convert-checkpoint hf:Qwen/Qwen3-0.6B OUT'],
  [
    'convert-checkpoint qwen3:8b OUT --dtype q4_k_m',
    'minimind convert-checkpoint hf:Qwen/Qwen3-8B OUT --dtype q4_k_m',
  ],
  ['verify qwen3-0.6b', 'minimind verify hf:Qwen/Qwen3-0.6B'],
  ['verify qwen3/qwen3-0.6b qwen3-0.6b', 'minimind verify qwen3/qwen3-0.6b hf:Qwen/Qwen3-0.6B'],
];

it.each(LINES)('%s names the repository of the weights', async (line, suggestion) => {
  const { code, stderr } = await runHere(line.split(' '));
  expect(code).toBe(2);
  expect(stderr).toContain(`→ write ${suggestion}\n`);
});

it.each(['convert-checkpoint hybrid/original OUT', 'verify hybrid/original hybrid/tiny'])(
  '%s proposes no repository, because these weights are not published',
  async (line) => {
    const { code, stderr } = await runHere(line.split(' '));
    expect(code).toBe(2);
    expect(stderr).toMatch(/expected a checkpoint, found the sizes of "hybrid\/\w+"\n$/);
  },
);

/** A command that needs tensors does not propose the built-in sizes of a model. */
it.each([
  ['profile', true],
  ['inspect', false],
  ['verify', false],
  ['convert-checkpoint OUT', false],
])('%s offline, for a repository with built-in sizes', async (line, isTold) => {
  const [command = '', ...rest] = line.split(' ');
  const { code, stderr } = await runHere([command, 'hf:Qwen/Qwen3-0.6B', ...rest, '--offline']);
  expect(code).not.toBe(0);
  expect(stderr.includes('built in')).toBe(isTold);
});
