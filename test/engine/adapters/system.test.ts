import { describe, expect, it } from 'vitest';
import {
  surveyAdapters,
  webgpuAdapter,
  webgpuObstacle,
} from '../../../src/engine/adapters/adapters.js';
import { machine } from './machines.js';

const MISSING = {
  message: 'only the package webgpu knows of limits, float16 and software adapters',
  suggestion: 'npm install --no-save webgpu@0.6.2',
};

const unknown = {
  isSoftware: false,
  memoryBytes: null,
  maxBufferBytes: null,
  maxBindingBytes: null,
  hasFloat16: null,
};

/** A manifest of Mesa 25 (`/usr/share/vulkan/icd.d`). */
const manifest = (library: string) =>
  JSON.stringify({
    ICD: { api_version: '1.4.305', library_path: library },
    file_format_version: '1.0.0',
  });
const ICD = '/usr/share/vulkan/icd.d';
/** All manifests of Debian's mesa-vulkan-drivers. */
const MESA = {
  [`${ICD}/gfxstream_vk_icd.json`]: manifest('libvulkan_gfxstream.so'),
  [`${ICD}/intel_hasvk_icd.json`]: manifest('libvulkan_intel_hasvk.so'),
  [`${ICD}/intel_icd.json`]: manifest('libvulkan_intel.so'),
  [`${ICD}/lvp_icd.json`]: manifest('libvulkan_lvp.so'),
  [`${ICD}/radeon_icd.json`]: manifest('libvulkan_radeon.so'),
  [`${ICD}/virtio_icd.json`]: manifest('libvulkan_virtio.so'),
};
const NVIDIA_ICD = { '/etc/vulkan/icd.d/nvidia_icd.json': manifest('libGLX_nvidia.so.0') };
const H200 = { 'nvidia-smi': '00000000:0F:00.0, NVIDIA H200, 143771\n' };

interface Node {
  readonly driver: string;
  /** Vendor and device, as in `uevent`: `8086:9A49`. */
  readonly pci?: string;
  readonly more?: Readonly<Record<string, string>>;
}

/** A render node of kernel 6.1 (Documentation/ABI, drivers/pci/pci-sysfs.c). */
function node(number: number, { driver, pci, more = {} }: Node): Record<string, string> {
  const folder = `/sys/class/drm/renderD${number}/device`;
  const lines = [
    `DRIVER=${driver}`,
    ...(pci ? ['PCI_CLASS=30000', `PCI_ID=${pci}`, 'PCI_SLOT_NAME=0000:00:02.0'] : []),
  ];
  return {
    [`/dev/dri/renderD${number}`]: '',
    [`${folder}/uevent`]: `${lines.join('\n')}\n`,
    ...(pci && { [`${folder}/vendor`]: `0x${pci.slice(0, 4).toLowerCase()}\n` }),
    ...Object.fromEntries(Object.entries(more).map(([name, text]) => [`${folder}/${name}`, text])),
  };
}

const INTEL = { driver: 'i915', pci: '8086:9A49' } as const;
const RADEON = {
  driver: 'amdgpu',
  pci: '1002:744C',
  more: { mem_info_vram_total: '25753026560\n' },
} as const;

/** Lines of https://pci-ids.ucw.cz, version 2023.04.11, and one invented line. */
const PCI_IDS = {
  '/usr/share/misc/pci.ids': [
    "#\tList of PCI ID's",
    '1002  Advanced Micro Devices, Inc. [AMD/ATI]',
    '\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]',
    '\t\t1002 0e3b  Radeon RX 7900 XTX',
    '10de  NVIDIA Corporation',
    '\t9a49  Another device of this number',
    '8086  Intel Corporation',
    '\t9a49  TigerLake-LP GT2 [Iris Xe Graphics]',
  ].join('\n'),
};

const notHere = (more = '') => ({
  message: `no graphics card: no render node in /sys/class/drm, no /dev/dxg, none from NVIDIA’s driver${more}`,
});

describe('on Linux', () => {
  it('a render node is a card with the name from the list of devices', async () => {
    const linux = machine({ files: { ...MESA, ...PCI_IDS, ...node(128, INTEL) } });
    const expected = {
      ...unknown,
      name: 'Intel TigerLake-LP GT2 [Iris Xe Graphics]',
      vendor: 'Intel',
      source: 'sysfs',
    };
    expect(await webgpuAdapter(linux)).toEqual(expected);
    expect(await surveyAdapters(linux)).toEqual({ adapters: [expected], findings: [MISSING] });
  });

  it('the reason is reported when WebGPU cannot use a card', async () => {
    const without = machine({ files: { ...PCI_IDS, ...node(128, INTEL) } });
    expect(await webgpuAdapter(without)).toBeNull();
    expect(await webgpuObstacle(without)).toEqual({
      message: expect.stringMatching(/^Intel TigerLake.* has no Vulkan driver here/),
      suggestion: expect.stringContaining('apt install mesa-vulkan-drivers'),
    });
    const usable = machine({ files: { ...MESA, ...PCI_IDS, ...node(128, INTEL) } });
    expect(await webgpuObstacle(usable)).toBeNull();
    expect(await webgpuObstacle(machine({ files: MESA }))).toBeNull();
  });

  it('a card is named by its number without the list', async () => {
    const linux = machine({ files: { ...MESA, ...node(128, INTEL) } });
    expect(await webgpuAdapter(linux)).toMatchObject({ name: 'Intel graphics card 9a49' });
  });

  it('memory and name come from amdgpu for some cards', async () => {
    const named = { ...RADEON, more: { ...RADEON.more, product_name: 'AMD Instinct MI300X\n' } };
    const linux = machine({ files: { ...MESA, ...node(128, named) } });
    const expected = { name: 'AMD Instinct MI300X', vendor: 'AMD', memoryBytes: 25_753_026_560 };
    expect(await webgpuAdapter(linux)).toMatchObject(expected);
  });

  it.each(['', '0\n', '-5\n', '1e9\n', '99999999999999999999\n', 'many\n'])(
    'a memory size of %j is ignored',
    async (text) => {
      const odd = { ...RADEON, more: { mem_info_vram_total: text } };
      const linux = machine({ files: { ...MESA, ...node(128, odd) } });
      expect(await webgpuAdapter(linux)).toMatchObject({ vendor: 'AMD', memoryBytes: null });
    },
  );

  it('a card with its own memory comes first', async () => {
    const files = { ...MESA, ...PCI_IDS, ...node(128, INTEL), ...node(129, RADEON) };
    const { adapters } = await surveyAdapters(machine({ files }));
    expect(adapters.map(({ name }) => name)).toEqual([
      'AMD Navi 31 [Radeon RX 7900 XT/7900 XTX]',
      'Intel TigerLake-LP GT2 [Iris Xe Graphics]',
    ]);
  });

  it.each([
    ['virtio', { driver: 'virtio-pci', pci: '1AF4:1050' }],
    ['VMware', { driver: 'vmwgfx', pci: '15AD:0405' }],
    ['Bochs', { driver: 'bochs-drm', pci: '1234:1111' }],
    ['ASPEED', { driver: 'ast', pci: '1A03:2000' }],
    ['vgem', { driver: 'vgem' }],
    ['a name from the prototype', { driver: 'constructor', pci: '0000:0000' }],
  ])('a display adapter is not a card: %s', async (_, given) => {
    const linux = machine({ files: { ...MESA, ...node(128, given) } });
    expect(await webgpuAdapter(linux)).toBeNull();
    expect((await surveyAdapters(linux)).adapters).toEqual([]);
  });

  it('a card of a small computer is recognised by its driver', async () => {
    const files = {
      [`${ICD}/broadcom_icd.json`]: manifest('libvulkan_broadcom.so'),
      ...node(128, { driver: 'v3d' }),
    };
    const expected = { name: 'Broadcom graphics card', vendor: 'Broadcom' };
    expect(await webgpuAdapter(machine({ files }))).toMatchObject(expected);
  });

  it('Vulkan in software, without render nodes, is not a card', async () => {
    const linux = machine({ files: MESA });
    expect(await webgpuAdapter(linux)).toBeNull();
    const more = '; what is installed of Vulkan computes on the processor';
    expect(await surveyAdapters(linux)).toEqual({
      adapters: [],
      findings: [notHere(more), MISSING],
    });
  });

  it('no card is reported on an empty machine', async () => {
    expect(await webgpuAdapter(machine())).toBeNull();
    expect((await surveyAdapters(machine())).findings).toEqual([notHere(), MISSING]);
  });

  it('a card without a Vulkan driver is listed, but not for WebGPU', async () => {
    const files = { [`${ICD}/lvp_icd.json`]: manifest('libvulkan_lvp.so'), ...node(128, INTEL) };
    const linux = machine({ files });
    expect(await webgpuAdapter(linux)).toBeNull();
    const { adapters, findings } = await surveyAdapters(linux);
    expect(adapters).toHaveLength(1);
    expect(findings[0]).toEqual({
      message: 'Intel graphics card 9a49 has no Vulkan driver here, which WebGPU needs',
      suggestion: expect.stringContaining('mesa-vulkan-drivers'),
    });
  });

  it('a card that this user may not open is not used for WebGPU', async () => {
    const files = { ...MESA, ...node(128, INTEL) };
    const linux = machine({ files, closed: ['/dev/dri/renderD128'] });
    expect(await webgpuAdapter(linux)).toBeNull();
    const { findings } = await surveyAdapters(linux);
    expect(findings[0]?.message).toMatch(/\/dev\/dri\/renderD128 is not there or may not be open/);
  });

  it('an NVIDIA card is reported once, by its driver', async () => {
    const files = { ...NVIDIA_ICD, ...node(128, { driver: 'nvidia', pci: '10DE:2335' }) };
    const { adapters } = await surveyAdapters(machine({ files, programs: H200 }));
    const expected = { name: 'NVIDIA H200', memoryBytes: 143_771 * 2 ** 20, source: 'nvidia-smi' };
    expect(adapters).toEqual([expect.objectContaining(expected)]);
  });

  it('an NVIDIA card needs the Vulkan part of its driver, but no render node', async () => {
    const withVulkan = machine({ files: NVIDIA_ICD, programs: H200 });
    expect(await webgpuAdapter(withVulkan)).toMatchObject({ name: 'NVIDIA H200' });
    const without = machine({ files: MESA, programs: H200 });
    expect(await webgpuAdapter(without)).toBeNull();
    const { findings } = await surveyAdapters(without);
    expect(findings[0]?.message).toBe('NVIDIA H200 has no Vulkan driver here, which WebGPU needs');
    expect(findings[0]?.suggestion).toMatch(/NVIDIA_DRIVER_CAPABILITIES=all/);
  });

  it('an NVIDIA card with nouveau needs the Vulkan library of nouveau', async () => {
    const nouveau = node(128, { driver: 'nouveau', pci: '10DE:1B06' });
    expect(await webgpuAdapter(machine({ files: { ...NVIDIA_ICD, ...nouveau } }))).toBeNull();
    const library = { [`${ICD}/nouveau_icd.json`]: manifest('libvulkan_nouveau.so') };
    const expected = { vendor: 'NVIDIA', name: 'NVIDIA graphics card 1b06' };
    expect(await webgpuAdapter(machine({ files: { ...library, ...nouveau } }))).toMatchObject(
      expected,
    );
  });

  it('a card of Windows is used through dzn under WSL', async () => {
    const dzn = { [`${ICD}/dzn_icd.json`]: manifest('libvulkan_dzn.so') };
    const wsl = { '/dev/dxg': '', ...node(128, { driver: 'vgem' }) };
    const expected = { name: 'graphics card of Windows', vendor: null, source: '/dev/dxg' };
    expect(await webgpuAdapter(machine({ files: { ...wsl, ...dzn } }))).toMatchObject(expected);
    expect(await webgpuAdapter(machine({ files: { ...wsl, ...MESA } }))).toBeNull();
    const named = machine({ files: { ...wsl, ...dzn }, programs: H200 });
    expect(await webgpuAdapter(named)).toMatchObject({ name: 'NVIDIA H200' });
  });

  it('drivers are found in the folders of the Vulkan loader', async () => {
    const isFound = async (env: Record<string, string>, place: string) => {
      const files = { [place]: manifest('libvulkan_intel.so'), ...node(128, INTEL) };
      return (await webgpuAdapter(machine({ files, env }))) !== null;
    };
    expect(await isFound({}, '/etc/vulkan/icd.d/a.json')).toBe(true);
    expect(await isFound({}, '/opt/a.json')).toBe(false);
    expect(await isFound({ VK_DRIVER_FILES: '/nowhere.json:/opt/a.json' }, '/opt/a.json')).toBe(
      true,
    );
    expect(await isFound({ VK_ICD_FILENAMES: '/opt' }, '/opt/a.json')).toBe(true);
    expect(await isFound({ VK_DRIVER_FILES: '/dev/null' }, `${ICD}/a.json`)).toBe(false);
    expect(await isFound({ VK_ADD_DRIVER_FILES: '/opt' }, '/opt/a.json')).toBe(true);
    expect(await isFound({ XDG_DATA_DIRS: '/run' }, '/run/vulkan/icd.d/a.json')).toBe(true);
    expect(await isFound({ HOME: '/h' }, '/h/.local/share/vulkan/icd.d/a.json')).toBe(true);
  });

  it('names from files lose their control characters', async () => {
    const odd = { ...RADEON, more: { product_name: '\u001b]0;x\u0007Radeon\n\u202eevil\n' } };
    const linux = machine({ files: { ...MESA, ...node(128, odd) } });
    expect(await webgpuAdapter(linux)).toMatchObject({ name: 'AMD ]0;x Radeon evil' });
  });
});

describe('on Windows', () => {
  /** `ConvertTo-Json -Compress` of Win32_VideoController's Name, PNPDeviceID and ConfigManagerErrorCode. */
  const controllers = (...all: readonly (readonly [string, string, number?])[]) => {
    const objects = all.map(([Name, PNPDeviceID, ConfigManagerErrorCode = 0]) => ({
      Name,
      PNPDeviceID,
      ConfigManagerErrorCode,
    }));
    return `${JSON.stringify(objects.length === 1 ? objects[0] : objects)}\r\n`;
  };
  const UHD = [
    'Intel(R) UHD Graphics 770',
    'PCI\\VEN_8086&DEV_4680&SUBSYS_7D251462&REV_0C\\3&11583659&0&10',
  ] as const;
  const RTX = [
    'NVIDIA GeForce RTX 4090',
    'PCI\\VEN_10DE&DEV_2684&SUBSYS_16F410DE&REV_A1\\4&1FC990D7&0&0019',
  ] as const;
  const windows = (answer: string, programs = {}) =>
    machine({ platform: 'win32', programs: { 'powershell.exe': answer, ...programs } });

  it('cards come from Windows, and memory from NVIDIA’s driver', async () => {
    const smi = { 'nvidia-smi.exe': '00000000:01:00.0, NVIDIA GeForce RTX 4090, 24564\r\n' };
    const { adapters, findings } = await surveyAdapters(windows(controllers(UHD, RTX), smi));
    const source = 'Win32_VideoController';
    expect(adapters).toEqual([
      { ...unknown, name: RTX[0], vendor: 'NVIDIA', memoryBytes: 24_564 * 2 ** 20, source },
      { ...unknown, name: UHD[0], vendor: 'Intel', source },
    ]);
    expect(findings).toEqual([MISSING]);
  });

  it('a single card is read without a list', async () => {
    expect(await webgpuAdapter(windows(controllers(UHD)))).toMatchObject({ vendor: 'Intel' });
  });

  it('the Qualcomm card is recognised without a PCI id', async () => {
    const adreno = [
      'Qualcomm(R) Adreno(TM) X1-85 GPU',
      'ACPI\\VEN_QCOM&DEV_0C36&REV_1000\\0',
    ] as const;
    expect(await webgpuAdapter(windows(controllers(adreno)))).toMatchObject({ vendor: 'Qualcomm' });
  });

  it.each([
    ['one that is disabled', controllers([...UHD, 22])],
    [
      'one of remote desktops',
      controllers([
        'Microsoft Remote Display Adapter',
        'SWD\\REMOTEDISPLAYENUM\\RDPIDD_INDIRECTDISPLAY',
      ]),
    ],
    [
      'one without a driver',
      controllers(['Microsoft Basic Display Adapter', 'ROOT\\BASICDISPLAY\\0000']),
    ],
    [
      'one of Hyper-V',
      controllers(['Microsoft Hyper-V Video', 'VMBUS\\{DA0A7802-E377-4AAC-8E77-0558EB1073F8}\\5']),
    ],
    [
      'one of VirtualBox',
      controllers([
        'VirtualBox Graphics Adapter (WDDM)',
        'PCI\\VEN_80EE&DEV_BEEF&SUBSYS_040515AD&REV_00\\3&267A616A&0&10',
      ]),
    ],
  ])('a card that does not work is left out: %s', async (_, answer) => {
    expect(await webgpuAdapter(windows(answer))).toBeNull();
    const { findings } = await surveyAdapters(windows(answer));
    expect(findings[0]?.message).toMatch(/nothing is a graphics card that works/);
  });

  it.each([
    '',
    'null',
    '[]',
    '[null]',
    '5',
    '{"Name":',
    'Get-CimInstance : Access denied',
    '[{"Name":{"x":1},"PNPDeviceID":7}]',
  ])('an answer of %j is ignored', async (answer) =>
    expect(await webgpuAdapter(windows(answer))).toBeNull(),
  );

  it('PowerShell is started by its absolute path', async () => {
    const asked = windows(controllers(UHD));
    await webgpuAdapter(asked);
    expect(asked.runs.map(([program]) => program)).toContain(
      'C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe',
    );
  });
});

describe('on macOS', () => {
  const mac = (...displays: readonly unknown[]) =>
    machine({
      platform: 'darwin',
      programs: { system_profiler: JSON.stringify({ SPDisplaysDataType: displays }) },
    });
  /** From `system_profiler SPDisplaysDataType -json`, macOS 13. */
  const M1 = {
    _name: 'Apple M1',
    spdisplays_mtlgpufamilysupport: 'spdisplays_metal3',
    spdisplays_ndrvs: [{ _name: 'Color LCD' }],
    spdisplays_vendor: 'sppci_vendor_Apple',
    sppci_bus: 'spdisplays_builtin',
    sppci_cores: '8',
    sppci_device_type: 'spdisplays_gpu',
    sppci_model: 'Apple M1',
  };
  /** From macOS 11, on a notebook with two cards. */
  const IRIS = {
    _name: 'kHW_IntelUHDGraphics630Item',
    _spdisplays_vram: '1536 MB',
    spdisplays_metal: 'spdisplays_supported',
    spdisplays_vendor: 'Intel',
    spdisplays_vram_shared: '1536 MB',
    sppci_model: 'Intel UHD Graphics 630',
  };
  const RADEON_PRO = {
    _name: 'kHW_AMDRadeonPro5500MItem',
    spdisplays_metal: 'spdisplays_supported',
    spdisplays_vendor: 'sppci_vendor_amd',
    spdisplays_vram: '8 GB',
    sppci_model: 'AMD Radeon Pro 5500M',
  };

  it('the Apple card has all of the machine’s memory', async () => {
    expect(await webgpuAdapter(mac(M1))).toEqual({
      ...unknown,
      name: 'Apple M1',
      vendor: 'Apple',
      memoryBytes: 16 * 2 ** 30,
      source: 'system_profiler',
    });
  });

  it('the card with its own memory comes first of two', async () => {
    const { adapters } = await surveyAdapters(mac(IRIS, RADEON_PRO));
    expect(adapters.map(({ name, memoryBytes }) => [name, memoryBytes])).toEqual([
      ['AMD Radeon Pro 5500M', 8 * 2 ** 30],
      ['Intel UHD Graphics 630', null],
    ]);
  });

  it.each([
    ['without Metal', { ...RADEON_PRO, spdisplays_metal: 'spdisplays_notsupported' }],
    ['of a virtual machine', { sppci_model: 'Display', spdisplays_vendor: 'VMware (0x15ad)' }],
    ['without a name', { ...M1, sppci_model: '\u0000' }],
    ['that is null', null],
  ])('a display %s is not a card', async (_, display) => {
    expect(await webgpuAdapter(mac(display))).toBeNull();
  });

  it.each(['', 'null', '[]', '{"SPDisplaysDataType":{}}', '{"SPDisplaysDataType":[5,null]}', '{'])(
    'an answer of %j is ignored',
    async (answer) => {
      const programs = { system_profiler: answer };
      const odd = machine({ platform: 'darwin', programs });
      expect(await webgpuAdapter(odd)).toBeNull();
      expect((await surveyAdapters(odd)).findings[0]?.message).toMatch(/no graphics card/);
    },
  );
});
