/** Values in the config of a model about its training, as defaults of other settings. */
import type { Family, FamilyDocument, TrainingHints } from './family.js';
import type { LanguageModel } from './layer.js';

/** A document with its family. */
export interface FamilyConfig {
  readonly family: Pick<Family, 'trainingHints'>;
  readonly document: FamilyDocument;
}

/** Config values used as defaults of training settings. */
export const hintsOf = ({ family, document }: FamilyConfig): TrainingHints =>
  family.trainingHints?.(document) ?? {};

/** Facts on which the common setting of several models depends. */
export interface SettingFacts {
  readonly hints: TrainingHints;
  readonly positions: number;
}

export const settingFacts = ({
  model,
  ...config
}: FamilyConfig & { readonly model: Pick<LanguageModel, 'positions'> }): SettingFacts => ({
  hints: hintsOf(config),
  positions: model.positions,
});
