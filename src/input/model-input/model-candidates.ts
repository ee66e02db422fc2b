/** Models to compare: several sources, each with every combination of the `--set` values. */

import { type Problem, problemsOf, UserError, usageError } from '../../base/errors.js';
import { nextTurn } from '../../base/next-turn.js';
import { setting } from '../../base/text/setting.js';
import { sumOf } from '../../base/values.js';
import { type SweepPoint, sweepOf } from '../../config/overrides.js';
import { sumOfTensors } from '../../model/architecture/equal-blocks.js';
import type { LanguageModel, Layer } from '../../model/architecture/layer.js';
import { type SettingFacts, settingFacts } from '../../model/architecture/training-hints.js';
import { walkCounted } from '../../model/architecture/walk.js';
import type { CheckpointFlags, LoadedModel, ModelSource } from './checkpoint/checkpoint-model.js';
import { loadAllFiles, openModelSource } from './model-source.js';
import { asWhole } from './whole-model.js';

/** A larger number is an error in a list. */
const MAX_MODELS = 100_000;

/** Tensors of all models that are kept: with what is derived from them, about 50 MB; and models, with their documents. */
const MOST_KEPT_TENSORS = 50_000;
const MOST_KEPT_MODELS = 10_000;

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

/** Candidates, each loaded when it is requested. */
export interface Candidates {
  readonly count: number;
  /** Dotted paths of the keys with several values. */
  readonly swept: readonly string[];
  /** Indexes of some points of each source, with many values of each key. Without a sweep, of all points. */
  readonly sample: readonly number[];
  /** File and values of each. */
  readonly points: readonly Pick<LoadedCandidate, 'file' | 'chosen'>[];
  candidate(index: number): Promise<LoadedCandidate>;
  brief(index: number): Promise<Brief>;
}

/** Facts of a candidate that are kept when its model is not. */
interface Brief {
  /** Facts for the common setting; undefined for an invalid candidate. */
  readonly facts: SettingFacts | undefined;
  /** Seconds that the size of the model adds. */
  readonly seconds: number;
}

/**
 * Opens each source with each combination of values, the sources in their order and the values of the first key
 * slowest. In a sweep, an invalid combination does not stop the others.
 * @throws UserError when there are too many, a source cannot be read, or, without a sweep, is not valid.
 */
export async function openCandidates(
  sources: readonly string[],
  flags: CandidateFlags,
): Promise<Candidates> {
  const sweep = sweepOf(flags.set ?? [], flags.zip);
  refuseTooMany(sources.length * sweep.size);
  const combinations = sweep.points();
  const sample = sampleOf(combinations);
  const isKept = keptSpace();
  const keep = (
    { known }: { readonly known: Map<number, LoadedCandidate> },
    at: number,
    candidate: LoadedCandidate,
  ) => {
    if (isKept(candidate)) known.set(at, candidate);
  };
  const { loaded: opened, error } = await loadAllFiles(sources, async (path) => {
    const source = await openModelSource(path, flags);
    const file = path === '-' ? '<stdin>' : path;
    const known = new Map<number, LoadedCandidate>();
    const briefs = new Map<number, Brief>();
    const from = { source, file, known, briefs };
    // Without a sweep, an invalid source is an error.
    if (sweep.keys.length === 0) {
      const candidate = await candidateOf(file, source, combinations[0]);
      briefs.set(0, briefOf(candidate));
      keep(from, 0, candidate);
    }
    return from;
  });
  if (error) throw error;
  const { length: size } = combinations;
  const isSampled = new Set(sample);
  const models: Candidates = {
    count: opened.length * size,
    swept: sweep.keys,
    sample: opened.flatMap((_, number) => sample.map((at) => number * size + at)),
    points: opened.flatMap(({ file }) => combinations.map(({ chosen }) => ({ file, chosen }))),
    async candidate(index) {
      const at = index % size;
      const from = opened[Math.floor(index / size)];
      if (from === undefined) throw new RangeError(`no model ${index}`);
      const { file, source, known } = from;
      // Thousands of models one after the other leave no time for Ctrl-C and timers.
      await nextTurn();
      const before = known.get(at);
      if (before !== undefined) return before;
      const found = await candidateOf(file, source, combinations[at]);
      if (isSampled.has(at)) keep(from, at, found);
      return found;
    },
    async brief(index) {
      const known = opened[Math.floor(index / size)]?.briefs.get(index % size);
      return known ?? briefOf(await models.candidate(index));
    },
  };
  return models;
}

/** Counts the models that are kept, and tells whether there is space for another one. */
function keptSpace(): (candidate: LoadedCandidate) => boolean {
  let [tensors, models] = [0, 0];
  // Models that differ in their vocabulary alone have their blocks in common.
  const blocks = new Set<LanguageModel['blocks']>();
  return ({ loaded }) => {
    const own = loaded?.model;
    const isShared = own !== undefined && blocks.has(own.blocks);
    const parts = own === undefined ? [] : isShared ? [own.embedding, own.norm, own.head] : [own];
    const added = sumOf(parts, tensorCount);
    if (tensors + added > MOST_KEPT_TENSORS || models >= MOST_KEPT_MODELS) return false;
    tensors += added;
    models += 1;
    if (own !== undefined) blocks.add(own.blocks);
    return true;
  };
}

const briefOf = (candidate: LoadedCandidate): Brief => ({
  facts: candidate.loaded && settingFacts(candidate.loaded),
  seconds: candidateSeconds(candidate),
});

function refuseTooMany(models: number): void {
  if (models <= MAX_MODELS) return;
  throw usageError(
    `${setting('set')}: expected at most ${MAX_MODELS.toLocaleString('en-US')} models, found ${models.toLocaleString('en-US')}`,
    'give fewer values, or fewer keys with several',
  );
}

async function candidateOf(
  file: string,
  source: ModelSource,
  { set, chosen }: SweepPoint = { set: [], chosen: [] },
): Promise<LoadedCandidate> {
  try {
    // The tensors of a checkpoint match at most one combination, so none is checked against them.
    const loaded = asWhole(await source.model(set, { isChecked: chosen.length === 0 }));
    return { file, chosen, loaded, problems: loaded.warnings };
  } catch (error) {
    if (!(error instanceof UserError) || chosen.length === 0) throw error;
    return { file, chosen, loaded: undefined, problems: problemsOf(error, file) };
  }
}

/** Combinations of a sample for each key. */
const SAMPLE = 16;

/** Some combinations: of each key those with the first values of the others, and some of all. */
function sampleOf(combinations: readonly SweepPoint[]): number[] {
  const all = [...combinations.keys()];
  const first = combinations[0]?.chosen ?? [];
  const byKey = new Map<number, number[]>();
  for (const at of all) {
    const key = onlyDifference(combinations[at]?.chosen ?? [], first);
    if (key === undefined) continue;
    const own = byKey.get(key);
    if (own === undefined) byKey.set(key, [at]);
    else own.push(at);
  }
  const lists = byKey.size > 1 ? [...byKey.values(), all] : [all];
  const found = lists.flatMap((list) => spread(list, SAMPLE));
  return [...new Set([0, ...found])].toSorted((a, b) => a - b);
}

/** The key in which alone two combinations differ. */
function onlyDifference(own: readonly string[], other: readonly string[]): number | undefined {
  const keys = own.flatMap((value, key) => (value === other[key] ? [] : [key]));
  return keys.length === 1 ? keys[0] : undefined;
}

/** At most `count` items of a list at equal distances, with the last. */
const spread = <Item>(list: readonly Item[], count: number): Item[] =>
  list.filter((_, at) =>
    list.length <= count
      ? true
      : Math.floor(((at + 1) * count) / list.length) > Math.floor((at * count) / list.length),
  );

/** Seconds of a model, of each of its layers and of each tensor on a slow machine; measured at a sixth of them. */
const MODEL_SECONDS = 0.012;
const LAYER_SECONDS = 75e-6;
const TENSOR_SECONDS = 18e-6;

/** Seconds that the size of a model adds; an invalid one has none. */
const candidateSeconds = ({ loaded }: LoadedCandidate): number =>
  loaded === undefined
    ? LAYER_SECONDS
    : LAYER_SECONDS * walkCounted(loaded.model).length + TENSOR_SECONDS * tensorCount(loaded.model);

/** Tensors of a layer, with those of all experts. */
const tensorCount = (layer: Layer): number => sumOfTensors(layer, () => 1);

/**
 * Seconds of each candidate, estimated from the sample: each value multiplies them by the factor that it has alone. A
 * value outside the sample has the factor of the one before it.
 */
export async function candidateCosts(models: Candidates): Promise<number[]> {
  const { points, sample, swept } = models;
  const seconds = new Map<number, number>();
  for (const index of sample) seconds.set(index, (await models.brief(index)).seconds);
  const costs: number[] = [];
  for (let start = 0; start < points.length; ) {
    const { file, chosen: first = [] } = points[start] ?? {};
    const next = points.findIndex((each, index) => index > start && each.file !== file);
    const end = next < 0 ? points.length : next;
    const base = seconds.get(start) ?? LAYER_SECONDS;
    const factors = swept.map(() => new Map<string, number>());
    const last = swept.map(() => base);
    for (let index = start; index < end; index++) {
      const { chosen = [] } = points[index] ?? {};
      const key = onlyDifference(chosen, first);
      if (key === undefined) continue;
      last[key] = seconds.get(index) ?? last[key] ?? base;
      factors[key]?.set(chosen[key] ?? '', last[key] / base);
    }
    for (const { chosen } of points.slice(start, end)) {
      const factor = chosen.reduce((all, value, key) => all * (factors[key]?.get(value) ?? 1), 1);
      costs.push(MODEL_SECONDS + base * factor);
    }
    start = end;
  }
  return costs;
}
