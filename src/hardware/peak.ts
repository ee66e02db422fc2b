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
  f4: ['bf16', 'f16', 'tf32', 'f32'],
  int8: ['bf16', 'f16', 'tf32', 'f32'],
  int4: ['int8', 'bf16', 'f16', 'tf32', 'f32'],
};

/**
 * The peak of dense products of a type, or of what stands in for it, which its source tells.
 * @throws UserError when none is known.
 */
export function peakFor(gpu: Gpu, dtype: PeakDtype): Quantity {
  const peak = peakIfKnown(gpu, dtype);
  if (peak) return peak;
  throw new UserError('usage', noPeakText(gpu, dtype), {
    suggestion: `state one in a file for --hardware: "extends: ${gpu.name}", and under peak "${dtype}: …TFLOP/s"`,
  });
}

/** That there is none. */
export const noPeakText = ({ name }: Gpu, dtype: PeakDtype): string =>
  `no peak of ${name} is published for ${dtype}`;

/** Whether products are of 8 bits or fewer. */
export const isNarrow = (dtype: PeakDtype): boolean =>
  dtype === 'f8' || dtype === 'f4' || dtype === 'int8' || dtype === 'int4';

/** Relative error of a published peak: an RX 7900 XTX has 122.8 TFLOP/s in f16 and 123 in int8, the same rate. */
const ROUNDING = 0.01;

/** The type that products of `dtype` are computed in; undefined when no peak is known. */
export function computedDtype(gpu: Gpu, dtype: PeakDtype): PeakDtype | undefined {
  const own = gpu.peakFlops[dtype];
  const next = INSTEAD[dtype].find((each) => gpu.peakFlops[each] !== undefined);
  const wider = (next && gpu.peakFlops[next]) ?? 0;
  if (own === undefined) return next;
  // A B300 computes int8 slower than bf16, an MI250X as fast: programs widen what they are given.
  const isFaster = own > wider * (1 + ROUNDING);
  return isFaster || (own >= wider && !isNarrow(dtype)) ? dtype : next;
}

/** The same; null when none is known. */
export function peakIfKnown(gpu: Gpu, dtype: PeakDtype): Quantity | null {
  const own = gpu.peakFlops[dtype];
  const used = computedDtype(gpu, dtype);
  const peak = used && gpu.peakFlops[used];
  if (used === undefined || peak === undefined) return null;
  const why =
    own === undefined
      ? `no ${dtype} is published`
      : `${dtype} is ${own < peak ? 'slower' : 'as fast'}`;
  return quantity({
    label: `peak of ${gpu.name}, ${used}`,
    unit: 'FLOP/s',
    formula: 'peak',
    inputs: { peak },
    source: used === dtype ? gpu.source : `${gpu.source}; ${why}: ${used}`,
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

/** Of its memory: what programs can have, and where nobody knows that, what it is sold with. */
export const capacityOf = ({ name, memoryBytes: memory, usable, source }: Gpu): Quantity =>
  quantity({
    label: `memory of ${name}`,
    unit: 'bytes',
    formula: usable ? 'usable' : 'memory',
    inputs: usable ? { usable: usable.bytes } : { memory },
    source: usable?.source ?? source,
  });
