export type { Cluster } from '../hardware/gpu.js';
