/** Models from configs, standard input and checkpoints: one, several, or a sweep of `--set`. */
import type { Sweep, SweepPoint } from '../config/overrides.js';
import { sweepOf } from '../config/overrides.js';
import type { Problem } from '../errors.js';
import { problemsOf, UserError } from '../errors.js';
import type { CheckpointFlags, LoadedModel, ModelSource } from './checkpoint-model.js';
import { isCheckpointPath } from './locate.js';
import { modelOf, readConfig } from './model-file.js';

/**
 * Reads a path, or `-` for standard input.
 * @throws UserError when it cannot be read, or is a checkpoint without a config.
 */
export async function openModelSource(path: string, flags: CheckpointFlags): Promise<ModelSource> {
  if (isCheckpointPath(path)) {
    // The checkpoint reader is loaded only for checkpoints.
    const { openCheckpointModel } = await import('./checkpoint-model.js');
    return openCheckpointModel(path, flags);
  }
  if (flags.config === undefined && flags['state-dict'] === undefined) {
    const document = await readConfig(path);
    return { model: (set) => modelOf(document, { set, family: flags.family }) };
  }
  throw new UserError(
    'usage',
    `${path} is not a checkpoint: --config and --state-dict require one`,
    { suggestion: 'leave the flag out' },
  );
}

/** The loaded files, and the errors of the others. */
export interface LoadedFiles<Loaded> {
  readonly loaded: readonly Loaded[];
  /** All problems of the other files; undefined when there are none. */
  readonly error: UserError | undefined;
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

// Several models at once: several sources, each with every combination of the `--set` values.

/** A larger number is an error in a list. */
const MAX_MODELS = 1000;

export interface LoadedCandidate {
  readonly file: string;
  /** The values of the swept keys, as given. */
  readonly chosen: readonly string[];
  readonly loaded: LoadedModel | undefined;
  /** Errors or warnings. */
  readonly problems: readonly Problem[];
}

interface CandidateFlags extends CheckpointFlags {
  readonly set?: readonly string[] | undefined;
  /** Whether to pair the values of the lists instead of combining them. */
  readonly zip?: boolean | undefined;
}

/**
 * Loads each source with each combination of values, the sources in their order and the values of the first key
 * slowest. In a sweep, an invalid combination does not stop the others.
 * @throws UserError when there are too many, a source cannot be read, or, without a sweep, is not valid.
 */
export async function loadCandidates(
  sources: readonly string[],
  flags: CandidateFlags,
): Promise<{ readonly swept: readonly string[]; readonly candidates: readonly LoadedCandidate[] }> {
  const sweep = sweepOf(flags.set ?? [], flags.zip);
  refuseTooMany(sources.length * sweep.size);
  const { loaded, error } = await loadAllFiles(sources, async (path) =>
    candidatesOf(path === '-' ? '<stdin>' : path, await openModelSource(path, flags), sweep),
  );
  if (error) throw error;
  return { swept: sweep.keys, candidates: loaded.flat() };
}

function refuseTooMany(models: number): void {
  if (models <= MAX_MODELS) return;
  throw new UserError(
    'usage',
    `--set asks for ${models.toLocaleString('en-US')} models; ${MAX_MODELS.toLocaleString('en-US')} are the most that are compared`,
    { suggestion: 'give fewer values, or fewer keys with several' },
  );
}

async function candidatesOf(
  file: string,
  source: ModelSource,
  sweep: Sweep,
): Promise<LoadedCandidate[]> {
  const candidates: LoadedCandidate[] = [];
  for (const point of sweep.points()) {
    candidates.push(await candidateOf(file, source, point));
  }
  return candidates;
}

async function candidateOf(
  file: string,
  source: ModelSource,
  { set, chosen }: SweepPoint,
): Promise<LoadedCandidate> {
  try {
    // The tensors of a checkpoint match at most one combination, so none is checked against them.
    const loaded = await source.model(set, { isChecked: chosen.length === 0 });
    return { file, chosen, loaded, problems: loaded.warnings };
  } catch (error) {
    if (!(error instanceof UserError) || chosen.length === 0) throw error;
    return { file, chosen, loaded: undefined, problems: problemsOf(error, file) };
  }
}
