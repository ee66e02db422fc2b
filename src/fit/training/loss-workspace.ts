/** What taking the loss needs besides what is kept for it. */
import type { LanguageModel } from '../../architecture/layer.js';
import { inputWidth, outputWidth } from '../../architecture/widths.js';
import type { Bounds } from '../../budget/quantity.js';
import { bytesIn } from '../../budget/training.js';
import { boundsOf } from '../bounds.js';
import type { Parallelism } from '../parallelism/parallelism.js';
import type { TrainingFitSetting } from './training-setting.js';

/** Temporary logits: those that are kept are counted with the activations. */
export function lossBytes(
  model: LanguageModel,
  setting: TrainingFitSetting,
  parallelism: Parallelism,
): Bounds {
  const vocabulary = Math.ceil(outputWidth(model.head) / parallelism.tensor);
  switch (setting.loss) {
    case 'full':
      return fullLoss(setting, vocabulary);
    case 'chunked':
      return chunkedLoss(setting, parallelism, vocabulary, inputWidth(model.head));
  }
}

/** The loss in float32: its log-softmax is kept. */
function fullLoss(setting: TrainingFitSetting, vocabulary: number): Bounds {
  return boundsOf(
    {
      label: 'temporary logits',
      unit: 'bytes',
      inputs: { batch: setting.microBatch, context: setting.context, vocabulary },
    },
    {
      lower: { formula: '0', source: 'a fused loss writes its gradient over the log-softmax' },
      expected: {
        formula: '2 * 4 * batch * context * vocabulary',
        source:
          'the gradient of the log-softmax and that of the logits, in float32 (measured of PyTorch 2.13)',
      },
      upper: {
        formula: '3 * 4 * batch * context * vocabulary',
        source: '… and the logits in float32, which a program holds until its step ends',
      },
    },
  );
}

/** Logits of a chunk of tokens, and what it adds to the gradient of the head. */
function chunkedLoss(
  setting: TrainingFitSetting,
  { microBatches }: Parallelism,
  vocabulary: number,
  hidden: number,
): Bounds {
  const tokens = setting.microBatch * setting.context;
  return boundsOf(
    {
      label: 'temporary logits',
      unit: 'bytes',
      inputs: {
        chunk: chunkOf(tokens, vocabulary, hidden),
        vocabulary,
        hidden,
        bytes: bytesIn(setting.precision),
        micro_batches: microBatches,
      },
    },
    {
      lower: {
        formula: '0',
        source: 'a kernel fused with the head holds none in memory (arXiv 2411.09009)',
      },
      expected: {
        formula: 'bytes * vocabulary * (chunk + min(1, micro_batches - 1) * hidden)',
        source:
          'a chunk of tokens, 2^⌈log2(tokens / ⌈vocabulary / hidden⌉)⌉ of them, over which its gradient is written ' +
          '(Liger kernel, arXiv 2410.10989); after the first micro-batch a gradient of the head to be added',
      },
      upper: {
        formula: '(4 + bytes) * vocabulary * chunk + 4 * vocabulary * hidden',
        source: '… assumed: a chunk in float32 too, and the gradient of the head in float32',
      },
    },
  );
}

/** So many tokens that their logits are about as many values as there are hidden ones, and a power of two. */
const chunkOf = (tokens: number, vocabulary: number, hidden: number): number =>
  Math.min(tokens, 2 ** Math.ceil(Math.log2(Math.ceil(tokens / Math.ceil(vocabulary / hidden)))));
