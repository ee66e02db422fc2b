/** Figures of a GPU, with where they are from. */
import { type Quantity, quantity } from '../budget/quantity.js';
import { UserError } from '../errors.js';
import type { Gpu, PeakDtype } from './gpu.js';

/**
 * What is computed in where a type has no arithmetic of its own, the next best first: narrow weights are made
 * wider, 16 bits stand for 16 bits, and without tensor cores it is float32.
 */
const INSTEAD: Readonly<Record<PeakDtype, readonly PeakDtype[]>> = {
  f32: [],
  tf32: ['f32'],
  bf16: ['f16', 'tf32', 'f32'],
  f16: ['bf16', 'tf32', 'f32'],
  f8: ['bf16', 'f16', 'tf32', 'f32'],
  int8: ['bf16', 'f16', 'tf32', 'f32'],
  int4: ['int8', 'bf16', 'f16', 'tf32', 'f32'],
};

/**
 * The peak of dense products of a type, or of what stands in for it, which its source tells.
 * @throws UserError when none is known.
 */
export function peakFor(gpu: Gpu, dtype: PeakDtype): Quantity {
  for (const used of [dtype, ...INSTEAD[dtype]]) {
    const peak = gpu.peakFlops[used];
    if (peak === undefined) continue;
    const source = used === dtype ? gpu.source : `${gpu.source}; no ${dtype} is published: ${used}`;
    return quantity({
      label: `peak of ${gpu.name}, ${used}`,
      unit: 'FLOP/s',
      formula: 'peak',
      inputs: { peak },
      source,
    });
  }
  throw new UserError('usage', `no peak of ${gpu.name} is published for ${dtype}`, {
    suggestion: `state one in a file for --hardware: "extends: ${gpu.name}", and under peak "${dtype}: …TFLOP/s"`,
  });
}

/** Of its memory. */
export const bandwidthOf = ({ name, bandwidth, source }: Gpu): Quantity =>
  quantity({
    label: `memory bandwidth of ${name}`,
    unit: 'bytes/s',
    formula: 'bandwidth',
    inputs: { bandwidth },
    source,
  });

/** Of its memory. */
export const capacityOf = ({ name, memoryBytes, source }: Gpu): Quantity =>
  quantity({
    label: `memory of ${name}`,
    unit: 'bytes',
    formula: 'memory',
    inputs: { memory: memoryBytes },
    source,
  });
