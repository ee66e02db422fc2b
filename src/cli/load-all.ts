import { type Problem, UserError } from '../errors.js';
import { type LoadOptions, loadModelFile, type ModelFile } from './model-file.js';

/**
 * Loads every file, so that the mistakes of all of them are told at once.
 * @throws UserError with the problems of all files, when one of them is not valid.
 */
export async function loadAllFiles(
  sources: readonly string[],
  options: LoadOptions,
): Promise<ModelFile[]> {
  const loaded: ModelFile[] = [];
  const failures: { source: string; error: UserError }[] = [];
  // One after the other: two of them may be standard input, and problems come in the order given.
  for (const source of sources) {
    try {
      loaded.push(await loadModelFile(source, options));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      failures.push({ source, error });
    }
  }
  const [first, ...others] = failures;
  if (!first) return loaded;
  if (others.length === 0 && sources.length === 1) throw first.error;
  // A mistake in a --set shows in every file; once is enough.
  const told = new Map<string, Problem>();
  for (const { source, error } of failures) {
    for (const problem of problemsOf(source, error)) told.set(JSON.stringify(problem), problem);
  }
  const unreadable = failures.find(({ error }) => error.code !== 'invalid-config');
  throw new UserError(
    unreadable?.error.code ?? 'invalid-config',
    `${failures.length} of ${sources.length} files ${failures.length === 1 ? 'is' : 'are'} not valid`,
    { problems: [...told.values()] },
  );
}

/** A failure without problems of its own (a file that cannot be read) becomes one. */
function problemsOf(file: string, error: UserError): readonly Problem[] {
  if (error.problems.length > 0) return error.problems;
  const { message, suggestion } = error;
  return [{ severity: 'error', file, message, ...(suggestion && { suggestion }) }];
}
