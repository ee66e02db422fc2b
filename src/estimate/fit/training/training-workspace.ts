/**
 * Workspace of a training: temporary values, library buffers and allocator overhead. `lower` is required by every
 * implementation, `expected` is for usual ones, `upper` for simple ones.
 */

import { sumOf } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { inputWidth, memoized, outputWidth } from '../../../model/architecture/walk.js';
import type { Expression } from '../../../model/budget/expression.js';
import {
  add,
  div,
  inputs,
  inputsOf,
  max,
  min,
  mul,
  sub,
} from '../../../model/budget/expression.js';
import type { Bounds } from '../../../model/budget/figure.js';
import type { ActivationSetting } from '../../../model/budget/kernel-activations.js';
import { OTHER_PARTS } from '../../../model/budget/kernel-activations.js';
import type { Trained } from '../../../model/budget/optimizers.js';
import { OPTIMIZERS, PRECISIONS } from '../../../model/budget/optimizers.js';
import {
  activationsOf,
  type BlockInBackward,
  blocksInBackward,
} from '../../../model/budget/saved-activations.js';
import { trainingBytes } from '../../../model/budget/training-budget.js';
import { boundsOf, byBound, NOT_REQUIRED, sumBounds } from '../bounds.js';
import { exchangeBuffers } from '../parallelism/exchanges.js';
import type { Parallelism, Stage } from '../parallelism/parallelism.js';
import {
  channelBytes,
  contextBytes,
  fragmentationBytes,
  libraryBytes,
  MIB,
  roundingBytes,
} from './gpu-overhead.js';
import type { StageMemory } from './training-fit.js';
import type { TrainingFitSetting } from './training-setting.js';
import {
  activationSetting,
  DIVIDED_FROM,
  gradientBytesOf,
  tokensOfGpu,
} from './training-setting.js';
import { optimizerReplicas, updateBytes } from './update-memory.js';

export interface WorkspaceContext {
  readonly model: LanguageModel;
  readonly setting: TrainingFitSetting;
  /** Setting for the saved activations of the stage. */
  readonly kept: ActivationSetting;
  readonly parallelism: Parallelism;
  readonly stage: Stage;
  readonly memory: StageMemory;
}

type WorkspaceTerm = (situation: WorkspaceContext) => Bounds | undefined;

/** Constants of PyTorch and DeepSpeed. */
const CONSTANTS = {
  /** Bucket size of PyTorch's DistributedDataParallel, in bytes. */
  bucket: 25 * MIB,
  /** Values per bucket of DeepSpeed's ZeRO, and the number of buckets with overlapped communication. */
  zeroBucket: { values: 5e8, overlapped: 4.5 },
  /** Limit of gathered values in DeepSpeed's ZeRO-3. */
  liveParameters: 1e9,
} as const;

/** One communicator for each kind of parallelism; GPUs with the same weights have two where machines hold copies. */
const communicators: WorkspaceTerm = ({ setting, parallelism }) => {
  const { tensor, pipeline, shards, copies, context, expert } = parallelism;
  const kinds = [tensor, pipeline, shards, copies, context, expert];
  const count = kinds.filter((gpus) => gpus > 1).length;
  return count === 0 ? undefined : channelBytes(count, setting.cluster.gpu);
};

/** Copies of gradients for communication with other replicas. */
const buckets: WorkspaceTerm = ({ setting, parallelism: { shards, copies }, stage }) => {
  if (shards * copies === 1) return undefined;
  const { bucket, zeroBucket } = CONSTANTS;
  const of = inputs({
    parameters: stage.parameters.value,
    bytes: gradientBytesOf(setting),
    bucket,
    values: zeroBucket.values,
    buckets: zeroBucket.overlapped,
  });
  const shared = { label: 'buckets of gradients', unit: 'bytes', inputs: of } as const;
  if (setting.zero === 0) {
    return boundsOf(shared, {
      lower: NOT_REQUIRED,
      expected: {
        formula: min(mul(2, of.bucket), mul(of.bytes, of.parameters)),
        source:
          'two buckets of 25 MiB; gradients are views of them (PyTorch, DistributedDataParallel)',
      },
      upper: {
        formula: mul(of.bytes, of.parameters),
        source:
          'a second copy of all gradients, without gradient_as_bucket_view (PyTorch, DistributedDataParallel)',
      },
    });
  }
  return boundsOf(shared, {
    lower: NOT_REQUIRED,
    expected: {
      formula: mul(of.bytes, min(of.values, of.parameters)),
      source: 'reduce_bucket_size of 5e8 values (DeepSpeed, ZeRO)',
    },
    upper: {
      formula: mul(of.bytes, min(mul(2, of.buckets, of.values), mul(of.parameters, 2))),
      source:
        'with overlap_comm 4.5 reduce and allgather buckets (Hugging Face, DeepSpeed); at most all values',
    },
  });
};

/** Gathered weights of current blocks (ZeRO-3), and whole gradients before their reduction (from ZeRO-2 on). */
const gathered: WorkspaceTerm = ({ setting, parallelism: { shards: replicas }, stage }) => {
  const isFetched = setting.offload?.part === 'parameters';
  if (!isFetched && (replicas === 1 || setting.zero < 2)) return undefined;
  const trained = Number(stage.parameters.value);
  const of = inputs({
    bytes: setting.zero === 3 || isFetched ? trainingBytes(setting.precision) : 0,
    gradient_bytes: gradientBytesOf(setting),
    block: stage.largestBlock,
    parameters: trained + trainedElements(stage.frozen ?? []),
    live: CONSTANTS.liveParameters,
    replicas,
  });
  const reduced = stage.frozen
    ? inputs({ trained_block: Math.min(stage.largestBlock, trained) }).trained_block
    : of.block;
  const twoBlocks = min(mul(2, of.block), of.parameters);
  const gradients = mul(of.gradient_bytes, reduced);
  return boundsOf(
    { label: 'gathered blocks', unit: 'bytes', inputs: of },
    {
      lower: {
        formula: isFetched
          ? mul(of.bytes, of.block)
          : div(mul(of.bytes, of.block, sub(of.replicas, 1)), of.replicas),
        source: isFetched
          ? 'weights of the current block, from system memory'
          : 'weights of the current block, without its own part (arXiv 1910.02054)',
      },
      expected: {
        formula: add(mul(of.bytes, twoBlocks), gradients),
        source: 'weights of the current and the next block, and unreduced gradients of one',
      },
      upper: {
        formula: add(mul(of.bytes, max(min(of.live, of.parameters), twoBlocks)), gradients),
        source: 'up to 1e9 gathered values (DeepSpeed, stage3_max_live_parameters)',
      },
    },
  );
};

/** Tokens on their way to experts, and keys of other parts of a sequence. */
const exchanged: WorkspaceTerm = (situation) => {
  const { expert, context } = situation.parallelism;
  if (expert === 1 && context === 1) return undefined;
  const { tokens, keys, allKeys } = exchangeBuffers(situation);
  return boundsOf(
    {
      label: 'buffers of exchanges',
      unit: 'bytes',
      inputs: { ...inputsOf(tokens), ...inputsOf(keys), ...inputsOf(allKeys) },
    },
    {
      lower: NOT_REQUIRED,
      expected: {
        formula: add(tokens, mul(2, keys)),
        source:
          'tokens for experts before they are kept, of one layer; keys and values of two parts of a sequence, one in ' +
          'use and one on its way (arXiv 2310.01889)',
      },
      upper: {
        formula: add(mul(4, tokens), mul(3, allKeys)),
        source:
          'tokens and results, with room for twice the usual number at some experts; keys and values of the whole ' +
          'sequence, and their gradients (torchtitan, context_parallel_rotate_method allgather)',
      },
    },
  );
};

/** Temporary logits, on the last stage only. */
const loss: WorkspaceTerm = ({ model, setting, parallelism, stage }) =>
  stage.to < model.blocks.length ? undefined : lossBytes(model, setting, parallelism);

/** Activations that usual programs save beyond those needed for gradients, because they fuse less. */
const unfused: WorkspaceTerm = ({ model, setting, kept, memory }) => {
  const total = (wish: Pick<ActivationSetting, 'unfused' | 'repeated'>) =>
    activationsOf(model, { ...kept, ...wish }).total.value;
  const most = total({ unfused: true, repeated: true });
  const isPlain = setting.attention === 'plain';
  const isFusedByCompiler = setting.recompute === 'compiled';
  const counted = memory.activations.total.value;
  const of = inputs({
    counted,
    usual: isFusedByCompiler ? counted : isPlain ? most : total({ unfused: true, repeated: false }),
    most,
  });
  return boundsOf(
    { label: OTHER_PARTS.unfused, unit: 'bytes', inputs: of },
    {
      lower: NOT_REQUIRED,
      expected: {
        formula: sub(of.usual, of.counted),
        source:
          (isFusedByCompiler
            ? 'norms and activations in fused kernels of a compiler, which keep none; otherwise '
            : '') +
          'norms and activations in elementary operations, which each keep values; with plain attention ' +
          'keys and values repeated for each query head (measured with transformers 5.18 and PyTorch 2.13)',
      },
      upper: {
        formula: sub(of.most, of.counted),
        source: '… and with any attention, as with a mask (transformers)',
      },
    },
  );
};

/** Small permanent tensors. */
const small: WorkspaceTerm = ({ setting, stage }) => {
  const of = inputs({
    batch: setting.microBatch,
    context: tokensOfGpu(setting),
    tensors: stage.tensors,
  });
  const ids = mul(8, of.batch, of.context);
  const counters = mul(4, of.tensors);
  return boundsOf(
    { label: 'token ids, and counters of the optimizer', unit: 'bytes', inputs: of },
    {
      lower: NOT_REQUIRED,
      expected: {
        formula: add(ids, counters),
        source: 'int64 ids, and a float32 step for each tensor (PyTorch, AdamW)',
      },
      upper: {
        formula: add(mul(3, ids), counters),
        source: '… and labels and positions, stored separately',
      },
    },
  );
};

/** Gradients of embedding and head before they are added to the stored gradients. */
const added: WorkspaceTerm = ({ model, setting, parallelism, stage: { from, to, frozen } }) => {
  const { embedding, head, blocks } = model;
  if (frozen) return undefined;
  const isTied = embedding.weight === head.weight && from === 0 && to === blocks.length;
  const of = inputs({
    bytes: gradientBytesOf(setting),
    rows: Math.ceil(outputWidth(head) / parallelism.tensor),
    hidden: inputWidth(head),
    gradients: (isTied ? 2 : 0) + (parallelism.microBatches > 1 ? 1 : 0),
  });
  if (of.gradients.value === 0 || (from > 0 && to < blocks.length)) return undefined;
  const shared = {
    formula: mul(of.gradients, of.bytes, of.rows, of.hidden),
    source:
      'a tied weight has a gradient as a head, one as an embedding, and their sum, of which one stays; after the first ' +
      'micro-batch, one more is added to the stored gradient (measured with PyTorch 2.13)',
  };
  return boundsOf(
    { label: 'gradients of embedding and head, to be added', unit: 'bytes', inputs: of },
    { lower: NOT_REQUIRED, expected: shared, upper: shared },
  );
};

/** Live values of a block in its backward pass beyond the saved ones: see `BlockInBackward`. */
const blockGradients: WorkspaceTerm = ({ model, setting, stage: { from, to } }) => {
  const blocks = blocksInBackward(model, {
    ...activationSetting(setting),
    stage: { from, to, microBatches: 1 },
  }).map(workspaceOfBlock);
  return byBound((bound) =>
    blocks.map((each) => each[bound]).reduce((a, b) => (b.value > a.value ? b : a)),
  );
};

function workspaceOfBlock(block: BlockInBackward): Bounds {
  const of = inputs({
    layers: block.layers,
    score_gradients: block.scoreGradients,
    scan_states: block.scanStates,
    recomputed: block.recomputed,
  });
  // Decay, B·Δ and state are counted together, each a third.
  const gradients = (layers: Expression, states: number) =>
    add(layers, div(mul(states, of.scan_states), 3), of.score_gradients, of.recomputed);
  return boundsOf(
    { label: 'gradients of the activations of a block', unit: 'bytes', inputs: of },
    {
      lower: NOT_REQUIRED,
      expected: {
        formula: gradients(div(of.layers, 2), 4),
        source:
          'each value that the largest block keeps gets a gradient, and half are needed at a time; of plain attention ' +
          'those of the softmax and of what it is given; of a plain scan the gradients of decay and B·Δ, and for each ' +
          'of them one of a single step, as large (measured with PyTorch 2.13); scores and scan states of the block ' +
          'where they are recomputed',
      },
      upper: {
        formula: gradients(of.layers, 5),
        source:
          'a gradient of each value that the largest block keeps, of plain attention two of each score, of a plain ' +
          'scan one more of those states while they are added up, and what of them is recomputed',
      },
    },
  );
}

/** Allocator rounding of permanent tensors: weight, gradient, float32 copy and optimizer state. */
const rounding = ({ setting, parallelism: { shards }, stage }: WorkspaceContext): Bounds => {
  const partOf = (name: keyof typeof DIVIDED_FROM) =>
    setting.zero >= DIVIDED_FROM[name] ? shards : 1;
  const { masterBytes } = PRECISIONS[setting.precision];
  const master = masterBytes > 0 ? [masterBytes] : [];
  const bytesPerValue = [
    trainingBytes(setting.precision) / partOf('weights'),
    gradientBytesOf(setting) / partOf('gradients'),
    ...[...master, ...OPTIMIZERS[setting.optimizer].tensors].map(
      (each) => each / partOf('optimizer'),
    ),
  ];
  const tensors = [...tensorsBySize(stage)].flatMap(([elements, count]) =>
    bytesPerValue.map((each) => ({ count, bytes: each * elements })),
  );
  const [weightBytes = 0] = bytesPerValue;
  const frozen = (stage.frozen ?? []).map(({ elements, count = 1 }) => ({
    count,
    bytes: weightBytes * elements,
  }));
  return roundingBytes(setting.cluster.gpu, [...tensors, ...frozen]);
};

const tensorsBySize = memoized(({ trained }: Stage): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>();
  for (const { elements, count = 1 } of trained) {
    counts.set(elements, (counts.get(elements) ?? 0) + count);
  }
  return counts;
});

const trainedElements = (tensors: readonly Trained[]) =>
  sumOf(tensors, ({ elements, count = 1 }) => count * elements);

/** Parts in output order. */
const PARTS = {
  context: ({ setting }) => contextBytes(setting.cluster.gpu),
  libraries: ({ setting }) => libraryBytes(setting.cluster.gpu),
  communicators,
  buckets,
  gathered,
  exchanged,
  unfused,
  loss,
  blockGradients,
  added,
  small,
} as const satisfies Record<string, WorkspaceTerm>;

/** Parts of the backward pass that are free before the update. */
const BACKWARD = ['gathered', 'unfused', 'loss', 'blockGradients', 'added'] as const;

export interface Workspace {
  readonly parts: readonly { readonly part: string; readonly bytes: Bounds }[];
  readonly total: Bounds;
}

/**
 * Workspace of a GPU of one stage, at the larger of two moments: the backward pass or the update of the weights. Both
 * moments include buckets and the gaps left by the backward pass. The tensors of the update are the same in each step
 * and leave no gaps.
 */
export function workspaceOf(situation: WorkspaceContext): Workspace {
  const found: Readonly<Record<string, Bounds>> = Object.fromEntries(
    Object.entries(PARTS).flatMap(([name, part]) => {
      const bytes = part(situation);
      return bytes === undefined ? [] : [[name, bytes]];
    }),
  );
  const { setting, parallelism, memory } = situation;
  const activations = memory.activations.total.value;
  const temporary = (which: keyof Bounds) =>
    sumOf(BACKWARD, (name) => found[name]?.[which].value ?? 0);
  const update = updateBytes({
    optimizer: setting.optimizer,
    gradientBytes: gradientBytesOf(setting),
    // The processor updates the weights in system memory.
    parameters: setting.offload === undefined ? memory.parameters.value : 0,
    replicas: optimizerReplicas(setting, parallelism),
    activations,
    temporary: { expected: temporary('expected'), upper: temporary('upper') },
  });
  // The loss is computed before the backward pass of the blocks.
  const moving = (which: 'expected' | 'upper') => {
    const of = (name: string) => found[name]?.[which].value ?? 0;
    const kept = Number(activations) + of('unfused') + of('gathered') + of('buckets');
    return kept + Math.max(of('loss'), of('blockGradients'));
  };
  const named: Readonly<Record<string, Bounds>> = {
    ...found,
    update,
    rounding: rounding(situation),
    fragmentation: fragmentationBytes(setting.cluster.gpu, {
      expected: moving('expected'),
      upper: moving('upper'),
    }),
  };
  return {
    parts: Object.entries(named).map(([part, bytes]) => ({ part, bytes })),
    total: sumBounds('workspace', named, 'sum of the parts'),
  };
}

// Memory of the loss beyond its saved activations.

/** Temporary logits; saved logits are counted with the activations. */
function lossBytes(
  model: LanguageModel,
  setting: TrainingFitSetting,
  parallelism: Parallelism,
): Bounds {
  const vocabulary = Math.ceil(outputWidth(model.head) / parallelism.tensor);
  switch (setting.loss) {
    case 'full':
      return fullLoss(setting, vocabulary);
    case 'fused':
      return fusedLoss(setting, vocabulary);
    case 'chunked':
      return chunkedLoss(setting, parallelism, vocabulary, inputWidth(model.head));
  }
}

/** Temporary logits of a loss in float32 that saves its log-softmax. */
function fullLoss(setting: TrainingFitSetting, vocabulary: number): Bounds {
  const of = inputs({ batch: setting.microBatch, context: tokensOfGpu(setting), vocabulary });
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

/** Zero, or a copy of the logits in float32 of a program that widens them before the kernel. */
function fusedLoss(setting: TrainingFitSetting, vocabulary: number): Bounds {
  const of = inputs({ batch: setting.microBatch, context: tokensOfGpu(setting), vocabulary });
  const inPlace = {
    formula: add(),
    source: 'the gradient is written over the logits (Liger kernel, arXiv 2410.10989)',
  };
  return boundsOf(
    { label: 'temporary logits', unit: 'bytes', inputs: of },
    {
      lower: inPlace,
      expected: inPlace,
      upper: {
        formula: mul(4, of.batch, of.context, of.vocabulary),
        source: 'a copy of the logits in float32, as of a model that widens its output',
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
  const tokens = setting.microBatch * tokensOfGpu(setting);
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
