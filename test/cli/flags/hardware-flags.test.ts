import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { HardwareFlags } from '../../../src/cli/flags/hardware-flags.js';
import { hardwareOf } from '../../../src/cli/flags/hardware-flags.js';
import { inPackage } from '../../fixtures.js';

const EXAMPLE = inPackage('configs/hardware/example.yaml');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const hardware = (flags: Partial<HardwareFlags>) =>
  hardwareOf(
    {
      gpu: undefined,
      gpus: undefined,
      reserve: undefined,
      hardware: undefined,
      'this-machine': false,
      profile: undefined,
      remeasure: false,
      engine: undefined,
      device: undefined,
      compute: 'f32',
      threads: undefined,
      quiet: true,
      ...flags,
    },
    () => {},
  );

const written = (text: string): string => {
  const file = path.join(folder, 'own.yaml');
  fs.writeFileSync(file, text);
  return file;
};

describe('hardwareOf', () => {
  it.each<[Partial<HardwareFlags>, string, number, string | null]>([
    [{ gpu: 'h100-80gb' }, 'h100-80gb', 1, null],
    [{ gpu: 'h100-80gb', gpus: 8 }, 'h100-80gb', 8, null],
    [{ gpu: 'dgx-h100' }, 'h100-80gb', 8, 'InfiniBand NDR'],
    [{ gpu: 'dgx-h100', gpus: 64 }, 'h100-80gb', 64, 'InfiniBand NDR'],
    [{ gpu: 'rtx-4090-300w', hardware: EXAMPLE }, 'rtx-4090-300w', 1, null],
    [{ gpu: 'workstation', hardware: EXAMPLE }, 'rtx-4090-300w', 2, 'Ethernet, 10 Gbit/s of 2'],
    [{ gpu: 't4', hardware: EXAMPLE }, 't4', 1, null],
  ])('finds the hardware of %j', async (flags, gpu, gpus, network) => {
    const found = await hardware(flags);
    expect([found.gpu.name, found.gpus, found.network?.name ?? null]).toEqual([gpu, gpus, network]);
  });

  it('finds the only GPU of a file', async () => {
    const file = written('gpus: { mine: { extends: t4, memory: 15GB } }');
    expect(await hardware({ gpu: file })).toMatchObject({
      gpu: { name: 'mine', memoryBytes: 15e9 },
    });
    expect(await hardware({ hardware: file, gpus: 3 })).toMatchObject({
      gpu: { name: 'mine' },
      gpus: 3,
    });
  });

  it.each<[Partial<HardwareFlags>, object]>([
    [{}, { code: 'usage', message: 'expected a GPU, found none' }],
    [{ gpu: 'dgx-h10' }, { code: 'usage', suggestion: 'did you mean dgx-h100?' }],
    [{ gpu: EXAMPLE }, { code: 'usage', message: expect.stringContaining('describes 2 GPUs') }],
    [{ gpu: 'no-such.yaml' }, { code: 'usage', message: 'there is no file "no-such.yaml"' }],
  ])('refuses %j', async (flags, error) => {
    await expect(hardware(flags)).rejects.toMatchObject(error);
  });
});
