import { describe, expect, it } from 'vitest';
import { detectMachine } from '../../src/cli/fit/detected-machine.js';
import { fitHardware } from '../../src/cli/fit/fit-hardware.js';
import type { SystemCalls } from '../../src/engine/adapters/graphics-adapter.js';
import { memoryModules } from '../../src/engine/adapters/memory-modules.js';
import { openModelSource } from '../../src/input/model-input/model-source.js';
import { fitOn } from '../../src/library/fit.js';
import { machine } from '../engine/adapters/machines.js';

const GIB = 2 ** 30;

/** Lines of `nvidia-smi`: bus, name, MiB. */
const nvidia = (...cards: readonly (readonly [string, number])[]) => ({
  'nvidia-smi': cards
    .map(([name, mebibytes], at) => `00000000:0${at + 1}:00.0, ${name}, ${mebibytes}\n`)
    .join(''),
});

const RYZEN = 'AMD Ryzen 9 7950X 16-Core Processor';

const DESKTOP = machine({
  programs: nvidia(['NVIDIA GeForce RTX 4090', 24_564]),
  memoryBytes: 64 * GIB,
  processor: RYZEN,
});

/** A card of AMD's as the kernel and the list of PCI devices name it. */
const RADEON = {
  '/dev/dri/renderD128': '',
  '/sys/class/drm/renderD128/device/uevent': 'DRIVER=amdgpu\nPCI_ID=1002:744C\n',
  '/sys/class/drm/renderD128/device/vendor': '0x1002\n',
  '/sys/class/drm/renderD128/device/mem_info_vram_total': '25753026560\n',
  '/usr/share/misc/pci.ids':
    '1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE]\n',
};

/** Memory of a server, which the kernel watches for errors: two controllers with two channels each. */
const EDAC = Object.fromEntries(
  [0, 1].flatMap((controller) =>
    [0, 1].flatMap((channel) => {
      const folder = `/sys/devices/system/edac/mc/mc${controller}/dimm${channel}`;
      return [
        [`${folder}/size`, '32768\n'],
        [`${folder}/dimm_location`, `channel ${channel} slot 0 \n`],
        [`${folder}/dimm_mem_type`, 'Registered-DDR4\n'],
      ];
    }),
  ),
);

describe('this machine', () => {
  it.each<[string, SystemCalls, readonly string[]]>([
    ['one card', DESKTOP, ['1 rtx-4090']],
    [
      'the size that the driver reports',
      machine({ programs: nvidia(['NVIDIA GeForce RTX 4060 Ti', 16_380]) }),
      ['1 rtx-4060-ti-16gb'],
    ],
    [
      'a laptop',
      machine({ programs: nvidia(['NVIDIA GeForce RTX 4070 Laptop GPU', 8188]) }),
      ['1 rtx-4070-laptop'],
    ],
    [
      'equal cards',
      machine({ programs: nvidia(['Tesla P40', 23_040], ['Tesla P40', 23_040]) }),
      ['2 p40'],
    ],
    [
      'different cards',
      machine({
        programs: nvidia(['NVIDIA GeForce RTX 5090', 32_607], ['NVIDIA GeForce RTX 3090', 24_576]),
      }),
      ['1 rtx-5090', '1 rtx-3090'],
    ],
    ['a name of several, by its memory', machine({ files: RADEON }), ['1 rx-7900-xtx']],
    [
      'a data centre',
      machine({ programs: nvidia(['NVIDIA H100 80GB HBM3', 81_559]) }),
      ['1 h100-80gb'],
    ],
  ])('has %s', async (_, system, kinds) => {
    const { cluster } = await detectMachine(system);
    const cards = cluster.cards ?? [cluster];
    expect(cards.map(({ gpu, gpus }) => `${gpus} ${gpu.name}`)).toEqual(kinds);
  });

  it('has a memory and a processor, and says what is assumed', async () => {
    const { machine: found, cpu, ramBytes, ramSpeed } = await detectMachine(DESKTOP);
    expect({ cpu, ramBytes, ramSpeed }).toEqual({
      cpu: RYZEN,
      ramBytes: 64 * GIB,
      ramSpeed: undefined,
    });
    expect(found.cards).toEqual(['NVIDIA GeForce RTX 4090 (nvidia-smi)']);
    expect(found.assumed.join()).toMatch(/channels and the speed of the memory/);
  });

  it('leaves out cards that the table lacks, and says so', async () => {
    const system = machine({ programs: nvidia(['NVIDIA GeForce GTX 980', 4096]) });
    const { cluster, machine: found } = await detectMachine(system);
    expect(cluster.gpu.name).toBe('cpu');
    expect(found.ignored).toEqual(['NVIDIA GeForce GTX 980']);
  });

  it('has the channels that the kernel shows', async () => {
    const server = machine({ files: EDAC, processor: 'AMD EPYC 7763 64-Core Processor' });
    expect(await memoryModules(server)).toMatchObject({ channels: 4, type: 'DDR4' });
    expect((await detectMachine(server)).ramSpeed).toBe('4xDDR4-3200');
  });

  it('has the modules that Windows and macOS list', async () => {
    const windows = machine({
      platform: 'win32',
      programs: {
        'powershell.exe': 'P0 CHANNEL A|DIMM 1|34|6000\r\nP0 CHANNEL B|DIMM 1|34|6000\r\n',
      },
    });
    expect(await memoryModules(windows)).toEqual({
      channels: 2,
      type: 'DDR5',
      megatransfers: 6000,
      source: 'Win32_PhysicalMemory',
    });
    const bank = (channel: string) =>
      `        BANK 0/Channel${channel}-DIMM0:\n\n          Size: 16 GB\n          Type: DDR4\n          Speed: 2667 MHz\n\n`;
    const mac = machine({
      platform: 'darwin',
      programs: { system_profiler: `Memory:\n\n    Memory Slots:\n\n${bank('A')}${bank('B')}` },
    });
    expect(await memoryModules(mac)).toMatchObject({
      channels: 2,
      type: 'DDR4',
      megatransfers: 2667,
    });
    expect(await memoryModules(machine())).toBeNull();
  });
});

describe('--gpu auto', () => {
  const flags = { gpu: 'auto', quiet: true } as Parameters<typeof fitHardware>[0];
  const answer = async (name: string, system: SystemCalls, more: object = {}) => {
    const loaded = await (await openModelSource(name, {})).model([]);
    const given = { ...flags, ...more } as typeof flags;
    const { hardware, options, found } = await fitHardware(given, () => {}, system);
    return fitOn(loaded, hardware, options, { found });
  };

  it('answers for the card alone where it holds the model, without a note on the memory', async () => {
    const { result, remarks } = await answer('qwen3-8b', DESKTOP);
    expect(result.cluster.gpu.name).toBe('rtx-4090');
    expect(result.serving?.places).toBeUndefined();
    expect(result.found?.processor).toBe(RYZEN);
    expect(remarks).toEqual([]);
  });

  it('uses the memory of the machine for what it does not hold', async () => {
    const { result } = await answer('gpt-oss-120b', DESKTOP, { dtype: 'mxfp4' });
    expect(result.serving?.places).toMatchObject({
      isAsked: true,
      memory: { bytes: 64 * GIB, channels: 2, bandwidth: 83.2e9 },
    });
  });

  it('answers for the processor without a card', async () => {
    const { result } = await answer(
      'qwen3-8b',
      machine({ memoryBytes: 16 * GIB, processor: RYZEN }),
      { dtype: 'q4_k_m' },
    );
    expect(result.cluster.gpu.kind).toBe('processor');
    expect(result.serving?.places).toMatchObject({ verdict: 'fits', memory: { bytes: 16 * GIB } });
  });

  it('keeps what the user wrote', async () => {
    const { result } = await answer('gpt-oss-120b', DESKTOP, {
      dtype: 'mxfp4',
      ram: 128e9,
      'ram-speed': 'ddr5-6000',
    });
    expect(result.serving?.places?.memory).toMatchObject({ bytes: 128e9, bandwidth: 96e9 });
  });

  it('ignores the memory for a training, and refuses one without a card', async () => {
    const { result } = await answer('qwen3-0.6b', DESKTOP, { for: 'lora' });
    expect(result.adapters?.fit.verdict).toBe('fits');
    await expect(answer('qwen3-0.6b', machine(), { for: 'lora' })).rejects.toThrow(
      /found no graphics card .* a training requires one/,
    );
    await expect(answer('qwen3-0.6b', DESKTOP, { gpus: 2 })).rejects.toThrow(
      /--gpus 2 cannot be used with --gpu auto/,
    );
  });

  it('gives a named card the processor of this machine with --cpu auto', async () => {
    const { result } = await answer('gpt-oss-120b', DESKTOP, {
      gpu: 'rtx-3090',
      cpu: 'auto',
      dtype: 'mxfp4',
    });
    expect(result.cluster.gpu.name).toBe('rtx-3090');
    expect(result.serving?.places?.memory).toMatchObject({ bytes: null, bandwidth: 83.2e9 });
    await expect(answer('qwen3-8b', machine(), { gpu: 'rtx-3090', cpu: 'auto' })).rejects.toThrow(
      /--cpu auto: the memory of this processor is not known/,
    );
  });
});
