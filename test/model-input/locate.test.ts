import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { configPath, isCheckpointPath } from '../../src/model-input/locate.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** A file of this name and content, and what is thought of it. */
function judged(name: string, content: string | Uint8Array): boolean {
  const file = path.join(folder, name);
  fs.writeFileSync(file, content);
  return isCheckpointPath(file);
}

const SAFETENSORS = Uint8Array.of(16, 1, 0, 0, 0, 0, 0, 0, 0x7b, 0x22);

it.each([
  'm.safetensors',
  'm.pt',
  'm.PTH',
  'pytorch_model.bin',
  'last.ckpt',
  'model.safetensors.index.json',
])('%s is one by its name, whether it is there or not', (name) => {
  expect(isCheckpointPath(path.join(folder, 'nowhere', name))).toBe(true);
  expect(judged(name, 'model:')).toBe(true);
});

it.each([
  ['zip', Uint8Array.of(0x50, 0x4b, 3, 4, 0, 0, 0, 0, 0, 0), true],
  ['legacy', Uint8Array.of(0x80, 2, 0x8a, 10), true],
  ['safetensors', SAFETENSORS, true],
  ['yaml', 'model:\n  num_layers: 3\n', false],
  ['json', '{"model": {"num_layers": 3}}', false],
  ['utf-16', Buffer.from('\ufeffmodel: {num_layers: 3}', 'utf16le'), false],
  ['short', 'PK', false],
  ['empty', '', false],
])('a file without a telling name is known by its beginning: %s', (name, content, expected) => {
  expect(judged(name, content)).toBe(expected);
});

it('a file named as a config is one', () => {
  for (const name of ['a.yaml', 'a.yml', 'a.json', 'a.YAML']) {
    expect(judged(name, SAFETENSORS)).toBe(false);
  }
});

it.each([
  [[], true],
  [['model.safetensors'], true],
  [['config.json', 'model.safetensors'], true],
  [['config.json', 'model.safetensors.index.json'], true],
  [['config.yaml', 'last.ckpt'], true],
  [['config.json'], false],
  [['config.json', 'tokenizer.json', 'README.md', 'training_args.bin'], false],
  [['config.yml'], false],
  [['tokenizer.json'], true],
])('a folder with %j is one: %j', (names, expected) => {
  const inside = fs.mkdtempSync(path.join(folder, 'inside-'));
  for (const name of names) fs.writeFileSync(path.join(inside, name), '');
  expect(isCheckpointPath(inside)).toBe(expected);
  const config = names.find((name) => name.startsWith('config.'));
  expect(configPath(inside)).toBe(config === undefined ? inside : path.join(inside, config));
});

it.each(['-', 'nowhere', '\0', 'x'.repeat(10_000)])('%j is none', (name) =>
  expect(isCheckpointPath(name)).toBe(false),
);

it('a pipe is not read', () => {
  const pipe = path.join(folder, 'pipe');
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
  // Opening it would wait for somebody to write.
  expect(isCheckpointPath(pipe)).toBe(false);
});
