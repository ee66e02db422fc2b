/** Refusals of values that a training config gave, at their places in it. */
import { type Problem, UserError } from '../../base/errors.js';
import type { TrainingConfig } from '../../input/training-config/training-config.js';
import { FIELD_TITLES } from '../../input/training-config/training-run.js';
import { withoutParserText } from '../line/line-mistake.js';
import type { TrainingWord } from './training-words.js';

/** Flags in a message. */
const FLAG = /(?<![\w-])--([a-z][\w-]*)/g;

/** Advice on how to write a flag in a command line. */
const OF_A_LINE = /^write it as in --/;

/**
 * The error about a flag, or about a key of `--set`, as one about the key of the config that it was made of. Any other error
 * is returned as it is.
 * @param added Flags that the config was turned into.
 */
export function locatedError(
  error: unknown,
  { file, program, placeOf }: TrainingConfig,
  added: readonly TrainingWord[],
): unknown {
  if (!(error instanceof UserError)) return error;
  withoutParserText(error);
  const wordOf = (problem: Pick<Problem, 'file' | 'path' | 'message'>) =>
    problem.file === '--set'
      ? added.find(({ flag, value }) => flag === 'set' && value?.startsWith(`${problem.path}=`))
      : firstNamed(problem.message, added);
  const located = (problem: Problem): Problem | undefined => {
    const word = wordOf(problem);
    const [field] = word?.of ?? [];
    if (word === undefined || field === undefined) return undefined;
    const place = word.of.map(placeOf).find(({ path }) => path !== undefined);
    const { suggestion } = problem;
    if (place?.path === undefined) {
      return {
        severity: 'error',
        file,
        message: `${problem.message} (default of ${program.title})`,
        suggestion: suggestion ?? `write the ${FIELD_TITLES[field]} in the file`,
      };
    }
    const key = place.path;
    const named = (text: string) => text.replaceAll(`--${word.flag}`, key);
    return {
      severity: 'error',
      ...place,
      // The place names the key already.
      message: withoutStart(named(problem.message), key),
      suggestion:
        suggestion === undefined || OF_A_LINE.test(suggestion)
          ? `correct ${key}, or leave it out`
          : named(suggestion),
    };
  };
  const { code, message, suggestion } = error;
  const own: readonly Problem[] =
    error.problems.length > 0
      ? error.problems
      : [{ severity: 'error', file, message, ...(suggestion && { suggestion }) }];
  const problems = own.map((each) => located(each) ?? each);
  if (problems.every((each, at) => each === own[at])) return error;
  const changed = new UserError(code, `${file} has a value that cannot be used`, {
    problems,
    cause: error,
  });
  changed.exitCode = error.exitCode;
  return changed;
}

/** A message without the key that it begins with. */
const withoutStart = (message: string, key: string): string =>
  message.startsWith(key) ? message.slice(key.length).replace(/^:? /, '') : message;

/** The first flag of a message that a config gave. */
function firstNamed(message: string, added: readonly TrainingWord[]): TrainingWord | undefined {
  for (const [, name] of message.matchAll(FLAG)) {
    const found = added.find(({ flag }) => flag === name);
    if (found) return found;
  }
  return undefined;
}
