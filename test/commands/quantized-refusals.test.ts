/** Types of caches and of GGUF files that a command refuses, and what it says instead. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { entry, older } from '../checkpoint/gguf/imatrix-files.js';
import { fileIn, folderOf } from '../checkpoint/temp-folder.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const LLAMA = inPackage('fixtures/hf/llama');
const DIFFERENTIAL = inPackage('fixtures/hf/diffllama-7-3');
const FIT = ['fit', 'qwen3:8b', '--gpu', '4090', '--for', 'serving'];
const GENERATE = ['generate', DIFFERENTIAL, '--ids', '1,2,3', '--max-tokens', '4'];

describe('refused', () => {
  it.each<readonly [string, readonly string[], RegExp]>([
    [
      'blocks that do not divide differential heads',
      [...GENERATE, '--cache-dtype', 'q8_0'],
      /multiple of 32 values, found 4/,
    ],
    [
      'the same heads in fit',
      ['fit', 'hybrid/tiny', '--gpu', '4090', '--cache-dtype', 'q4_0'],
      /multiple of 32 values, found 16/,
    ],
    [
      'the same heads on common hardware',
      ['fit', 'hybrid/tiny', '--cache-dtype', 'q4_0'],
      /multiple of 32 values, found 16/,
    ],
    [
      'blocks of a cache in vLLM',
      [...FIT, '--cache-dtype', 'q4_0', '--runtime', 'vllm'],
      /--cache-dtype q4_0 is a type of llama\.cpp, and --runtime vllm excludes it/,
    ],
    ['int8 for a cache', [...GENERATE, '--cache-dtype', 'int8'], /→ write .*--cache-dtype q8_0/],
    ['fp8 for a cache', [...GENERATE, '--cache-dtype', 'fp8'], /→ write .*--cache-dtype q8_0/],
    ['int4 for a cache', [...GENERATE, '--cache-dtype', 'int4'], /→ write .*--cache-dtype q4_0/],
    [
      'int4 in a GGUF file',
      ['convert-checkpoint', LLAMA, 'o.gguf', '--dtype', 'int4'],
      /^error: int4 is a type of safetensors files\n {2}→ write --dtype q4_k_m or q4_0\n$/,
    ],
    [
      'a folder of importances',
      ['convert-checkpoint', LLAMA, 'o.gguf', '--dtype', 'q4_k_m', '--imatrix', '.'],
      /--imatrix: expected a file, found the folder \./,
    ],
  ])('%s', async (_, line, message) => {
    const { code, stderr } = await runHere([...line]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
  });
});

it('a cache of blocks is one of llama.cpp', async () => {
  const { stdout } = await runHere([...FIT, '--cache-dtype', 'q4_0', '--json']);
  expect(JSON.parse(stdout).serving.setting.runtime).toMatchObject({ name: 'llama.cpp' });
});

it('other importances than those of a plan are named', async () => {
  const [target, plan] = [path.join(folderOf({}), 'o.gguf'), path.join(folderOf({}), 'p.json')];
  const values = (last: number) =>
    older([entry('blk.0.attn_q.weight', 1, [...Array(31).fill(1), last])]);
  const file = fileIn('m.dat', values(2));
  const flags = ['--dtype', 'q4_0', '--imatrix', file, '--parts', '2', '--plan', plan];
  const convert = (...words: string[]) => runHere(['convert-checkpoint', ...words]);
  expect((await convert(LLAMA, target, ...flags)).code).toBe(0);
  fs.writeFileSync(file, values(3));
  const { code, stderr } = await convert(target, '--plan', plan, '--part', '1');
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining('m.dat has other importances than when it was planned'),
  });
});
