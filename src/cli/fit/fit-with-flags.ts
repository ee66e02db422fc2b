/** A model on the hardware of a line of `fit`, with notes on its flags. */
import type { FitResult } from '../../estimate/fit/fits.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import type { LoadedModel } from '../../input/model-input/checkpoint/checkpoint-model.js';
import { type FitRemark, fitOn, type MeasuredMachine } from '../../library/fit.js';
import { formatOf, type OutputFlags } from '../base-command.js';
import type { FitFlags } from '../flags/fit-flags.js';
import type { HardwareFlags } from '../flags/hardware-flags.js';
import { fitHardware } from './fit-hardware.js';

/** Flags that change how an answer is shown. */
interface ShownFlags extends OutputFlags {
  readonly details: boolean;
  readonly explain: boolean;
  readonly check: boolean;
}

/** A fit, the remarks on its options, and notes on its flags. */
interface NotedFit {
  readonly result: FitResult;
  readonly remarks: readonly FitRemark[];
  readonly notes: readonly string[];
  /** Hardware that was counted. */
  readonly hardware: Cluster;
}

/**
 * @param say Called with the choice when a name could mean several GPUs.
 * @throws UserError as `fitHardware` and `fitOn`.
 */
export async function fitWithFlags(
  loaded: LoadedModel,
  flags: FitFlags & HardwareFlags & ShownFlags,
  say: (choice: string) => void,
): Promise<NotedFit> {
  const { profile, found, hardware, options } = await fitHardware(flags, say);
  const isBrief = formatOf(flags) === 'table' && !flags.details && !flags.explain;
  const machine: MeasuredMachine | undefined = profile && {
    profile,
    memoryNeed: (await import('../../engine/memory.js')).memoryNeed,
  };
  const { result, remarks } = fitOn(loaded, hardware, options, { isBrief, machine, found });
  const notes: string[] = [];
  const isAlone = flags.batch === undefined && flags.users === undefined;
  if (flags['token-time'] !== undefined && flags.qps !== undefined && isAlone) {
    notes.push(TOKEN_TIME_ALONE);
  }
  const { doubts } = result;
  if (flags.check && doubts.length > 0) {
    notes.push(`--check: ${doubts.map(({ text }) => text).join('; ')}`);
  }
  return { result, remarks, notes, hardware };
}

const TOKEN_TIME_ALONE =
  '--token-time without --batch: a replica serves one request at a time. Add --batch for a time measured with more.';
