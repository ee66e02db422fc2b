/** Graphics cards of macOS. */
import type { Adapter, Machine, SystemCards } from './adapter.js';
import { byLikelySpeed, card, cleanName, pciVendor, vendorIn } from './adapter.js';

const PROFILER = '/usr/sbin/system_profiler';
const WORDS = ['SPDisplaysDataType', '-json'];

/** Metal is part of macOS and has nothing that computes in software: every adapter is a card. */
export async function macCards(machine: Machine): Promise<SystemCards> {
  const told = displaysIn(await machine.ask(PROFILER, WORDS));
  const cards = told.flatMap((each) => cardOf(each, machine)).sort(byLikelySpeed);
  const findings =
    cards.length > 0 ? [] : [{ message: 'system_profiler tells of no graphics card with Metal' }];
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
 * Every Mac that Node.js runs on has Metal; the displays of some virtual machines have not, and say so or are of
 * no maker of cards.
 */
const hasMetal = (display: Display) =>
  !Object.entries(display).some(
    ([key, value]) => /_(metal|mtl)/.test(key) && /not_?supported/.test(String(value)),
  );

function cardOf(display: Display, { memoryBytes }: Machine): Adapter[] {
  const name = cleanName(display.sppci_model);
  const told = String(display.spdisplays_vendor);
  const [, id = ''] = /\(0x([\da-f]{4})\)/i.exec(told) ?? [];
  const vendor = pciVendor(id) ?? vendorIn(told);
  if (name === null || vendor === null || !hasMetal(display)) return [];
  // Apple's own share all of the machine's.
  const memory = vendor === 'Apple' ? memoryBytes : memoryIn(String(display.spdisplays_vram));
  return [card({ name, vendor, memoryBytes: memory, source: 'system_profiler' })];
}

/** `8 GB`, `1536 MB`; what is shared with the processor has another key. */
function memoryIn(text: string): number | null {
  const [, digits, unit] = /^(\d{1,6}) (MB|GB)$/.exec(text) ?? [];
  if (digits === undefined) return null;
  return Number(digits) * (unit === 'GB' ? 2 ** 30 : 2 ** 20);
}
