/** Model FLOPs utilisation: what share of the peaks the FLOPs of a model make use of, without recomputation. */
import type { LanguageModel } from '../../architecture/layer.js';
import { add, div, inputs, mul, v } from '../../budget/expression.js';
import type { Figure } from '../../budget/figure.js';
import { trainingFlopsOf } from '../../budget/flops.js';
import { type Quantity, quantity } from '../../budget/quantity.js';
import type { Architecture, Gpu } from '../../hardware/gpu.js';
import type { Computing } from './step-limits.js';
import type { TrainingFitSetting } from './training-setting.js';

/** What large trainings reached. */
interface Reached {
  readonly mfu: number;
  readonly source: string;
  /** Of the FLOPs that are really computed, while there are some to compute. */
  readonly busy: Computing;
}

const MAXTEXT =
  'with what MaxText recomputes (MaxText, docs, tiering.md, and README of configs/tpu, 2025)';

/** Where MFUs are published with recomputation, all of a block can be computed again within them. */
const recomputing = (mfu: number, source: string): Reached => ({
  mfu,
  source,
  busy: { utilisation: (mfu * 4) / 3, source: `${source}: four thirds of it` },
});

/** By generation; the ranges are those that are published. */
const BY_ARCHITECTURE: Readonly<Partial<Record<Architecture, Reached>>> = {
  // 56 to 64 % on 8 GPUs, 56 % of TinyLlama; 44 to 55 % with recomputation or on 40 GB.
  sm80: {
    mfu: 0.55,
    source: '44 to 64 % on A100 (llm-foundry, README of benchmarking, 2024; TinyLlama, README)',
    busy: {
      utilisation: 0.7,
      source: '59 to 79 % of an A100 with what is recomputed (llm-foundry, README, column HFU)',
    },
  },
  // 35 to 46 % by llm-foundry, 41 to 48 % by Megatron-LM, 38 to 43 % of Llama 3 on up to 16,384 GPUs.
  sm90: {
    mfu: 0.42,
    source:
      '35 to 48 % on H100 (llm-foundry, README of benchmarking, 2024; Megatron-LM, README; arXiv 2407.21783, table 4)',
    busy: {
      utilisation: 0.5,
      source: '42 to 58 % of an H100 with what is recomputed (llm-foundry, README, column HFU)',
    },
  },
  'tpu-v5p': recomputing(0.65, `52 to 71 % on TPU v5p, ${MAXTEXT}`),
  'tpu-v5e': recomputing(0.58, `50 to 67 % on TPU v5e, ${MAXTEXT}`),
  'tpu-v6e': recomputing(0.45, `35 to 50 % on TPU v6e, ${MAXTEXT}`),
};

const ELSEWHERE: Reached = {
  mfu: 0.4,
  source: 'as of H100, 38 to 43 % (Llama 3, arXiv 2407.21783, table 4)',
  busy: {
    utilisation: 0.578,
    source:
      '57.8 % of the peak with what is recomputed (PaLM, arXiv 2204.02311, section 4.1; not read again)',
  },
};

/** What is expected where nobody says. */
export const reachedOn = ({ architecture }: Pick<Gpu, 'architecture'>): Reached =>
  (architecture && BY_ARCHITECTURE[architecture]) ?? ELSEWHERE;

/** Of a poor one. */
export const POOR: Reached = {
  mfu: 0.213,
  source: '21.3 % of GPT-3 (PaLM, arXiv 2204.02311, table 3; not read again)',
  busy: {
    utilisation: 0.43,
    source:
      '43 % of the peak, the least of ten sizes, with what is recomputed (arXiv 2104.04473, table 1; not read again)',
  },
};

/** What is expected: as stated, or else assumed. */
export function assumedMfu({
  mfu,
  cluster,
}: Pick<TrainingFitSetting, 'mfu' | 'cluster'>): Quantity {
  const expected = reachedOn(cluster.gpu);
  return quantity({
    label: 'model FLOPs utilisation that is assumed',
    unit: 'ratio',
    formula: v({ mfu: mfu ?? expected.mfu }),
    source: mfu === undefined ? `assumed: ${expected.source}` : 'as stated',
  });
}

/** The FLOPs that utilisations are published for: no recomputation, attention in full (arXiv 2204.02311). */
export function modelFlops(
  model: LanguageModel,
  { microBatch: batch, context }: Pick<TrainingFitSetting, 'microBatch' | 'context'>,
): Figure {
  return trainingFlopsOf(model, { batch, context, causal: false, recompute: 'none' }).total;
}

interface Throughput {
  readonly tokensPerSecond: number;
  /** Of a training step, without recomputation. */
  readonly flopsPerToken: number;
  readonly gpus: number;
  readonly peakFlops: number;
}

/** The share of the peak that a throughput makes use of (PaLM, arXiv 2204.02311, appendix B). */
export function mfuOf(throughput: Throughput): Quantity {
  const { tokensPerSecond, flopsPerToken, gpus, peakFlops } = inputs({ ...throughput });
  return quantity({
    label: 'model FLOPs utilisation',
    unit: 'ratio',
    formula: div(mul(tokensPerSecond, flopsPerToken), mul(gpus, peakFlops)),
    source: 'tokens/s × FLOPs of a token / peak (PaLM, arXiv 2204.02311, appendix B)',
  });
}

interface PublishedModel {
  readonly parameters: number;
  readonly layers: number;
  readonly heads: number;
  readonly headDim: number;
  readonly context: number;
}

/** FLOPs of a token, for models of which no more is published than this. */
export function publishedFlopsPerToken(published: PublishedModel): Quantity {
  const { parameters, layers, heads, headDim, context } = inputs({ ...published });
  return quantity({
    label: 'FLOPs of a token in training',
    unit: 'FLOP',
    formula: add(mul(6, parameters), mul(12, layers, heads, headDim, context)),
    source: 'PaLM, arXiv 2204.02311, appendix B',
  });
}
