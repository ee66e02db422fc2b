/** Answers about models that no family describes. */
import type { RepositoryWeights } from '../../input/repository/repository.js';
import { COMMON_HARDWARE } from '../fit/common-hardware.js';
import type { FitVerdict } from '../fit/training/training-fit.js';
import { capacityOf, type Gpu, withReserved } from '../hardware/gpu.js';
import {
  inferenceVerdict,
  trainingVerdict,
  type WeightsMemory,
  weightsMemory,
} from './weights-memory.js';

/**
 * Parameters and bytes of a repository that no family describes, from the headers of its weights.
 * @answer minimind profile|inspect --json, for a model that no family describes
 */
export interface WeightsResult extends RepositoryWeights {
  readonly schema: 'minimind/weights@1';
  /** Reason for the missing description. */
  readonly reason: string;
  /** Preset or published model with the same tensors, for weights without a config; absent without one. */
  readonly like?: string;
  /** Memory on one GPU. */
  readonly memory: WeightsMemory;
}

/** Verdicts for one GPU. */
export interface WeightsFitRow {
  /** Name for `--gpu`. */
  readonly name: string;
  /** Name for people. */
  readonly title: string;
  /** Usable memory in bytes. */
  readonly memoryBytes: number;
  /** Verdict on a forward pass. */
  readonly inference: FitVerdict;
  /** Verdict on the state of a training. */
  readonly training: FitVerdict;
}

/**
 * GPUs on which the weights of a repository fit that no family describes.
 * @answer minimind fit --json, for a model that no family describes
 */
export interface WeightsFitResult {
  readonly schema: 'minimind/weights-fit@1';
  /** Path as the user wrote it. */
  readonly file: string;
  /** Class of the model or of the pipeline; null without one. */
  readonly class: string | null;
  /** Reason for the missing description. */
  readonly reason: string;
  /** Parameters. @count */
  readonly parameters: number;
  /** Bytes of the weights. @count */
  readonly bytes: number;
  /** Memory on one GPU. */
  readonly memory: WeightsMemory;
  /** A row for each GPU, by growing memory. */
  readonly rows: readonly WeightsFitRow[];
}

/** A model of a comparison, with or without a description. */
export interface ComparedWeights {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Family, or the class of a model that no family describes; null without one. */
  readonly kind: string | null;
  /** Whether a family describes the model. */
  readonly isDescribed: boolean;
  /** Parameters. @count */
  readonly parameters: number;
  /** Bytes of the weights: as they are stored, or in bf16 for a config. @count */
  readonly bytes: number;
  /** Element types of the weights. */
  readonly dtypes: readonly string[];
}

/**
 * Sizes of models, of which a family does not describe at least one.
 * @answer minimind compare --json, with a model that no family describes
 */
export interface WeightsComparison {
  readonly schema: 'minimind/weights-comparison@1';
  /** A row for each model, in the given order. */
  readonly rows: readonly ComparedWeights[];
}

export const weightsResult = (
  weights: RepositoryWeights,
  { reason, like }: { readonly reason: string; readonly like?: string | undefined },
): WeightsResult => ({
  schema: 'minimind/weights@1',
  reason,
  ...(like !== undefined && { like }),
  ...weights,
  memory: weightsMemory(weights),
});

/** @param options.gpus GPUs of the question; none: common ones. */
export function weightsFit(
  { file, class: kind, parameters, bytes, memory, reason }: WeightsResult,
  {
    gpus,
    reservedBytes,
  }: { readonly gpus: readonly Gpu[]; readonly reservedBytes: number | undefined },
): WeightsFitResult {
  const common = COMMON_HARDWARE.filter((each) => each.gpus === 1).map((each) => each.gpu);
  const rows = (gpus.length > 0 ? gpus : common).map((each): WeightsFitRow => {
    const usable = capacityOf(withReserved(each, each.reservedBytes ?? reservedBytes)).value;
    return {
      name: each.name,
      title: each.title,
      memoryBytes: usable,
      inference: inferenceVerdict(memory, usable),
      training: trainingVerdict(memory, usable),
    };
  });
  const known = { file, class: kind, reason, parameters, bytes, memory };
  return { schema: 'minimind/weights-fit@1', ...known, rows };
}
