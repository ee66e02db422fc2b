/** `validate` as a function: every mistake of configs in files. */
import type { LocatedModelFile, ModelLoadOptions } from '../../input/model-input/model-file.js';
import { type LoadedFiles, loadAllFiles } from '../../input/model-input/model-source.js';
import { loadModelFile } from '../../input/model-input/read-model-file.js';
import type { ValidationResult, ValidFile } from '../../report/command-results.js';
import { type AnswerNotes, withNotes } from '../answer.js';
import { checkOptions, type OptionKinds } from '../arguments.js';
import { CONFIG_KINDS, type ConfigOptions, overridesOf } from '../models/describe-model.js';
import { type HubOptions, mounted } from '../models/load-model.js';
import { validationOf, withTrainingMistakes } from './validate.js';

export interface ValidateFilesOptions extends ConfigOptions, Pick<HubOptions, 'offline'> {
  /** Whether warnings count as errors. */
  readonly strict?: boolean | undefined;
}

const VALIDATE_FILES_KINDS: OptionKinds<ValidateFilesOptions> = {
  ...CONFIG_KINDS,
  offline: 'flag',
  strict: 'flag',
};

/**
 * Checks configs: files, presets or `hf:ORG/NAME`. Mistakes in their settings of training are warnings.
 * @throws UserError with every problem of all of them, in `problems`, when one is not valid.
 */
export async function validateFiles(
  configs: readonly string[],
  options: ValidateFilesOptions = {},
): Promise<ValidationResult & AnswerNotes> {
  checkOptions('validateFiles', options, VALIDATE_FILES_KINDS);
  const { set, family, strict = false, offline } = options;
  const found = [];
  for (const config of configs) found.push(await mounted(config, 'config', { offline }));
  const paths = found.map(({ path }) => path);
  const { loaded, error } = await validatedFiles(paths, { set: overridesOf(set), family, strict });
  if (error) throw error;
  return withNotes(validationOf(loaded), {
    warnings: loaded.flatMap(({ warnings }) => warnings),
    references: found.flatMap(({ references }) => references),
  });
}

/** The valid files, and the errors of the others. @param options.strict Whether warnings count as errors. */
export const validatedFiles = (
  paths: readonly string[],
  { strict = false, ...options }: ModelLoadOptions,
): Promise<LoadedFiles<LocatedModelFile | ValidFile>> =>
  loadAllFiles(paths, async (path) => {
    const { mayBeTrainingConfig } = await import(
      '../../input/training-config/training-config-name.js'
    );
    if (await mayBeTrainingConfig(path)) {
      const { validTraining } = await import('./validate-training.js');
      const training = await validTraining(path, { strict, ...options });
      if (training) return training;
    }
    return withTrainingMistakes(await loadModelFile(path, options), strict);
  });
