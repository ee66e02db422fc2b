import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { ADAPTER_KINDS } from '../../../src/convert/kv-projector/projector.js';
import { savedProjector } from '../../../src/convert/kv-projector/saved.js';
import type { Init } from '../../../src/convert/kv-projector/write-projector.js';
import { INITS, newTensors } from '../../../src/convert/kv-projector/write-projector.js';
import { inPackage } from '../../fixtures.js';
import { runHere } from '../../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));
const inFolder = (name: string) => path.join(folder, name);

function tensorsIn(file: string): Map<string, { shape: readonly number[]; data: Float32Array }> {
  const checkpoint = openCheckpoint(file);
  try {
    return new Map(
      [...checkpoint.tensors].map(([name, tensor]) => {
        const bytes = Uint8Array.from(readTensor(tensor));
        return [name, { shape: tensor.shape, data: new Float32Array(bytes.buffer) }] as const;
      }),
    );
  } finally {
    checkpoint.close();
  }
}

const TEACHERS = [
  { name: 'Qwen2-7B', width: 24, layers: 3 },
  { name: 'Llama-3.1-8B', width: 16, layers: 2 },
];
const FLAGS = TEACHERS.flatMap(({ name, width, layers }) => [
  '--teacher',
  `${name}:${width}x${layers}`,
]).concat('--student', '12');
const expected = tensorsIn(inPackage('fixtures/kv-projector/init.safetensors'));

const init = (...args: string[]) => runHere(['kv-projector', 'init', ...args]);

describe('a new projector', () => {
  it.each(ADAPTER_KINDS.flatMap((kind) => INITS.map((each): [typeof kind, Init] => [kind, each])))(
    'has the values of PyTorch: %s, %s',
    (kind, method) => {
      const request = { teachers: TEACHERS, studentWidth: 12, kind, init: method, seed: 7 };
      const tensors = newTensors({ ...request, ratio: 0.5, dropout: 0.1 });
      expect(tensors).toHaveLength(kind === 'linear' ? 4 : 24);
      for (const { name, shape, data } of tensors) {
        const reference = expected.get(`${kind}.${method}.${name}`);
        expect({ name, shape }).toEqual({ name, shape: reference?.shape });
        const far = data.findIndex(
          (value, at) => Math.abs(value - (reference?.data[at] ?? Number.NaN)) > 5e-7,
        );
        expect({ name, far }).toEqual({ name, far: -1 });
      }
    },
  );

  it.each(['new.pt', 'new.safetensors'])('can be read by the other commands: %s', async (name) => {
    const file = inFolder(name);
    const run = await init(file, ...FLAGS, '--ratio', '0.5', '--seed', '7', '--json');
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(run.stdout)).toMatchObject({
      parameters: 1560,
      tensors: 24,
      kind: 'elastic',
    });
    const checkpoint = openCheckpoint(file);
    const { arguments: args, warnings, parameters } = savedProjector(checkpoint);
    checkpoint.close();
    expect({ warnings, parameters }).toEqual({ warnings: [], parameters: 1560 });
    expect([...args.values.keys()]).toEqual([
      'teacher_configs',
      'student_d_model',
      'mlp_ratio',
      'dropout',
      'init_method',
      'trainable',
    ]);
    expect([...args.teachers]).toEqual([
      ['Qwen2-7B', 24],
      ['Llama-3.1-8B', 16],
    ]);
    const kv = inPackage('fixtures/kv-projector/two-teachers/expected.safetensors');
    const projected = inFolder(`${name}.kv.safetensors`);
    const project = await runHere(['kv-projector', 'project', file, kv, '--save', projected]);
    expect(project.code).toBe(0);
    const converted = inFolder(`${name}.converted.pt`);
    expect((await runHere(['kv-projector', 'convert', file, converted])).code).toBe(0);
    expect(tensorsIn(converted)).toEqual(tensorsIn(file));
  });

  it('replaces an existing file only with --force', async () => {
    const file = inFolder('kept.pt');
    fs.writeFileSync(file, 'mine');
    const refused = await init(file, ...FLAGS);
    expect(refused.code).toBe(2);
    expect(fs.readFileSync(file, 'utf8')).toBe('mine');
    expect((await init(file, ...FLAGS, '--force')).code).toBe(0);
    expect(fs.statSync(file).size).toBeGreaterThan(1000);
  });

  it.each([
    [
      'another ending',
      ['x.npy', ...FLAGS],
      /OUT: expected a .safetensors, .pt, .* file, found x\.npy/,
    ],
    ['a folder', ['x/', ...FLAGS], /expected a \.pt or \.safetensors file/],
    ['a GGUF file', ['x.gguf', ...FLAGS], /OUT: expected .* file, found x\.gguf/],
    [
      'no width',
      ['x.pt', ...FLAGS, '--ratio', '0.01'],
      /expected a ratio with a hidden width of at least 1, found 0\.01/,
    ],
    [
      'a ratio for linear',
      ['x.pt', ...FLAGS, '--kind', 'linear', '--ratio', '1'],
      /--kind elastic/,
    ],
    [
      'dropout for linear',
      ['x.pt', ...FLAGS, '--kind', 'linear', '--dropout', '0'],
      /--kind elastic/,
    ],
    ['certain dropout', ['x.pt', ...FLAGS, '--dropout', '1'], /--dropout: expected a probability/],
    ['a teacher twice', ['x.pt', ...FLAGS, '--teacher', 'Qwen2-7B:8'], /occurs twice/],
    ['too much memory', ['x.pt', '--teacher', 'A:999999', '--student', '9999999'], /of memory/],
    ['one file for both', ['x.pt', ...FLAGS, '-o', 'x.pt', '--json'], /--output|the same/],
  ])('is refused: %s', async (_, args, message) => {
    const { code, stderr, stdout } = await runHere(['kv-projector', 'init', ...args], {
      cwd: folder,
    });
    expect(code).toBe(2);
    expect(stderr + stdout).toMatch(message);
    expect(fs.readdirSync(folder).filter((name) => name.startsWith('x.'))).toEqual([]);
  });
});
