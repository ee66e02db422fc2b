/** Axes of serving beside tensor parallelism: groups with a copy of the attention, experts, stages, parts of a context. */

import { usageError } from '../../../base/errors.js';
import { setting as settingText } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { memoizedBy } from '../../../model/architecture/walk.js';
import { primitivesOf } from '../../../model/operations/lower.js';
import { canCutSequences, dividedExperts } from '../parallelism/model-axes.js';

/** Axes of a replica; those left out are 1. */
export interface ServingAxes {
  /** GPUs that share each layer. @integer @minimum 1 */
  readonly tensorParallel: number;
  /**
   * Groups of such GPUs that each have a copy of the attention and sequences of their own, and share the experts (vLLM,
   * data_parallel_deployment.md; SGLang, --enable-dp-attention).
   * @integer @minimum 1
   */
  readonly dataParallelAttention?: number | undefined;
  /** GPUs that each have some of the experts whole: all of a stage. @integer @minimum 1 */
  readonly expertParallel?: number | undefined;
  /** Stages of consecutive blocks, each on GPUs of its own. @integer @minimum 1 */
  readonly pipelineParallel?: number | undefined;
  /**
   * Parts of the cache of a sequence, on GPUs that share its layers and would hold copies of it (vLLM and SGLang, decode
   * context parallelism).
   * @integer @minimum 1
   */
  readonly contextParallel?: number | undefined;
}

/** A setting of one GPU that shares nothing. */
export function withoutAxes<Setting extends ServingAxes>(setting: Setting): Setting {
  return {
    ...setting,
    tensorParallel: 1,
    dataParallelAttention: undefined,
    expertParallel: undefined,
    pipelineParallel: undefined,
    contextParallel: undefined,
  };
}

/** GPUs of a stage. */
export const gpusOfStage = ({ tensorParallel, dataParallelAttention = 1 }: ServingAxes): number =>
  tensorParallel * dataParallelAttention;

/** GPUs of a replica. */
export const gpusOfReplica = (axes: ServingAxes): number =>
  gpusOfStage(axes) * (axes.pipelineParallel ?? 1);

/** The axes that say how many GPUs hold a replica. */
export function axesOfReplica(
  axes: ServingAxes,
): readonly ('tensorParallel' | 'dataParallelAttention' | 'pipelineParallel')[] {
  const names = (['tensorParallel', 'dataParallelAttention', 'pipelineParallel'] as const).filter(
    (name) => (axes[name] ?? 1) > 1,
  );
  return names.length === 0 ? ['tensorParallel'] : names;
}

/** Axes of equal values have equal keys. */
export const axesKey = (axes: ServingAxes): string =>
  [
    axes.tensorParallel,
    axes.dataParallelAttention ?? 1,
    axes.expertParallel ?? 1,
    axes.pipelineParallel ?? 1,
    axes.contextParallel ?? 1,
  ].join();

/** Sequences of a replica whose cache a GPU has: those of its group. */
export const sequencesOfGroup = (
  { dataParallelAttention = 1 }: ServingAxes,
  batch: number,
): number => Math.ceil(batch / dataParallelAttention);

/**
 * Sequences that a GPU computes at a time: those of its group, of which each stage of a pipeline has a part. A step of all
 * stages, one after the other, then takes as long as one GPU with all of the blocks.
 */
export const sequencesOfStep = (axes: ServingAxes, batch: number): number =>
  Math.ceil(sequencesOfGroup(axes, batch) / (axes.pipelineParallel ?? 1));

/** Sharing of the routed experts: parts of each, or whole ones. */
export interface ExpertSharing {
  /** GPUs that share each expert. */
  readonly tensor: number;
  /** GPUs that each have some experts. */
  readonly whole: number;
}

export const expertSharing = (axes: ServingAxes): ExpertSharing =>
  (axes.expertParallel ?? 1) > 1
    ? { tensor: 1, whole: axes.expertParallel ?? 1 }
    : { tensor: gpusOfStage(axes), whole: 1 };

/** Experts on the fullest GPU, as a share of all. */
export const shareOfExperts = (experts: number, { whole }: ExpertSharing): number =>
  whole === 1 || experts === 0 ? 1 : Math.ceil(experts / whole) / experts;

/** Blocks of each stage. */
export const servingStages = memoizedBy(
  (stages: number) => stages,
  (model: LanguageModel, stages): readonly LanguageModel[] => {
    const border = (index: number) => Math.floor((model.blocks.length * index) / stages);
    return Array.from({ length: stages }, (_, stage) => ({
      ...model,
      blocks: model.blocks.slice(border(stage), border(stage + 1)),
    }));
  },
);

/** @throws UserError for an axis of the experts and a model without any. */
export function requireExpertsFor(
  model: LanguageModel,
  name: 'expertParallel' | 'dataParallelAttention',
): void {
  if (dividedExperts(model) > 0) return;
  throw usageError(
    `${settingText(name)} requires a model with routed experts`,
    name === 'expertParallel'
      ? 'leave it out'
      : `write ${settingText('gpus')} alone: each GPU is a replica then`,
  );
}

/** @throws UserError for axes that the model or the programs do not have. */
export function requireAxes(model: LanguageModel, axes: ServingAxes): void {
  const { tensorParallel: tensor, dataParallelAttention: groups = 1 } = axes;
  const { expertParallel: expert = 1, pipelineParallel: stages = 1, contextParallel = 1 } = axes;
  const experts = dividedExperts(model);
  if (expert > 1) requireExpertsFor(model, 'expertParallel');
  if (groups > 1) requireExpertsFor(model, 'dataParallelAttention');
  if (expert > 1 && expert !== tensor * groups) {
    throw usageError(
      `${settingText('expertParallel')}: servers divide the experts among all GPUs of a stage: ${formatInteger(tensor * groups)}, found ${formatInteger(expert)}`,
      `write ${settingText('expertParallel', tensor * groups)}, or change ${settingText('tensorParallel')} or ${settingText('dataParallelAttention')}`,
    );
  }
  if (expert > experts && expert > 1) {
    throw usageError(
      `${settingText('expertParallel')}: expected at most the ${formatInteger(experts)} experts, found ${formatInteger(expert)}`,
      `write at most ${formatInteger(experts)}`,
    );
  }
  if (stages > model.blocks.length) {
    throw usageError(
      `${settingText('pipelineParallel')}: expected at most ${model.blocks.length} stages, one for each block, found ${formatInteger(stages)}`,
      `write at most ${model.blocks.length}`,
    );
  }
  if (contextParallel > 1) requireContextParts(model, tensor, contextParallel);
}

/**
 * The parts of a cache are on GPUs that would hold copies: as many as share a layer for each head of keys (vLLM,
 * config/model.py: verify_with_parallel_config).
 */
function requireContextParts(model: LanguageModel, tensor: number, parts: number): void {
  if (!canCutSequences(model)) {
    throw usageError(
      `${settingText('contextParallel')} requires a cache in every layer: states of recurrent layers cannot be cut`,
      'leave it out',
    );
  }
  const copies = copiesOfCache(model, tensor);
  if (copies % parts === 0) return;
  throw usageError(
    `${settingText('contextParallel')}: of the GPUs that share a layer, ${formatInteger(copies)} hold the same keys, found ${formatInteger(parts)}`,
    copies === 1
      ? `leave it out, or write a larger ${settingText('tensorParallel')}`
      : `write a divisor of ${formatInteger(copies)}`,
  );
}

/** GPUs with the same keys of a layer, of those that share it. */
export function copiesOfCache(model: LanguageModel, tensor: number): number {
  const heads = primitivesOf(model).flatMap((each) =>
    each.kind === 'scores' ? [each.latent ? 1 : each.keyValueHeads] : [],
  );
  return Math.max(1, Math.floor(tensor / Math.max(1, ...heads)));
}
