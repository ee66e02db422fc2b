import { describe, expect, it } from 'vitest';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import type { Gpu, GpuArchitecture, PeakDtype } from '../../../src/estimate/hardware/gpu.js';
import {
  bandwidthOf,
  capacityOf,
  onChipMemoryOf,
  PEAK_DTYPES,
  peakFor,
  withReserved,
} from '../../../src/estimate/hardware/gpu.js';
import { GPUS, gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import { MACHINES } from '../../../src/estimate/hardware/machines.js';

/** Types from slow to fast: no GPU of the table is slower with narrower numbers. */
const ORDER: readonly PeakDtype[] = ['f32', 'tf32', 'bf16', 'f8'];

describe('the table of GPUs', () => {
  it('has a unique name for each', () => {
    const names = [...GPUS, ...MACHINES].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9]+([-.][a-z0-9]+)*$/);
  });

  it.each(GPUS.map((gpu) => [gpu.name, gpu] as const))(
    'has plausible numbers for %s',
    (_, gpu: Gpu) => {
      expect(gpu.bandwidth).toBeGreaterThan(2.5e10);
      expect(gpu.bandwidth).toBeLessThan(1e13);
      expect(gpu.memoryBytes).toBeGreaterThanOrEqual(4e9);
      expect(gpu.memoryBytes).toBeLessThanOrEqual(512e9);
      const peaks = ORDER.flatMap((dtype) => gpu.peakFlops[dtype] ?? []);
      expect(peaks).toEqual(peaks.toSorted((a, b) => a - b));
      for (const dtype of PEAK_DTYPES) {
        const peak = gpu.peakFlops[dtype] ?? 1e12;
        expect(peak).toBeGreaterThanOrEqual(2e11);
        expect(peak).toBeLessThan(2e16);
      }
      const links = gpu.links.map(({ bandwidth }) => bandwidth);
      expect(links).toEqual(links.toSorted((a, b) => b - a));
      for (const link of links) expect(link).toBeLessThan(gpu.bandwidth);
    },
  );

  it.each([...GPUS, ...MACHINES].map((each) => [each.name, each.source]))(
    'has a dated source for %s',
    (_, source) => expect(source).toMatch(/\b20\d\d\b/),
  );

  // NVIDIA's datasheets and whitepapers. Figures that are printed with sparsity are halved.
  it.each([
    ['v100-32gb', 'f16', 900, 125],
    ['t4', 'f16', 300, 65],
    ['a30', 'bf16', 933, 165],
    ['a40', 'bf16', 696, 149.7],
    ['l40', 'f8', 864, 724 / 2],
    ['rtx-6000-ada', 'f8', 960, 1457 / 2],
    ['h20', 'bf16', 4000, 148],
    ['gb200', 'bf16', 8000, 360_000 / 72 / 2],
    ['b300', 'f8', 8000, 72_000 / 8 / 2],
    ['rtx-3070', 'f16', 448, 40.6],
    ['rtx-2080', 'f32', 448, 10.07],
    ['rx-9060-xt-16gb', 'f16', 320, 103],
    ['trainium3', 'f8', 4900, 2517],
    ['rtx-4060-ti-16gb', 'f32', 288, 22.06],
    ['rtx-4070-ti-super', 'f32', 672, 44.1],
    ['rtx-4080-super', 'f32', 736, 52.22],
    ['rtx-5080', 'int8', 960, 450.2],
    ['mi210', 'bf16', 1638.4, 181],
    ['mi325x', 'f8', 6000, 2614.9],
    ['a100-40gb', 'bf16', 1555, 312],
    ['a100-80gb', 'bf16', 2039, 312],
    ['a100-pcie-80gb', 'tf32', 1935, 156],
    ['h100-80gb', 'bf16', 3350, 1979 / 2],
    ['h100-nvl-94gb', 'f8', 3900, 3341 / 2],
    ['h200', 'f8', 4800, 3958 / 2],
    ['l4', 'bf16', 300, 242 / 2],
    ['rtx-4090', 'f16', 1008, 330.4 / 2],
    ['rtx-5090', 'bf16', 1792, 419 / 2],
    ['mi300x', 'bf16', 5300, 1307.4],
    ['tpu-v4', 'bf16', 1200, 275],
    ['tpu-v5e', 'bf16', 820, 197],
    ['tpu-v6e', 'int8', 1640, 1836],
    ['tpu7x', 'f8', 7380, 4614],
    ['b200', 'f4', 7672, 9000],
    ['rtx-5090', 'f4', 1792, 1676],
    ['rtx-5080', 'f4', 960, 900.4],
    ['rtx-5060-ti-16gb', 'bf16', 448, 47.4],
    ['rtx-3090-ti', 'int8', 1008, 320],
    ['rtx-pro-6000-blackwell', 'bf16', 1792, 503.8],
    ['mi355x', 'f4', 8000, 10_100],
    ['gaudi3', 'bf16', 3700, 1677],
    ['trainium2', 'bf16', 2900, 667],
    ['arc-b580', 'int8', 456, 233],
    ['m3-ultra-96gb', 'f32', 819, 28.4],
  ] as const)('has %s at its dense peak of %s', (name, dtype, gigabytes, teraflops) => {
    const gpu = gpuNamed(name);
    expect(gpu.bandwidth).toBe(gigabytes * 1e9);
    // They are printed with three or four digits.
    expect((gpu.peakFlops[dtype] ?? 0) / (teraflops * 1e12)).toBeCloseTo(1, 3);
  });

  it('has links in one direction', () => {
    expect(gpuNamed('h100-80gb').links[0]).toEqual({ name: 'NVLink 4', bandwidth: 450e9, gpus: 8 });
    expect(gpuNamed('a100-80gb').links[0]?.bandwidth).toBe(600e9 / 2);
  });
});

describe('the name of a GPU', () => {
  it.each([
    ['h100-80g', 'did you mean h100-80gb?'],
    ['h100', 'write one of h100-80gb, h100-pcie-80gb, h100-nvl-94gb'],
    ['RTX-4090', 'did you mean rtx-4090?'],
    ['abacus', 'see minimind fit --list-gpus'],
  ])('is refused with a suggestion when unknown: %s', (name, suggestion) => {
    expect(() => gpuNamed(name)).toThrow(expect.objectContaining({ code: 'usage', suggestion }));
  });

  it('refers to the user’s GPU before that of the table', () => {
    const own = { ...gpuNamed('t4'), memoryBytes: 15e9 };
    expect(gpuNamed('t4', [own])).toBe(own);
  });

  const NONE = { gpus: [], machines: [] };

  it.each([
    ['RTX 4090', 'rtx-4090', 1],
    ['4090', 'rtx-4090', 1],
    ['geforce rtx4090', 'rtx-4090', 1],
    ['h100', 'h100-80gb', 1],
    ['A100', 'a100-80gb', 1],
    ['8 x a100 80GB', 'a100-80gb', 8],
  ])('may be written as people do: %s', (text, name, gpus) => {
    const cluster = clusterNamed(text, undefined, NONE);
    expect({ name: cluster.gpu.name, gpus: cluster.gpus }).toEqual({ name, gpus });
  });

  it.each(['', '-', ' _ '])('is refused without a letter or digit: %j', (text) => {
    expect(() => clusterNamed(text, undefined, NONE)).toThrow('unknown GPU');
  });

  it('is escaped in messages', () => {
    expect(() => gpuNamed('\u001b[31m')).toThrow('unknown GPU "\\u001b[31m"');
  });
});

/** CUDA programming guide, technical specifications per compute capability; LDS in the ROCm table of accelerators. */
describe('memory on the chip for a block of threads', () => {
  it.each<[GpuArchitecture, number | undefined]>([
    ['sm60', 48],
    ['sm61', 48],
    ['sm70', 96],
    ['sm75', 64],
    ['sm80', 163],
    ['sm86', 99],
    ['sm87', 163],
    ['sm89', 99],
    ['sm90', 227],
    ['sm100', 227],
    ['sm103', 227],
    ['sm120', 99],
    ['sm121', 99],
    ['cdna1', 64],
    ['cdna2', 64],
    ['cdna3', 64],
    ['cdna4', 160],
    ['apple', undefined],
  ])('is the published one: %s', (architecture, kib) => {
    const memory = onChipMemoryOf({ ...gpuNamed('t4'), architecture });
    expect(memory?.bytes).toBe(kib && kib * 1024);
  });
});

describe('the peak', () => {
  it('of a published type is the published one, with its source', () => {
    const gpu = gpuNamed('h100-80gb');
    expect(peakFor(gpu, 'bf16')).toMatchObject({ value: 989.4e12, unit: 'FLOP/s' });
    expect(peakFor(gpu, 'bf16').source).toBe(gpu.source);
  });

  it.each([
    ['v100-32gb', 'bf16', 125e12, 'no bf16 is published: f16'],
    ['v100-32gb', 'tf32', 15.7e12, 'no tf32 is published: f32'],
    ['a100-80gb', 'f8', 312e12, 'no f8 is published: bf16'],
    ['h200', 'int4', 1978.9e12, 'no int4 is published: int8'],
    ['h200', 'f4', 989.4e12, 'no f4 is published: bf16'],
    ['b300', 'int8', 2.25e15, 'int8 is slower: bf16'],
    ['m4-16gb', 'bf16', 4.26e12, 'no bf16 is published: f32'],
  ] as const)('of %s in %s is that of a substitute', (name, dtype, value, note) => {
    const peak = peakFor(gpuNamed(name), dtype);
    expect(peak.value).toBe(value);
    expect(peak.source).toContain(note);
  });

  it('is an error with a suggestion when unknown', () => {
    expect(() => peakFor(gpuNamed('m4-max-36gb'), 'f16')).toThrow(
      expect.objectContaining({ suggestion: expect.stringContaining('extends: m4-max-36gb') }),
    );
    expect(() => peakFor(gpuNamed('tpu-v5e'), 'f32')).toThrow('no peak of tpu-v5e');
  });
});

it('memory and its bandwidth are quantities with a source', () => {
  const gpu = gpuNamed('a100-80gb');
  const { usable: _, ...unknown } = gpu;
  expect(capacityOf(unknown)).toMatchObject({ value: 80e9, unit: 'bytes', source: gpu.source });
  expect(bandwidthOf(gpu)).toMatchObject({ value: 2039e9, unit: 'bytes/s', source: gpu.source });
});

describe('memory available to programs', () => {
  const usable = (name: string) => capacityOf(gpuNamed(name)).value;

  // llama.cpp prints recommendedMaxWorkingSetSize in MB; of the last two there are only logs up to macOS 15.
  it.each([
    ['m1-16gb', 12_713.12],
    ['m4-pro-24gb', 19_069.67],
    ['m1-max-32gb', 26_800.6],
    ['m3-pro-36gb', 30_150.67],
    ['m4-pro-48gb', 40_200.9],
    ['m1-max-64gb', 55_662.79],
    ['m4-max-128gb', 115_448.73],
    ['m2-ultra-192gb', 154_618.82],
    ['m3-ultra-512gb', 498_216.21],
  ])('%s: %f MB', (name, megabytes) => {
    expect(usable(name) / 1e6).toBeCloseTo(megabytes, 2);
    expect(usable(name)).toBeLessThan(gpuNamed(name).memoryBytes);
  });

  // Totals of out-of-memory errors of PyTorch: JiehongLin/SAM-6D, TencentARC/PhotoMaker, akshitac8/OW-DETR.
  it.each([
    ['rtx-3060-12gb', 11.76],
    ['rtx-3070', 7.78],
  ])('%s: at most the %f GiB that drivers report, and more than the label in GB', (name, most) => {
    expect(usable(name)).toBeLessThanOrEqual(most * 2 ** 30);
    expect(usable(name)).toBeGreaterThan(gpuNamed(name).memoryBytes);
  });

  it('is 108.62 of 128 GiB on a Ryzen AI Max, and half of it by default on Linux', () => {
    // ggml on Windows 11: unslothai/unsloth, pull request 10418.
    expect(usable('ryzen-ai-max-395-128gb') / 2 ** 30).toBeCloseTo(108.62, 0);
    expect(capacityOf(gpuNamed('ryzen-ai-max-395-128gb')).source).toContain('ttm.pages_limit');
  });

  it('is less by what is reserved, which replaces what the system keeps of a shared memory', () => {
    const left = (name: string, reserved: number) =>
      capacityOf(withReserved(gpuNamed(name), reserved)).value;
    expect(left('rtx-4090', 2e9)).toBe(usable('rtx-4090') - 2e9);
    expect(left('m4-pro-24gb', 4e9)).toBe(24 * 2 ** 30 - 4e9);
    expect(() => withReserved(gpuNamed('rtx-4090'), 30e9)).toThrow('less than the memory of');
  });

  // From "GPU 0 has a total capacity of … GiB" in out-of-memory errors of PyTorch.
  it.each([
    ['v100-16gb', 15.77],
    ['v100-32gb', 31.74],
    ['a100-40gb', 39.39],
    ['a100-pcie-40gb', 39.39],
    ['a100-80gb', 79.15],
    ['a100-pcie-80gb', 79.15],
    ['h100-80gb', 79.11],
    ['h100-pcie-80gb', 79.11],
    ['h200', 139.8],
    ['b200', 178.35],
    ['rtx-3080-10gb', 9.77],
    ['rtx-3090', 23.69],
    ['rtx-4080', 15.7],
    ['rtx-4090', 23.64],
    ['rtx-5090', 31.36],
    ['rtx-a6000', 47.53],
    ['mi300x', 191.98],
    ['mi250x', 63.98],
    ['t4', 14.75],
    ['a10', 22.2],
    ['a10g', 22.2],
    ['l4', 22.17],
    ['a40', 44.56],
    ['l40s', 44.53],
  ])('%s: at most the %f GiB that the driver reports', (name, gibibytes) => {
    expect(usable(name)).toBeLessThanOrEqual(gibibytes * 2 ** 30);
    expect(usable(name)).toBeGreaterThan(0.98 * gibibytes * 2 ** 30);
    const { source } = capacityOf(gpuNamed(name));
    expect(source).toContain('approximate: ');
    expect(source).toContain('reported by the driver');
    expect(source).toContain('not measured');
  });

  it('is less than on the label where error correction takes a part', () => {
    for (const name of ['t4', 'a10', 'a10g', 'l4', 'a40', 'l40', 'l40s'])
      expect(usable(name)).toBeLessThan(gpuNamed(name).memoryBytes);
  });

  it('is in GiB for TPUs, as Google states', () => {
    const sizes = ['tpu-v4', 'tpu-v5e', 'tpu-v5p', 'tpu-v6e', 'tpu7x'].map(
      (name) => usable(name) / 2 ** 30,
    );
    expect(sizes).toEqual([32, 16, 95, 32, 192]);
  });

  it('names the smaller memory of macOS 15 in the source for Macs', () => {
    const { source } = capacityOf(gpuNamed('m4-max-64gb'));
    expect(source).toContain('on macOS 26, of 64 GiB; up to macOS 15, graphics have 51,539 MB');
  });

  it('is less than nvidia-smi counts', () => {
    expect(usable('gb200')).toBeLessThan(189_471 * 2 ** 20);
    expect(usable('gb200')).toBeGreaterThan(189_471 * 2 ** 20 - 2 ** 30);
  });

  it('is 150 GB for an H200, more than on the label', () => {
    expect(usable('h200') / 1e9).toBeCloseTo(150.1, 1);
    expect(capacityOf(gpuNamed('h200'))).toMatchObject({
      formula: 'usable',
      source: expect.stringMatching(/^approximate: 139\.8 GiB, .*not measured$/),
    });
  });

  it('is never more than the chips hold: a GiB for each GB of the label', () => {
    for (const gpu of GPUS)
      expect(capacityOf(gpu).value / 2 ** 30).toBeLessThanOrEqual(gpu.memoryBytes / 1e9);
  });

  it('defaults to the sold size where it is unknown', () => {
    expect(gpuNamed('gaudi2').usable).toBeUndefined();
    expect(capacityOf(gpuNamed('gaudi2'))).toMatchObject({ value: 96e9, formula: 'memory' });
  });

  it('is half of an MI250X for each of its devices', () => {
    expect(gpuNamed('mi250x')).toMatchObject({ memoryBytes: 64e9, bandwidth: 1.6384e12 });
    expect(gpuNamed('mi250x').peakFlops.bf16).toBe(191.5e12);
  });
});
