/** Mistakes of a file's `training:` section as problems with their place. */
import type { LanguageModel } from '../architecture/layer.js';
import type { Problem, PropertyPath } from '../errors.js';
import { trainingMistakes } from './train-plan.js';
import { trainingSettings } from './training-settings.js';

interface LocatedDocument {
  readonly document: unknown;
  readonly model: LanguageModel;
  locate(path: PropertyPath): Pick<Problem, 'file' | 'line' | 'column' | 'excerpt'>;
}

/** Warnings about the training of a document that has one. */
export function mistakeProblems({ document, model, locate }: LocatedDocument): Problem[] {
  const settings = trainingSettings(document);
  if (Object.keys(settings.values).length === 0) return [];
  // A context beyond the model's positions is an error of its own.
  const context = Math.min(
    settings.values.max_seq_length ?? Number.POSITIVE_INFINITY,
    model.positions,
  );
  return trainingMistakes(model, {
    settings,
    ...(Number.isFinite(context) && settings.values.max_seq_length !== undefined && { context }),
  }).map(({ place, title, reason, fix }) => ({
    severity: 'warning',
    ...locate(place.split('.')),
    path: place,
    message: `${title}: ${reason}`,
    suggestion: `write ${fix}`,
  }));
}
