/** Many models at once: several sources, each under every choice of the values that `--set` sweeps. */
import { type Sweep, type SweepPoint, sweepOf } from '../config/overrides.js';
import { type Problem, problemsOf, UserError } from '../errors.js';
import type { CheckpointFlags, LoadedModel, ModelSource } from './checkpoint-model.js';
import { loadAllFiles } from './load-all.js';
import { openModelSource } from './model-source.js';

/** More models than this nobody compares; it would only be a slip in a list. */
const MAX_MODELS = 1000;

export interface LoadedCandidate {
  readonly file: string;
  /** The values of the swept keys, as they were written. */
  readonly chosen: readonly string[];
  readonly loaded: LoadedModel | undefined;
  /** Why it is not valid, or what is odd about it. */
  readonly problems: readonly Problem[];
}

interface CandidateFlags extends CheckpointFlags {
  readonly set?: readonly string[] | undefined;
  /** Whether the lists go together, and not in every combination. */
  readonly zip?: boolean | undefined;
}

/**
 * Loads each source under each choice of values, the sources in their order and the values of the first key
 * slowest. In a sweep, a choice that is not valid does not keep the others from being loaded.
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
    // Of a checkpoint, the tensors are those of one choice at most: none is held against them.
    const loaded = await source.model(set, { isHeld: chosen.length === 0 });
    return { file, chosen, loaded, problems: loaded.warnings };
  } catch (error) {
    if (!(error instanceof UserError) || chosen.length === 0) throw error;
    return { file, chosen, loaded: undefined, problems: problemsOf(error, file) };
  }
}
