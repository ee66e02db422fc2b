/** Memory of a model of which only the weights are known. */
import type { FitVerdict } from '../fit/training/training-fit.js';

/** Bytes between which the memory lies. */
export interface MemoryRange {
  /** Bytes that it takes at least. @count */
  readonly low: number;
  /** Bytes that are usually enough. @count */
  readonly high: number;
}

/** Memory on one GPU, without knowledge of the layers. */
export interface WeightsMemory {
  /** Memory of a forward pass: the weights as they are stored, up to twice as much and 2 GB. */
  readonly inference: MemoryRange;
  /** State of a training with AdamW in mixed precision; activations come on top. @count */
  readonly trainingState: number;
}

/** Memory of a runtime; images and long inputs can take as much as the weights. */
const RUNTIME_BYTES = 2e9;

/** Weights and gradients in 16 bits, and a master copy with two moments in 32 bits. Rajbhandari et al., ZeRO, section 3.1. */
const TRAINING_BYTES = 16;

export const weightsMemory = ({
  parameters,
  bytes,
}: {
  readonly parameters: number;
  readonly bytes: number;
}): WeightsMemory => ({
  inference: { low: bytes, high: 2 * bytes + RUNTIME_BYTES },
  trainingState: TRAINING_BYTES * parameters,
});

/** @param usable Bytes of a GPU that a program can use. */
export const inferenceVerdict = ({ inference }: WeightsMemory, usable: number): FitVerdict =>
  inference.high <= usable ? 'fits' : inference.low <= usable ? 'may fit' : 'does not fit';

/** A training that has room for its state may fit: how much its activations take is unknown. */
export const trainingVerdict = ({ trainingState }: WeightsMemory, usable: number): FitVerdict =>
  trainingState < usable ? 'may fit' : 'does not fit';
