/** Time that plain attention takes for its scores, and a forward pass with and without them. */

import type { LanguageModel, Layer } from '../../../model/architecture/layer.js';
import type { AttentionResult } from '../../../model/budget/attention/attention-result.js';
import { div, inputs, mul } from '../../../model/budget/expression.js';
import type { Quantity } from '../../../model/budget/figure.js';
import { quantity } from '../../../model/budget/figure.js';
import { forwardFlopsOf } from '../../../model/budget/flops.js';
import type { ActivationSetting } from '../../../model/budget/kernel-activations.js';
import { scoresFigure } from '../../../model/budget/kernel-activations.js';
import type { Gpu } from '../../hardware/gpu.js';
import { bandwidthOf, peakIfKnown } from '../../hardware/gpu.js';
import { efficienciesOn } from '../efficiency.js';
import { computingSharesOn, hiddenShare } from './training-shares.js';

/**
 * Passes over the scores of plain attention in the memory of a GPU. With a fused softmax they are written and read
 * twice (arXiv 2205.14135, algorithm 0). In elementary operations, as transformers' eager attention has them (scale,
 * mask, softmax in float32, cast), 24 heads over 8,192 tokens took 22.4 ms forwards and 43.0 ms with the backward pass
 * on an H200, 69% of its bandwidth assumed (measured with PyTorch 2.11 by bench/fit_measure.py, in
 * fixtures/fit/measured-h200.jsonl).
 */
const SCORE_PASSES = { fused: 4, forward: 23, backward: 21 } as const;

/** Bytes of the scores of plain attention in some blocks, once. */
export const scoreBytes = (blocks: readonly Layer[], setting: ActivationSetting): number =>
  Number(scoresFigure(blocks, { ...setting, dropout: false, stage: undefined }).value);

/** Speed of flash attention against plain attention in one forward pass. */
export interface AttentionSpeed {
  /** Tokens of the sequence. @integer @minimum 1 */
  readonly context: number;
  /** Bytes that plain attention writes and reads for its scores, with a fused softmax. */
  readonly scoreTraffic: Quantity;
  /** Time of a pass with flash attention. */
  readonly flash: Quantity;
  /** Time of a pass with plain attention, whose softmax is one kernel. */
  readonly fused: Quantity;
  /** Time of a pass with plain attention in elementary operations. */
  readonly eager: Quantity;
  /** Plain divided by flash: with a fused softmax, and in elementary operations. @real */
  readonly ratios: readonly [fused: number, eager: number];
}

/**
 * Methods of attention on one model, and the speed of a forward pass.
 * @answer minimind attention --json
 */
export interface AttentionAnswer extends AttentionResult {
  /** Speed of a forward pass by context; absent with `--on-chip`. */
  readonly speeds?: readonly AttentionSpeed[];
}

/** Speeds of a forward pass of one sequence on a GPU; undefined where its peak is unknown. */
export function attentionSpeed(
  model: LanguageModel,
  gpu: Gpu,
  context: number,
): AttentionSpeed | undefined {
  const peak = peakIfKnown(gpu, 'bf16');
  if (peak === null) return undefined;
  const shares = computingSharesOn(gpu.architecture);
  const parts = (causal: boolean) => forwardFlopsOf(model, { batch: 1, context, causal }).parts;
  const flops = (isScores: boolean, causal: boolean) =>
    parts(causal)
      .filter(({ kind }) => (kind === 'scores') === isScores)
      .reduce((sum, each) => sum + Number(each.flops.value), 0);
  const bytes = scoreBytes(model.blocks, {
    batch: 1,
    context,
    bytesPerValue: 2,
    recompute: 'none',
  });
  const { memoryUtilisation } = efficienciesOn(gpu).expected;
  const speed = Number(peak.value);
  const share = shares.products * hiddenShare(model.hidden, 1);
  const products = flops(false, true) / (speed * share);
  const inTiles = flops(true, true) / (speed * shares.attention);
  const stored = flops(true, false) / (speed * share);
  const moved = (passes: number) =>
    (passes * bytes) / (Number(bandwidthOf(gpu).value) * memoryUtilisation);
  const time = (label: string, value: number, source: string) =>
    quantity({ label, unit: 'seconds', formula: inputs({ seconds: value }).seconds, source });
  const flash = products + inTiles;
  const fused = products + stored + moved(SCORE_PASSES.fused);
  const eager = products + stored + moved(SCORE_PASSES.forward);
  return {
    context,
    scoreTraffic: quantity({
      label: 'traffic of the scores',
      unit: 'bytes',
      formula: mul(SCORE_PASSES.fused, inputs({ score_bytes: bytes }).score_bytes),
      source:
        'scores and probabilities, each written and read once (arXiv 2205.14135, algorithm 0)',
    }),
    flash: time('forward pass, flash', flash, `products at ${shares.source}`),
    fused: time('forward pass, plain', fused, 'scores written and read twice'),
    eager: time(
      'forward pass, plain in elementary operations',
      eager,
      `${SCORE_PASSES.forward} passes over the scores (measured with PyTorch 2.11 on an H200)`,
    ),
    ratios: [fused / flash, eager / flash],
  };
}

/** Time of the scores of plain attention in a micro-batch of a training. @param again Repeated forward passes. */
export const scoreSeconds = (bytes: number, again: number, gpu: Gpu): Quantity => {
  const of = inputs({
    score_bytes: bytes,
    passes: SCORE_PASSES.forward * (1 + again) + SCORE_PASSES.backward,
    bandwidth: bandwidthOf(gpu).value,
    share: efficienciesOn(gpu).expected.memoryUtilisation,
  });
  return quantity({
    label: 'scores of plain attention',
    unit: 'seconds',
    formula: div(mul(of.passes, of.score_bytes), mul(of.bandwidth, of.share)),
    source: 'elementary operations over the scores (measured with PyTorch 2.11 on an H200)',
  });
};
