/** Memory modules of this machine, as far as a user without more rights may read them. */
import { cleanName, type SystemCalls, THIS_MACHINE } from './graphics-adapter.js';
import { PROFILER, powerShell } from './system-adapters.js';

/** Memory modules. */
export interface MemoryModules {
  /** Channels with a module; null when unknown. */
  readonly channels: number | null;
  /** `DDR4`, `DDR5`; null when unknown. */
  readonly type: string | null;
  /** Millions of transfers a second; null when unknown. */
  readonly megatransfers: number | null;
  /** Where it was read: `sysfs`, `system_profiler`, `Win32_PhysicalMemory`. */
  readonly source: string;
}

/** Modules as the operating system reports them; null when it reports none. Never throws. */
export async function memoryModules(machine = THIS_MACHINE): Promise<MemoryModules | null> {
  switch (machine.platform) {
    case 'darwin':
      return macModules(machine);
    case 'win32':
      return windowsModules(machine);
    default:
      return linuxModules(machine);
  }
}

/** A module of a channel. */
interface Module {
  /** Names the channel; equal for modules that share it. */
  readonly channel: string;
  readonly type: string | null;
  readonly megatransfers: number | null;
}

function modulesOf(modules: readonly Module[], source: string): MemoryModules | null {
  if (modules.length === 0) return null;
  const channels = new Set(modules.map(({ channel }) => channel).filter((each) => each !== ''));
  const speeds = modules.flatMap(({ megatransfers }) => megatransfers ?? []);
  return {
    channels: channels.size === 0 ? null : channels.size,
    type: modules[0]?.type ?? null,
    // All modules run at the speed of the slowest.
    megatransfers: speeds.length === 0 ? null : Math.min(...speeds),
    source,
  };
}

const EDAC = '/sys/devices/system/edac/mc';

/**
 * Modules that the kernel watches for errors, which it does on most servers (Documentation/admin-guide/RAS, `dimm_location`:
 * `channel 0 slot 1`, or `csrow 0 channel 1`). The tables of the firmware are for the superuser alone.
 */
async function linuxModules(machine: SystemCalls): Promise<MemoryModules | null> {
  const controllers = (await machine.list(EDAC)).filter((name) => /^mc\d+$/.test(name));
  const modules = await Promise.all(
    controllers.map(async (controller) => {
      const folder = `${EDAC}/${controller}`;
      const names = (await machine.list(folder)).filter((name) => /^(?:dimm|rank)\d+$/.test(name));
      return Promise.all(
        names.map(async (name): Promise<Module[]> => {
          const [size, location, kind] = await Promise.all(
            ['size', 'dimm_location', 'dimm_mem_type'].map((each) =>
              machine.read(`${folder}/${name}/${each}`),
            ),
          );
          if (!/^[1-9]/.test(size ?? '')) return [];
          const [, channel] = /\bchannel (\d+)/.exec(location ?? '') ?? [];
          const [type] = /DDR\d/i.exec(kind ?? '') ?? [];
          return [
            {
              channel: channel === undefined ? '' : `${controller} ${channel}`,
              type: type?.toUpperCase() ?? null,
              megatransfers: null,
            },
          ];
        }),
      );
    }),
  );
  return modulesOf(modules.flat(2), 'sysfs');
}

/** Modules of a Mac with an Intel processor: those with Apple's have a memory of their own, which the chip tells. */
async function macModules(machine: SystemCalls): Promise<MemoryModules | null> {
  const answer = await machine.ask(PROFILER, ['SPMemoryDataType']);
  const blocks = answer.split(/\n(?=\s+\S*(?:BANK|DIMM)[^\n]*:\n)/);
  const modules = blocks.flatMap((block): Module[] => {
    const [, type] = /^\s+Type: (DDR\d)\s*$/m.exec(block) ?? [];
    const [, speed] = /^\s+Speed: (\d+) MHz\s*$/m.exec(block) ?? [];
    if (type === undefined) return [];
    const [, channel = ''] = /Channel ?([A-Z\d])/i.exec(block) ?? [];
    return [{ channel, type, megatransfers: speed === undefined ? null : Number(speed) }];
  });
  return modulesOf(modules, 'system_profiler');
}

/** Types of SMBIOS that Windows reports (DSP0134, table 78). */
const SMBIOS_TYPES: Readonly<Record<string, string>> = { 24: 'DDR3', 26: 'DDR4', 34: 'DDR5' };

const SCRIPT =
  'Get-CimInstance Win32_PhysicalMemory | ForEach-Object { ' +
  '"$($_.BankLabel)|$($_.DeviceLocator)|$($_.SMBIOSMemoryType)|$($_.ConfiguredClockSpeed)" }';

async function windowsModules(machine: SystemCalls): Promise<MemoryModules | null> {
  const words = ['-NoProfile', '-NonInteractive', '-Command', SCRIPT];
  const answer = await machine.ask(powerShell(machine), words);
  const modules = answer.split(/\r?\n/).flatMap((line): Module[] => {
    const [bank, locator, type, speed, ...more] = line.split('|');
    if (speed === undefined || more.length > 0) return [];
    const label = cleanName(`${bank} ${locator}`) ?? '';
    const [, channel = ''] = /channel ?([a-z\d])/i.exec(label) ?? [];
    return [
      {
        channel,
        type: SMBIOS_TYPES[type ?? ''] ?? null,
        megatransfers: /^[1-9]\d{2,4}$/.test(speed.trim()) ? Number(speed) : null,
      },
    ];
  });
  return modulesOf(modules, 'Win32_PhysicalMemory');
}
