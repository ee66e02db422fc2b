/**
 * What PyTorch's allocator for CUDA makes of tensors, in training and in serving alike (CUDACachingAllocator). Sizes are
 * rounded up to 512 bytes. Those of up to 1 MiB are cut from segments of 2 MiB, those below 10 MiB from segments of 20
 * MiB; larger ones have segments of their own, rounded up to 2 MiB. What comes and goes leaves gaps besides.
 */
import type { Bounds } from '../budget/quantity.js';
import type { Gpu } from '../hardware/gpu.js';
import { boundsOf } from './bounds.js';
import { asOn } from './fixed-workspace.js';

const MIB = 2 ** 20;

/** To which sizes are rounded, and for large ones segments. */
const STEP = 512;
const LARGE_STEP = 2 * MIB;

/** Sizes that share a segment with others. */
const SMALL = { most: MIB, segment: 2 * MIB };
const MEDIUM = { below: 10 * MIB, segment: 20 * MIB };

/** Share of reserved memory that is not in use. */
const UNUSED = { expected: 0.15, upper: 0.33 };

const SOURCE =
  'sizes rounded to 512 bytes; up to 1 MiB from segments of 2 MiB, below 10 MiB of 20 MiB, others in steps of 2 MiB ' +
  '(PyTorch, CUDACachingAllocator)';

const NONE = { formula: '0', source: 'an implementation may do without' } as const;

/** So many tensors of a size. */
export interface Allotted {
  readonly count: number;
  readonly bytes: number;
}

/**
 * What is reserved for tensors that stay, beyond their bytes. What is left at the end of a segment of equal tensors is
 * less than one of at least two of them: at most half of what is filled, and a seventh on average over tensors between a
 * twentieth and half of a segment. The last segment of each size can be as good as empty.
 */
export function roundingBytes(gpu: Pick<Gpu, 'kind'>, tensors: readonly Allotted[]): Bounds {
  const isSmall = ({ bytes }: Allotted) => bytes <= SMALL.most;
  const sharing = tensors.filter(({ bytes }) => bytes < MEDIUM.below);
  const large = tensors.filter(({ bytes }) => bytes >= MEDIUM.below);
  const lastSegments =
    (sharing.some(isSmall) ? SMALL.segment : 0) + (sharing.every(isSmall) ? 0 : MEDIUM.segment);
  const ofNvidia = boundsOf(
    {
      label: 'rounding of the allocator',
      unit: 'bytes',
      inputs: {
        tensors: countOf(sharing),
        step: STEP,
        bytes: sharing.reduce((sum, { count, bytes }) => sum + count * bytes, 0),
        last_segments: lastSegments,
        large: countOf(large),
        large_step: LARGE_STEP,
      },
    },
    {
      lower: NONE,
      expected: {
        formula: '(tensors * step + large * large_step + last_segments) / 2 + bytes / 7',
        source: `half a step for each tensor, half of the last segments, and what is left at the ends of others: ${SOURCE}`,
      },
      upper: {
        formula: 'tensors * (3 * step / 2) + large * large_step + last_segments + bytes / 2',
        source: `a whole step for each, and half as much again at the ends, as equal tensors can leave there: ${SOURCE}`,
      },
    },
  );
  return asOn(gpu, ofNvidia);
}

const countOf = (tensors: readonly Allotted[]): number =>
  tensors.reduce((sum, { count }) => sum + count, 0);

/** Gaps between what comes and goes, of which there is so much by each bound. */
export function fragmentationBytes(
  gpu: Pick<Gpu, 'kind'>,
  moving: Readonly<Record<'expected' | 'upper', number>>,
): Bounds {
  const source =
    'of reserved memory 15 % are not in use on average, and up to 33 % (arXiv 2401.08156); of what comes and goes: ' +
    'activations and temporary values, when they are most';
  const ofNvidia = boundsOf(
    {
      label: 'fragmentation',
      unit: 'bytes',
      inputs: {
        moving: moving.expected,
        most_moving: moving.upper,
        unused: UNUSED.expected,
        most_unused: UNUSED.upper,
      },
    },
    {
      lower: NONE,
      expected: { formula: 'moving * unused / (1 - unused)', source },
      upper: { formula: 'most_moving * most_unused / (1 - most_unused)', source },
    },
  );
  return asOn(gpu, ofNvidia);
}
