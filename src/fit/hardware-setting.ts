import type { Gpu } from '../hardware/gpu.js';

/** So many GPUs of one kind, as asked for. */
export interface Cluster {
  readonly gpu: Gpu;
  readonly gpus: number;
}
