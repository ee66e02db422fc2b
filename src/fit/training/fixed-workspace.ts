/**
 * GPU memory that does not depend on the model. Figures are for PyTorch with NVIDIA's libraries. For other GPUs the
 * estimate leaves them out, and the upper bound assumes the same values. A processor has neither driver nor
 * collectives, and its library buffers are small.
 */
import type { LanguageModel } from '../../architecture/layer.js';
import { inputWidth, outputWidth } from '../../architecture/walk.js';
import { add, inputs, min, mul, sub } from '../../budget/expression.js';
import type { Bounds } from '../../budget/figure.js';
import { quantity } from '../../budget/figure.js';
import { trainingBytes } from '../../budget/training-budget.js';
import type { Gpu, GpuKind } from '../../hardware/gpu.js';
import { isFromHopperOn } from '../../hardware/gpu.js';
import { boundsOf } from '../bounds.js';
import type { Parallelism } from '../parallelism/parallelism.js';
import type { TrainingFitSetting } from './training-setting.js';

export const MIB = 2 ** 20;

const NOT_COUNTED = {
  formula: add(),
  source: 'not counted: not required',
} as const;

type BoundsAdjustment = (bounds: Bounds) => Bounds;

/** Conversion of bounds for NVIDIA GPUs to each kind of GPU. */
const BY_KIND = {
  nvidia: (bounds) => bounds,
  processor: (bounds) => {
    const nothing = nothingOf(bounds, 'a processor has no driver, and no such libraries');
    return { lower: nothing, expected: nothing, upper: nothing };
  },
  other: (bounds) => ({
    lower: bounds.lower,
    expected: nothingOf(bounds, 'left out: not known of this GPU'),
    upper: bounds.upper.reworded({
      source: `unknown for this GPU, assumed as on NVIDIA's: ${bounds.upper.source}`,
    }),
  }),
} as const satisfies Record<GpuKind, BoundsAdjustment>;

const nothingOf = ({ expected: { label, unit } }: Bounds, source: string) =>
  quantity({ label, unit, formula: add(), source });

/** Bounds on a GPU, for parts known only of NVIDIA's libraries. */
export const boundsOnGpu = ({ kind }: Pick<Gpu, 'kind'>, ofNvidia: Bounds): Bounds =>
  BY_KIND[kind](ofNvidia);

export const contextBytes = (gpu: Pick<Gpu, 'kind'>): Bounds => boundsOnGpu(gpu, CONTEXT);

const CONTEXTS = inputs({ usual: 500 * MIB, most: 1343 * MIB });

const CONTEXT = boundsOf(
  { label: 'driver context and kernels', unit: 'bytes', inputs: CONTEXTS },
  {
    lower: NOT_COUNTED,
    expected: {
      formula: CONTEXTS.usual,
      source:
        '500 MiB: 0.47 GiB with lazily loaded kernels, torch 2.1.1 on an A100 (stas00, ml-engineering, ' +
        'training performance); 551 MB in TensorRT-LLM (aiconfigurator, systems)',
    },
    upper: {
      formula: CONTEXTS.most,
      source:
        '1,343 MiB in use after the first kernel (transformers, "Anatomy of model training", on a V100); older versions ' +
        'need more: 1.78 GiB with torch 1.10.2 on an A100 (stas00, ml-engineering)',
    },
  },
);

/** Workspaces of matrix products: one of cuBLAS in PyTorch, and one of cuBLASLt. */
export function libraryBytes(gpu: Pick<Gpu, 'kind' | 'architecture'>): Bounds {
  const { architecture } = gpu;
  return boundsOnGpu(
    gpu,
    architecture && !isFromHopperOn(architecture) ? BEFORE_HOPPER : FROM_HOPPER_ON,
  );
}

function librariesOf(bytes: Readonly<Record<'workspace' | 'most', number>>, source: string) {
  const of = inputs(bytes);
  return boundsOf(
    { label: 'workspace of matrix products', unit: 'bytes', inputs: of },
    {
      lower: NOT_COUNTED,
      expected: { formula: of.workspace, source },
      upper: { formula: of.most, source },
    },
  );
}

const BEFORE_HOPPER = librariesOf(
  { workspace: 8_519_680, most: 24 * MIB },
  '8,519,680 bytes before Hopper (PyTorch, CublasHandlePool.cpp); upper: their 20 MiB segment, and up ' +
    'to 4 MiB of cuBLASLt (CUDABlas.cpp)',
);

const FROM_HOPPER_ON = librariesOf(
  { workspace: 32 * MIB, most: 64 * MIB },
  '32 MiB from Hopper on (PyTorch, CublasHandlePool.cpp); upper: the same again for cuBLASLt (CUDABlas.cpp)',
);

/** Bytes per channel: the buffers of NCCL's three protocols, Simple, LL128 and LL (NCCL, init.cc, device.h). */
const CHANNEL = 4 * MIB + 4_915_200 + 524_288;

/** NCCL buffers, one set per communicator. */
export function channelBytes(communicators: number, gpu: Pick<Gpu, 'kind'>): Bounds {
  const of = inputs({
    communicators,
    usual: 392 * MIB,
    first: 1.5 * 2 ** 30,
    most_channels: 64,
    channel: CHANNEL,
  });
  const ofNvidia = boundsOf(
    { label: 'buffers of collectives', unit: 'bytes', inputs: of },
    {
      lower: NOT_COUNTED,
      expected: {
        formula: mul(of.communicators, of.usual),
        source:
          '392 MiB for 4 and 8 GPUs, 342 MiB for 2 (aiconfigurator, systems, nccl_mem of TensorRT-LLM, 2026)',
      },
      upper: {
        formula: add(of.first, mul(sub(of.communicators, 1), of.most_channels, of.channel)),
        source:
          'the first: 0.55 GiB before and 2.00 GiB after the first barrier of 2 GPUs (stas00, ml-engineering, training ' +
          'performance), with the kernels that it loads; each other: 64 channels with buffers of 3 protocols, 4 MiB of ' +
          'Simple, 4,915,200 bytes of LL128 and 524,288 of LL (NCCL, init.cc, device.h)',
      },
    },
  );
  return boundsOnGpu(gpu, ofNvidia);
}

// Memory of the loss beyond its saved activations.

/** Temporary logits; saved logits are counted with the activations. */
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

/** Temporary logits of a loss in float32 that saves its log-softmax. */
function fullLoss({ microBatch, context }: TrainingFitSetting, vocabulary: number): Bounds {
  const of = inputs({ batch: microBatch, context, vocabulary });
  const logits = mul(4, of.batch, of.context, of.vocabulary);
  return boundsOf(
    { label: 'temporary logits', unit: 'bytes', inputs: of },
    {
      lower: { formula: add(), source: 'a fused loss writes its gradient over the log-softmax' },
      expected: {
        formula: mul(2, logits),
        source:
          'the gradient of the log-softmax and that of the logits, in float32 (measured with PyTorch 2.13)',
      },
      upper: {
        formula: mul(3, logits),
        source: '… and the logits in float32, which a program keeps until the end of the step',
      },
    },
  );
}

/** Logits of a chunk of tokens, and the chunk's gradient of the head. */
function chunkedLoss(
  setting: TrainingFitSetting,
  { microBatches }: Parallelism,
  vocabulary: number,
  hidden: number,
): Bounds {
  const tokens = setting.microBatch * setting.context;
  const of = inputs({
    chunk: chunkOf(tokens, vocabulary, hidden),
    vocabulary,
    hidden,
    bytes: trainingBytes(setting.precision),
    micro_batches: microBatches,
  });
  return boundsOf(
    { label: 'temporary logits', unit: 'bytes', inputs: of },
    {
      lower: {
        formula: add(),
        source: 'a kernel fused with the head holds none in memory (arXiv 2411.09009)',
      },
      expected: {
        formula: mul(
          of.bytes,
          of.vocabulary,
          add(of.chunk, mul(min(1, sub(of.micro_batches, 1)), of.hidden)),
        ),
        source:
          'a chunk of tokens, 2^⌈log2(tokens / ⌈vocabulary / hidden⌉)⌉ tokens, overwritten by its gradient ' +
          '(Liger kernel, arXiv 2410.10989); after the first micro-batch, a second gradient of the head',
      },
      upper: {
        formula: add(
          mul(add(4, of.bytes), of.vocabulary, of.chunk),
          mul(4, of.vocabulary, of.hidden),
        ),
        source: '… assumed: a chunk in float32 too, and the gradient of the head in float32',
      },
    },
  );
}

/** Tokens per chunk: the power of two for which the logits have about as many values as the hidden states. */
const chunkOf = (tokens: number, vocabulary: number, hidden: number): number =>
  Math.min(tokens, 2 ** Math.ceil(Math.log2(Math.ceil(tokens / Math.ceil(vocabulary / hidden)))));
