/** The hardware of this machine, as `--gpu auto` takes it. */
import { type UserError, usageError } from '../../base/errors.js';
import type { GraphicsAdapter, SystemCalls } from '../../engine/adapters/graphics-adapter.js';
import type { FoundMachine } from '../../estimate/fit/fits.js';
import { clusterNamed, mixedCluster } from '../../estimate/hardware/cluster-named.js';
import type { Cluster, Gpu } from '../../estimate/hardware/gpu.js';
import { memoryOf } from '../../estimate/hardware/gpu.js';
import { knownProcessor } from '../../estimate/hardware/processors.js';
import { PROCESSOR } from '../../estimate/hardware/system-memory.js';

/** This machine, for the options of a fit. */
export interface DetectedMachine {
  /** Its cards, or a machine without one. */
  readonly cluster: Cluster;
  /** Installed system memory. */
  readonly ramBytes: number;
  /** Its type and channels, where the modules can be read. */
  readonly ramSpeed: string | undefined;
  /** Its processor, where the table knows its memory. */
  readonly cpu: string | undefined;
  readonly machine: FoundMachine;
}

const NONE = { gpus: [], machines: [] };

/** Names that a card can have in the table: those in brackets of the list of PCI devices are several. */
function cardNames({ name, vendor }: GraphicsAdapter): string[] {
  const [, inside] = /\[([^\]]+)\]/.exec(name) ?? [];
  if (inside === undefined) return [name];
  const [first = '', ...others] = inside.split('/').map((each) => each.trim());
  const series = first.replace(/\s\d.*$/, '');
  const all = [first, ...others.map((each) => (/^\d/.test(each) ? `${series} ${each}` : each))];
  return all.map((each) => `${vendor ?? ''} ${each}`);
}

/** The row of the table that a card is; undefined for a card that it lacks. */
function rowOf(adapter: GraphicsAdapter): Gpu | undefined {
  const gibibytes =
    adapter.memoryBytes === null ? undefined : Math.round(adapter.memoryBytes / 2 ** 30);
  const names = cardNames(adapter);
  const wanted =
    gibibytes === undefined ? names : [...names.map((name) => `${name} ${gibibytes}GB`), ...names];
  for (const name of wanted) {
    try {
      return clusterNamed(name, undefined, NONE).gpu;
    } catch {
      // The next name.
    }
  }
  return undefined;
}

/**
 * Looks at this machine. Never throws: what cannot be read is missing.
 * @param calls System calls, in tests those of another machine.
 */
export async function detectMachine(calls?: SystemCalls): Promise<DetectedMachine> {
  const { systemAdapters } = await import('../../engine/adapters/adapters.js');
  const { memoryModules } = await import('../../engine/adapters/memory-modules.js');
  const { THIS_MACHINE } = await import('../../engine/adapters/graphics-adapter.js');
  const machine = calls ?? THIS_MACHINE;
  const [adapters, modules] = await Promise.all([systemAdapters(machine), memoryModules(machine)]);
  const hardware = adapters.filter(({ isSoftware }) => !isSoftware);
  const known = hardware.map((adapter) => ({ adapter, gpu: rowOf(adapter) }));
  const rows = known.flatMap(({ gpu }) => gpu ?? []);
  const own = rows.filter((gpu) => memoryOf(gpu).kind !== 'shared');
  // Graphics of the processor do not help a card.
  const used = own.length > 0 ? own : rows;
  const cluster =
    used.length === 0 ? PROCESSOR : mixedCluster(used.map((gpu) => ({ gpu, gpus: 1 })));
  const processor = knownProcessor(machine.processor);
  const type = modules?.type ?? processor?.memory?.split('-')[0] ?? undefined;
  const speed = modules?.megatransfers ?? Number(processor?.memory?.split('-')[1] ?? Number.NaN);
  const channels = modules?.channels ?? null;
  const isRead = channels !== null && type !== undefined && Number.isFinite(speed);
  const ignored = known
    .filter(({ gpu }) => gpu === undefined || !used.includes(gpu))
    .map(({ adapter }) => adapter.name);
  return {
    cluster,
    ramBytes: machine.memoryBytes,
    ramSpeed: isRead ? `${channels}x${type}-${speed}` : undefined,
    cpu: processor && machine.processor,
    machine: {
      cards: hardware.map(({ name, source }) => `${name} (${source})`),
      ignored,
      memoryBytes: machine.memoryBytes,
      processor: machine.processor === '' ? null : machine.processor,
      assumed: assumptions({
        isRead,
        isSpeedRead: modules?.megatransfers !== null && modules !== null,
        isProcessorKnown: processor !== undefined,
        hasCards: used.length > 0,
      }),
    },
  };
}

/** Assumptions in place of values that were not read. */
function assumptions(known: {
  readonly isRead: boolean;
  readonly isSpeedRead: boolean;
  readonly isProcessorKnown: boolean;
  readonly hasCards: boolean;
}): string[] {
  const memory =
    known.isRead && known.isSpeedRead
      ? []
      : [
          known.isRead
            ? 'the speed of the memory (the most of the processor)'
            : known.isProcessorKnown
              ? 'the channels and the speed of the memory (the most of the processor)'
              : 'the memory (two channels of DDR5-5600)',
        ];
  return [...memory, ...(known.hasCards ? ['that the memory of the cards is free'] : [])];
}

/** The error for a question that a machine without a card cannot answer. @param why Why it needs a card. */
export const noCard = ({ machine }: DetectedMachine, why: string): UserError =>
  usageError(
    `--gpu auto: found no graphics card that the table knows${machine.ignored.length > 0 ? ` (${machine.ignored.join(', ')})` : ''}, and ${why}`,
    'name a GPU, as in --gpu h100, or describe yours in a file for --hardware',
  );
