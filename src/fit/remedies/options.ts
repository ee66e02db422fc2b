/** What of a training could be set otherwise so that it needs less memory. */
import type { LanguageModel } from '../../architecture/layer.js';
import { UserError } from '../../errors.js';
import { stepTimeOf } from '../training/step-time.js';
import { fitTrainingMemory, isFitting } from '../training/training-memory.js';
import type { TrainingFitSetting, ZeroStage } from '../training/training-setting.js';

export type Flags = Partial<TrainingFitSetting>;

/** A change of one setting. */
export interface Change {
  /** In words. */
  readonly words: string;
  readonly flags: Flags;
  /** Less of it, which may do as well. */
  readonly simpler?: Change;
}

/** Something that can be set otherwise: the changes of it, that which saves least and costs least first. */
export interface Lever {
  readonly name: LeverName;
  readonly changes: readonly Change[];
}

/** Less than this is no text to learn from. */
const SHORTEST_CONTEXT = 128;

/** GPUs that share a layer are those of one machine. */
const MOST_SHARING = 8;

/** `from`, doubled again and again, up to `to`. */
export const doubled = (from: number, to: number): number[] =>
  from > to ? [] : [from, ...doubled(2 * from, to)];

const halved = (from: number): number[] => {
  const half = Math.floor(from / 2);
  return half >= 1 ? [half, ...halved(half)] : [];
};

const FUSED: Change = { words: 'fused attention', flags: { attention: 'fused' } };
const CHUNKED: Change = { words: 'a loss in chunks', flags: { loss: 'chunked' } };
const SEQUENCE: Change = { words: 'sequence parallelism', flags: { sequenceParallel: true } };
const SELECTIVE: Change = {
  words: 'selective recomputation',
  flags: { recompute: 'selective' },
};
const FULL: Change = { words: 'full recomputation', flags: { recompute: 'full' } };

type Changes = (setting: TrainingFitSetting, model: LanguageModel) => readonly Change[];

/**
 * In the order of what they cost: nothing; communication or work that is small; another way to spread the same training;
 * work again; and what changes the training itself.
 */
const CHANGES = {
  attention: ({ attention }) => (attention === 'plain' ? [FUSED] : []),
  loss: ({ loss }) => (loss === 'full' ? [CHUNKED] : []),
  sequence: ({ sequenceParallel, tensorParallel }) =>
    tensorParallel > 1 && !sequenceParallel ? [SEQUENCE] : [],
  zero: ({ zero, cluster }) =>
    cluster.gpus === 1
      ? []
      : ([1, 2, 3] as const satisfies readonly ZeroStage[])
          .filter((stage) => stage > zero)
          .map((stage) => ({ words: `ZeRO-${stage}`, flags: { zero: stage } })),
  recompute: ({ recompute }) => {
    if (recompute === 'full') return [];
    return recompute === 'none' ? [SELECTIVE, FULL] : [FULL];
  },
  microBatch: ({ microBatch }) =>
    halved(microBatch).map((smaller) => ({
      words: `a micro-batch of ${smaller}`,
      flags: { microBatch: smaller },
    })),
  tensor: ({ tensorParallel, pipelineParallel, cluster: { gpus } }) =>
    doubled(2 * tensorParallel, Math.min(MOST_SHARING, gpus / pipelineParallel)).map((tensor) => ({
      words: `tensor and sequence parallelism of ${tensor}`,
      flags: { tensorParallel: tensor, sequenceParallel: true },
      simpler: {
        words: `tensor parallelism of ${tensor}`,
        flags: { tensorParallel: tensor },
      },
    })),
  pipeline: ({ tensorParallel, pipelineParallel, cluster: { gpus } }, { blocks }) =>
    doubled(2 * pipelineParallel, Math.min(blocks.length, gpus / tensorParallel)).map((stages) => ({
      words: `${stages} pipeline stages`,
      flags: { pipelineParallel: stages },
    })),
  optimizer: ({ optimizer }) =>
    optimizer === 'adamw' ? [{ words: 'AdamW in 8 bits', flags: { optimizer: 'adamw-8bit' } }] : [],
  context: ({ context }) =>
    halved(context)
      .filter((shorter) => shorter >= SHORTEST_CONTEXT)
      .map((shorter) => ({ words: `a context of ${shorter}`, flags: { context: shorter } })),
} as const satisfies Record<string, Changes>;

export type LeverName = keyof typeof CHANGES;

/** Those that make another training of it. */
export const CHANGING: readonly LeverName[] = ['optimizer', 'context'];

/** Those of which more does not always need less: fewer replicas are left to divide among. */
const SPREADING: readonly LeverName[] = ['tensor', 'pipeline'];

/** Those that can be moved. */
export const leversOf = (setting: TrainingFitSetting, model: LanguageModel): Lever[] =>
  (Object.keys(CHANGES) as LeverName[])
    .map((name) => ({ name, changes: CHANGES[name](setting, model) }))
    .filter(({ changes }) => changes.length > 0);

/** The same training on so many GPUs. */
export const onGpus = ({ cluster }: Pick<TrainingFitSetting, 'cluster'>, gpus: number): Change => ({
  words: `${gpus} GPUs`,
  flags: { cluster: { ...cluster, gpus } },
});

// Which levers have to be moved, and how far, so that a training fits.

/** What is done with each of some levers. */
export type Combination = readonly Change[];

export const flagsOf = (changes: Combination): Flags =>
  Object.assign({}, ...changes.map(({ flags }) => flags));

/** As many questions are asked at most: of the largest models each takes a millisecond or two. */
const MOST_CHECKS = 400;
/** As many combinations of as few changes are timed at most. */
const MOST_TIMED = 8;

/** Answers whether a training fits with some changes; each question is asked once. */
export class Fitting {
  readonly #known = new Map<string, boolean>();

  constructor(
    readonly model: LanguageModel,
    readonly setting: TrainingFitSetting,
  ) {}

  get isExhausted(): boolean {
    return this.#known.size >= MOST_CHECKS;
  }

  fits(changes: Combination): boolean {
    const flags = flagsOf(changes);
    const key = JSON.stringify(Object.entries({ ...flags, cluster: flags.cluster?.gpus }).sort());
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const answer = orUndefined(() => isFitting(this.model, { ...this.setting, ...flags })) ?? false;
    this.#known.set(key, answer);
    return answer;
  }

  /** Of a token; without a peak, nothing is cheaper than anything else. */
  costOf(changes: Combination): Cost {
    const setting = { ...this.setting, ...flagsOf(changes) };
    const cost = orUndefined(() => {
      const { stages } = fitTrainingMemory(this.model, setting);
      const { seconds, limits, tokens } = stepTimeOf(this.model, setting, stages);
      const gpus = setting.cluster.gpus / tokens.value;
      const all = limits.reduce((total, each) => total + each.seconds.expected.value, 0);
      return { seconds: gpus * seconds.expected.value, all: gpus * all };
    });
    return cost ?? UNKNOWN_COST;
  }
}

/** Seconds of all GPUs, as expected. */
interface Cost {
  readonly seconds: number;
  /** … if nothing of computing, memory and communication went on at the same time. */
  readonly all: number;
}

const UNKNOWN_COST: Cost = { seconds: Number.POSITIVE_INFINITY, all: Number.POSITIVE_INFINITY };

/** Where a utilisation decides, the expected time is the same, and the work that it hides is compared. */
function compareCosts(a: Cost, b: Cost): number {
  const [first, second] = [a, b].map(({ seconds }) => Number(seconds.toPrecision(3)));
  if (first !== second) return a.seconds - b.seconds;
  return a.all === b.all ? 0 : a.all - b.all;
}

/** Undefined where a model cannot be spread so, or no peak is known. */
function orUndefined<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Levers of which each step needs less memory, whatever the others; and one way to spread the training. */
interface Ways {
  readonly spread: Combination;
  readonly levers: readonly Lever[];
  /** Without which nothing fits, however far the others are moved. */
  readonly needed: readonly Lever[];
}

/**
 * The fewest changes that make it fit, those that cost least first; then those of more changes that are no more than
 * some of these, as long as there are fewer than `enough`.
 */
export function fewestChanges(
  fitting: Fitting,
  levers: readonly Lever[],
  enough: number,
): Combination[] {
  const ways = waysOf(fitting, levers);
  const found: Moved[] = [];
  for (let count = 1; count <= levers.length && found.length < enough; count++) {
    const next = new Map<string, Moved[]>();
    for (const way of ways) {
      for (const chosen of subsetsOf(way, count - way.spread.length)) {
        if (fitting.isExhausted) break;
        const names = namesOf(levers, way.spread, chosen);
        const isMore = ({ names: fewer }: Moved) => fewer.every((name) => names.includes(name));
        if (found.some(isMore)) continue;
        const changes = leastOf(fitting, way.spread, chosen);
        const key = names.join(' ');
        if (changes) next.set(key, [...(next.get(key) ?? []), { names, changes }]);
      }
    }
    found.push(...cheapest(fitting, next));
  }
  return found.map(({ changes }) => changes);
}

/** Levers that are moved, and how far. */
interface Moved {
  readonly names: readonly LeverName[];
  readonly changes: Combination;
}

/** Of each set of levers the combination that costs least, and of all these the cheapest first. */
function cheapest(fitting: Fitting, found: ReadonlyMap<string, readonly Moved[]>): Moved[] {
  let timed = 0;
  const costs = [...found.values()].map((ways) =>
    ways
      .map((moved) => ({
        moved,
        cost: timed++ < MOST_TIMED ? fitting.costOf(moved.changes) : UNKNOWN_COST,
      }))
      .reduce((a, b) => (compareCosts(a.cost, b.cost) <= 0 ? a : b)),
  );
  return costs.sort((a, b) => compareCosts(a.cost, b.cost)).map(({ moved }) => moved);
}

function waysOf(fitting: Fitting, levers: readonly Lever[]): Ways[] {
  return spreadsOf(levers).flatMap((spread) => {
    const movable = others(levers, spread);
    const fits = (moved: readonly Lever[]) => fitting.fits([...spread, ...farthest(moved)]);
    if (!fits(movable)) return [];
    const needed = movable.filter((lever) => !fits(movable.filter((each) => each !== lever)));
    return [{ spread, levers: movable, needed }];
  });
}

/** Ways to share layers and blocks, the fewest changes and the fewest GPUs first. */
function spreadsOf(levers: readonly Lever[]): Combination[] {
  const ways = levers
    .filter(({ name }) => SPREADING.includes(name))
    .reduce<Combination[]>(
      (all, { changes }) => all.flatMap((way) => [way, ...changes.map((each) => [...way, each])]),
      [[]],
    );
  return ways.sort((a, b) => a.length - b.length || gpusOf(a) - gpusOf(b));
}

const gpusOf = (spread: Combination): number => {
  const { tensorParallel = 1, pipelineParallel = 1 } = flagsOf(spread);
  return tensorParallel * pipelineParallel;
};

/** Sharing layers splits by tokens as well: that needs no lever of its own then. */
const others = (levers: readonly Lever[], spread: Combination): Lever[] => {
  const { sequenceParallel } = flagsOf(spread);
  return levers.filter(
    ({ name }) => !SPREADING.includes(name) && !(sequenceParallel && name === 'sequence'),
  );
};

const farthest = (levers: readonly Lever[]): Combination =>
  levers.flatMap(({ changes }) => changes.slice(-1));

/** So many levers, what is needed among them. */
function subsetsOf({ levers, needed }: Ways, count: number): Lever[][] {
  const free = levers.filter((lever) => !needed.includes(lever));
  return choices(free, count - needed.length).map((chosen) =>
    levers.filter((lever) => needed.includes(lever) || chosen.includes(lever)),
  );
}

function choices<T>(from: readonly T[], count: number): T[][] {
  if (count < 0) return [];
  if (count === 0) return [[]];
  return from.flatMap((first, index) =>
    choices(from.slice(index + 1), count - 1).map((rest) => [first, ...rest]),
  );
}

/** Which levers are moved, in their order. */
const namesOf = (levers: readonly Lever[], spread: Combination, chosen: readonly Lever[]) =>
  levers
    .filter(
      (lever) => chosen.includes(lever) || lever.changes.some((change) => spread.includes(change)),
    )
    .map(({ name }) => name);

/** Each lever moved no farther than it must be, those that cost most being asked first. */
function leastOf(
  fitting: Fitting,
  spread: Combination,
  levers: readonly Lever[],
): Combination | undefined {
  let chosen = levers.map(({ changes }) => changes);
  const ends = () => chosen.flatMap((changes) => changes.slice(-1));
  if (!fitting.fits([...spread, ...ends()])) return undefined;
  for (const index of levers.map((_, at) => levers.length - 1 - at)) {
    const changes = chosen[index] ?? [];
    const enough = changes.findIndex((change) =>
      fitting.fits([...spread, ...ends().map((end, at) => (at === index ? change : end))]),
    );
    chosen = chosen.map((each, at) => (at === index ? changes.slice(0, enough + 1) : each));
  }
  const simpler = [...ends(), ...spread.map((change) => change.simpler ?? change)];
  return fitting.fits(simpler) ? simpler : [...ends(), ...spread];
}
