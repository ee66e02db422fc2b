/** Kept intermediates of attention and scan: scores and states if plain, sums if fused. */

import { sumOf } from '../../base/values.js';
import { equalBlocks } from '../architecture/equal-blocks.js';
import type { Component, LanguageModel, Layer } from '../architecture/layer.js';
import { scoreValues, sumByWindow } from '../architecture/masks.js';
import { memoized } from '../architecture/walk.js';
import { primitivesOf } from '../operations/lower.js';
import type { Scores } from '../operations/primitive.js';
import type { Expression } from './expression.js';
import { add, div, mul, v } from './expression.js';
import type { Figure } from './figure.js';
import { exact, figure } from './figure.js';
import type { Recompute } from './flops.js';
import { ranksOf, spansOfRank } from './state.js';

// Settings and parts of activation counts

/** Whether scores and scan states are kept, or recomputed by kernels that never store them whole. */
export type AttentionKernel = 'plain' | 'fused';

/**
 * `full`: logits and log-softmax of all tokens; `fused`: one kernel writes the gradient over the logits; `chunked`: logits
 * of a few tokens at a time, with immediate gradients, or in a kernel with the head.
 */
export const LOSS_KERNELS = ['full', 'fused', 'chunked'] as const;

export type LossKernel = (typeof LOSS_KERNELS)[number];

export interface ActivationSetting {
  readonly batch: number;
  readonly context: number;
  /** Bytes of an activation. */
  readonly bytesPerValue: number;
  readonly recompute: Recompute;
  /** Default: `plain`. */
  readonly attention?: AttentionKernel | undefined;
  /** Default: `full`. */
  readonly loss?: LossKernel | undefined;
  /**
   * Count a 1-byte mask per value for dropout of embeddings, softmax and each branch's output, and the softmax
   * after dropout.
   */
  readonly dropout?: boolean | undefined;
  /** Count the kept values of each elementary operation in modules composed of them. */
  readonly unfused?: boolean | undefined;
  /** Count keys and values repeated for each query head. */
  readonly repeated?: boolean | undefined;
  /** Whether the inputs of recomputed blocks wait in memory of the host. */
  readonly offloaded?: boolean | undefined;
  /** Number of GPUs that share each layer; default 1. */
  readonly tensor?: number | undefined;
  /** Whether these GPUs split by tokens what they do not split by width (arXiv 2205.05198). */
  readonly sequence?: boolean | undefined;
  /** Default: the whole model and a single micro-batch. */
  readonly stage?: StageRange | undefined;
}

/**
 * Part of the model computed by one pipeline stage. The first has the embedding, the last the norm, head and loss.
 */
export interface StageRange {
  /** First block. */
  readonly from: number;
  /** Block after its last. */
  readonly to: number;
  /** Number of micro-batches with kept activations at a time. */
  readonly microBatches: number;
}

/** Parts other than plain components. */
export const OTHER_PARTS = {
  scores: 'attention scores',
  scanStates: 'scan states',
  softmaxSums: 'log-sums of the softmax',
  dropout: 'masks of dropout',
  unfused: 'insides of unfused modules',
  repeated: 'repeated keys and values',
  logits: 'logits, for the loss',
  blockInputs: 'inputs of the blocks',
  keptOutputs: 'outputs of attention and of every second product',
  oneBlock: 'the block being recomputed',
} as const satisfies Record<string, string>;

/** A part of the activations: a component's, or one of `OTHER_PARTS`. */
export type ActivationPart = Component | keyof typeof OTHER_PARTS;

export const stageOf = (model: LanguageModel, { stage }: ActivationSetting): StageRange =>
  stage ?? { from: 0, to: model.blocks.length, microBatches: 1 };

export const tensorParallelism = ({ tensor }: ActivationSetting): number => tensor ?? 1;

/** Sequences with kept activations at a time. */
export function sequencesIn({ batch, stage }: ActivationSetting): Expression {
  const { microBatches: micro_batches = 1 } = stage ?? {};
  return micro_batches === 1 ? v({ batch }) : mul(v({ micro_batches }), v({ batch }));
}

/**
 * Softmax of every head over the keys that the original multiplies, and a softcap's tanh before it. If GPUs share
 * the heads, it counts the GPU with the longest windows.
 */
export function scoresFigure(
  blocks: readonly Layer[],
  setting: ActivationSetting,
  squares = squaresPerHead,
): Figure {
  const { attentions } = kernelsIn(blocks);
  return ranksOf(
    attentions.map(({ spans }) => spans),
    tensorParallelism(setting),
  )
    .map((rank) => scoresOfRank(attentions, setting, rank, squares))
    .reduce((a, b) => (b.value > a.value ? b : a));
}

function scoresOfRank(
  attentions: readonly Scores[],
  setting: ActivationSetting,
  rank: number,
  squaresOf: typeof squaresPerHead,
): Figure {
  const { context, bytesPerValue, dropout, unfused } = setting;
  const bytes = v({ bytes: bytesPerValue });
  const layers = attentions.map((layer) => ({
    ...layer,
    spans: spansOfRank(layer.spans, tensorParallelism(setting), rank),
  }));
  const squares = sumByWindow(
    layers,
    (layer, heads) => (layer.times ?? 1) * heads * squaresOf(layer),
  );
  const isCast = unfused && bytesPerValue < 4;
  const copies = sumByWindow(
    isCast ? layers.filter(({ inFloat32 }) => inFloat32) : [],
    ({ times = 1 }, heads) => times * heads,
  );
  const valuesOf = (counts: typeof squares) =>
    add(
      ...[...counts].map(([name, { window, size }]) =>
        mul(size, v({ [`scores_${name}`]: exact(scoreValues(context, window)) })),
      ),
    );
  const each = dropout ? add(mul(2, bytes), 1) : bytes;
  const inType = mul(each, valuesOf(squares));
  const local = [...squares.keys()].some((name) => name.startsWith('window_'));
  const capped = attentions.some((layer) => layer.capped);
  return figure({
    label: `activations: ${OTHER_PARTS.scores}`,
    unit: 'bytes',
    formula: mul(
      sequencesIn(setting),
      copies.size > 0 ? add(inType, mul(4, valuesOf(copies))) : inType,
    ),
    source: [
      'the softmax of each head',
      copies.size > 0 ? ', and in float32 before it is cast' : '',
      dropout ? ', before and after dropout, and a mask of 1 byte (arXiv 2205.05198)' : '',
      capped ? ', and the tanh of its softcap' : '',
      local
        ? ': the whole square up to 2048 tokens, block by block beyond it for local heads'
        : ': the whole square, masked or not',
    ].join(''),
  });
}

/** Layers of a block with scores or scan states. */
export const kernelsOf = memoized((block: Layer) => {
  const primitives = primitivesOf(block);
  return {
    attentions: primitives.flatMap((each) => (each.kind === 'scores' ? [each] : [])),
    scans: primitives.flatMap((each) => (each.kind === 'scan' ? [each] : [])),
  };
});

/** Those of all blocks, one for all equal ones. */
const kernelsIn = memoized((blocks: readonly Layer[]) => {
  const kinds = equalBlocks(blocks).map(({ block, times }) => ({ times, ...kernelsOf(block) }));
  return {
    attentions: kinds.flatMap(({ attentions, times }) =>
      attentions.map((each) => ({ ...each, times })),
    ),
    scans: kinds.flatMap(({ scans, times }) => scans.map((each) => ({ ...each, times }))),
  };
});

/** A fused kernel needs the log-sum of each score row for its backward pass. */
export function softmaxSums(blocks: readonly Layer[], setting: ActivationSetting): Figure {
  const heads = sumOf(kernelsIn(blocks).attentions, (layer) => layer.times * layer.heads);
  const sums = mul(4, sequencesIn(setting), v({ context: setting.context }), v({ heads }));
  return figure({
    label: `activations: ${OTHER_PARTS.softmaxSums}`,
    unit: 'bytes',
    formula: div(sums, v({ tensor: tensorParallelism(setting) })),
    source:
      'a float32 for each head and token; scores and scan states are computed again (FlashAttention, arXiv ' +
      '2205.14135; Mamba, arXiv 2312.00752)',
  });
}

const squaresPerHead = ({ capped }: Scores): number => (capped ? 2 : 1);

/** Two gradients per score: of the softmax, and of its input. */
export function scoreGradientsFigure(block: Layer, setting: ActivationSetting): Figure {
  const inFloat32 = 8 / setting.bytesPerValue;
  return scoresFigure([block], { ...setting, dropout: false }, (layer) =>
    layer.inFloat32 ? inFloat32 : 2,
  );
}

/** The scan as a loop keeps the decay, B·Δ and state of every step; with a decay per head, the state alone. */
export function scanFigure(blocks: readonly Layer[], setting: ActivationSetting): Figure {
  const { context, bytesPerValue: bytes } = setting;
  const { scans } = kernelsIn(blocks);
  const valuesOf = (kinds: typeof scans) =>
    sumOf(kinds, ({ inner, state, times }) => times * inner * state);
  const ofValues = valuesOf(scans.filter(({ decays }) => decays === 'values'));
  const ofHeads = valuesOf(scans.filter(({ decays }) => decays !== 'values'));
  const tensor = tensorParallelism(setting);
  const kept = [
    mul(3, v({ state_values: ofValues })),
    ...(ofHeads > 0 ? [v({ state_values_of_heads: ofHeads })] : []),
  ];
  const states = mul(sequencesIn(setting), v({ context }), v({ bytes }), add(...kept));
  return figure({
    label: `activations: ${OTHER_PARTS.scanStates}`,
    unit: 'bytes',
    formula: tensor > 1 ? div(states, v({ tensor })) : states,
    source:
      'decay, B·Δ and state of every step, as a loop over time keeps them; the state alone with a decay per head',
  });
}

/** Properties that determine the kept scores and sums. */
export const scoreProperties = (layer: Scores) => [
  layer.heads,
  layer.spans,
  squaresPerHead(layer),
  layer.inFloat32,
];
