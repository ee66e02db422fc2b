/** Model FLOPs utilisation: what share of the peaks the FLOPs of a model make use of, without recomputation. */
import type { LanguageModel } from '../architecture/layer.js';
import type { Figure } from '../budget/figure.js';
import { trainingFlopsOf } from '../budget/flops.js';
import { type Quantity, quantity } from '../budget/quantity.js';
import type { TrainingFitSetting } from './training-setting.js';

/**
 * Where nobody says: what large trainings reached, and a poor one. `busy` is of the FLOPs that are really computed, while
 * there are some to compute.
 */
export const REACHED = {
  expected: {
    mfu: 0.4,
    source: '38 to 43 % on up to 16,384 H100 (Llama 3, arXiv 2407.21783, table 4)',
    busy: {
      utilisation: 0.578,
      source: '57.8 % of the peak with what is recomputed (PaLM, arXiv 2204.02311, section 4.1)',
    },
  },
  poor: {
    mfu: 0.213,
    source: '21.3 % of GPT-3 (PaLM, arXiv 2204.02311, table 3)',
    busy: {
      utilisation: 0.43,
      source:
        '43 % of the peak, the least of ten sizes, with what is recomputed (arXiv 2104.04473, table 1)',
    },
  },
} as const;

/** What is expected: as stated, or else assumed. */
export function assumedMfu({ mfu }: TrainingFitSetting): Quantity {
  const { expected } = REACHED;
  return quantity({
    label: 'model FLOPs utilisation that is assumed',
    unit: 'ratio',
    formula: 'mfu',
    inputs: { mfu: mfu ?? expected.mfu },
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
export const mfuOf = (throughput: Throughput): Quantity =>
  quantity({
    label: 'model FLOPs utilisation',
    unit: 'ratio',
    formula: 'tokensPerSecond * flopsPerToken / (gpus * peakFlops)',
    inputs: { ...throughput },
    source: 'tokens/s × FLOPs of a token / peak (PaLM, arXiv 2204.02311, appendix B)',
  });

interface PublishedModel {
  readonly parameters: number;
  readonly layers: number;
  readonly heads: number;
  readonly headDim: number;
  readonly context: number;
}

/** FLOPs of a token, for models of which no more is published than this. */
export const publishedFlopsPerToken = (published: PublishedModel): Quantity =>
  quantity({
    label: 'FLOPs of a token in training',
    unit: 'FLOP',
    formula: '6 * parameters + 12 * layers * heads * headDim * context',
    inputs: { ...published },
    source: 'PaLM, arXiv 2204.02311, appendix B',
  });
