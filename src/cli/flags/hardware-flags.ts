/** The flags of hardware, and the hardware they select. */
import os from 'node:os';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import { formatInteger } from '../../base/text/units.js';
import { quote } from '../../config/quote.js';
import { readDocument } from '../../config/read.js';
import { clusterNamed, withGpus } from '../../estimate/hardware/cluster-named.js';
import type { Cluster, Hardware } from '../../estimate/hardware/gpu.js';
import { withReserved } from '../../estimate/hardware/gpu.js';
import { entriesMatching, splitCount } from '../../estimate/hardware/gpu-names.js';
import { hardwareOfDocument, onlyGpu } from '../../estimate/hardware/hardware-file.js';
import { gpuOfProfile } from '../../estimate/hardware/machine-gpu.js';
import type { MachineProfile } from '../../estimate/hardware/machine-profile.js';
import { withKnownHardware } from '../../estimate/hardware/machines.js';
import { isProcessorName, PROCESSOR } from '../../estimate/hardware/system-memory.js';
import { LARGEST_CLUSTER } from '../../model/architecture/training-section.js';
import { progressDisplay } from '../progress.js';
import type { ParsedFlags } from './flags.js';
import { COMPUTES, device, engine, threads } from './flags.js';
import { bytesLimit, count, unreadable } from './value-flags.js';

const MEASURED = { helpGroup: 'THIS MACHINE', dependsOn: ['this-machine'] };

/** The name in `--gpu`, for a command that needs only one. @throws UserError for several GPUs. */
export function oneGpuName(text: string): string {
  const { name, count: gpus = 1 } = splitCount(text);
  return gpus === 1 ? name : unreadable('gpu', text, 'one GPU', `write --gpu ${quote(name)}`);
}

/** Flags of every command that needs hardware. */
export const hardwareFlags = {
  gpu: Flags.string({
    helpValue: 'NAME|FILE',
    description:
      'a GPU or machine of --list-gpus, as in h100, RTX 4090 or 8xA100, several kinds as in 5090+3090, auto for those of ' +
      'this machine, or a YAML file that describes one',
    exclusive: ['this-machine'],
  }),
  gpus: count({ description: 'number of GPUs [default: 1, or all of a machine]' }),
  reserve: bytesLimit({
    description:
      'memory per GPU for other programs: 0.6 to 2 GB for the system and a screen, more on a Mac [default: none; of a ' +
      'shared memory, what the system keeps]',
  }),
  hardware: Flags.string({
    helpValue: 'FILE',
    description: 'a YAML file with more GPUs and machines for --gpu',
    exclusive: ['this-machine'],
  }),
  'this-machine': Flags.boolean({
    description: 'measure this machine (some seconds; the result is kept for a month)',
    helpGroup: MEASURED.helpGroup,
  }),
  profile: Flags.string({
    ...MEASURED,
    helpValue: 'FILE',
    description: "file of the measurements [default: a file in the user's cache]",
  }),
  remeasure: Flags.boolean({ ...MEASURED, description: 'measure again' }),
  engine: engine(MEASURED),
  device: device(MEASURED),
  compute: Flags.option({
    ...MEASURED,
    options: COMPUTES,
    description: 'precision of the matrix products to measure [default: f32]',
  } as const)(),
  threads: threads(MEASURED),
};

/** Whether a word is a name of a GPU or machine, as in `--gpu`. A bare small number is not. */
export function isHardwareName(text: string): boolean {
  if (!/[a-z]|\d{4}/i.test(text)) return false;
  const known = hardwareNames.get(text);
  if (known !== undefined) return known;
  let isName = true;
  try {
    clusterNamed(text, undefined, { gpus: [], machines: [] });
  } catch {
    isName = false;
  }
  hardwareNames.set(text, isName);
  return isName;
}

/** Words of a line that were looked up among all cards: several readings of it ask for the same ones. */
const hardwareNames = new Map<string, boolean>();

/** Flags that say how many GPUs share a replica, where the command has them. */
interface SharingFlags {
  readonly 'tensor-parallel'?: number | undefined;
  readonly 'pipeline-parallel'?: number | undefined;
  readonly 'dp-attention'?: number | undefined;
  readonly 'expert-parallel'?: number | 'all' | undefined;
  readonly 'prefill-gpus'?: number | undefined;
}

export type HardwareFlags = ParsedFlags<typeof hardwareFlags> &
  SharingFlags & {
    readonly quiet: boolean;
  };

/** Selected hardware, with the measured profile for this machine. */
export interface SelectedHardware extends Cluster {
  readonly profile?: MachineProfile;
}

/**
 * The hardware selected by the flags.
 * @param say Called with the choice when a name could mean several GPUs.
 * @throws UserError when they name none, or an unknown one, and as `readDocument` and `machineProfile`.
 */
export async function hardwareOf(
  flags: HardwareFlags,
  say: (choice: string) => void,
): Promise<SelectedHardware> {
  const selected = await selectedHardware(flags, say);
  const reserved = withGpus(selected, (gpu) => withReserved(gpu, reservedBytes(flags)));
  return { ...selected, ...reserved };
}

/** `hardwareOf`, where `--gpu cpu` and `--gpu none` are a machine without a GPU. @throws UserError as `hardwareOf`. */
export async function servingHardware(
  flags: HardwareFlags,
  say: (choice: string) => void,
): Promise<SelectedHardware> {
  if (!isProcessorName(flags.gpu)) return hardwareOf(flags, say);
  const other = flags.gpus !== undefined ? 'gpus' : flags.reserve !== undefined ? 'reserve' : '';
  if (other === '') return PROCESSOR;
  throw usageError(`--${other} requires a GPU, found --gpu ${flags.gpu}`, 'leave one of them out');
}

/** Whether a name of hardware means what this machine has. */
export const isAuto = (name: string | undefined): boolean => name?.trim().toLowerCase() === 'auto';

/** Whether a name means all common hardware, as no name does on a machine without a card. */
const isAll = (name: string | undefined): boolean => name?.trim().toLowerCase() === 'all';

/** Whether the flags select hardware. */
export const isHardware = (
  flags: Pick<HardwareFlags, 'gpu' | 'hardware' | 'this-machine'>,
): boolean =>
  (flags.gpu !== undefined && !isAll(flags.gpu)) ||
  flags.hardware !== undefined ||
  flags['this-machine'];

/** Bytes of `--reserve`. */
export const reservedBytes = ({ reserve }: Pick<HardwareFlags, 'reserve'>): number | undefined =>
  reserve === undefined ? undefined : Number(reserve);

async function selectedHardware(
  flags: HardwareFlags,
  say: (choice: string) => void,
): Promise<SelectedHardware> {
  if (flags['this-machine']) return thisMachine(flags);
  const { gpu: name, gpus } = flags;
  if (isAuto(name)) return cardsHere(say);
  const own = await ownHardware(flags.hardware);
  if (name !== undefined && !isFile(name)) {
    const cluster = clusterNamed(name, gpus, own, say);
    const shared = sharingGpus(flags);
    // The programs that serve count so: --tensor-parallel-size 2 takes two GPUs.
    if (gpus === undefined && cluster.gpus === 1 && shared > 1) {
      const counted = clusterNamed(name, gpuCount(shared), own);
      const how =
        flags['prefill-gpus'] === undefined ? 'share the model' : 'read prompts or decode';
      say(`${formatInteger(shared)} GPUs ${how}, so --gpus ${shared}`);
      return counted;
    }
    return { ...cluster, gpus: gpuCount(cluster.gpus) };
  }
  const file = name ?? flags.hardware;
  if (file === undefined) {
    throw usageError(
      'expected a GPU, found none',
      'write --gpu h100 for a GPU, or --this-machine to measure this one',
    );
  }
  const gpu = onlyGpu(name === undefined ? own : await ownHardware(name), file);
  return { gpu, gpus: gpuCount(gpus ?? 1), network: null };
}

/** GPUs of a replica by the flags, with those that only read prompts. */
function sharingGpus(flags: SharingFlags): number {
  const { 'tensor-parallel': tensor = 1, 'dp-attention': groups = 1 } = flags;
  const { 'pipeline-parallel': stages = 1, 'expert-parallel': experts } = flags;
  const replica = Math.max(tensor * groups, typeof experts === 'number' ? experts : 1) * stages;
  return replica + (flags['prefill-gpus'] ?? 0);
}

/** The cards of this machine. @throws UserError when the table knows none. */
async function cardsHere(say: (choice: string) => void): Promise<SelectedHardware> {
  const { detectMachine, noCard } = await import('../fit/detected-machine.js');
  const detected = await detectMachine();
  if (detected.cluster === PROCESSOR) throw noCard(detected, 'this question requires one');
  say(`--gpu auto: found ${detected.machine.cards.join(', ')}`);
  return detected.cluster;
}

/** @throws UserError beyond `LARGEST_CLUSTER`. */
function gpuCount(gpus: number): number {
  if (gpus <= LARGEST_CLUSTER) return gpus;
  const [most, found] = [formatInteger(LARGEST_CLUSTER), formatInteger(gpus)];
  throw usageError(
    `--gpus: expected at most ${most} GPUs, found ${found}`,
    'write it as in --gpus 8',
  );
}

/** GPUs and machines that a user's file adds to the table. */
const ownHardware = async (file: string | undefined): Promise<Hardware> =>
  file === undefined
    ? { gpus: [], machines: [] }
    : hardwareOfDocument(await readDocument(file, { advice: OWN_FILE }));

const OWN_FILE =
  'write a YAML file as in gpus: { mine: { extends: h100-80gb, memory: 96GB } }, or a name of minimind fit --list-gpus';

/** Whether a name is a file: names of GPUs have no file ending or folder. */
const isFile = (name: string): boolean => /\.(ya?ml|json)$|[/\\]|^-$/i.test(name);

async function thisMachine(flags: HardwareFlags): Promise<SelectedHardware> {
  const { machineProfile } = await import('../../engine/machine-profile-cache.js');
  const profile = await machineProfile({
    engine: flags.engine ?? 'auto',
    device: flags.device ?? 'auto',
    compute: flags.compute ?? 'f32',
    threads: flags.threads ?? os.availableParallelism(),
    file: flags.profile,
    remeasure: flags.remeasure,
    display: progressDisplay(flags),
  });
  const gpu = gpuOfProfile(profile, process.availableMemory());
  return { gpu, gpus: gpuCount(flags.gpus ?? 1), network: null, profile };
}

/** Hardware whose name or title has the words of `pattern`. */
export async function listedHardware(
  pattern: string | undefined,
  file: string | undefined,
): Promise<Hardware> {
  const { gpus, machines } = withKnownHardware(await ownHardware(file));
  if (pattern === undefined) return { gpus, machines };
  const known = {
    gpus: entriesMatching(pattern, gpus),
    machines: entriesMatching(pattern, machines),
  };
  if (known.gpus.length + known.machines.length > 0) return known;
  throw usageError(
    `--list-gpus: found no GPU or machine like ${quote(pattern)}`,
    'minimind fit --list-gpus lists all',
  );
}
