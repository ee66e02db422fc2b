import os from 'node:os';
import { GROUP_SIZES, QUANTIZED_BITS } from '../../base/tensor/dtype.js';
import { asNumber, isRecord } from '../../base/values.js';
import type { Compute } from '../../engine/engine.js';
import type { DeviceChoice, EngineChoice } from '../../engine/select/devices.js';
import type { OptionKinds, ValueKind } from '../arguments.js';

/** The engine that runs a model. */
export interface EngineOptions {
  /** Default: the first that passes its self-check. */
  readonly engine?: EngineChoice | undefined;
  /** Default: a graphics card that passes the self-check, else the CPU. */
  readonly device?: DeviceChoice | undefined;
  /** Default: one for each processor. */
  readonly threads?: number | undefined;
}

/** Kinds of the values of `EngineOptions`. Loads the names of engines, which only functions that run a model need. */
export async function engineKinds(): Promise<OptionKinds<EngineOptions>> {
  const { DEVICES, ENGINES } = await import('../../engine/engine.js');
  return {
    engine: ['auto', ...Object.keys(ENGINES)],
    device: ['auto', 'gpu', ...Object.keys(DEVICES)],
    threads: 'count',
  };
}

/** Kind of the quantization of matrices. */
export const WEIGHT_FORM: ValueKind = {
  expected: `{ bits: 8, group: 32 }: bits of ${QUANTIZED_BITS.join(' or ')}, a group of ${GROUP_SIZES.join(', ')}`,
  is: (value) =>
    isRecord(value) &&
    QUANTIZED_BITS.some((bits) => bits === value.bits) &&
    GROUP_SIZES.some((group) => group === value.group),
};

/** Kind of the seed of random values. */
export const SEED: ValueKind = {
  expected: 'an integer from 0',
  is: (value) => Number.isInteger(value) && asNumber(value) >= 0,
};

/** The engine of a run, with its defaults. @param weights Quantized weights, which run on the CPU. */
export const engineOf = (
  { engine = 'auto', device, threads = os.availableParallelism() }: EngineOptions,
  weights?: unknown,
) => ({ engine, device: device ?? (weights ? 'cpu' : 'auto'), threads, compute: F32 }) as const;

const F32: Compute = 'f32';
