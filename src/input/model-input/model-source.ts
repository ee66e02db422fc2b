/** Models from configs, standard input and checkpoints. */
import { type Problem, problemsOf, UserError, usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import type { CheckpointFlags, ModelSource } from './checkpoint/checkpoint-model.js';
import { locateModel, type ModelReference } from './locate.js';
import { modelOf } from './model-file.js';
import { readConfig } from './read-model-file.js';

/**
 * Reads a path, a preset, or `-` for standard input.
 * @throws UserError when it cannot be read, or is a checkpoint without a config.
 */
export async function openModelSource(
  source: ModelReference,
  flags: CheckpointFlags,
): Promise<ModelSource> {
  const place = locateModel(source);
  const { path } = place;
  if (place.kind === 'checkpoint') {
    // The checkpoint reader is loaded only for checkpoints.
    const { openCheckpointModel } = await import('./checkpoint/checkpoint-model.js');
    return openCheckpointModel(place, flags);
  }
  if (flags.config === undefined && flags.stateDict === undefined) {
    const document = await readConfig(place);
    return { model: (set) => modelOf(document, { set, family: flags.family }) };
  }
  throw usageError(
    `${path} is not a checkpoint: ${setting('config')} and ${setting('stateDict')} require one`,
    'leave the flag out',
  );
}

/** The loaded files, and the errors of the others. */
export interface LoadedFiles<Loaded> {
  readonly loaded: readonly Loaded[];
  /** All problems of the other files; undefined when there are none. */
  readonly error: UserError | undefined;
  /** Each of the other files, with its problems. */
  readonly failures: readonly FailedFile[];
}

export interface FailedFile {
  /** As the user wrote it. */
  readonly file: string;
  readonly problems: readonly Problem[];
}

/**
 * Loads every file, and reports the errors of all of them together.
 * @throws UserError when standard input is given twice.
 */
export async function loadAllFiles<Loaded>(
  sources: readonly string[],
  load: (source: string) => Promise<Loaded>,
): Promise<LoadedFiles<Loaded>> {
  if (sources.filter((source) => source === '-').length > 1) {
    throw usageError('standard input can be read only once', 'write - once');
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
  return {
    loaded,
    error: sources.length === 1 ? first?.error : combinedSource(failures, sources.length),
    failures: failures.map(({ source, error }) => ({
      file: source,
      problems: problemsOf(error, source),
    })),
  };
}

/**
 * The error of an input together with that of another one, if that is wrong too.
 * @param open Opens the other one, and closes it again.
 */
export async function withErrorOf(
  error: unknown,
  source: string,
  other: string,
  open: () => unknown,
): Promise<unknown> {
  if (!(error instanceof UserError) || source === other) return error;
  try {
    await open();
  } catch (second) {
    if (!(second instanceof UserError)) return error;
    const failures = [
      { source, error },
      { source: other, error: second },
    ];
    return combinedSource(failures, failures.length);
  }
  return error;
}

function combinedSource(
  failures: readonly { readonly source: string; readonly error: UserError }[],
  files: number,
): UserError | undefined {
  if (failures.length === 0) return undefined;
  // An error in --set affects every file; report it once.
  const unique = new Map<string, Problem>();
  for (const { source, error } of failures) {
    for (const problem of problemsOf(error, source)) unique.set(JSON.stringify(problem), problem);
  }
  // A file that cannot be read decides the exit code.
  const codes = failures.map(({ error }) => error.code);
  const isMissing = codes.some((code) => code === 'usage' || code === 'refused-file');
  return new UserError(
    codes.includes('system') ? 'system' : isMissing ? 'usage' : 'invalid-config',
    `${failures.length} of ${files} files ${failures.length === 1 ? 'is' : 'are'} not valid`,
    { problems: [...unique.values()] },
  );
}
