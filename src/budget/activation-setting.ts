/** At what activations are counted, and what their parts are called. */
import type { Component, LanguageModel } from '../architecture/layer.js';
import { type Expression, mul, v } from './expression.js';
import type { Recompute } from './flops.js';

/** Whether scores and scan states are kept, or computed again by kernels that never hold them whole. */
export type AttentionKernel = 'plain' | 'fused';

/** Whether the logits of all tokens are there at a time, or those of a few, whose gradients are made at once. */
export type LossKernel = 'full' | 'chunked';

export interface ActivationSetting {
  readonly batch: number;
  readonly context: number;
  /** Bytes of an activation. */
  readonly bytesPerValue: number;
  readonly recompute: Recompute;
  /** `plain` unless said otherwise. */
  readonly attention?: AttentionKernel | undefined;
  /** `full` unless said otherwise. */
  readonly loss?: LossKernel | undefined;
  /**
   * Count a mask of 1 byte for each value that dropout meets: embeddings, softmax, and what each branch adds to
   * the residual stream; and the softmax after it.
   */
  readonly dropout?: boolean | undefined;
  /** Count what modules keep that are made of elementary operations, each of which keeps its own. */
  readonly unfused?: boolean | undefined;
  /** Count keys and values that are repeated for each query head that reads them. */
  readonly repeated?: boolean | undefined;
  /** Among how many GPUs each layer is split; 1 unless said otherwise. */
  readonly tensor?: number | undefined;
  /** Whether they split, by tokens, what is not split by width (arXiv 2205.05198). */
  readonly sequence?: boolean | undefined;
  /** The whole model, and a single micro-batch, unless said otherwise. */
  readonly stage?: StageRange | undefined;
}

/** What one pipeline stage computes. The first has the embedding, the last the norm, head and loss. */
export interface StageRange {
  /** Its first block. */
  readonly from: number;
  /** The one after its last. */
  readonly to: number;
  /** Of which it keeps the activations at a time. */
  readonly microBatches: number;
}

/** Parts that are not simply those of a component. */
export const OTHER_PARTS = {
  scores: 'attention scores',
  scanStates: 'scan states',
  softmaxSums: 'log-sums of the softmax',
  dropout: 'masks of dropout',
  unfused: 'insides of unfused modules',
  repeated: 'repeated keys and values',
  logits: 'logits, for the loss',
  blockInputs: 'inputs of the blocks',
  oneBlock: 'the block being recomputed',
} as const satisfies Record<string, string>;

/** A part of the activations: a component's, or one of `OTHER_PARTS`. */
export type ActivationPart = Component | keyof typeof OTHER_PARTS;

export const stageOf = (model: LanguageModel, { stage }: ActivationSetting): StageRange =>
  stage ?? { from: 0, to: model.blocks.length, microBatches: 1 };

export const tensorOf = ({ tensor }: ActivationSetting): number => tensor ?? 1;

/** Sequences whose activations are kept at a time. */
export function sequencesIn({ batch, stage }: ActivationSetting): Expression {
  const { microBatches: micro_batches = 1 } = stage ?? {};
  return micro_batches === 1 ? v({ batch }) : mul(v({ micro_batches }), v({ batch }));
}
