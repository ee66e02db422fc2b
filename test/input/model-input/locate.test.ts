import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { isCheckpointPath, locateModel } from '../../../src/input/model-input/locate.js';
import { openModelSource } from '../../../src/input/model-input/model-source.js';
import { inPackage } from '../../fixtures.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Writes a file and returns whether it is taken for a checkpoint. */
function isJudgedCheckpoint(name: string, content: string | Uint8Array): boolean {
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
])('%s is a checkpoint by its name, even when it is missing', (name) => {
  expect(isCheckpointPath(path.join(folder, 'nowhere', name))).toBe(true);
  expect(isJudgedCheckpoint(name, 'model:')).toBe(true);
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
])(
  'a file without a known ending is recognised by its first bytes: %s',
  (name, content, expected) => {
    expect(isJudgedCheckpoint(name, content)).toBe(expected);
  },
);

it('a file named like a config is not a checkpoint', () => {
  for (const name of ['a.yaml', 'a.yml', 'a.json', 'a.YAML']) {
    expect(isJudgedCheckpoint(name, SAFETENSORS)).toBe(false);
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
])('a folder with %j is a checkpoint: %j', (names, expected) => {
  const inside = fs.mkdtempSync(path.join(folder, 'inside-'));
  for (const name of names) fs.writeFileSync(path.join(inside, name), '');
  expect(isCheckpointPath(inside)).toBe(expected);
  const config = names.find((name) => name.startsWith('config.'));
  expect(locateModel(inside).config).toBe(
    config === undefined ? inside : path.join(inside, config),
  );
});

it.each(['-', 'nowhere', '\0', 'x'.repeat(10_000)])('%j is not a checkpoint', (name) =>
  expect(isCheckpointPath(name)).toBe(false),
);

it('a pipe is not opened', () => {
  const pipe = path.join(folder, 'pipe');
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
  // Opening it would wait for a writer.
  expect(isCheckpointPath(pipe)).toBe(false);
});

it('a folder is looked up once for its model, its checkpoint and its config', async () => {
  const bloom = inPackage('fixtures/alibi/bloom');
  const calls = (['statSync', 'readdirSync', 'existsSync'] as const).map((name) =>
    vi.spyOn(fs, name),
  );
  try {
    await (await openModelSource(bloom, {})).model(undefined);
    const [stats, listings, others] = calls.map(({ mock }) =>
      mock.calls.filter(([file]) => file === bloom),
    );
    expect([stats?.length, listings?.length, others?.length]).toEqual([1, 1, 0]);
  } finally {
    for (const call of calls) call.mockRestore();
  }
});

it.each([
  ['-', { kind: 'stdin', config: '-' }],
  ['nowhere', { kind: 'missing', config: 'nowhere' }],
  [
    'MiniMind2-Small',
    {
      ...{ kind: 'preset', preset: 'minimind/minimind2-small' },
      config: inPackage('configs/minimind/minimind2-small.yaml'),
    },
  ],
])('%s is looked up as %j', (name, place) => {
  expect(locateModel(name)).toEqual({ path: name, ...place });
});
