import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FamilyName, loadFamily } from '../src/model/architecture/families.js';
import { cast, type Tensor } from '../src/model/modules/index.js';
import { inPackage } from './fixtures.js';
import { runHere } from './run-here.js';

/** Names that every object inherits from its prototype, but no table of this project has. */
const NAMES = ['constructor', '__proto__', 'toString'] as const;

const CONFIG = inPackage('configs/hybrid/original.yaml');

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.each(NAMES)('the name %s', (name) => {
  it('is not a family', async () => {
    await expect(loadFamily(name as FamilyName)).rejects.toMatchObject({
      code: 'usage',
      message: `unknown family "${name}"`,
    });
  });

  it('is not a dtype of a module', () => {
    const values = { dtype: 'f32', shape: [1], data: Float32Array.of(1) } as const;
    expect(() => cast(values, name as 'f16')).toThrow(`dtype ${name}`);
    expect(() => cast({ ...values, dtype: name } as unknown as Tensor, 'f16')).toThrow(
      `dtype ${name}`,
    );
  });

  const file = (text: string) => {
    const place = path.join(folder, `${name}.yaml`);
    fs.writeFileSync(place, text);
    return place;
  };
  const fits = (hardware: string) => ['fit', CONFIG, '--gpu', hardware, '--context', '128'];

  it.each([
    ['family', () => ['profile', file(`model:\n  family: ${name}\n`)]],
    ['model_type', () => ['profile', file(`{"model_type": "${name}"}`)]],
    ['activation', () => ['profile', file(`model: {family: llama, hidden_act: ${name}}`)]],
    [
      'rope_type',
      () => ['profile', file(`model: {family: llama, rope_scaling: {rope_type: ${name}}}`)],
    ],
    ['key', () => ['profile', CONFIG, '--set', `model.${name}=1`]],
    ['preset', () => ['init', name]],
    ['GPU', () => fits(name)],
    ['GPU to extend', () => fits(file(`gpus:\n  own:\n    extends: ${name}\n`))],
    ['GPU of a machine', () => fits(file(`machines:\n  own: {gpu: ${name}, gpus: 1}\n`))],
    ['dtype', () => ['profile', CONFIG, '--dtype', name]],
    ['optimizer', () => ['profile', CONFIG, '--optimizer', name]],
    ['format', () => ['profile', CONFIG, '--format', name]],
    ['check', () => ['quick-test', CONFIG, '--only', name]],
    ['engine', () => ['quick-test', CONFIG, '--engine', name]],
    ['layout', () => ['convert-checkpoint', CONFIG, 'x.pt', '--to', name]],
    ['dialect', () => ['convert-checkpoint', CONFIG, 'x.pt', '--dialect', name]],
    ['schema', () => ['schema', name]],
    ['criterion', () => ['plan', 'hybrid/original', '--sort', name]],
    ['command', () => [name]],
  ])('is refused as a %s', async (_, args) => {
    const { code, stderr } = await runHere(args(), { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/error/) });
  });
});
