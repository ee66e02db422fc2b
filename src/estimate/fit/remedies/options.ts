/** Changes of a training setting that save memory. */

import { UserError } from '../../../base/errors.js';
import { sumOf } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { countParameters } from '../../../model/budget/parameters.js';
import { type Cluster, memoryOf } from '../../hardware/gpu.js';
import { LARGEST_DESKTOP, systemMemory } from '../../hardware/system-memory.js';
import { doubled } from '../parallelism/divisors.js';
import { canCutSequences, dividedExperts } from '../parallelism/model-axes.js';
import { PUBLISHED_SPREADS } from '../published-range.js';
import { hostStateBytes } from '../training/offload.js';
import { stepTimeOf } from '../training/step-time.js';
import { fitTrainingMemory, isFitting } from '../training/training-memory.js';
import {
  TRAINING_OFFLOADS,
  type TrainingFitSetting,
  type ZeroStage,
} from '../training/training-setting.js';

export type Flags = Partial<TrainingFitSetting>;

/** Change of one setting. */
export interface SettingChange {
  /** Text for the user. */
  readonly words: string;
  readonly flags: Flags;
  /** Smaller change that may be enough. */
  readonly simpler?: SettingChange;
}

/** Group of changes to one setting, ordered by increasing saving and cost. */
export interface ChangeGroup {
  readonly name: ChangeGroupName;
  readonly changes: readonly SettingChange[];
}

/** Shorter contexts are not useful. */
export const SHORTEST_CONTEXT = 128;

/** Tensor parallelism stays within one machine. */
const MOST_SHARING = 8;

/** Most GPUs that divide the experts of a training (DeepSeek-V3, arXiv 2412.19437, section 3.2). */
const MOST_EXPERTS = 64;

/** Tokens from which recipes cut sequences (torchtitan, llama3_h100_202412_torchtitan.md, table 2). */
const LONG_CONTEXT = 32_768;

const halved = (from: number): number[] => {
  const half = Math.floor(from / 2);
  return half >= 1 ? [half, ...halved(half)] : [];
};

const FUSED: SettingChange = { words: 'fused attention', flags: { attention: 'fused' } };
const CHUNKED: SettingChange = { words: 'a loss in chunks', flags: { loss: 'chunked' } };
const SEQUENCE: SettingChange = {
  words: 'sequence parallelism',
  flags: { sequenceParallel: true },
};
const SELECTIVE: SettingChange = {
  words: 'selective recomputation',
  flags: { recompute: 'selective' },
};
const FULL: SettingChange = { words: 'full recomputation', flags: { recompute: 'full' } };

/**
 * Parts of the state in system memory, where their update runs (ZeRO-Offload): on cards of desktops, whose memory has
 * room for it. Servers have more cards instead.
 */
function offloads(setting: TrainingFitSetting, model: LanguageModel): readonly SettingChange[] {
  const { offload, cluster, systemMemory: named } = setting;
  if (offload !== undefined || memoryOf(cluster.gpu).kind !== 'screen') return [];
  const memory = named ?? systemMemory(null, undefined);
  const trained = [{ elements: Number(countParameters(model).parameters) }];
  return TRAINING_OFFLOADS.filter((part) => {
    const { upper } = hostStateBytes(trained, setting, part);
    return upper.value <= (memory.bytes ?? LARGEST_DESKTOP);
  }).map((part) => ({
    words: `the ${part} in system memory`,
    flags: { offload: { part, memory } },
  }));
}

type Changes = (setting: TrainingFitSetting, model: LanguageModel) => readonly SettingChange[];

/**
 * Changes in order of cost: free ones, small communication or work, other ways to spread the same training,
 * recomputation, and changes of the training itself.
 */
const CHANGES = {
  attention: ({ attention }) => (attention === 'plain' ? [FUSED] : []),
  loss: ({ loss }) => (loss === 'chunked' ? [] : [CHUNKED]),
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
  expert: ({ expertParallel = 1, cluster: { gpus } }, model) =>
    doubled(2 * expertParallel, Math.min(MOST_EXPERTS, gpus))
      .filter((expert) => dividedExperts(model) % expert === 0 && dividedExperts(model) > 0)
      .map((expert) => ({
        words: `expert parallelism of ${expert}`,
        flags: { expertParallel: expert },
      })),
  ring: ({ contextParallel = 1, context, attention, cluster: { gpus } }, model) =>
    attention === 'plain' || context < LONG_CONTEXT || !canCutSequences(model)
      ? []
      : doubled(2 * contextParallel, Math.min(MOST_SHARING, gpus)).map((ring) => ({
          words: `context parallelism of ${ring}`,
          flags: { contextParallel: ring },
        })),
  offload: offloads,
  optimizer: ({ optimizer }) =>
    optimizer === 'adamw' ? [{ words: 'AdamW in 8 bits', flags: { optimizer: 'adamw-8bit' } }] : [],
  context: ({ context }) =>
    halved(context)
      .filter((shorter) => shorter >= SHORTEST_CONTEXT)
      .map((shorter) => ({ words: `a context of ${shorter}`, flags: { context: shorter } })),
} as const satisfies Record<string, Changes>;

export type ChangeGroupName = keyof typeof CHANGES;

const CHANGE_NAMES = Object.keys(CHANGES) as readonly ChangeGroupName[];

/** Levers that change the training itself. */
export const CHANGING: readonly ChangeGroupName[] = ['optimizer', 'context'];

/** Levers without a monotonic saving: a larger value leaves fewer replicas to divide state among. */
const SPREADING: readonly ChangeGroupName[] = ['tensor', 'pipeline', 'expert', 'ring'];

/** Ways that are moved together: further ones make a search long, and few programs combine more. */
const MOST_SPREADING = 2;

/** Levers with at least one possible change. */
export const changeGroupsOf = (setting: TrainingFitSetting, model: LanguageModel): ChangeGroup[] =>
  CHANGE_NAMES.map((name) => ({ name, changes: CHANGES[name](setting, model) })).filter(
    ({ changes }) => changes.length > 0,
  );

/** Same training on other GPUs. */
export const onCluster = (cluster: Cluster): SettingChange => ({
  words: `${cluster.gpus} GPUs`,
  flags: { cluster },
});

/** One change for each of some levers. */
export type SettingChanges = readonly SettingChange[];

export const flagsOf = (changes: SettingChanges): Flags =>
  Object.assign({}, ...changes.map(({ flags }) => flags));

/** Limit of memory checks: each takes 1 to 2 ms for the largest models. */
const MOST_CHECKS = 400;
/** Limit of combinations with the same number of changes that are timed. */
const MOST_TIMED = 8;

/** Checks whether a training fits with some changes, with a cache. */
export class FitCache {
  readonly #known = new Map<string, boolean>();

  constructor(
    readonly model: LanguageModel,
    readonly setting: TrainingFitSetting,
  ) {}

  get isExhausted(): boolean {
    return this.#known.size >= MOST_CHECKS;
  }

  fits(changes: SettingChanges): boolean {
    const flags = flagsOf(changes);
    const key = JSON.stringify(Object.entries({ ...flags, cluster: flags.cluster?.gpus }).sort());
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const answer = orUndefined(() => isFitting(this.model, { ...this.setting, ...flags })) ?? false;
    this.#known.set(key, answer);
    return answer;
  }

  /** Cost per token; without a known peak, all costs are equal. */
  costOf(changes: SettingChanges): Cost {
    const setting = { ...this.setting, ...flagsOf(changes) };
    const cost = orUndefined(() => {
      const { stages } = fitTrainingMemory(this.model, setting);
      const { seconds, limits, tokens } = stepTimeOf(this.model, setting, stages);
      const gpus = setting.cluster.gpus / tokens.value;
      const all = sumOf(limits, (each) => each.seconds.expected.value);
      return { seconds: gpus * seconds.expected.value, all: gpus * all };
    });
    return cost ?? UNKNOWN_COST;
  }
}

/** Expected GPU-seconds. */
interface Cost {
  readonly seconds: number;
  /** The same if compute, memory and communication did not overlap. */
  readonly all: number;
}

const UNKNOWN_COST: Cost = { seconds: Number.POSITIVE_INFINITY, all: Number.POSITIVE_INFINITY };

/** Compares expected times. If an assumed utilisation makes them equal, compares the hidden work. */
function compareCosts(a: Cost, b: Cost): number {
  const [first, second] = [a, b].map(({ seconds }) => Number(seconds.toPrecision(3)));
  if (first !== second) return a.seconds - b.seconds;
  return a.all === b.all ? 0 : a.all - b.all;
}

/** Result of `make`, or undefined if the model cannot be spread or no peak is known. */
function orUndefined<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Way to spread the training, with levers that always save memory when moved further. */
interface Ways {
  readonly spread: SettingChanges;
  readonly levers: readonly ChangeGroup[];
  /** Levers without which nothing fits, even with all others at their limit. Found when they are asked for. */
  readonly needed: () => readonly ChangeGroup[];
}

/**
 * Fewest changes that make the training fit, cheapest first. Adds larger sets that contain none of the sets found,
 * while there are fewer than `enough`.
 */
export function fewestChanges(
  fitting: FitCache,
  levers: readonly ChangeGroup[],
  enough: number,
): SettingChanges[] {
  const ways = waysOf(fitting, levers);
  const found: Moved[] = [];
  for (let count = 1; count <= levers.length && found.length < enough; count++) {
    const next = new Map<string, Moved[]>();
    for (const way of ways) {
      for (const chosen of subsetsOf(way, count - way.spread.length)) {
        if (fitting.isExhausted) break;
        const names = optionNames(levers, way.spread, chosen);
        const isMore = ({ names: fewer }: Moved) => fewer.every((name) => names.includes(name));
        if (found.some(isMore)) continue;
        const changes = leastOf(fitting, way.spread, chosen);
        const key = names.join(' ');
        if (changes) next.set(key, [...(next.get(key) ?? []), { names, changes }]);
      }
    }
    found.push(...cheapest(fitting, next));
  }
  const [way] = ways;
  // The limit of checks is no reason to say that nothing fits.
  if (found.length === 0 && way) return [[...way.spread, ...farthest(way.levers)]];
  return found.map(({ changes }) => changes);
}

/** Whether any changes are enough. */
export const canFit = (fitting: FitCache, levers: readonly ChangeGroup[]): boolean =>
  spreadsOf(levers).some((spread) =>
    fitting.fits([...spread, ...farthest(others(levers, spread))]),
  );

interface Moved {
  readonly names: readonly ChangeGroupName[];
  readonly changes: SettingChanges;
}

/** Cheapest combination of each set of levers, sorted by cost, of equal speeds the simplest first. */
function cheapest(fitting: FitCache, found: ReadonlyMap<string, readonly Moved[]>): Moved[] {
  let timed = 0;
  const costs = [...found.values()].map((ways) =>
    ways
      .map((moved) => ({
        moved,
        cost: timed++ < MOST_TIMED ? fitting.costOf(moved.changes) : UNKNOWN_COST,
      }))
      .reduce((a, b) => (compareCosts(a.cost, b.cost) <= 0 ? a : b)),
  );
  const sorted = costs.sort((a, b) => compareCosts(a.cost, b.cost));
  // Groups of equal speeds, each from its fastest on.
  let most = Number.NEGATIVE_INFINITY;
  const groups: Moved[][] = [];
  for (const { moved, cost } of sorted) {
    if (cost.seconds > most) {
      most = cost.seconds / EQUAL_SPEED;
      groups.push([]);
    }
    groups.at(-1)?.push(moved);
  }
  return groups.flatMap((equal) => equal.sort((a, b) => hardestOf(a) - hardestOf(b)));
}

/**
 * Lowest share of a speed that counts as equal to it: published runs of one setup differ by this factor. ZeRO and FSDP are
 * settings of the trainer. Tensor parallelism and stages need a model that is written for them, so people use them only
 * where they are clearly faster, or where ZeRO does not fit.
 */
const EQUAL_SPEED = PUBLISHED_SPREADS.training.lower;

/** Place of the lever of a set that takes the most work to set up: `CHANGES` are in that order. */
const hardestOf = ({ names }: Moved): number =>
  Math.max(...names.map((name) => CHANGE_NAMES.indexOf(name)));

function waysOf(fitting: FitCache, levers: readonly ChangeGroup[]): Ways[] {
  return spreadsOf(levers).flatMap((spread) => {
    const movable = others(levers, spread);
    const fits = (moved: readonly ChangeGroup[]) => fitting.fits([...spread, ...farthest(moved)]);
    if (!fits(movable)) return [];
    let known: readonly ChangeGroup[] | undefined;
    const needed = () => {
      known ??= movable.filter((lever) => !fits(movable.filter((each) => each !== lever)));
      return known;
    };
    return [{ spread, levers: movable, needed }];
  });
}

/** Ways to share layers and blocks, fewest changes and fewest GPUs first. */
function spreadsOf(levers: readonly ChangeGroup[]): SettingChanges[] {
  const ways = levers
    .filter(({ name }) => SPREADING.includes(name))
    .reduce<SettingChanges[]>(
      (all, { changes }) =>
        all.flatMap((way) =>
          way.length === MOST_SPREADING ? [way] : [way, ...changes.map((each) => [...way, each])],
        ),
      [[]],
    );
  return ways.sort((a, b) => a.length - b.length || spreadGpus(a) - spreadGpus(b));
}

const spreadGpus = (spread: SettingChanges): number => {
  const flags = flagsOf(spread);
  const { tensorParallel = 1, pipelineParallel = 1 } = flags;
  const { expertParallel = 1, contextParallel = 1 } = flags;
  return tensorParallel * pipelineParallel * expertParallel * contextParallel;
};

/** Other levers. Tensor parallelism includes sequence parallelism, so that lever is dropped. */
const others = (levers: readonly ChangeGroup[], spread: SettingChanges): ChangeGroup[] => {
  const { sequenceParallel } = flagsOf(spread);
  return levers.filter(
    ({ name }) => !SPREADING.includes(name) && !(sequenceParallel && name === 'sequence'),
  );
};

const farthest = (levers: readonly ChangeGroup[]): SettingChanges =>
  levers.flatMap(({ changes }) => changes.slice(-1));

/** Subsets of `count` levers that include all needed ones. */
function subsetsOf(way: Ways, count: number): ChangeGroup[][] {
  if (count < 0) return [];
  const { levers } = way;
  const needed = way.needed();
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

/** Names of moved levers, in their order. */
const optionNames = (
  levers: readonly ChangeGroup[],
  spread: SettingChanges,
  chosen: readonly ChangeGroup[],
) =>
  levers
    .filter(
      (lever) => chosen.includes(lever) || lever.changes.some((change) => spread.includes(change)),
    )
    .map(({ name }) => name);

/** Smallest sufficient change of each lever; the most expensive levers are reduced first. */
function leastOf(
  fitting: FitCache,
  spread: SettingChanges,
  levers: readonly ChangeGroup[],
): SettingChanges | undefined {
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
