/** Hardware and options of `fit`, with what `--gpu auto` and `--cpu auto` find on this machine. */
import { usageError } from '../../base/errors.js';
import type { SystemCalls } from '../../engine/adapters/graphics-adapter.js';
import type { FitOptions } from '../../estimate/fit/fit-options.js';
import { purposeOf, refuseWithoutHardware } from '../../estimate/fit/fit-request.js';
import type { FoundMachine } from '../../estimate/fit/fits.js';
import { isPlaceable } from '../../estimate/fit/places/places-options.js';
import { withGpus } from '../../estimate/hardware/cluster-named.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import { memoryOf, withReserved } from '../../estimate/hardware/gpu.js';
import type { MachineProfile } from '../../estimate/hardware/machine-profile.js';
import { PROCESSOR } from '../../estimate/hardware/system-memory.js';
import type { FitFlags } from '../flags/fit-flags.js';
import { fitOptions } from '../flags/fit-flags.js';
import type { HardwareFlags } from '../flags/hardware-flags.js';
import { isAuto, isHardware, reservedBytes, servingHardware } from '../flags/hardware-flags.js';
import type { DetectedMachine } from './detected-machine.js';
import { furtherFiles } from './fit-list.js';

/** Hardware and options of a fit. */
export interface FitHardware {
  readonly hardware: Cluster;
  readonly options: FitOptions;
  /** Measurements, with `--this-machine`. */
  readonly profile: MachineProfile | undefined;
  /** This machine, with `--gpu auto`. */
  readonly found: FoundMachine | undefined;
}

/**
 * Hardware and options that the flags give.
 * @param say Called with the choice when a name could mean several GPUs.
 * @param machine System calls, in tests those of another machine.
 * @throws UserError as `servingHardware`, and for a training on a machine without a card.
 */
export async function fitHardware(
  flags: FitFlags & HardwareFlags,
  say: (choice: string) => void,
  machine?: SystemCalls,
): Promise<FitHardware> {
  const given = fitOptions(flags, await furtherFiles(flags));
  const isCpuAuto = given.cpu === 'auto';
  if (!isAuto(flags.gpu) && !isCpuAuto) {
    const { profile, ...hardware } = await servingHardware(flags, say);
    return { hardware, options: given, profile, found: undefined };
  }
  const { detectMachine, noCard } = await import('./detected-machine.js');
  const detected = await detectMachine(machine);
  const options = isCpuAuto ? withProcessor(given, detected) : given;
  if (!isAuto(flags.gpu)) {
    const { profile, ...hardware } = await servingHardware(flags, say);
    return { hardware, options, profile, found: undefined };
  }
  if (flags.gpus !== undefined) {
    throw usageError(
      `--gpus ${flags.gpus} cannot be used with --gpu auto, which counts the cards`,
      'leave one of them out',
    );
  }
  const hasCards = detected.cluster !== PROCESSOR;
  if (!hasCards && purposeOf(options) !== 'serving')
    throw noCard(detected, 'a training requires one');
  const hardware = hasCards
    ? withGpus(detected.cluster, (gpu) => withReserved(gpu, reservedBytes(flags)))
    : detected.cluster;
  const isServed = purposeOf(options) === 'serving' && isPlaceable(options);
  const isShared = hasCards && memoryOf(hardware.gpu).kind === 'shared';
  return {
    hardware,
    options: isServed && !isShared ? withMemory(options, detected) : options,
    profile: undefined,
    found: detected.machine,
  };
}

/** The processor and its memory in place of `auto`. @throws UserError when the table does not know it. */
function withProcessor(
  options: FitOptions,
  { cpu, ramSpeed, machine }: DetectedMachine,
): FitOptions {
  const { cpu: _, ...others } = options;
  if (cpu === undefined && ramSpeed === undefined) {
    throw usageError(
      `--cpu auto: the memory of ${machine.processor ?? 'this processor'} is not known`,
      'write it as in --ram-speed ddr5-5600 for two channels',
    );
  }
  return { ...others, ...(cpu !== undefined && { cpu }), ramSpeed: others.ramSpeed ?? ramSpeed };
}

/** The system memory of the machine, where the user gave none. */
function withMemory(options: FitOptions, { ramBytes, ramSpeed, cpu }: DetectedMachine): FitOptions {
  const isGiven = options.cpu !== undefined || options.ramSpeed !== undefined;
  return {
    ...options,
    ramBytes: options.ramBytes ?? ramBytes,
    ...(!isGiven && { ramSpeed, cpu }),
    isDetected: options.ramBytes === undefined,
  };
}

/** Whether this machine has a card that the table knows. */
export async function hasCard(machine?: SystemCalls): Promise<boolean> {
  const { detectMachine } = await import('./detected-machine.js');
  return (await detectMachine(machine)).cluster !== PROCESSOR;
}

/** Flags of the answer that need hardware. */
type IdleFlags = { check: boolean; explain: boolean; emit?: string | undefined };

/** @throws UserError when a flag applies only to named hardware, and none is. */
export function refuseIdle(flags: FitFlags & HardwareFlags & IdleFlags): void {
  if (isHardware(flags)) return;
  const { gpus, check, explain, emit } = flags;
  refuseWithoutHardware({ ...fitOptions(flags), gpus, check, explain, emit });
}
