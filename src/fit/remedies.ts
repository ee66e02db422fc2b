/** The smallest changes of a setting that make a training fit; and how far one that fits could be taken. */
import type { LanguageModel } from '../architecture/layer.js';
import { UserError } from '../errors.js';
import type { Remedy, TrainingMemoryFit } from './training.js';
import { fitTrainingMemory } from './training-memory.js';
import type { TrainingFitSetting, ZeroStage } from './training-setting.js';

type Flags = Partial<TrainingFitSetting>;

interface Change {
  /** In words. */
  readonly words: string;
  readonly flags: Flags;
}

/** Changes of one kind, the smallest first: of each kind one is made at most. */
type Kind = (setting: TrainingFitSetting, model: LanguageModel) => readonly Change[];

/** The most GPUs that anybody is told to get. */
const MOST_GPUS = 65_536;

/** `from`, doubled again and again, up to `to`. */
const doubled = (from: number, to: number): number[] =>
  from > to ? [] : [from, ...doubled(2 * from, to)];

const halved = (from: number): number[] => {
  const half = Math.floor(from / 2);
  return half >= 1 ? [half, ...halved(half)] : [];
};

const zeroStage =
  (stages: readonly ZeroStage[]): Kind =>
  ({ zero, cluster, tensorParallel, pipelineParallel }) =>
    cluster.gpus > tensorParallel * pipelineParallel
      ? stages
          .filter((stage) => stage > zero)
          .map((stage) => ({ words: `ZeRO-${stage}`, flags: { zero: stage } }))
      : [];

/** Less than this is no text to learn from. */
const SHORTEST_CONTEXT = 128;

/**
 * What could be changed, the cheapest first: what costs nothing; what costs communication or work that is small; what
 * spreads the same training otherwise; work again; what changes the training itself; what must be bought.
 */
const KINDS: readonly Kind[] = [
  ({ attention }) =>
    attention === 'plain' ? [{ words: 'fused attention', flags: { attention: 'fused' } }] : [],
  ({ sequenceParallel, tensorParallel }) =>
    tensorParallel > 1 && !sequenceParallel
      ? [{ words: 'sequence parallelism', flags: { sequenceParallel: true } }]
      : [],
  zeroStage([1, 2]),
  ({ recompute }) =>
    recompute === 'none'
      ? [{ words: 'selective recomputation', flags: { recompute: 'selective' } }]
      : [],
  ({ microBatch }) =>
    halved(microBatch).map((smaller) => ({
      words: `a micro-batch of ${smaller}`,
      flags: { microBatch: smaller },
    })),
  zeroStage([3]),
  ({ recompute }) =>
    recompute === 'full' ? [] : [{ words: 'full recomputation', flags: { recompute: 'full' } }],
  ({ tensorParallel, pipelineParallel, cluster: { gpus } }) =>
    doubled(2 * tensorParallel, Math.min(8, gpus / pipelineParallel)).map((tensor) => ({
      words: `tensor parallelism of ${tensor} with sequence parallelism`,
      flags: { tensorParallel: tensor, sequenceParallel: true },
    })),
  ({ tensorParallel, pipelineParallel, cluster: { gpus } }, { blocks }) =>
    doubled(2 * pipelineParallel, Math.min(blocks.length, gpus / tensorParallel)).map((stages) => ({
      words: `${stages} pipeline stages`,
      flags: { pipelineParallel: stages },
    })),
  ({ optimizer }) =>
    optimizer === 'adamw' ? [{ words: 'AdamW in 8 bits', flags: { optimizer: 'adamw-8bit' } }] : [],
  ({ context }) =>
    halved(context)
      .filter((shorter) => shorter >= SHORTEST_CONTEXT)
      .map((shorter) => ({
        words: `a context of ${shorter}`,
        flags: { context: shorter },
      })),
  ({ cluster }) =>
    doubled(2 * cluster.gpus, MOST_GPUS).map((gpus) => ({
      words: `${gpus} GPUs`,
      flags: { cluster: { ...cluster, gpus } },
    })),
];

/** As many are told at most. */
const MOST_REMEDIES = 6;
/** Two changes are tried together when there are fewer than so many single ones. */
const ENOUGH = 3;

/**
 * Single changes that make a training fit, then pairs, the cheapest first; each is computed anew. Where none is
 * enough, everything together on as few GPUs as that needs.
 */
export function remediesFor(model: LanguageModel, setting: TrainingFitSetting): Remedy[] {
  const kinds = KINDS.map((kind) => kind(setting, model)).filter(({ length }) => length > 0);
  const tried = (changes: readonly Change[]) => remedyOf(model, setting, changes);
  const single = kinds.map((changes) => smallest([changes], tried));
  const found = single.flatMap((each) => (each ? [each] : []));
  if (found.length < ENOUGH) {
    const left = kinds.filter((_, index) => single[index] === undefined);
    for (const pair of pairsOf(left)) {
      if (found.length >= ENOUGH) break;
      const remedy = smallest(pair, tried);
      if (remedy) found.push(remedy);
    }
  }
  if (found.length === 0) found.push(...everythingOn(model, setting));
  return found.slice(0, MOST_REMEDIES);
}

type Try = (changes: readonly Change[]) => Remedy | undefined;

/** The first change of each kind, or the next: what fits first, if even the largest of all does. */
function smallest(kinds: readonly (readonly Change[])[], tried: Try): Remedy | undefined {
  const largest = tried(kinds.flatMap((changes) => changes.slice(-1)));
  // More stages or more GPUs that share a layer may be impossible where fewer are not.
  if (largest === undefined && !kinds.some(isBoundByDivisors)) return undefined;
  for (const changes of combinations(kinds)) {
    const remedy = tried(changes);
    if (remedy) return remedy;
  }
  return undefined;
}

const isBoundByDivisors = ([first]: readonly Change[]) => first?.flags.tensorParallel !== undefined;

function combinations(kinds: readonly (readonly Change[])[]): Change[][] {
  const [first, ...others] = kinds;
  if (first === undefined) return [[]];
  const rest = combinations(others);
  return first.flatMap((change) => rest.map((changes) => [change, ...changes]));
}

/** Two kinds at a time, the cheaper ones first. */
function pairsOf(kinds: readonly (readonly Change[])[]): (readonly (readonly Change[])[])[] {
  return kinds.flatMap((first, index) => kinds.slice(index + 1).map((second) => [first, second]));
}

function everythingOn(model: LanguageModel, setting: TrainingFitSetting): Remedy[] {
  const { cluster } = setting;
  const savings: Change = {
    words: 'fused attention, full recomputation, ZeRO-3 and a micro-batch of 1',
    flags: { attention: 'fused', recompute: 'full', zero: 3, microBatch: 1 },
  };
  for (const gpus of doubled(cluster.gpus, MOST_GPUS)) {
    const more: Change = { words: `${gpus} GPUs`, flags: { cluster: { ...cluster, gpus } } };
    const changes = gpus === cluster.gpus ? [savings] : [savings, more];
    const remedy = remedyOf(model, setting, changes);
    if (remedy) return [remedy];
  }
  return [];
}

/** The changes as a remedy, if they are one. */
function remedyOf(
  model: LanguageModel,
  setting: TrainingFitSetting,
  changes: readonly Change[],
): Remedy | undefined {
  const flags: Flags = Object.assign({}, ...changes.map((change) => change.flags));
  const fit = possibleFit(model, { ...setting, ...flags });
  if (fit?.verdict !== 'fits') return undefined;
  return { change: changes.map(({ words }) => words).join(' and '), flags, total: fit.total };
}

/** Undefined where a model cannot be spread so. */
function possibleFit(
  model: LanguageModel,
  setting: TrainingFitSetting,
): TrainingMemoryFit | undefined {
  try {
    return fitTrainingMemory(model, setting);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** The largest micro-batch, and the longest context, with which a training that fits still does. */
export function roomFor(model: LanguageModel, setting: TrainingFitSetting): Remedy[] {
  const { microBatch, context } = setting;
  const batches = largestThat(microBatch, MOST_SEQUENCES, (value) =>
    remedyOf(model, setting, [
      { words: `up to a micro-batch of ${value}`, flags: { microBatch: value } },
    ]),
  );
  const contexts = largestThat(context, model.positions, (value) =>
    remedyOf(model, setting, [{ words: `up to a context of ${value}`, flags: { context: value } }]),
  );
  return [batches, contexts].flatMap((each) => (each ? [each] : []));
}

/** Beyond this nobody asks how many more sequences there is room for. */
const MOST_SEQUENCES = 65_536;

/** The remedy of the largest value above `from` and up to `to` that has one: doubled, then cut in halves. */
function largestThat(
  from: number,
  to: number,
  tried: (value: number) => Remedy | undefined,
): Remedy | undefined {
  let [fits, fails] = [from, to + 1];
  let best: Remedy | undefined;
  const probe = (value: number) => {
    const remedy = tried(value);
    if (remedy === undefined) fails = value;
    else [fits, best] = [value, remedy];
  };
  while (fails === to + 1 && fits < to) probe(Math.min(to, 2 * fits));
  while (fails - fits > 1) probe(Math.floor((fits + fails) / 2));
  return best;
}
