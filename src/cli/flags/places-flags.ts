/** The flags of `minimind fit` about system memory. */
import * as Flags from '@oclif/core/flags';
import { OFFLOADS } from '../../estimate/fit/fit-options.js';
import { bytesLimit, layerCount, ratios } from './value-flags.js';

const PLACES = { helpGroup: 'SYSTEM MEMORY' };

/** Flags of weights in system memory. */
export const placesFlags = {
  ram: bytesLimit({
    ...PLACES,
    description:
      'system memory for what the GPUs do not hold, as in 64GB; layers and experts are placed where serving is fastest',
  }),
  'ram-speed': Flags.string({
    ...PLACES,
    helpValue: 'TYPE',
    description:
      'type or bandwidth of the system memory, as in ddr5-5600 (two channels), 4xddr4-3200 or 90GB/s [default: ddr5-5600]',
  }),
  cpu: Flags.string({
    ...PLACES,
    helpValue: 'MODEL|auto',
    description:
      'processor of the system memory, as in i9-14900K, ryzen 9 7950x or epyc 9374f: its channels and the fastest memory that they take; auto for that of this machine',
  }),
  offload: Flags.option({
    ...PLACES,
    options: OFFLOADS,
    description:
      'part in system memory: of a training its optimizer or parameters (ZeRO-Offload, FSDP), of serving experts, layers or cache',
  } as const)(),
  'gpu-layers': layerCount({
    ...PLACES,
    description: 'layers on the GPUs, counted from the output, the others in system memory',
  }),
  'tensor-split': ratios({
    ...PLACES,
    description:
      'proportions in which several GPUs share the layers, as in 3,1 [default: the fastest that fit]',
  }),
  'cpu-experts': layerCount({
    ...PLACES,
    description: 'first layers whose routed experts are in system memory',
  }),
};
