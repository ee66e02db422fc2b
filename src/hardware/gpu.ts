/** Graphics processors as data. */
import { type Quantity, quantity } from '../budget/quantity.js';

export type PeakDtype = 'f32' | 'tf32' | 'bf16' | 'f16' | 'f8' | 'int8' | 'int4';

/** What joins GPUs. */
export interface Link {
  readonly name: string;
  /** Bytes per second, per direction and GPU. */
  readonly bandwidth: number;
  /** How many GPUs it joins. */
  readonly gpus: number;
}

export interface Gpu {
  readonly name: string;
  readonly title: string;
  readonly memoryBytes: number;
  /** Of its memory, bytes per second. */
  readonly bandwidth: number;
  /** Dense, without sparsity. */
  readonly peakFlops: Readonly<Partial<Record<PeakDtype, number>>>;
  /** Fastest first. */
  readonly links: readonly Link[];
  readonly source: string;
}

const FALLBACKS: Readonly<Record<PeakDtype, readonly PeakDtype[]>> = {
  f32: ['f32'],
  tf32: ['tf32', 'f32'],
  bf16: ['bf16', 'f16', 'tf32', 'f32'],
  f16: ['f16', 'bf16', 'tf32', 'f32'],
  f8: ['f8', 'bf16', 'f16', 'tf32', 'f32'],
  int8: ['int8', 'bf16', 'f16', 'tf32', 'f32'],
  int4: ['int4', 'int8', 'bf16', 'f16', 'tf32', 'f32'],
};

/** The peak of a dtype, or of the nearest that the GPU has a peak for. */
export function peakFor(gpu: Gpu, dtype: PeakDtype): Quantity {
  const found = FALLBACKS[dtype].find((each) => gpu.peakFlops[each] !== undefined) ?? 'f32';
  return quantity({
    label: `peak in ${found}`,
    unit: 'FLOP/s',
    formula: 'peak',
    inputs: { peak: gpu.peakFlops[found] ?? 0 },
    source: gpu.source,
  });
}
