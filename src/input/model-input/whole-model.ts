/** A language model with the towers beside it, for counts. */
import {
  COMPONENTS,
  type LanguageModel,
  type SkippedBlock,
} from '../../model/architecture/layer.js';
import type { ModelFile } from './model-file.js';

/**
 * The whole model of a file: its language model, and the parts beside it as blocks that compute nothing for text. Weights
 * are those of all parts; caches, FLOPs and speed are those of the language model.
 */
function wholeOf({ model, beside = [] }: Pick<ModelFile, 'model' | 'beside'>): LanguageModel {
  if (beside.length === 0) return model;
  const parts = beside.map(
    ({ component, tensors }): SkippedBlock => ({
      kind: 'skippedBlock',
      name: COMPONENTS[component].replaceAll(' ', '_'),
      component,
      gates: tensors,
      unread: [],
    }),
  );
  return { ...model, embeddingSteps: [...parts, ...model.embeddingSteps] };
}

/** A loaded file with its whole model. */
export const asWhole = <Loaded extends ModelFile>(loaded: Loaded): Loaded => ({
  ...loaded,
  model: wholeOf(loaded),
});
