/** NVIDIA's cards, as its driver tells of them. */
import path from 'node:path';
import type { Adapter, Machine } from './adapter.js';
import { card, cleanName } from './adapter.js';

const QUERY = [
  '--query-gpu=pci.bus_id,name,memory.total',
  '--format=csv,noheader,nounits',
] as const;

/** By nvidia-smi, else by what Linux shows of the driver; none when there is no driver. */
export async function nvidiaCards(machine: Machine): Promise<Adapter[]> {
  const told = fromQuery(await machine.ask(nvidiaSmi(machine), QUERY));
  return told.length > 0 ? told : await fromProc(machine);
}

/** Windows would look for a bare name in the current folder first. */
const nvidiaSmi = ({ platform, env }: Machine): string =>
  platform === 'win32'
    ? path.win32.join(env.SystemRoot ?? 'C:\\Windows', 'System32', 'nvidia-smi.exe')
    : 'nvidia-smi';

/**
 * `00000000:0F:00.0, NVIDIA H200, 143771`: its place, which alone tells cards from complaints, its name, and
 * mebibytes, or `[N/A]` where it shares the machine's (`nvidia-smi --help-query-gpu`).
 */
const LINE = /^[\da-f]{8}:[\da-f]{2}:[\da-f]{2}\.[\da-f], (.+), (?:(\d{1,9})|\[?N\/A\]?)$/i;

function fromQuery(answer: string): Adapter[] {
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
 * A file of each card, with a line `Model: 		 NVIDIA H200` (README of NVIDIA's driver for Linux, “The
 * Proc Filesystem Interface”).
 */
async function fromProc(machine: Machine): Promise<Adapter[]> {
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
