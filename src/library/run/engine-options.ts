import os from 'node:os';
import type { Compute } from '../../engine/engine.js';
import type { DeviceChoice, EngineChoice } from '../../engine/select/devices.js';

/** The engine that runs a model. */
export interface EngineOptions {
  /** Default: the first that passes its self-check. */
  readonly engine?: EngineChoice | undefined;
  /** Default: a graphics card that passes the self-check, else the CPU. */
  readonly device?: DeviceChoice | undefined;
  /** Default: one for each processor. */
  readonly threads?: number | undefined;
}

/** The engine of a run, with its defaults. @param weights Quantized weights, which run on the CPU. */
export const engineOf = (
  { engine = 'auto', device, threads = os.availableParallelism() }: EngineOptions,
  weights?: unknown,
) => ({ engine, device: device ?? (weights ? 'cpu' : 'auto'), threads, compute: F32 }) as const;

const F32: Compute = 'f32';
