/** A language model with the towers beside it, for counts. */
import { type Problem, UserError } from '../../base/errors.js';
import {
  COMPONENTS,
  type LanguageModel,
  type SkippedBlock,
} from '../../model/architecture/layer.js';
import { OTHER_HEAD } from '../../model/architecture/transformer/config-keys.js';
import type { LoadedModel } from './checkpoint/checkpoint-model.js';
import { UndescribedModel } from './undescribed-model.js';

/**
 * A loaded file with its whole model: its language model, and the described parts beside it as blocks that compute nothing
 * for text. Weights are those of all parts; caches, FLOPs and speed are those of the language model. A checkpoint can hold
 * the language model alone, which is then the whole.
 */
export function asWhole<Loaded extends LoadedModel>(loaded: Loaded): Loaded {
  const { model, beside, leftOut, checkpoint, warnings, leftOutWarnings = [] } = loaded;
  if (beside === undefined || (checkpoint && !leftOut?.length)) return loaded;
  const parts = beside.map(
    ({ component, tensors }): SkippedBlock => ({
      kind: 'skippedBlock',
      name: COMPONENTS[component].replaceAll(' ', '_'),
      component,
      gates: tensors,
      unread: [],
    }),
  );
  const whole: LanguageModel = { ...model, embeddingSteps: [...parts, ...model.embeddingSteps] };
  return {
    ...loaded,
    model: whole,
    warnings: warnings.filter((warning) => !leftOutWarnings.includes(warning)),
  };
}

/**
 * A loaded model with the head of its class.
 * @throws UndescribedModel for a checkpoint of a class with another head than the one that is described.
 */
export function withOwnHead(loaded: LoadedModel): LoadedModel {
  const { warnings, className, checkpoint } = loaded;
  const remark = warnings.find(
    ({ path, message }) => path === 'architectures' && message.endsWith(OTHER_HEAD),
  );
  if (remark === undefined || checkpoint === undefined) return loaded;
  const { path: _, ...place } = remark;
  const message = OTHER_HEAD.replace('the class', `the class ${className}`);
  const problems: Problem[] = [{ ...place, severity: 'error', message }];
  throw new UndescribedModel(new UserError('invalid-config', message, { problems }));
}
