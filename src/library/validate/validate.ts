/** `validate` as a function: every mistake of a config. */
import type { Problem } from '../../base/errors.js';
import { isRecord } from '../../base/values.js';
import { invalidConfig } from '../../config/document-problems.js';
import type { LocatedModelFile } from '../../input/model-input/model-file.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { ValidationResult, ValidFile } from '../../report/command-results.js';
import { type AnswerNotes, withNotes } from '../answer.js';
import { checkOptions, type OptionKinds } from '../arguments.js';
import {
  DESCRIBE_KINDS,
  type DescribeOptions,
  describeModel,
  type GivenConfig,
} from '../models/describe-model.js';

export interface ValidateOptions extends DescribeOptions {
  /** Whether warnings count as errors. */
  readonly strict?: boolean | undefined;
}

const VALIDATE_KINDS: OptionKinds<ValidateOptions> = { ...DESCRIBE_KINDS, strict: 'flag' };

/**
 * Checks a config: a value, or a text in YAML or JSON. Mistakes in its settings of training are warnings.
 * @throws UserError with every problem, in `problems`, when it is not valid.
 */
export async function validateConfig(
  config: GivenConfig,
  given: ValidateOptions = {},
): Promise<ValidationResult & AnswerNotes> {
  checkOptions('validate', given, VALIDATE_KINDS);
  const { strict, ...options } = given;
  const checked = await withTrainingMistakes(await describeModel(config, options), strict);
  return withNotes(validationOf([checked]), checked);
}

/** The answer about valid configs. */
export const validationOf = (
  loaded: readonly (LocatedModelFile | ValidFile)[],
): ValidationResult => ({
  schema: 'minimind/validate@1',
  files: loaded.map((each) => ('valid' in each ? each : validFileOf(each))),
});

const validFileOf = ({ file, family, model, warnings }: LocatedModelFile): ValidFile => ({
  file,
  valid: true,
  family: family.name,
  parameters: countParameters(model).parameters,
  warnings,
});

/**
 * A config with the mistakes of its training as warnings.
 * @param strict Whether warnings count as errors.
 * @throws UserError with all of them, if they do.
 */
export async function withTrainingMistakes(
  loaded: LocatedModelFile,
  strict = false,
): Promise<LocatedModelFile> {
  const warnings = [...loaded.warnings, ...(await mistakesOf(loaded))];
  const faults = warnings.filter((warning) => warning !== loaded.notRun);
  if (!strict || faults.length === 0) return { ...loaded, warnings };
  const errors = faults.map((problem) => ({ ...problem, severity: 'error' as const }));
  throw invalidConfig(loaded.file, errors, errors.length);
}

/** Loads the checks of trainings only for files with a training. */
async function mistakesOf(loaded: LocatedModelFile): Promise<readonly Problem[]> {
  const { document } = loaded;
  if (!isRecord(document) || !isRecord(document.training)) return [];
  const { mistakeProblems } = await import('../../estimate/training/plan-training.js');
  return mistakeProblems(loaded);
}
