/**
 * What training takes besides what it keeps: temporary values, buffers of libraries, and what the allocator makes of
 * it. `lower` is what no implementation does without, `expected` what the usual ones take, `upper` what plain ones
 * do.
 */
import type { LanguageModel } from '../architecture/layer.js';
import { largestBlock } from '../budget/activations.js';
import type { Bounds } from '../budget/quantity.js';
import { bytesIn } from '../budget/training.js';
import { boundsOf, sumBounds } from './bounds.js';
import { channelBytes, contextBytes, libraryBytes } from './fixed-workspace.js';
import { lossBytes } from './loss-workspace.js';
import type { Parallelism, Stage } from './parallelism.js';
import type { StageMemory } from './training.js';
import { activationSetting, CONVENTIONS, type TrainingFitSetting } from './training-setting.js';

interface Situation {
  readonly model: LanguageModel;
  readonly setting: TrainingFitSetting;
  readonly parallelism: Parallelism;
  readonly stage: Stage;
  readonly memory: StageMemory;
}

type Part = (situation: Situation) => Bounds | undefined;

const MIB = 1024 ** 2;

/** What each constant is, and who says so. */
const CONSTANTS = {
  /** Of PyTorch's DistributedDataParallel. */
  bucket: 25 * MIB,
  /** Values in a bucket of DeepSpeed's ZeRO, and how many there are with overlapped communication. */
  zeroBucket: { values: 5e8, overlapped: 4.5 },
  /** Values that ZeRO-3 of DeepSpeed keeps gathered at most. */
  liveParameters: 1e9,
  /** Share of reserved memory that is not in use. */
  fragmentation: { expected: 0.15, upper: 0.33 },
  /** To which the caching allocator rounds. */
  rounding: 512,
} as const;

const NONE = { formula: '0', source: 'an implementation may do without' } as const;

/** A communicator for each way in which GPUs work together. */
const communicators: Part = ({ setting, parallelism: { tensor, pipeline, replicas } }) => {
  const count = [tensor, pipeline, replicas].filter((gpus) => gpus > 1).length;
  return count === 0 ? undefined : channelBytes(count, setting.cluster.gpu);
};

/** Copies of gradients on their way to the other replicas. */
const buckets: Part = ({ setting, parallelism: { replicas }, stage }) => {
  if (replicas === 1) return undefined;
  const { bucket, zeroBucket } = CONSTANTS;
  const inputs = {
    parameters: stage.parameters.value,
    bytes: gradientBytesOf(setting),
    bucket,
    values: zeroBucket.values,
    buckets: zeroBucket.overlapped,
  };
  const shared = { label: 'buckets of gradients', unit: 'bytes', inputs } as const;
  if (setting.zero === 0) {
    return boundsOf(shared, {
      lower: NONE,
      expected: {
        formula: 'min(2 * bucket, bytes * parameters)',
        source:
          'two buckets of 25 MiB, gradients being views of them (PyTorch, DistributedDataParallel)',
      },
      upper: {
        formula: 'bytes * parameters',
        source:
          'all gradients once more, without gradient_as_bucket_view (PyTorch, DistributedDataParallel)',
      },
    });
  }
  return boundsOf(shared, {
    lower: NONE,
    expected: {
      formula: 'bytes * min(values, parameters)',
      source: 'reduce_bucket_size of 5e8 values (DeepSpeed, ZeRO)',
    },
    upper: {
      formula: 'bytes * min(2 * buckets * values, parameters * 2)',
      source:
        'with overlap_comm 4.5 of those, and of allgather_bucket_size (Hugging Face, DeepSpeed); at most all of both',
    },
  });
};

const gradientBytesOf = ({ precision, convention }: TrainingFitSetting): number =>
  CONVENTIONS[convention].gradientBytes ?? bytesIn(precision);

/** ZeRO-3 gathers the weights of what it computes; from ZeRO-2 on its gradients are whole until they are reduced. */
const gathered: Part = ({ setting, parallelism: { replicas }, stage }) => {
  if (replicas === 1 || setting.zero < 2) return undefined;
  const bytes = setting.zero === 3 ? bytesIn(setting.precision) : 0;
  return boundsOf(
    {
      label: 'gathered blocks',
      unit: 'bytes',
      inputs: {
        bytes,
        gradient_bytes: gradientBytesOf(setting),
        block: stage.largestBlock,
        parameters: stage.parameters.value,
        live: CONSTANTS.liveParameters,
        replicas,
      },
    },
    {
      lower: {
        formula: 'bytes * block * (replicas - 1) / replicas',
        source:
          'the weights of the block that is computed, but for its own part (arXiv 1910.02054)',
      },
      expected: {
        formula: 'bytes * min(2 * block, parameters) + gradient_bytes * block',
        source: 'the block, the next one, and the gradients of one before they are reduced',
      },
      upper: {
        formula:
          'bytes * max(min(live, parameters), min(2 * block, parameters)) + gradient_bytes * block',
        source: 'up to 1e9 values live (DeepSpeed, stage3_max_live_parameters)',
      },
    },
  );
};

/** Of the last stage alone. */
const loss: Part = ({ model, setting, parallelism, stage }) =>
  stage.to < model.blocks.length ? undefined : lossBytes(model, setting, parallelism);

/** Gradients of activations live while one block is passed backwards. */
const blockGradients: Part = ({ model, setting, stage: { from, to } }) => {
  const kept = largestBlock(model, {
    ...activationSetting(setting),
    recompute: 'none',
    stage: { from, to, microBatches: 1 },
  });
  return boundsOf(
    {
      label: 'gradients of the activations of a block',
      unit: 'bytes',
      inputs: { kept: kept.value },
    },
    {
      lower: NONE,
      expected: {
        formula: 'kept / 2',
        source:
          'each kept value of the largest block gets a gradient, and half are needed at a time',
      },
      upper: { formula: 'kept', source: 'each kept value of the largest block gets a gradient' },
    },
  );
};

/** Updating weights, PyTorch makes temporary values of all of them at once, when the activations are gone. */
const update: Part = ({ setting, parallelism: { replicas }, memory }) => {
  const activations = memory.activations.total.value;
  return boundsOf(
    {
      label: 'the update of the weights',
      unit: 'bytes',
      inputs: {
        parameters: memory.parameters.value,
        replicas: setting.zero === 0 ? 1 : replicas,
        activations,
      },
    },
    {
      lower: NONE,
      expected: {
        formula: 'max(0, 4 * parameters / replicas - activations)',
        source:
          'as large as the parameters in float32 (PyTorch, AdamW: foreach), where the activations left no room',
      },
      upper: {
        formula: 'max(0, 8 * parameters / replicas - activations)',
        source: '… and the gradients in float32',
      },
    },
  );
};

const rounding: Part = ({ stage }) =>
  boundsOf(
    {
      label: 'rounding of the allocator',
      unit: 'bytes',
      inputs: { tensors: stage.trained.length, block: CONSTANTS.rounding },
    },
    {
      lower: NONE,
      expected: {
        formula: '5 * tensors * block / 2',
        source: 'half a block of 512 bytes for each weight, gradient, copy and moment (PyTorch)',
      },
      upper: { formula: '5 * tensors * block', source: 'a block of 512 bytes for each (PyTorch)' },
    },
  );

/** In the order in which they are told. */
const PARTS = {
  context: ({ setting }) => contextBytes(setting.cluster.gpu),
  libraries: ({ setting }) => libraryBytes(setting.cluster.gpu),
  communicators,
  buckets,
  gathered,
  loss,
  blockGradients,
  update,
  rounding,
} as const satisfies Record<string, Part>;

/** Those that come and go in every step, and leave gaps. */
const MOVING = ['buckets', 'gathered', 'loss', 'blockGradients'] as const;

export interface Workspace {
  readonly parts: readonly { readonly part: string; readonly bytes: Bounds }[];
  readonly total: Bounds;
}

/** The workspace of a GPU of one stage. */
export function workspaceOf(situation: Situation): Workspace {
  const found = Object.fromEntries(
    Object.entries(PARTS).flatMap(([name, part]) => {
      const bytes = part(situation);
      return bytes === undefined ? [] : [[name, bytes]];
    }),
  );
  const named: Readonly<Record<string, Bounds>> = {
    ...found,
    fragmentation: fragmentation(situation.memory, found),
  };
  return {
    parts: Object.entries(named).map(([part, bytes]) => ({ part, bytes })),
    total: sumBounds('workspace', 'bytes', named, 'sum of the parts'),
  };
}

function fragmentation(
  { activations }: StageMemory,
  parts: Readonly<Record<string, Bounds>>,
): Bounds {
  const moving = (which: keyof Bounds) =>
    MOVING.reduce((sum, name) => sum + (parts[name]?.[which].value ?? 0), 0);
  const { expected, upper } = CONSTANTS.fragmentation;
  const source =
    'of reserved memory 15 % are not in use on average, and up to 33 % (arXiv 2401.08156); of what comes and ' +
    'goes: activations and temporary values';
  return boundsOf(
    {
      label: 'fragmentation',
      unit: 'bytes',
      inputs: {
        activations: activations.total.value,
        temporary: moving('expected'),
        most_temporary: moving('upper'),
        unused: expected,
        most_unused: upper,
      },
    },
    {
      lower: NONE,
      expected: { formula: '(activations + temporary) * unused / (1 - unused)', source },
      upper: {
        formula: '(activations + most_temporary) * most_unused / (1 - most_unused)',
        source,
      },
    },
  );
}
