import { describe, expect, it } from 'vitest';
import { cudaAdapter, cudaAdapters, cudaCard } from '../../../src/engine/adapters/adapters.js';
import { machine } from './machines.js';

const unknown = { maxBufferBytes: null, maxBindingBytes: null, hasFloat16: null };
const card = (name: string, memoryBytes: number | null, source = 'nvidia-smi') => ({
  name,
  vendor: 'NVIDIA',
  isSoftware: false,
  memoryBytes,
  ...unknown,
  source,
});

const withSmi = (answer: string) => machine({ programs: { 'nvidia-smi': answer } });

/** File of NVIDIA's driver 580 for Linux. */
const PROC = {
  '/proc/driver/nvidia/gpus/0000:01:00.0/information': [
    'Model: \t\t NVIDIA GeForce RTX 3090',
    'IRQ:   \t\t 151',
    'GPU UUID: \t GPU-5f0cbb6a-3b5c-2a3e-9d7a-1a2b3c4d5e6f',
    'Video BIOS: \t 94.02.26.40.1c',
    'Bus Type: \t PCIe',
    'DMA Size: \t 47 bits',
    'Bus Location: \t 0000:01:00.0',
    'Device Minor: \t 0',
    'GPU Excluded:\t No',
    '',
  ].join('\n'),
};

describe('NVIDIA cards', () => {
  it.each([
    ['one', '00000000:0F:00.0, NVIDIA H200, 143771\n', [card('NVIDIA H200', 143_771 * 2 ** 20)]],
    [
      'two, with Windows line ends',
      '00000000:01:00.0, NVIDIA L4, 23034\r\n00000000:02:00.0, NVIDIA L4, 23034\r\n',
      [card('NVIDIA L4', 23_034 * 2 ** 20), card('NVIDIA L4', 23_034 * 2 ** 20)],
    ],
    [
      "one that shares the machine's memory",
      '0000000F:01:00.0, NVIDIA GB10, [N/A]\n',
      [card('NVIDIA GB10', null)],
    ],
    [
      'one with control characters in its name',
      '00000000:01:00.0, NVIDIA\u001b[2J\u0007 L4\u202e, 23034\n',
      [card('NVIDIA [2J L4', 23_034 * 2 ** 20)],
    ],
    ['none', 'No devices were found\n', []],
    [
      'a driver that does not run',
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
      [],
    ],
    [
      'a card that fell off the bus',
      'Unable to determine the device handle for GPU0: 00000000:01:00.0: Unknown Error\n',
      [],
    ],
    ['an old nvidia-smi', 'Field "pci.bus_id" is not a valid field to query.\n', []],
    ['noise', '\u0000'.repeat(1000), []],
    ['no name', '00000000:01:00.0, \u0007, 1\n', []],
    ['nothing', '', []],
  ])('are read from nvidia-smi: %s', async (_, answer, expected) => {
    expect(await cudaAdapters(withSmi(answer))).toEqual(expected);
  });

  it('are read from /proc where nvidia-smi is missing', async () => {
    const expected = card('NVIDIA GeForce RTX 3090', null, '/proc/driver/nvidia/gpus');
    expect(await cudaAdapters(machine({ files: PROC }))).toEqual([expected]);
  });

  it('have names that are cut to one line', async () => {
    const [adapter] = await cudaAdapters(withSmi(`00000000:01:00.0, ${'x'.repeat(5000)}, 1\n`));
    expect(adapter?.name).toHaveLength(100);
  });

  it('are queried once', async () => {
    const asked = withSmi('00000000:0F:00.0, NVIDIA H200, 143771\n');
    await Promise.all([cudaAdapters(asked), cudaAdapters(asked), cudaCard(asked)]);
    expect(asked.runs).toEqual([
      ['nvidia-smi', '--query-gpu=pci.bus_id,name,memory.total', '--format=csv,noheader,nounits'],
    ]);
  });

  it('are queried by absolute path on Windows, which searches the current folder first', async () => {
    const windows = machine({ platform: 'win32', env: { SystemRoot: 'D:\\Windows' } });
    await cudaAdapters(windows);
    expect(windows.runs[0]?.[0]).toBe('D:\\Windows\\System32\\nvidia-smi.exe');
  });
});

describe('the device of CUDA', () => {
  it.each([
    ['00000000:0F:00.0, NVIDIA H200, 143771\n', 'NVIDIA H200'],
    ['00000000:01:00.0, NVIDIA L4, 1\n00000000:02:00.0, NVIDIA L4, 1\n', 'NVIDIA L4'],
    [
      '00000000:01:00.0, NVIDIA L4, 1\n00000000:02:00.0, NVIDIA H200, 2\n',
      'NVIDIA L4 or NVIDIA H200',
    ],
    ['', 'graphics card'],
  ])('has the name from its driver: %j', async (answer, name) => {
    expect(await cudaCard(withSmi(answer))).toBe(name);
  });

  it('has the least memory of several cards', async () => {
    const two = '00000000:01:00.0, NVIDIA L4, 23034\n00000000:02:00.0, NVIDIA H200, 143771\n';
    expect(await cudaAdapter(withSmi(two))).toEqual(
      card('NVIDIA L4 or NVIDIA H200', 23_034 * 2 ** 20),
    );
    expect(await cudaAdapter(withSmi('No devices were found\n'))).toBeNull();
  });
});
