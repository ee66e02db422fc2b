/** Memory and time of a planned training: one of all weights, or one of adapters, as `fit` counts them. */
import type { LanguageModel } from '../../model/architecture/layer.js';
import { loraMemoryOn, loraOn, QLORA_BASE } from '../fit/training/lora.js';
import { stepTimeIfKnown } from '../fit/training/step-time.js';
import type { StepTime, TrainingMemoryFit } from '../fit/training/training-fit.js';
import { fitTrainingMemory } from '../fit/training/training-memory.js';
import type { TrainingFitSetting } from '../fit/training/training-setting.js';

/** Adapters of a training. */
export interface AskedAdapters {
  /** Whether the frozen weights are in 16 bits, or in 4. */
  readonly kind: 'lora' | 'qlora';
  /** Default: 16. */
  readonly rank?: number | undefined;
  /** Products with adapters, by the ends of their names. Default: all. */
  readonly targets?: readonly string[] | undefined;
}

/** Adapters of a plan. */
export interface PlannedAdapters {
  /** Whether the frozen weights are in 16 bits, or in 4. */
  readonly kind: 'lora' | 'qlora';
  /** Rank of the adapters. @integer @minimum 1 */
  readonly rank: number;
  /** Products with adapters; null for all of the blocks. */
  readonly targets: readonly string[] | null;
  /** Parameters of the adapters. @integer */
  readonly parameters: number;
}

/** Memory of a training, and the time of a step where it is known. */
export type FitOf = (setting: TrainingFitSetting) => Pick<
  TrainingMemoryFit,
  'total' | 'verdict' | 'capacity'
> & {
  readonly step: () => StepTime | undefined;
};

/** All weights. */
export const trainingFitOf =
  (model: LanguageModel): FitOf =>
  (setting) => {
    const memory = fitTrainingMemory(model, setting);
    return { ...memory, step: () => stepTimeIfKnown(model, setting, memory.stages) };
  };

const baseOf = ({ kind }: AskedAdapters) => (kind === 'qlora' ? QLORA_BASE : undefined);

/** Adapters as `fit` counts them. */
export const adapterFitOf =
  (model: LanguageModel, asked: AskedAdapters): FitOf =>
  (setting) => ({
    ...loraMemoryOn(model, setting, baseOf(asked), { isSearched: false }),
    step: () => loraOn(model, setting, baseOf(asked)).step,
  });

/** The adapters with what is not asked for. */
export function plannedAdapters(
  model: LanguageModel,
  setting: TrainingFitSetting,
  asked: AskedAdapters,
): PlannedAdapters {
  const options = { isSearched: false };
  const { rank, targets, adapters } = loraMemoryOn(model, setting, baseOf(asked), options);
  return { kind: asked.kind, rank, targets, parameters: Number(adapters.value) };
}
