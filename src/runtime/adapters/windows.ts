/** Graphics cards of Windows. */
import path from 'node:path';
import type { Adapter, Machine, SystemCards } from './adapter.js';
import { byLikelySpeed, card, cleanName, pciVendor } from './adapter.js';

/** In UTF-8, which is not what it would write by itself. */
const SCRIPT =
  '[Console]::OutputEncoding = [Text.Encoding]::UTF8; ' +
  'Get-CimInstance Win32_VideoController | ' +
  'Select-Object Name, PNPDeviceID, ConfigManagerErrorCode | ConvertTo-Json -Compress';

const WORDS = ['-NoProfile', '-NonInteractive', '-Command', SCRIPT];

/** Windows would look for a bare name in the current folder first. */
const powerShell = ({ env }: Machine): string =>
  path.win32.join(
    env.SystemRoot ?? 'C:\\Windows',
    'System32/WindowsPowerShell/v1.0/powershell.exe',
  );

/** Direct3D 12 is part of Windows: a card that has a driver can compute. */
export async function windowsCards(
  machine: Machine,
  nvidia: readonly Adapter[],
): Promise<SystemCards> {
  const told = controllersIn(await machine.ask(powerShell(machine), WORDS));
  const cards = told.flatMap((each) => cardOf(each, nvidia)).sort(byLikelySpeed);
  const findings =
    cards.length > 0
      ? []
      : [
          {
            message:
              told.length === 0
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
  /** 0 when it works; 22 when it was turned off, 43 when it was stopped. */
  readonly ConfigManagerErrorCode?: unknown;
}

/** One alone is no list. */
function controllersIn(answer: string): Controller[] {
  try {
    const value: unknown = JSON.parse(answer);
    return [value].flat().filter((each) => typeof each === 'object' && each !== null);
  } catch {
    return [];
  }
}

/** Its memory is not taken from Windows: `AdapterRAM` has 32 bits, and ends at 4 GiB. */
function cardOf(controller: Controller, nvidia: readonly Adapter[]): Adapter[] {
  const { Name, PNPDeviceID, ConfigManagerErrorCode } = controller;
  const name = cleanName(Name);
  const vendor = vendorOf(String(PNPDeviceID));
  if (name === null || vendor === null || ConfigManagerErrorCode !== 0) return [];
  const memoryBytes = nvidia.find((each) => each.name === name)?.memoryBytes ?? null;
  return [card({ name, vendor, memoryBytes, source: 'Win32_VideoController' })];
}

/**
 * Of `PCI\VEN_10DE&DEV_2684&SUBSYS_16F410DE&REV_A1\4&1FC990D7&0&0019`, or `ACPI\VEN_QCOM&…` for Qualcomm's; those
 * that begin with ROOT, SWD or VMBUS are no cards.
 */
function vendorOf(deviceId: string): string | null {
  if (deviceId.startsWith('ACPI\\VEN_QCOM&')) return 'Qualcomm';
  const [, id = ''] = /^PCI\\VEN_([\da-f]{4})&/i.exec(deviceId) ?? [];
  return pciVendor(id);
}
