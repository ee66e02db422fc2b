import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { inPackage } from '../../fixtures.js';
import { runHere } from '../../run-here.js';
import { made, safetensorsFile } from '../conversion/files.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const LINEAR = 'fixtures/kv-projector/linear-one-teacher';
const ELASTIC = 'fixtures/kv-projector/two-teachers/saved.pt';
const KV = `${LINEAR}/expected.safetensors`;
const inFolder = (name: string) => path.join(folder, name);
const run = (...args: string[]) => runHere(['kv-projector', ...args]);

/** Tensors of a file as numbers, by name. */
function numbersIn(file: string): Map<string, Float32Array> {
  const checkpoint = openCheckpoint(file);
  try {
    return new Map(
      [...checkpoint.tensors].map(([name, tensor]) => {
        const bytes = readTensor(tensor);
        return [name, new Float32Array(bytes.buffer, bytes.byteOffset, tensor.elements).slice()];
      }),
    );
  } finally {
    checkpoint.close();
  }
}

const relativeError = (expected: Float32Array, found: Float32Array) => {
  const squares = (values: Float32Array) => values.reduce((sum, value) => sum + value ** 2, 0);
  return Math.sqrt(
    squares(expected.map((each, at) => each - (found[at] ?? 0))) / squares(expected),
  );
};

interface Upgrade {
  readonly error: number;
  readonly normedError: number;
  readonly branch: string;
  readonly scale: number;
}

describe('a linear projector in the elastic layout', () => {
  it.each(['saved.pt', 'model.safetensors'])('gives what its report says: %s', async (name) => {
    const out = inFolder(`elastic-${name}`);
    const { code, stdout } = await run(
      'convert',
      `${LINEAR}/${name}`,
      out,
      '--to',
      'elastic',
      '--kv',
      KV,
      '--json',
    );
    expect(code).toBe(0);
    const { upgrade, projector, arguments: names } = JSON.parse(stdout);
    // 2·24 + 24² + 24 + 24·12 + 12 for K and for V.
    expect(projector).toMatchObject({ kind: 'elastic', parameters: 2 * 948, tensors: 12 });
    // A file without arguments stays without them.
    const added = ['teacher_configs', 'student_d_model', 'mlp_ratio', 'dropout'];
    expect(names).toEqual(name === 'saved.pt' ? added : []);
    // The other command runs norm and SiLU of the file; the results of v1 are those of PyTorch.
    const saved = inFolder(`projected-${name}.safetensors`);
    expect((await run('project', out, KV, '--save', saved)).code).toBe(0);
    const [expected, found] = [numbersIn(inPackage(KV)), numbersIn(saved)];
    for (const { branch, error, normedError } of upgrade.adapters as Upgrade[]) {
      const tensor = `output.Qwen2-7B.${branch}`;
      const measured = relativeError(
        expected.get(tensor) ?? new Float32Array(),
        found.get(tensor) ?? new Float32Array(),
      );
      // All 30 rows of the file are compared.
      expect(error).toBeCloseTo(measured, 4);
      expect(normedError).toBeLessThan(1e-5);
    }
  });

  it('warns of an error that changes the projector, as convert-checkpoint does', async () => {
    // Rows of two sizes: the norm makes them alike.
    const rows = () => made([2, 24], (at) => (at < 24 ? 0.01 : 10) * Math.sin(at));
    const kv = await safetensorsFile(
      { 'Qwen2-7B.K': rows(), 'Qwen2-7B.V': rows() },
      'kv.safetensors',
    );
    const upgraded = async (out: string, ...flags: string[]) => {
      const words = ['convert', `${LINEAR}/saved.pt`, inFolder(out), '--to', 'elastic', ...flags];
      return (await run(...words)).stdout;
    };
    expect(await upgraded('warned.pt', '--kv', kv)).toMatch(
      /^Warning: an error of \d+\.\d% changes/m,
    );
    expect(await upgraded('usual.pt')).not.toContain('Warning');
  });

  it('refuses a matrix with NaN', async () => {
    const weight = (at: number) => (at === 5 ? Number.NaN : at);
    const file = await safetensorsFile(
      {
        'projectors.A.K.weight': made([4, 8], (at) => at),
        'projectors.A.V.weight': made([4, 8], weight),
      },
      'nan.safetensors',
    );
    const out = inFolder('nan.pt');
    const { code, stderr } = await run('convert', file, out, '--to', 'elastic');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(
        '"projectors.A.V.weight": has NaN or infinite values: all results would be NaN',
      ),
    });
    expect(fs.existsSync(out)).toBe(false);
  });

  it('keeps the matrix: two hidden values carry one', async () => {
    const out = inFolder('matrix.safetensors');
    await run(
      'convert',
      `${LINEAR}/saved.pt`,
      out,
      '--to',
      'elastic',
      '--ratio',
      '1.5',
      '--dropout',
      '0',
    );
    const [before, after] = [numbersIn(inPackage(LINEAR, 'saved.pt')), numbersIn(out)];
    const at = (part: string) => after.get(`projectors.Qwen2_7B.K.${part}`) ?? new Float32Array();
    const weight = before.get('projectors.Qwen2_7B.K.weight') ?? new Float32Array();
    const first = at('1.weight');
    expect(first).toHaveLength(36 * 24);
    expect(first.subarray(0, weight.length)).toEqual(weight);
    expect(first.subarray(weight.length, 2 * weight.length)).toEqual(weight.map((value) => -value));
    // Rows beyond 2 · 12 begin as in a new projector, and have no effect.
    expect(first.subarray(2 * weight.length).some((value) => value === 0)).toBe(false);
    const second = at('4.weight');
    for (const [place, value] of second.entries()) {
      const [row, column] = [Math.floor(place / 36), place % 36];
      expect(value + 0).toBe(Number(column === row) - Number(column === row + 12));
    }
    expect(at('0.weight').every((value) => value === 1)).toBe(true);
  });

  it.each<[string[], string, string]>([
    [
      [`${LINEAR}/saved.pt`, '--to', 'elastic', '--ratio', '0.5'],
      'takes 24 hidden values',
      '--ratio 1,',
    ],
    [[ELASTIC, '--to', 'linear'], 'no matrix computes', 'init linear.pt --kind linear --teacher'],
    [[ELASTIC, '--to', 'elastic'], 'expected a linear projector', 'leave out --to elastic'],
    [[`${LINEAR}/saved.pt`, '--ratio', '1'], '--ratio requires --to elastic', '--to elastic'],
    [[`${LINEAR}/saved.pt`, '--seed', '1'], '--seed requires --to elastic', '--to elastic'],
  ])('refuses %j', async ([input = '', ...flags], message, suggestion) => {
    const out = inFolder('refused.pt');
    const { code, stderr } = await run('convert', input, out, ...flags);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(suggestion);
    expect(fs.existsSync(out)).toBe(false);
  });

  it('converts a linear projector to linear without a change', async () => {
    const out = inFolder('same.safetensors');
    const { stdout } = await run('convert', `${LINEAR}/saved.pt`, out, '--to', 'linear');
    expect(stdout).toContain('all values unchanged');
  });
});
