/** Fewest changes that make a training fit, or the room left if it already fits. */
import type { LanguageModel } from '../../architecture/layer.js';
import type { Cluster } from '../../hardware/gpu.js';
import { peakIfKnown } from '../../hardware/gpu.js';
import { formatSeconds } from '../../text/units.js';
import { counted, joined } from '../../text/words.js';
import { largest } from '../bounds.js';
import { parallelismOf } from '../parallelism/parallelism.js';
import { MOST_GPUS } from '../parallelism/tensor-parallel.js';
import type { ServingFit, ServingLoad } from '../serving/serving.js';
import type { UsersFit } from '../serving/users.js';
import { computedIn, stepTimeOf, tokensOfStep, trainingTimeOf } from '../training/step-time.js';
import type { Remedy, TrainingFit } from '../training/training-fit.js';
import { fitTrainingMemory } from '../training/training-memory.js';
import type { TrainingFitSetting } from '../training/training-setting.js';
import type { ChangeGroup, Flags, SettingChange, SettingChanges } from './options.js';
import {
  CHANGING,
  changeGroupsOf,
  doubled,
  FitCache,
  fewestChanges,
  flagsOf,
  onGpus,
} from './options.js';

export interface UnmetRequirement {
  readonly about: 'training' | 'serving' | 'load';
  readonly text: string;
}

interface Asked {
  readonly cluster: Cluster;
  readonly training: { readonly fit: Pick<TrainingFit, 'verdict'> } | null;
  readonly serving: {
    readonly fit: Pick<ServingFit, 'verdict' | 'load'>;
    readonly users: Pick<UsersFit, 'asked'>;
  } | null;
}

/** Doubts by the upper bound of memory and the expected speed; empty if there are none. */
export function unmetRequirementsOf({ cluster, training, serving }: Asked): UnmetRequirement[] {
  const doubts: UnmetRequirement[] = [];
  for (const [about, requested] of [
    ['training', training],
    ['serving', serving],
  ] as const) {
    if (requested === null || requested.fit.verdict === 'fits') continue;
    const users = 'users' in requested ? requested.users.asked : null;
    const whom = users === null ? '' : ` ${counted(users, 'user')}`;
    doubts.push({ about, text: `${about} ${requested.fit.verdict}${whom}` });
  }
  const load = serving?.fit.load && shortageOf(serving.fit.load, cluster);
  return load === undefined ? doubts : [...doubts, { about: 'load', text: load }];
}

/** Hardware that a load still needs, by the estimate. */
function shortageOf({ expected }: ServingLoad, { gpus }: Cluster): string | undefined {
  if (!expected.met) {
    return `no number of GPUs meets the load (estimate): ${
      expected.reason === 'no room'
        ? 'no request fits in memory'
        : `a request alone takes ${formatSeconds(expected.best.value)}`
    }`;
  }
  return expected.gpus.value > gpus
    ? `the load needs ${counted(expected.gpus.value, 'GPU')} (estimate), found ${gpus}`
    : undefined;
}

/** Limit of remedies to list. */
const MOST_REMEDIES = 6;
/** Larger sets of changes are tried only while fewer than this are found. */
const ENOUGH = 3;

/**
 * Remedies for a training, fewest changes first: those that keep the training the same, then those that change it, then
 * the fewest GPUs (by doubling) that fit. Each remedy is recomputed in full.
 */
function remediesFor(model: LanguageModel, requested: TrainingFitSetting): Remedy[] {
  // Fewer replicas or smaller micro-batches must not change the tokens of a step.
  const setting = { ...requested, globalBatchTokens: stepTokensOf(model, requested) };
  const fitting = new FitCache(model, setting);
  const levers = changeGroupsOf(setting, model);
  const same = levers.filter(({ name }) => !CHANGING.includes(name));
  const found = fewestChanges(fitting, same, ENOUGH);
  const further = found.length === 0 ? fewestChanges(fitting, levers, 1) : singles(fitting, levers);
  const more = found.length === 0 ? onMoreGpus(model, setting) : [];
  // The fewest GPUs are always listed, even when no other remedy exists.
  return [...found, ...further.slice(0, MOST_REMEDIES - more.length), ...more]
    .slice(0, MOST_REMEDIES)
    .map((changes) =>
      remedyOf(model, requested, withTokens(model, requested, flagsOf(changes)), changes),
    );
}

/** Single changes of the training itself that are enough. */
const singles = (fitting: FitCache, levers: readonly ChangeGroup[]): SettingChanges[] =>
  levers
    .filter(({ name }) => CHANGING.includes(name))
    .flatMap((lever) => fewestChanges(fitting, [lever], 1));

/** Fewest GPUs on which the training fits, with as few other changes as possible. */
function onMoreGpus(model: LanguageModel, setting: TrainingFitSetting): SettingChanges[] {
  for (const gpus of doubled(2 * setting.cluster.gpus, MOST_GPUS)) {
    const more = onGpus(setting, gpus);
    const wider = { ...setting, ...more.flags };
    const fitting = new FitCache(model, wider);
    if (fitting.fits([])) return [[more]];
    const levers = changeGroupsOf(wider, model).filter(({ name }) => !CHANGING.includes(name));
    const found = fewestChanges(fitting, levers, 1).slice(0, ENOUGH);
    if (found.length > 0) return found.map((changes) => [more, ...changes]);
  }
  return [];
}

const stepTokensOf = (model: LanguageModel, setting: TrainingFitSetting): number =>
  tokensOfStep(setting, parallelismOf(model, setting)).value;

/** Adds the tokens of a step where they would change. */
function withTokens(model: LanguageModel, requested: TrainingFitSetting, flags: Flags): Flags {
  const tokens = stepTokensOf(model, requested);
  return stepTokensOf(model, { ...requested, ...flags }) === tokens
    ? flags
    : { ...flags, globalBatchTokens: tokens };
}

/** Flags that make the training fit, with the resulting memory and speed. */
function remedyOf(
  model: LanguageModel,
  requested: TrainingFitSetting,
  flags: Flags,
  changes: SettingChanges,
): Remedy {
  const setting = { ...requested, ...flags };
  const { total, stages } = fitTrainingMemory(model, setting);
  const isTimed = peakIfKnown(setting.cluster.gpu, computedIn(setting)) !== null;
  return {
    change: joined(changes.map(({ words }) => words)),
    flags,
    total,
    tokensPerSecond: isTimed ? stepTimeOf(model, setting, stages).tokensPerSecond : null,
  };
}

/** Largest micro-batch and longest context with which the training still fits. */
function roomFor(model: LanguageModel, setting: TrainingFitSetting): Remedy[] {
  const { microBatch, context } = setting;
  const fitting = new FitCache(model, setting);
  const fitsWith = (flags: SettingChange['flags']) => fitting.fits([{ words: '', flags }]);
  const batches = largest(
    Math.max(microBatch, MOST_SEQUENCES),
    (value) => value <= microBatch || fitsWith({ microBatch: value }),
  );
  const contexts = largest(
    model.positions,
    (value) => value <= context || fitsWith({ context: value }),
  );
  const changes = [
    { words: `up to a micro-batch of ${batches}`, flags: { microBatch: batches } },
    { words: `up to a context of ${contexts}`, flags: { context: contexts } },
  ];
  return changes
    .filter(({ flags }) => flags.microBatch !== microBatch && flags.context !== context)
    .map((change) => remedyOf(model, setting, change.flags, [change]));
}

/** Limit of the search for the largest micro-batch. */
const MOST_SEQUENCES = 65_536;

/**
 * Checks whether a training fits, and estimates its time and remedies.
 * @throws UserError when the model cannot be spread as requested, or the peak needed for a requested time is unknown.
 */
export function fitTraining(model: LanguageModel, setting: TrainingFitSetting): TrainingFit {
  const memory = fitTrainingMemory(model, setting);
  const { trainTokens } = setting;
  // Skip the error about an unknown peak if no time was requested.
  const isTold =
    trainTokens !== undefined || peakIfKnown(setting.cluster.gpu, computedIn(setting)) !== null;
  const step = isTold ? stepTimeOf(model, setting, memory.stages) : undefined;
  const remedies =
    memory.verdict === 'fits' ? roomFor(model, setting) : remediesFor(model, setting);
  return {
    ...memory,
    ...(step && { step }),
    ...(step && trainTokens !== undefined && { time: trainingTimeOf(step, trainTokens) }),
    remedies,
  };
}
