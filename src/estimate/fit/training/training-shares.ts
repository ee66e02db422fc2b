/**
 * Shares of the peaks that published trainings reach while they compute, recomputation included. Products of dense
 * layers, of experts and of attention have their own. Fitted on all shared runs: none of them checks the constants.
 */

import type { GpuArchitecture } from '../../hardware/gpu.js';
import { memoryKindOf } from '../../hardware/gpu.js';

/** Shares of a generation of GPUs. */
export interface ComputingShares {
  /** Share of the 16-bit peak, for products of wide dense layers. */
  readonly products: number;
  /** Share of the 8-bit peak, for the same products in FP8; undefined without a published training. */
  readonly narrow?: number;
  /** Share of the 16-bit peak, for kernels of fused attention, counted without masked pairs. */
  readonly attention: number;
  readonly source: string;
}

const LLM_FOUNDRY = 'llm-foundry, README of benchmarking, 2024';

/** Shares by generation. */
const BY_ARCHITECTURE: Readonly<Partial<Record<GpuArchitecture, ComputingShares>>> = {
  sm80: {
    products: 0.69,
    attention: 0.5,
    source: `59 to 79% of an A100 in products (${LLM_FOUNDRY}, column HFU; 6 runs)`,
  },
  sm90: {
    products: 0.5,
    narrow: 0.47,
    attention: 0.21,
    source:
      `42 to 58% of an H100 in products (${LLM_FOUNDRY}, column HFU), in FP8 35 to 50% of the FP8 peak (NeMo 24.07, ` +
      'Megatron-Bridge, performance summaries; 9 runs); attention 21% (MPT-7B with 65,536 tokens, llm-foundry)',
  },
  sm100: {
    products: 0.6,
    narrow: 0.44,
    attention: 0.45,
    source:
      'a GB200 in FP8 (Megatron-Bridge, performance summary, 2025; 1 run), in 16 bits as an H100',
  },
  sm103: {
    products: 0.6,
    narrow: 0.53,
    attention: 0.5,
    source:
      'a GB300 in FP8 (Megatron-Bridge, performance summary, 2025; 1 run), in 16 bits as an H100',
  },
  'tpu-v5p': {
    products: 0.85,
    attention: 0.65,
    source: 'MFU of 52 to 71% on TPU v5p (MaxText, docs, tiering.md, 2025)',
  },
  'tpu-v5e': {
    products: 0.76,
    attention: 0.6,
    source: 'MFU of 50 to 67% on TPU v5e (MaxText, docs, tiering.md, 2025)',
  },
  'tpu-v6e': {
    products: 0.6,
    attention: 0.48,
    source: 'MFU of 35 to 50% on TPU v6e (MaxText, docs, tiering.md, 2025)',
  },
};

/** Consumer cards, whose peak with float32 sums is half of that with float16 sums. */
const CONSUMER: ComputingShares = {
  products: 0.65,
  narrow: 0.5,
  attention: 0.4,
  source: 'Llama-3.1-8B on an RTX 4090 (torchtune, README; 1 run)',
};

const ELSEWHERE: ComputingShares = {
  products: 0.5,
  narrow: 0.4,
  attention: 0.35,
  source: 'as of an H100',
};

/** Shares on a generation; as on an H100 where no training is published. */
export const computingSharesOn = (architecture: GpuArchitecture | undefined): ComputingShares =>
  (architecture && BY_ARCHITECTURE[architecture]) ??
  (architecture && memoryKindOf(architecture) === 'gddr' ? CONSUMER : ELSEWHERE);

/**
 * Width of an expert at which its products reach half the share of dense ones. In FP8 the same overheads stay, and
 * products take half the time.
 */
const HALF_WIDTH = 2500;

/** Hidden size at which products of dense layers reach half of the share of wide ones; of TPUs none is known. */
const HALF_HIDDEN = 350;

/** Share of the share of wide layers that products of a hidden size reach. */
export const hiddenShare = (hidden: number, peakRatio: number): number =>
  atLeast(hidden) / (atLeast(hidden) + HALF_HIDDEN * peakRatio);

/** Hidden size of the smallest published training, below which the share is not extrapolated. */
const SMALLEST_HIDDEN = 768;

const atLeast = (hidden: number) => Math.max(hidden, SMALLEST_HIDDEN);

/** Share of the dense share that products of experts reach. */
export const expertShare = (width: number, peakRatio: number): number =>
  width / (width + HALF_WIDTH * peakRatio);

export const EXPERTS_SOURCE =
  'products of experts reach less, the narrower they are: fitted on gpt-oss-120b, Qwen3-30B-A3B, DeepSeek-V3 and ' +
  'Mixtral (Megatron-Bridge, performance summary; MaxText, tiering.md; 4 runs)';
