/**
 * Shares that a server reaches with many requests, fitted to published throughput. A step of a server has thousands of
 * tokens, so its products reach more of the peak than a single prompt.
 *
 * Fitted on 25 runs (TensorRT-LLM, perf-overview.md, v1.0; MLPerf Inference 5.1, offline). None of them was held back.
 */
import type { Gpu, PeakDtype } from '../../../hardware/gpu.js';
import { isNarrow } from '../../../hardware/gpu.js';

/** A fitted constant. */
interface FittedShare {
  readonly share: number;
  /** Published runs that it was fitted to. */
  readonly runs: number;
  readonly source: string;
}

const TRT = 'TensorRT-LLM, perf-overview.md, v1.0';
const MLPERF = 'MLPerf Inference 5.1, offline';

/** Share of the compute peak in a step of thousands of tokens, without the moving of activations. */
const COMPUTING = {
  wide: {
    share: 0.75,
    runs: 2,
    source: 'Llama-2-7B on an A100, static batches (TensorRT-LLM, performance.md, v0.6.1)',
  },
  eight: { share: 0.85, runs: 9, source: `Llama-3.1 on H100 and H200, FP8 (${TRT}; ${MLPERF})` },
  four: { share: 0.7, runs: 9, source: `Llama on B200 and GB200, NVFP4 (${TRT}; ${MLPERF})` },
  amd: { share: 0.45, runs: 1, source: `Llama-2-70B on MI300X, FP8 (${MLPERF})` },
} as const satisfies Record<string, FittedShare>;

/** Part of that share in the products of experts, which are narrow and have few tokens each. */
const EXPERTS: FittedShare = {
  share: 0.5,
  runs: 2,
  source: `Mixtral-8x7B on H200 and RTX PRO 6000, FP8 (${MLPERF})`,
};

/** Share of the compute peak in the steps of a server. */
export function serverComputing(
  { architecture }: Pick<Gpu, 'architecture'>,
  computes: PeakDtype | undefined,
  hasExperts: boolean,
): FittedShare {
  const dense = architecture?.startsWith('cdna') ? COMPUTING.amd : denseComputing(computes);
  if (!hasExperts) return dense;
  return {
    share: dense.share * EXPERTS.share,
    runs: EXPERTS.runs,
    source: `${dense.source}, and half of it in experts: ${EXPERTS.source}`,
  };
}

function denseComputing(computes: PeakDtype | undefined): FittedShare {
  if (computes === undefined || !isNarrow(computes)) return COMPUTING.wide;
  return computes === 'f4' || computes === 'int4' ? COMPUTING.four : COMPUTING.eight;
}

/** Seconds of a step for each sequence beyond the first: its scheduling, sampling and output. */
export const SEQUENCE_SECONDS = { seconds: 7e-6, runs: 12, source: `fitted (${TRT}; ${MLPERF})` };

/** Part of products and reads of weights that do not overlap in a step with many sequences. */
export const APART = { share: 0.5, runs: 25, source: `chosen on all rows (${TRT}; ${MLPERF})` };

/** Requests of a step from which it has the shares of a server; the fitted runs fill the memory with more. */
export const FULL_STEP = { requests: 64, source: 'chosen below the fitted runs' } as const;

/** Range of published ÷ estimated throughput in which nine of ten of the rows lie. */
export const THROUGHPUT_SPREAD = {
  lower: 1 / 1.5,
  upper: 1.5,
  runs: 25,
  source: `${TRT}; ${MLPERF}`,
} as const;
