import type { LanguageModel } from '../architecture/layer.js';
import { UserError } from '../errors.js';
import { remediesFor, roomFor } from './remedies.js';
import { stepTimeOf, trainingTimeOf } from './step-time.js';
import type { StageMemory, StepTime, TrainingFit } from './training.js';
import { fitTrainingMemory } from './training-memory.js';
import type { TrainingFitSetting } from './training-setting.js';

/**
 * Whether a training fits, how long it takes, and what would make it fit.
 * @throws UserError when the model cannot be spread so, or a time is asked for and no peak is known.
 */
export function fitTraining(model: LanguageModel, setting: TrainingFitSetting): TrainingFit {
  const memory = fitTrainingMemory(model, setting);
  const { trainTokens } = setting;
  const step =
    trainTokens === undefined
      ? possibleStep(model, setting, memory.stages)
      : stepTimeOf(model, setting, memory.stages);
  const remedies =
    memory.verdict === 'fits' ? roomFor(model, setting) : remediesFor(model, setting);
  return {
    ...memory,
    ...(step && { step }),
    ...(step && trainTokens !== undefined && { time: trainingTimeOf(step, trainTokens) }),
    remedies,
  };
}

/** Who does not ask for a time is not told that there is none. */
function possibleStep(
  model: LanguageModel,
  setting: TrainingFitSetting,
  stages: readonly StageMemory[],
): StepTime | undefined {
  try {
    return stepTimeOf(model, setting, stages);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}
