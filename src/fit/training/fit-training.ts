import type { LanguageModel } from '../../architecture/layer.js';
import { peakIfKnown } from '../../hardware/peak.js';
import { remediesFor, roomFor } from '../remedies/remedies.js';
import { computedIn, stepTimeOf, trainingTimeOf } from './step-time.js';
import type { TrainingFit } from './training.js';
import { fitTrainingMemory } from './training-memory.js';
import type { TrainingFitSetting } from './training-setting.js';

/**
 * Whether a training fits, how long it takes, and what would make it fit.
 * @throws UserError when the model cannot be spread so, or a time is asked for and no peak is known.
 */
export function fitTraining(model: LanguageModel, setting: TrainingFitSetting): TrainingFit {
  const memory = fitTrainingMemory(model, setting);
  const { trainTokens } = setting;
  // Who does not ask for a time is not told that there is none.
  const isTold =
    trainTokens !== undefined || peakIfKnown(setting.cluster.gpu, computedIn(setting)) !== null;
  const step = isTold ? stepTimeOf(model, setting, memory.stages) : undefined;
  const remedies =
    memory.verdict === 'fits' ? roomFor(model, setting) : remediesFor(model, setting);
  return {
    ...memory,
    ...(step && { step }),
    ...(step && trainTokens !== undefined && { time: trainingTimeOf(step, trainTokens) }),
    remedies,
  };
}
