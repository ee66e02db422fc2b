import { sumOf } from '../../../base/values.js';
import type { Input } from '../../../model/budget/expression.js';
import { add, div, inputs, mul, sub } from '../../../model/budget/expression.js';
import type { Bounds } from '../../../model/budget/figure.js';
import { quantity } from '../../../model/budget/figure.js';
import type { Gpu, GpuKind } from '../../hardware/gpu.js';
import { isFromHopperOn } from '../../hardware/gpu.js';
import { boundsOf, NOT_REQUIRED } from '../bounds.js';

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
    expected: nothingOf(bounds, 'not counted: unknown for this GPU'),
    upper: bounds.upper.reworded({
      source: `unknown for this GPU, assumed as on NVIDIA's: ${bounds.upper.source}`,
    }),
  }),
} as const satisfies Record<GpuKind, BoundsAdjustment>;

const nothingOf = ({ expected: { label, unit } }: Bounds, source: string) =>
  quantity({ label, unit, formula: add(), source });

/** Bounds on a GPU, for parts known only of NVIDIA's libraries. */
const boundsOnGpu = ({ kind }: Pick<Gpu, 'kind'>, ofNvidia: Bounds): Bounds =>
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

/** Identity of the libraries on a GPU: GPUs with the same one have the same overhead. */
export const libraryKey = ({ kind, architecture }: Pick<Gpu, 'kind' | 'architecture'>): string =>
  `${kind} ${architecture !== undefined && !isFromHopperOn(architecture)}`;

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

// Overhead of PyTorch's CUDA allocator in training and serving (CUDACachingAllocator). Sizes are rounded up to 512
// bytes. Tensors up to 1 MiB come from segments of 2 MiB, tensors below 10 MiB from segments of 20 MiB. Larger ones
// have their own segments, rounded up to 2 MiB. Temporary tensors also leave gaps.

/** Rounding of sizes, in bytes. */
const STEP = 512;

/** Largest tensor of each kind of shared segment, and the segment size. */
const SHARED = [
  { most: MIB, segment: 2 * MIB },
  { most: 10 * MIB - STEP, segment: 20 * MIB },
] as const;

/** Rounding of segments for larger tensors. */
const LARGE_STEP = 2 * MIB;

/** Share of reserved memory lost in gaps, measured as possible savings. */
const UNUSED = { expected: 0.15, upper: 0.33 };

const SOURCE =
  'sizes rounded to 512 bytes; up to 1 MiB from segments of 2 MiB, below 10 MiB of 20 MiB, others in steps of 2 MiB ' +
  '(PyTorch, CUDACachingAllocator)';

/** Tensors of the same size. */
export interface AllocatedTensors {
  readonly count: number;
  readonly bytes: number;
}

/**
 * Reserved memory for permanent tensors, beyond their bytes. At most, tensors of each size fill their own segments,
 * with unused ends. At best, other tensors fill those ends. The last segment of each kind can be nearly empty.
 */
export function roundingBytes(
  gpu: Pick<Gpu, 'kind'>,
  tensors: readonly AllocatedTensors[],
): Bounds {
  const total = (sizeOf: (bytes: number) => number) =>
    sumOf(tensors, ({ count, bytes }) => count * sizeOf(bytes));
  const lastSegments = sumOf(
    SHARED.filter((shared) => tensors.some(({ bytes }) => sharedBy(bytes) === shared)),
    ({ segment }) => segment,
  );
  const of = inputs({
    bytes: total((bytes) => bytes),
    rounded: total(roundedSize),
    alone: total(shareOfSegment),
    last_segments: lastSegments,
  });
  const ofNvidia = boundsOf(
    { label: 'rounding of the allocator', unit: 'bytes', inputs: of },
    {
      lower: NOT_REQUIRED,
      expected: {
        formula: sub(div(add(of.rounded, of.alone, of.last_segments), 2), of.bytes),
        source: `half of the ends of segments filled by other tensors, and half of the last segments: ${SOURCE}`,
      },
      upper: {
        formula: sub(add(of.alone, of.last_segments), of.bytes),
        source: `tensors of each size in segments of their own: ${SOURCE}`,
      },
    },
  );
  return boundsOnGpu(gpu, ofNvidia);
}

const sharedBy = (bytes: number) => SHARED.find(({ most }) => roundedUp(bytes, STEP) <= most);

const roundedUp = (bytes: number, step: number): number => Math.ceil(bytes / step) * step;

const roundedSize = (bytes: number): number =>
  roundedUp(bytes, sharedBy(bytes) === undefined ? LARGE_STEP : STEP);

/** Bytes of a segment per tensor, if the segment holds only tensors of this size. */
function shareOfSegment(bytes: number): number {
  const size = roundedSize(bytes);
  const segment = sharedBy(bytes)?.segment ?? size;
  return segment / Math.floor(segment / size);
}

/** Gaps left by temporary tensors, from their size for each bound. */
export function fragmentationBytes(
  gpu: Pick<Gpu, 'kind'>,
  moving: Readonly<Record<'expected' | 'upper', number>>,
): Bounds {
  const source =
    '15% of reserved memory is in gaps, at most 33%: joining gaps saved GMLake 9.2 GB on average, and up to 25 GB, of an ' +
    'A100 with 80 GB (arXiv 2401.08156); gaps that remain even then are not counted; applied to activations and ' +
    'temporary values';
  const of = inputs({
    moving: moving.expected,
    most_moving: moving.upper,
    unused: UNUSED.expected,
    most_unused: UNUSED.upper,
  });
  const gaps = (used: Input, unused: Input) => div(mul(used, unused), sub(1, unused));
  const ofNvidia = boundsOf(
    { label: 'fragmentation', unit: 'bytes', inputs: of },
    {
      lower: NOT_REQUIRED,
      expected: { formula: gaps(of.moving, of.unused), source },
      upper: { formula: gaps(of.most_moving, of.most_unused), source },
    },
  );
  return boundsOnGpu(gpu, ofNvidia);
}
