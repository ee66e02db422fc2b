import { type Problem, problemsOf, UserError } from '../errors.js';

/** What came of several files. */
export interface LoadedFiles<Loaded> {
  readonly loaded: readonly Loaded[];
  /** What is wrong with the others, all of it; undefined when there are none. */
  readonly error: UserError | undefined;
}

/**
 * Loads every file, so that the mistakes of all of them are told at once.
 * @throws UserError when standard input is asked for twice.
 */
export async function loadAllFiles<Loaded>(
  sources: readonly string[],
  load: (source: string) => Promise<Loaded>,
): Promise<LoadedFiles<Loaded>> {
  if (sources.filter((source) => source === '-').length > 1) {
    throw new UserError('usage', 'standard input can be read only once', {
      suggestion: 'write - once',
    });
  }
  const loaded: Loaded[] = [];
  const failures: { source: string; error: UserError }[] = [];
  for (const source of sources) {
    try {
      loaded.push(await load(source));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      failures.push({ source, error });
    }
  }
  const [first] = failures;
  return { loaded, error: sources.length === 1 ? first?.error : joined(failures, sources.length) };
}

function joined(
  failures: readonly { readonly source: string; readonly error: UserError }[],
  files: number,
): UserError | undefined {
  if (failures.length === 0) return undefined;
  // A mistake in a --set shows in every file; once is enough.
  const told = new Map<string, Problem>();
  for (const { source, error } of failures) {
    for (const problem of problemsOf(error, source)) told.set(JSON.stringify(problem), problem);
  }
  // What the system refuses is told as such, whatever else is wrong.
  const system = failures.find(({ error }) => error.code === 'system');
  return new UserError(
    system ? 'system' : 'invalid-config',
    `${failures.length} of ${files} files ${failures.length === 1 ? 'is' : 'are'} not valid`,
    { problems: [...told.values()] },
  );
}
