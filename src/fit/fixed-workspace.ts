/** What a GPU's memory holds besides a model, whatever the model: of PyTorch and the libraries of NVIDIA. */
import type { Bounds } from '../budget/quantity.js';
import { boundsOf } from './bounds.js';

const MIB = 2 ** 20;

const NOT_COUNTED = {
  formula: '0',
  source: 'not counted: an implementation may do without',
} as const;

/** Context and kernels. */
export const contextBytes = (): Bounds =>
  boundsOf(
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
export const libraryBytes = (): Bounds =>
  boundsOf(
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
export function channelBytes(communicators: number): Bounds {
  const source =
    'NCCL_BUFFSIZE is 4 MiB, in each direction of each of up to 32 channels; usual: 16 (NCCL, environment variables)';
  return boundsOf(
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
}
