/**
 * Overhead of PyTorch's CUDA allocator in training and serving (CUDACachingAllocator). Sizes are rounded up to 512
 * bytes. Tensors up to 1 MiB come from segments of 2 MiB, tensors below 10 MiB from segments of 20 MiB. Larger ones
 * have their own segments, rounded up to 2 MiB. Temporary tensors also leave gaps.
 */
import { add, div, type Input, inputs, mul, sub } from '../../budget/expression.js';
import type { Bounds } from '../../budget/figure.js';
import type { Gpu } from '../../hardware/gpu.js';
import { sumOf } from '../../text/words.js';
import { boundsOf } from '../bounds.js';
import { boundsOnGpu, MIB } from './fixed-workspace.js';

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

const NONE = { formula: add(), source: 'not required' } as const;

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
      lower: NONE,
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
    'of reserved memory 15% are in gaps, and up to 33 %: so much less of it had gaps when GMLake joined them, 9.2 GB on ' +
    'average and 25 GB at most of an A100 with 80 GB (arXiv 2401.08156); what is left in gaps even then is not known. Of ' +
    'what comes and goes: activations and temporary values';
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
      lower: NONE,
      expected: { formula: gaps(of.moving, of.unused), source },
      upper: { formula: gaps(of.most_moving, of.most_unused), source },
    },
  );
  return boundsOnGpu(gpu, ofNvidia);
}
