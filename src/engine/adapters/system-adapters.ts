/** Graphics cards that the operating system lists. */

import path from 'node:path';
import type { ProblemText } from '../../base/errors.js';
import { asText } from '../../base/values.js';
import type { GraphicsAdapter, SystemCalls, SystemCards } from './graphics-adapter.js';
import { byLikelySpeed, card, cleanName, pciVendor, vendorIn } from './graphics-adapter.js';

const DRM = '/sys/class/drm';
/** Cards of the Windows host, under WSL. */
const DXG = '/dev/dxg';

const MESA =
  'install the Vulkan drivers of Mesa (on Debian and Ubuntu: apt install mesa-vulkan-drivers)';
const NVIDIA =
  'install the Vulkan part of NVIDIA’s driver too (in a container: NVIDIA_DRIVER_CAPABILITIES=all)';

/** A driver that lets a card compute. */
interface Driver {
  /** Vendor of devices outside PCI, which have no vendor in sysfs. */
  readonly maker: string;
  /** Names of its libraries for Vulkan. */
  readonly vulkan: RegExp;
  /** Command that installs them. */
  readonly remedy: string;
}

/**
 * Drivers by the name of their kernel module. The libraries are those of Mesa (`meson.build` in its folders `vulkan`),
 * of NVIDIA's driver (its README) and of AMDVLK.
 */
const DRIVERS = {
  nvidia: { maker: 'NVIDIA', vulkan: /lib(GLX|EGL)_nvidia/, remedy: NVIDIA },
  nouveau: { maker: 'NVIDIA', vulkan: /libvulkan_nouveau/, remedy: MESA },
  amdgpu: { maker: 'AMD', vulkan: /libvulkan_radeon|amdvlk/, remedy: MESA },
  i915: { maker: 'Intel', vulkan: /libvulkan_intel/, remedy: MESA },
  xe: { maker: 'Intel', vulkan: /libvulkan_intel/, remedy: MESA },
  msm: { maker: 'Qualcomm', vulkan: /libvulkan_freedreno/, remedy: MESA },
  panfrost: { maker: 'ARM', vulkan: /libvulkan_panfrost/, remedy: MESA },
  panthor: { maker: 'ARM', vulkan: /libvulkan_panfrost/, remedy: MESA },
  v3d: { maker: 'Broadcom', vulkan: /libvulkan_broadcom/, remedy: MESA },
  asahi: { maker: 'Apple', vulkan: /libvulkan_asahi/, remedy: MESA },
  powervr: { maker: 'Imagination', vulkan: /libvulkan_powervr/, remedy: MESA },
} as const satisfies Record<string, Driver>;

/** Driver of a card of the Windows host, under WSL. */
const DXG_DRIVER: Pick<Driver, 'vulkan' | 'remedy'> = {
  vulkan: /libvulkan_dzn/,
  remedy: 'install a Mesa with the Vulkan driver dzn, or run minimind on Windows itself',
};

/** Libraries that compute on the processor. */
const SOFTWARE_VULKAN = /libvulkan_lvp|libvk_swiftshader/;

export async function linuxCards(
  machine: SystemCalls,
  nvidia: readonly GraphicsAdapter[],
): Promise<SystemCards> {
  const libraries = await vulkanLibraries(machine);
  const has = (pattern: RegExp) => libraries.some((library) => pattern.test(library));
  const found = [
    ...(await drivenElsewhere(machine, nvidia, has)),
    ...(await drivenByNodes(machine, nvidia, has)),
  ].sort((a, b) => byLikelySpeed(a.adapter, b.adapter));
  return {
    cards: found.map(({ adapter }) => adapter),
    forWebgpu: found.flatMap(({ adapter, lack }) => (lack === null ? [adapter] : [])),
    findings:
      found.length === 0
        ? [nothing(has(SOFTWARE_VULKAN))]
        : found.flatMap(({ adapter, lack }) =>
            lack === null ? [] : [{ ...lack, message: `${adapter.name} ${lack.message}` }],
          ),
  };
}

/** A card, and the reason why WebGPU cannot use it. */
interface LinuxAdapter {
  readonly adapter: GraphicsAdapter;
  readonly lack: ProblemText | null;
}

/** Whether a library for Vulkan is installed. */
type Has = (pattern: RegExp) => boolean;

/** Cards that need no kernel device node: NVIDIA's in a container, and those of the Windows host. */
async function drivenElsewhere(
  machine: SystemCalls,
  nvidia: readonly GraphicsAdapter[],
  has: Has,
): Promise<LinuxAdapter[]> {
  const isWsl = (await machine.list(path.posix.dirname(DXG))).includes(path.posix.basename(DXG));
  const lack = lackOf(isWsl ? DXG_DRIVER : DRIVERS.nvidia, has);
  if (nvidia.length > 0) return nvidia.map((adapter) => ({ adapter, lack }));
  const unnamed = card({ name: 'graphics card of Windows', vendor: null, source: DXG });
  return isWsl ? [{ adapter: unnamed, lack }] : [];
}

async function drivenByNodes(
  machine: SystemCalls,
  nvidia: readonly GraphicsAdapter[],
  has: Has,
): Promise<LinuxAdapter[]> {
  const nodes = await renderNodes(machine);
  // NVIDIA's driver has already listed its own cards.
  const others = nodes.filter(({ driver }) => driver !== 'nvidia' || nvidia.length === 0);
  return Promise.all(
    others.map(async ({ adapter, driver, device }) => {
      const lack = lackOf(driverOf(driver), has);
      const isOpen = await machine.mayOpen(device);
      return { adapter, lack: lack ?? (isOpen ? null : closed(device)) };
    }),
  );
}

function lackOf(
  driver: Pick<Driver, 'vulkan' | 'remedy'> | undefined,
  has: Has,
): ProblemText | null {
  if (driver && has(driver.vulkan)) return null;
  const message = 'has no Vulkan driver here, which WebGPU needs';
  return driver ? { message, suggestion: driver.remedy } : { message };
}

const closed = (device: string): ProblemText => ({
  message: `cannot be used: ${device} is not there or may not be opened`,
  suggestion: 'let the user into the group that owns it: sudo usermod -aG render "$USER"',
});

const nothing = (hasSoftware: boolean): ProblemText => ({
  message:
    `no graphics card: no render node in ${DRM}, no ${DXG}, none from NVIDIA’s driver` +
    (hasSoftware ? '; what is installed of Vulkan computes on the processor' : ''),
});

interface RenderNode {
  readonly adapter: GraphicsAdapter;
  readonly driver: string;
  /** Device file to open. */
  readonly device: string;
}

/** Nodes of cards that can compute; virtual machines and servers have others. */
async function renderNodes(machine: SystemCalls): Promise<RenderNode[]> {
  const names = (await machine.list(DRM)).filter((name) => /^renderD\d+$/.test(name));
  const nodes = await Promise.all(names.map((name) => renderNode(machine, name)));
  return nodes.filter((node) => node !== null);
}

/** Read from `uevent` (`DRIVER=i915`, `PCI_ID=8086:9A49`) and `vendor` (`0x8086`) of its device. */
async function renderNode(machine: SystemCalls, node: string): Promise<RenderNode | null> {
  const folder = `${DRM}/${node}/device`;
  const [event, vendorId] = await Promise.all([
    machine.read(`${folder}/uevent`),
    machine.read(`${folder}/vendor`),
  ]);
  const [, driver = ''] = /^DRIVER=(.+)$/m.exec(event) ?? [];
  const maker = driverOf(driver)?.maker ?? null;
  const vendor = vendorId === '' ? maker : pciVendor(vendorId);
  if (vendor === null) return null;
  const name = (await adapterName(machine, folder, event)) ?? 'graphics card';
  return {
    driver,
    device: `/dev/dri/${node}`,
    adapter: card({
      name: name.startsWith(vendor) ? name : `${vendor} ${name}`,
      vendor,
      memoryBytes: await amdMemory(machine, folder),
      source: 'sysfs',
    }),
  };
}

const driverOf = (name: string): Driver | undefined =>
  Object.hasOwn(DRIVERS, name) ? DRIVERS[name as keyof typeof DRIVERS] : undefined;

/**
 * Bytes of its own memory that amdgpu reports (https://docs.kernel.org/gpu/amdgpu/driver-misc.html); other drivers
 * report none.
 */
async function amdMemory(machine: SystemCalls, folder: string): Promise<number | null> {
  const text = await machine.read(`${folder}/mem_info_vram_total`);
  return /^[1-9]\d{0,14}\n?$/.test(text) ? Number(text) : null;
}

/** Name from amdgpu for some cards, else from the list of PCI devices, where one is installed. */
async function adapterName(
  machine: SystemCalls,
  folder: string,
  event: string,
): Promise<string | null> {
  const productName = cleanName(await machine.read(`${folder}/product_name`));
  if (productName !== null) return productName;
  const [, vendor, device] = /^PCI_ID=([\dA-F]{4}):([\dA-F]{4})$/m.exec(event) ?? [];
  if (vendor === undefined || device === undefined) return null;
  for (const list of ['/usr/share/misc/pci.ids', '/usr/share/hwdata/pci.ids']) {
    const name = nameIn(await machine.read(list), vendor.toLowerCase(), device.toLowerCase());
    if (name !== null) return name;
  }
  return `graphics card ${device.toLowerCase()}`;
}

/**
 * Name of a device in the list, whose lines are `8086  Intel Corporation`, `<tab>9a49  TigerLake-LP GT2 [Iris Xe
 * Graphics]`.
 */
function nameIn(list: string, vendor: string, device: string): string | null {
  const lines = list.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`${vendor}  `)) + 1;
  if (start === 0) return null;
  for (const line of lines.slice(start)) {
    if (line.startsWith(`\t${device}  `)) return cleanName(line.slice(device.length + 2));
    if (/^[^\t#]/.test(line)) return null;
  }
  return null;
}

/**
 * Libraries named in the manifests that Vulkan's loader finds
 * (https://github.com/KhronosGroup/Vulkan-Loader/blob/main/docs/LoaderDriverInterface.md).
 */
async function vulkanLibraries(machine: SystemCalls): Promise<string[]> {
  const files = await manifests(machine);
  const texts = await Promise.all(files.map((file) => machine.read(file)));
  return texts.flatMap((text) => /"library_path"\s*:\s*"([^"]+)"/.exec(text)?.[1] ?? []);
}

async function manifests(machine: SystemCalls): Promise<string[]> {
  const { env } = machine;
  const given = env.VK_DRIVER_FILES || env.VK_ICD_FILENAMES;
  const driverFolders = given?.split(':') ?? [
    ...(env.VK_ADD_DRIVER_FILES?.split(':') ?? []),
    ...folders(env).map((folder) => path.posix.join(folder, 'vulkan/icd.d')),
  ];
  const listed = await Promise.all(
    driverFolders.map(async (place) =>
      place.endsWith('.json')
        ? [place]
        : (await machine.list(place)).map((name) => path.posix.join(place, name)),
    ),
  );
  return [...new Set(listed.flat())].filter((file) => file.endsWith('.json'));
}

/** Folders of settings and data, the user's and the system's. */
const folders = (env: SystemCalls['env']): string[] =>
  [
    env.XDG_CONFIG_HOME || (env.HOME && `${env.HOME}/.config`),
    ...(env.XDG_CONFIG_DIRS || '/etc/xdg').split(':'),
    '/usr/local/etc',
    '/etc',
    env.XDG_DATA_HOME || (env.HOME && `${env.HOME}/.local/share`),
    ...(env.XDG_DATA_DIRS || '/usr/local/share:/usr/share').split(':'),
  ].filter((folder) => folder?.startsWith('/') === true) as string[];

// Graphics cards of macOS.

export const PROFILER = '/usr/sbin/system_profiler';
const MAC_WORDS = ['SPDisplaysDataType', '-json'];

/** Metal is part of macOS and never computes in software: every adapter is a card. */
export async function macCards(machine: SystemCalls): Promise<SystemCards> {
  const displays = displaysIn(await machine.ask(PROFILER, MAC_WORDS));
  const cards = displays.flatMap((each) => macCard(each, machine)).sort(byLikelySpeed);
  const findings =
    cards.length > 0 ? [] : [{ message: 'system_profiler lists no graphics card with Metal' }];
  return { cards, forWebgpu: cards, findings };
}

type Display = Readonly<Record<string, unknown>>;

const isDisplay = (value: unknown): value is Display => typeof value === 'object' && value !== null;

function displaysIn(answer: string): Display[] {
  try {
    // `system_profiler` is part of macOS and prints this type.
    const value = JSON.parse(answer) as { readonly SPDisplaysDataType?: unknown } | null;
    const displays = value?.SPDisplaysDataType;
    if (!Array.isArray(displays)) return [];
    return displays.filter(isDisplay);
  } catch {
    return [];
  }
}

/**
 * Whether a display uses Metal. Every Mac that runs Node.js has Metal. Displays of some virtual machines lack it: they
 * report this, or have no known vendor.
 */
const hasMetal = (display: Display) =>
  !Object.entries(display).some(
    ([key, value]) => /_(metal|mtl)/.test(key) && /not_?supported/.test(asText(value)),
  );

function macCard(display: Display, { memoryBytes }: SystemCalls): GraphicsAdapter[] {
  const name = cleanName(display.sppci_model);
  const vendorText = asText(display.spdisplays_vendor);
  const [, id = ''] = /\(0x([\da-f]{4})\)/i.exec(vendorText) ?? [];
  const vendor = pciVendor(id) ?? vendorIn(vendorText);
  if (name === null || vendor === null || !hasMetal(display)) return [];
  // Apple's cards share the memory of the machine.
  const memory = vendor === 'Apple' ? memoryBytes : memoryIn(asText(display.spdisplays_vram));
  return [card({ name, vendor, memoryBytes: memory, source: 'system_profiler' })];
}

/** `8 GB`, `1536 MB`; memory shared with the processor has another key. */
function memoryIn(text: string): number | null {
  const [, digits, unit] = /^(\d{1,6}) (MB|GB)$/.exec(text) ?? [];
  if (digits === undefined) return null;
  return Number(digits) * (unit === 'GB' ? 2 ** 30 : 2 ** 20);
}

// Graphics cards of Windows.

/** UTF-8 must be requested: it is not the default. */
const SCRIPT =
  '[Console]::OutputEncoding = [Text.Encoding]::UTF8; ' +
  'Get-CimInstance Win32_VideoController | ' +
  'Select-Object Name, PNPDeviceID, ConfigManagerErrorCode | ConvertTo-Json -Compress';

const WINDOWS_WORDS = ['-NoProfile', '-NonInteractive', '-Command', SCRIPT];

/** Full path: Windows would look for a bare name in the current folder first. */
export const powerShell = ({ env }: SystemCalls): string =>
  path.win32.join(
    env.SystemRoot ?? 'C:\\Windows',
    'System32/WindowsPowerShell/v1.0/powershell.exe',
  );

/** Direct3D 12 is part of Windows: a card with a driver can compute. */
export async function windowsCards(
  machine: SystemCalls,
  nvidia: readonly GraphicsAdapter[],
): Promise<SystemCards> {
  const controllers = controllersIn(await machine.ask(powerShell(machine), WINDOWS_WORDS));
  const cards = controllers.flatMap((each) => windowsCard(each, nvidia)).sort(byLikelySpeed);
  const findings =
    cards.length > 0
      ? []
      : [
          {
            message:
              controllers.length === 0
                ? 'Windows does not say what graphics adapters there are (Win32_VideoController)'
                : 'of what Windows shows pictures with, nothing is a graphics card that works',
          },
        ];
  return { cards, forWebgpu: cards, findings };
}

/** https://learn.microsoft.com/windows/win32/cimwin32prov/win32-videocontroller */
interface Controller {
  readonly Name?: unknown;
  readonly PNPDeviceID?: unknown;
  /** 0 when it works; 22 when it is disabled, 43 when it was stopped. */
  readonly ConfigManagerErrorCode?: unknown;
}

/** A single result is not a list. */
function controllersIn(answer: string): Controller[] {
  try {
    const value: unknown = JSON.parse(answer);
    return [value].flat().filter((each) => typeof each === 'object' && each !== null);
  } catch {
    return [];
  }
}

/** Its memory is not read from Windows: `AdapterRAM` has 32 bits, so at most 4 GiB. */
function windowsCard(
  controller: Controller,
  nvidia: readonly GraphicsAdapter[],
): GraphicsAdapter[] {
  const { Name, PNPDeviceID, ConfigManagerErrorCode } = controller;
  const name = cleanName(Name);
  const vendor = vendorOf(asText(PNPDeviceID));
  if (name === null || vendor === null || ConfigManagerErrorCode !== 0) return [];
  const memoryBytes = nvidia.find((each) => each.name === name)?.memoryBytes ?? null;
  return [card({ name, vendor, memoryBytes, source: 'Win32_VideoController' })];
}

/**
 * Vendor in `PCI\VEN_10DE&DEV_2684&SUBSYS_16F410DE&REV_A1\4&1FC990D7&0&0019`, or `ACPI\VEN_QCOM&…` for Qualcomm. Ids
 * that begin with ROOT, SWD or VMBUS are not cards.
 */
function vendorOf(deviceId: string): string | null {
  if (deviceId.startsWith('ACPI\\VEN_QCOM&')) return 'Qualcomm';
  const [, id = ''] = /^PCI\\VEN_([\da-f]{4})&/i.exec(deviceId) ?? [];
  return pciVendor(id);
}

// NVIDIA's cards, as its driver reports them.

const QUERY = [
  '--query-gpu=pci.bus_id,name,memory.total',
  '--format=csv,noheader,nounits',
] as const;

/** Cards from nvidia-smi, else from the driver's files on Linux; empty without a driver. */
export async function nvidiaCards(machine: SystemCalls): Promise<GraphicsAdapter[]> {
  const cards = fromQuery(await machine.ask(nvidiaSmi(machine), QUERY));
  return cards.length > 0 ? cards : await fromProc(machine);
}

/** Full path: Windows would look for a bare name in the current folder first. */
const nvidiaSmi = ({ platform, env }: SystemCalls): string =>
  platform === 'win32'
    ? path.win32.join(env.SystemRoot ?? 'C:\\Windows', 'System32', 'nvidia-smi.exe')
    : 'nvidia-smi';

/**
 * A line `00000000:0F:00.0, NVIDIA H200, 143771`: the bus address, which error messages lack, the name, and mebibytes,
 * or `[N/A]` when it shares the machine's memory (`nvidia-smi --help-query-gpu`).
 */
const LINE = /^[\da-f]{8}:[\da-f]{2}:[\da-f]{2}\.[\da-f], (.+), (?:(\d{1,9})|\[?N\/A\]?)$/i;

function fromQuery(answer: string): GraphicsAdapter[] {
  return answer.split('\n').flatMap((line) => {
    const [, written, mebibytes] = LINE.exec(line.trim()) ?? [];
    const name = cleanName(written);
    if (name === null) return [];
    const memoryBytes = mebibytes === undefined ? null : Number(mebibytes) * 2 ** 20;
    return [card({ name, vendor: 'NVIDIA', memoryBytes, source: 'nvidia-smi' })];
  });
}

const PROC = '/proc/driver/nvidia/gpus';

/**
 * One file per card, with a line `Model: 		 NVIDIA H200` (README of NVIDIA's driver for Linux, “The Proc Filesystem
 * Interface”).
 */
async function fromProc(machine: SystemCalls): Promise<GraphicsAdapter[]> {
  if (machine.platform !== 'linux') return [];
  const places = await machine.list(PROC);
  const texts = await Promise.all(
    places.map((place) => machine.read(`${PROC}/${place}/information`)),
  );
  return texts.flatMap((text) => {
    const name = cleanName(/^Model:(.*)$/m.exec(text)?.[1]);
    return name === null ? [] : [card({ name, vendor: 'NVIDIA', source: PROC })];
  });
}
