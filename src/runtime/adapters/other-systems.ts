/** Graphics cards of macOS. */
import path from 'node:path';
import type { GraphicsAdapter, SystemCalls, SystemCards } from './graphics-adapter.js';
import { byLikelySpeed, card, cleanName, pciVendor, vendorIn } from './graphics-adapter.js';

const PROFILER = '/usr/sbin/system_profiler';
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
    const value = JSON.parse(answer) as { readonly SPDisplaysDataType?: unknown } | null;
    const displays = value?.SPDisplaysDataType;
    if (!Array.isArray(displays)) return [];
    return displays.filter(isDisplay);
  } catch {
    return [];
  }
}

/**
 * Every Mac that runs Node.js has Metal. Displays of some virtual machines lack it: they say so or have no known
 * vendor.
 */
const hasMetal = (display: Display) =>
  !Object.entries(display).some(
    ([key, value]) => /_(metal|mtl)/.test(key) && /not_?supported/.test(String(value)),
  );

function macCard(display: Display, { memoryBytes }: SystemCalls): GraphicsAdapter[] {
  const name = cleanName(display.sppci_model);
  const vendorText = String(display.spdisplays_vendor);
  const [, id = ''] = /\(0x([\da-f]{4})\)/i.exec(vendorText) ?? [];
  const vendor = pciVendor(id) ?? vendorIn(vendorText);
  if (name === null || vendor === null || !hasMetal(display)) return [];
  // Apple's cards share the memory of the machine.
  const memory = vendor === 'Apple' ? memoryBytes : memoryIn(String(display.spdisplays_vram));
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
const powerShell = ({ env }: SystemCalls): string =>
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
  const vendor = vendorOf(String(PNPDeviceID));
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
