/**
 * What a GPU's memory holds besides a model, whatever the model. It is known of PyTorch on NVIDIA's libraries; of other
 * GPUs it is left out of what is expected, and taken for as much at most; a processor has neither driver nor
 * collectives, and its libraries' buffers are small.
 */
import { type Bounds, quantity } from '../budget/quantity.js';
import type { Gpu, GpuKind } from '../hardware/gpu.js';
import { boundsOf } from './bounds.js';

export const MIB = 2 ** 20;

const NOT_COUNTED = {
  formula: '0',
  source: 'not counted: an implementation may do without',
} as const;

type Known = (bounds: Bounds) => Bounds;

/** What the bounds that are known of NVIDIA's GPUs become. */
const BY_KIND = {
  nvidia: (bounds) => bounds,
  processor: (bounds) => {
    const nothing = nothingOf(bounds, 'a processor has no driver, and no such libraries');
    return { lower: nothing, expected: nothing, upper: nothing };
  },
  other: (bounds) => ({
    lower: bounds.lower,
    expected: nothingOf(bounds, 'left out: not known of this GPU'),
    upper: {
      ...bounds.upper,
      source: `not known of this GPU, assumed as on NVIDIA's: ${bounds.upper.source}`,
    },
  }),
} as const satisfies Record<GpuKind, Known>;

const nothingOf = ({ expected: { label, unit } }: Bounds, source: string) =>
  quantity({ label, unit, formula: '0', inputs: {}, source });

/** Those that only NVIDIA's libraries are known to have, as they are on a GPU. */
export const asOn = ({ kind }: Pick<Gpu, 'kind'>, ofNvidia: Bounds): Bounds =>
  BY_KIND[kind](ofNvidia);

/** Context and kernels. */
export const contextBytes = (gpu: Pick<Gpu, 'kind'>): Bounds => asOn(gpu, CONTEXT);

const CONTEXT = boundsOf(
  {
    label: 'driver context and kernels',
    unit: 'bytes',
    inputs: { usual: 500 * MIB, most: 1343 * MIB },
  },
  {
    lower: NOT_COUNTED,
    expected: {
      formula: 'usual',
      source: 'assumed, 500 MiB, as kernels are loaded when they are called (CUDA 12)',
    },
    upper: {
      formula: 'most',
      source:
        '1,343 MiB in use after the first kernel (transformers, "Anatomy of model training", on a V100)',
    },
  },
);

/** Workspaces of matrix products. */
export const libraryBytes = (gpu: Pick<Gpu, 'kind'>): Bounds => asOn(gpu, LIBRARIES);

const LIBRARIES = boundsOf(
  { label: 'workspace of matrix products', unit: 'bytes', inputs: { workspace: 32 * MIB } },
  {
    lower: NOT_COUNTED,
    expected: {
      formula: 'workspace',
      source: 'PyTorch gives cuBLAS 32 MiB on Hopper and 8 MiB before (CUDABlas.cpp)',
    },
    upper: { formula: '2 * workspace', source: '… and cuBLASLt as much again (CUDABlas.cpp)' },
  },
);

/** Buffers of NCCL for each way in which GPUs work together. */
export function channelBytes(communicators: number, gpu: Pick<Gpu, 'kind'>): Bounds {
  const source =
    'NCCL_BUFFSIZE is 4 MiB, in each direction of each of up to 32 channels; usual: 16 (NCCL, environment variables)';
  const ofNvidia = boundsOf(
    {
      label: 'buffers of collectives',
      unit: 'bytes',
      inputs: { communicators, buffer: 4 * MIB, channels: 16, most_channels: 32 },
    },
    {
      lower: NOT_COUNTED,
      expected: { formula: '2 * communicators * channels * buffer', source },
      upper: { formula: '2 * communicators * most_channels * buffer', source },
    },
  );
  return asOn(gpu, ofNvidia);
}
