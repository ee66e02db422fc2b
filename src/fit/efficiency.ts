/** What share of its peaks a program reaches, and what it waits for: in serving, and in a step of training. */
import type { Bounds } from '../budget/quantity.js';

/** What a share of the bandwidth, of the peak and of the links is reached, and what each operation waits. */
export interface Efficiency {
  readonly memoryUtilisation: number;
  readonly computeUtilisation: number;
  readonly linkUtilisation: number;
  /** Seconds for each layer that is started. */
  readonly launchSeconds: number;
  /** Seconds for each all-reduce, however small, and for each further GPU in the ring. */
  readonly reduceSeconds: number;
  readonly hopSeconds: number;
  readonly source: string;
}

/** What is reached, by how well things are made. */
export const EFFICIENCIES: Readonly<Record<keyof Bounds, Efficiency>> = {
  lower: {
    memoryUtilisation: 1,
    computeUtilisation: 1,
    linkUtilisation: 1,
    launchSeconds: 0,
    reduceSeconds: 0,
    hopSeconds: 0,
    source: 'roofline: all at peak, nothing waits',
  },
  expected: {
    memoryUtilisation: 0.69,
    computeUtilisation: 0.43,
    linkUtilisation: 0.77,
    launchSeconds: 0.5e-6,
    reduceSeconds: 6.6e-6,
    hopSeconds: 1.2e-6,
    source:
      'memory: Llama-2-7B in bfloat16 reads 1,397 of 2,039 GB/s of an A100 (gpt-fast, README, 2023); compute: 43 % of ' +
      'the peak in a prefill for low latency (PaLM 540B, arXiv 2211.05102, table 2); links: 230 of 300 GB/s in an ' +
      'all-reduce (nccl-tests on a DGX A100); launches: 0.5 µs each in a CUDA graph (NVIDIA, "Getting started with ' +
      'CUDA graphs", 2019); all-reduce: 6.6 µs and 0.6 µs a step (NCCL, tuning.cc, ring, LL, NVLink)',
  },
  upper: {
    memoryUtilisation: 0.42,
    computeUtilisation: 0.14,
    linkUtilisation: 0.4,
    launchSeconds: 84e-6,
    reduceSeconds: 14e-6,
    hopSeconds: 3.8e-6,
    source:
      'memory: Llama-2-7B in 4 bits reads 863 of 2,039 GB/s (gpt-fast, README, 2023); compute: 14 % of the peak when ' +
      'decoding for low latency (PaLM 540B, arXiv 2211.05102, table 2); links: assumed, 40 %; launches: 25.5 tokens/s ' +
      'of Llama-2-7B before compiling (PyTorch blog, "Accelerating Generative AI II", 2023), 39 ms for 387 layers and ' +
      '7 ms of reading; all-reduce: 14 µs and 1.9 µs a step (NCCL, tuning.cc, ring, LL128, NVLink)',
  },
};
