/** Fewest changes that make a training fit, or the room left if it already fits. */

import { setting as settingText } from '../../../base/text/setting.js';
import { formatSeconds, significant } from '../../../base/text/units.js';
import { counted, joined } from '../../../base/text/words.js';
import { present } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Bounds } from '../../../model/budget/figure.js';
import type { Cluster } from '../../hardware/gpu.js';
import { areLinked, capacityOf, withReserved } from '../../hardware/gpu.js';
import { largestCount } from '../bounds.js';
import { COMMON_HARDWARE } from '../common-hardware.js';
import { withoutLink } from '../parallelism/collectives.js';
import { fewestGpus, linkedCluster } from '../parallelism/linked-cluster.js';
import { parallelismOf } from '../parallelism/parallelism.js';
import type { PlacesFit } from '../places/places.js';
import type { Purpose } from '../purpose.js';
import { linkedGpus } from '../serving/disaggregation.js';
import type { ServingQuestion } from '../serving/placed-serving.js';
import { fewestForServing, idleGpusOf, placedServing } from '../serving/placed-serving.js';
import type { ServingFit, UsersFit } from '../serving/serving.js';
import type { ServingFitSetting } from '../serving/serving-work.js';
import type { ServingLoad } from '../serving/throughput/arrivals.js';
import { type ServerThroughput, USUAL_SPEED } from '../serving/throughput/throughput.js';
import type { WeightDtype, WeightFormat } from '../serving/weight-types.js';
import { usualFormat, WEIGHT_DTYPES } from '../serving/weight-types.js';
import type { ClusterLora } from '../training/lora.js';
import { loraMemoryOn } from '../training/lora.js';
import {
  stepTimeIfKnown,
  tokensOfStep,
  trainingTimeOf,
  withoutSpeedText,
} from '../training/step-time.js';
import type { FitVerdict, Remedy, TrainingFit } from '../training/training-fit.js';
import { fitTrainingMemory } from '../training/training-memory.js';
import type { TrainingFitSetting } from '../training/training-setting.js';
import type { ChangeGroup, Flags, SettingChange, SettingChanges } from './options.js';
import {
  CHANGING,
  canFit,
  changeGroupsOf,
  FitCache,
  fewestChanges,
  flagsOf,
  onCluster,
  SHORTEST_CONTEXT,
} from './options.js';

export interface UnmetRequirement {
  /** Requirement that is not met with certainty. */
  readonly about: Purpose | 'load' | 'speed';
  /** Description for people. */
  readonly text: string;
}

interface Asked {
  readonly cluster: Cluster;
  /** The question; only its answer is judged. */
  readonly purpose: Purpose;
  readonly adapters?: { readonly fit: Pick<ClusterLora, 'verdict'> } | null;
  /** A pass of an encoder, in place of serving. */
  readonly pass?: { readonly verdict: FitVerdict } | undefined;
  readonly training: { readonly fit: Pick<TrainingFit, 'verdict'> } | null;
  readonly serving: {
    readonly setting: Pick<
      ServingFitSetting,
      'minSpeed' | 'isSpeedChosen' | 'load' | 'prefillGpus'
    >;
    readonly fit: Pick<ServingFit, 'verdict' | 'load'>;
    readonly users: Pick<UsersFit, 'asked' | 'speed'>;
    readonly throughput: Pick<ServerThroughput, 'alone' | 'atSpeed'> | null;
    readonly places?: Pick<PlacesFit, 'isAsked' | 'verdict'>;
  } | null;
}

/** Doubts by the upper bound of memory and the expected speed; empty if there are none. */
export function unmetRequirementsOf({
  cluster,
  purpose,
  training,
  serving,
  adapters = null,
  pass,
}: Asked): UnmetRequirement[] {
  const { fit } = { serving, training, lora: adapters, qlora: adapters }[purpose] ?? {};
  const placed = purpose === 'serving' && serving?.places?.isAsked ? serving.places : undefined;
  const verdict = (placed ?? fit ?? (purpose === 'serving' ? pass : undefined))?.verdict;
  const users = purpose === 'serving' ? (serving?.users.asked ?? null) : null;
  const whom = users === null ? '' : ` ${counted(users, 'user')}`;
  const isMet = verdict === undefined || verdict === 'fits';
  const load = serving?.fit.load && shortageOf(serving.fit.load, cluster);
  return present([
    !isMet && { about: purpose, text: `${PURPOSE_TITLES[purpose]} ${verdict}${whom}` },
    load !== undefined && ({ about: 'load', text: load } as const),
    purpose === 'serving' && serving !== null && tooSlow(serving),
  ]);
}

/** A speed that the user named and that users do not have, by the estimate. That of a load is in its time limit. */
function tooSlow({
  setting: { minSpeed = USUAL_SPEED, isSpeedChosen, load, prefillGpus },
  fit,
  users: { asked, speed },
  throughput,
}: NonNullable<Asked['serving']>): UnmetRequirement | false {
  if (!isSpeedChosen || load !== undefined || fit.verdict === 'does not fit') return false;
  const wanted = settingText('minTokensPerSecond', minSpeed);
  const reached =
    asked === null
      ? throughput && throughput.atSpeed === null && throughput.alone.userTokensPerSecond.value
      : speed && (prefillGpus === undefined ? speed.ofUser.value : speed.each.expected.value);
  if (reached === null) return { about: 'speed', text: `no speed is known for ${wanted}` };
  if (reached === false || reached >= minSpeed) return false;
  const users = asked ?? 1;
  const each = users === 1 ? '' : ' each';
  return {
    about: 'speed',
    text: `${counted(users, 'user')}: ${significant(reached)} tokens/s${each} (estimate), less than ${wanted}`,
  };
}

/** Titles of the questions. */
const PURPOSE_TITLES = {
  serving: 'serving',
  training: 'training',
  lora: 'LoRA',
  qlora: 'QLoRA',
} as const satisfies Record<Purpose, string>;

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
 * the fewest GPUs (by doubling) that fit. Each remedy is recomputed in full. GPUs without a known link are not
 * proposed: their speed cannot be computed.
 */
function remediesFor(model: LanguageModel, requested: TrainingFitSetting): Remedy[] {
  const remedies = (changes: readonly SettingChanges[]) =>
    changes
      .slice(0, MOST_REMEDIES)
      .map((each) => remedyOf(model, requested, withTokens(model, requested, flagsOf(each)), each));
  const { cluster } = requested;
  // Fewer replicas or smaller micro-batches must not change the tokens of a step.
  const setting = { ...requested, globalBatchTokens: stepTokensOf(model, requested) };
  const linked = linkedCluster(cluster, cluster.gpus);
  if (linked === undefined) return [];
  if (linked.network !== cluster.network) return remedies(onMoreGpus(model, setting));
  const fitting = new FitCache(model, setting);
  const levers = changeGroupsOf(setting, model);
  const same = levers.filter(({ name }) => !CHANGING.includes(name));
  const found = fewestChanges(fitting, same, ENOUGH);
  const further = found.length === 0 ? fewestChanges(fitting, levers, 1) : singles(fitting, levers);
  const more = found.length === 0 ? onMoreGpus(model, setting) : [];
  const isNone = further.length === 0 && more.length === 0 && found.length === 0;
  // More GPUs with another optimizer or context are better than no proposal.
  const last = isNone ? onMoreGpus(model, setting, changeGroupsOf) : more;
  // The fewest GPUs are always listed, even when no other remedy exists.
  return remedies([...found, ...further.slice(0, MOST_REMEDIES - last.length), ...last]);
}

/** Single changes of the training itself that are enough. */
const singles = (fitting: FitCache, levers: readonly ChangeGroup[]): SettingChanges[] =>
  levers
    .filter(({ name }) => CHANGING.includes(name))
    .flatMap((lever) => fewestChanges(fitting, [lever], 1));

type ChangesOf = typeof changeGroupsOf;

/** Changes that keep the training the same, on these GPUs. */
const sameTraining: ChangesOf = (setting, model) =>
  changeGroupsOf(setting, model).filter(({ name }) => !CHANGING.includes(name));

/**
 * Fewest linked GPUs, by doubling from those of the setting, on which the training fits with changes. Undefined if there
 * are none.
 * @param changesOf Changes that are tried; by default those that keep the training the same.
 */
export function fewestForTraining(
  model: LanguageModel,
  requested: TrainingFitSetting,
  changesOf: ChangesOf = sameTraining,
): Cluster | undefined {
  const setting = { ...requested, globalBatchTokens: stepTokensOf(model, requested) };
  return fewestGpus(setting.cluster, (cluster) => {
    const wider = { ...setting, cluster };
    const fitting = new FitCache(model, wider);
    return fitting.fits([]) || canFit(fitting, changesOf(wider, model));
  });
}

/** Fewest GPUs on which the training fits, with as few other changes as possible. */
function onMoreGpus(
  model: LanguageModel,
  setting: TrainingFitSetting,
  changesOf: ChangesOf = sameTraining,
): SettingChanges[] {
  const cluster = fewestForTraining(model, setting, changesOf);
  if (cluster === undefined) return [];
  const more = onCluster(cluster);
  const wider = { ...setting, cluster };
  const fitting = new FitCache(model, wider);
  if (fitting.fits([])) return [[more]];
  return fewestChanges(fitting, changesOf(wider, model), 1)
    .slice(0, ENOUGH)
    .map((changes) => [more, ...changes]);
}

/**
 * Settings with which a training fits on the fewest linked GPUs, from those of the setting on; undefined if there are
 * none.
 */
export function fewestSettings(model: LanguageModel, requested: TrainingFitSetting) {
  const setting = { ...requested, globalBatchTokens: stepTokensOf(model, requested) };
  const [changes] = onMoreGpus(model, setting);
  return changes && withTokens(model, requested, flagsOf(changes));
}

const stepTokensOf = (model: LanguageModel, setting: TrainingFitSetting): number =>
  tokensOfStep(setting, parallelismOf(model, setting)).value;

/** Adds the tokens of a step where they would change; on more replicas at least a sequence of each. */
function withTokens(model: LanguageModel, requested: TrainingFitSetting, flags: Flags): Flags {
  const tokens = stepTokensOf(model, requested);
  const setting = { ...requested, ...flags };
  if (stepTokensOf(model, setting) === tokens) return flags;
  const { replicas } = parallelismOf(model, setting);
  const least = setting.microBatch * setting.context * replicas;
  return { ...flags, globalBatchTokens: Math.max(tokens, least) };
}

/** Flags that make the training fit, with the resulting memory and speed. */
function remedyOf(
  model: LanguageModel,
  requested: TrainingFitSetting,
  flags: Flags,
  changes: SettingChanges,
): Remedy {
  const setting = { ...requested, ...flags };
  const { total, stages, host } = fitTrainingMemory(model, setting);
  return {
    change: joined(changes.map(({ words }) => words)),
    flags,
    total,
    ...(host && { host: host.bytes }),
    tokensPerSecond: stepTimeIfKnown(model, setting, stages)?.tokensPerSecond ?? null,
  };
}

/**
 * Changes with which the adapters fit: recomputation, a loss in chunks, more GPUs, smaller micro-batches, then a shorter
 * context, with a loss in chunks where that keeps more of it.
 */
export function adapterRemedies(
  model: LanguageModel,
  setting: TrainingFitSetting,
  { gpus }: Pick<ClusterLora, 'gpus'>,
  base?: WeightFormat,
): Remedy[] {
  const { cluster, microBatch, context, recompute, loss } = setting;
  const on = (flags: Flags) =>
    loraMemoryOn(model, { ...setting, ...flags }, base, { isSearched: false });
  const fitsWith = (flags: Flags) => on(flags).verdict === 'fits';
  const wider = gpus === null ? undefined : linkedCluster(cluster, gpus);
  const batch = largestCount(microBatch - 1, (value) => fitsWith({ microBatch: value }));
  const longest = (others: Flags) =>
    roundedTokens(largestCount(context - 1, (value) => fitsWith({ ...others, context: value })));
  const tokens = longest({});
  const chunked: Flags | undefined = loss === 'chunked' ? undefined : { loss: 'chunked' };
  const isChunked = chunked !== undefined && fitsWith(chunked);
  const further = chunked && !isChunked ? longest(chunked) : 0;
  const changes: readonly (Flags | false)[] = [
    recompute !== 'full' && fitsWith({ recompute: 'full' }) && { recompute: 'full' },
    isChunked && chunked,
    wider !== undefined && wider.gpus > cluster.gpus && { cluster: wider },
    batch > 0 && { microBatch: batch },
    further >= Math.max(tokens + 1, SHORTEST_CONTEXT) && { ...chunked, context: further },
    tokens >= SHORTEST_CONTEXT && { context: tokens },
  ];
  return present(changes).map((flags) => ({
    change: Object.keys(flags).join(', '),
    flags,
    total: on(flags).total,
    tokensPerSecond: null,
  }));
}

/** Largest micro-batch and longest context with which the training still fits. */
function roomFor(model: LanguageModel, setting: TrainingFitSetting): Remedy[] {
  const { microBatch, context } = setting;
  const fitting = new FitCache(model, setting);
  const fitsWith = (flags: SettingChange['flags']) => fitting.fits([{ words: '', flags }]);
  const batches = largestCount(
    Math.max(microBatch, MOST_SEQUENCES),
    (value) => value <= microBatch || fitsWith({ microBatch: value }),
  );
  const contexts = largestCount(
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
 * @param isSearched Whether to look for remedies, which takes longer than all the rest.
 * @throws UserError when the model cannot be spread as requested, or the peak needed for a requested time is unknown.
 */
export function fitTraining(
  model: LanguageModel,
  setting: TrainingFitSetting,
  { isSearched = true } = {},
): TrainingFit {
  const memory = fitTrainingMemory(model, setting);
  const { trainTokens } = setting;
  // Skip the error about an unknown peak if no time was requested.
  const step = stepTimeIfKnown(model, setting, memory.stages, {
    isPeakRequired: trainTokens !== undefined,
  });
  const isFitting = memory.verdict === 'fits';
  const fewest = isFitting ? setting.cluster : fewestForTraining(model, setting);
  const search = isFitting ? roomFor : remediesFor;
  return {
    ...memory,
    withoutSpeed: withoutSpeedText(model, setting),
    ...(step && { step }),
    ...(step && trainTokens !== undefined && { time: trainingTimeOf(step, trainTokens) }),
    gpus: fewest?.gpus ?? null,
    remedies: isSearched ? search(model, setting) : [],
  };
}

// Changes that make a model fit on GPUs that serve it.

/** Flags of `fit` that make a serving fit. */
export interface ServingRemedy {
  /** Flags of `fit` in camel case, with their values. */
  readonly flags: {
    /** Value of `--gpu`. */
    readonly gpu?: string;
    /** Value of `--gpus`. @integer @minimum 1 */
    readonly gpus?: number;
    /** Value of `--tensor-parallel`. @integer @minimum 1 */
    readonly tensorParallel?: number;
    /** Value of `--expert-parallel`. @integer @minimum 1 */
    readonly expertParallel?: number | undefined;
    /** Value of `--gpu-layers`. @integer @minimum 1 */
    readonly gpuLayers?: number;
    /** Value of `--cpu-experts`. @integer @minimum 1 */
    readonly cpuExperts?: number;
    /** Value of `--ram` in bytes. @count */
    readonly ramBytes?: number;
    /** Value of `--dtype`. */
    readonly dtype?: WeightDtype;
    /** Value of `--context`. @integer @minimum 1 */
    readonly context?: number;
    /** Value of `--batch`. @integer @minimum 1 */
    readonly batch?: number;
    /** Value of `--users`. @integer @minimum 1 */
    readonly users?: number;
  };
  /** Memory of one GPU with these flags; on a processor alone, system memory. */
  readonly total: Bounds;
  /** Expected tokens per second of all sequences; absent where the weights are all on GPUs of one kind. @real */
  readonly tokensPerSecond?: number;
}

/** Narrower types, mildest first. */
const NARROWER: readonly WeightDtype[] = ['int8', 'int4'];

/** Single changes, each enough by the upper bound: type, more GPUs, another GPU, then less to serve. */
export function servingRemedies(model: LanguageModel, question: ServingQuestion): ServingRemedy[] {
  const { setting, users, isSharingChosen } = question;
  const at = (change: Partial<ServingFitSetting>, asked: Partial<ServingQuestion> = {}) =>
    fittingTotal(model, { ...question, ...asked, setting: { ...setting, ...change } });
  const remedy = (flags: ServingRemedy['flags'], total: Bounds | undefined): ServingRemedy[] =>
    total ? [{ flags, total }] : [];

  const { bits } = WEIGHT_DTYPES[setting.weights.dtype];
  const narrower = NARROWER.filter((dtype) => WEIGHT_DTYPES[dtype].bits < bits)
    .map((dtype) => ({ dtype, total: at({ weights: usualFormat(dtype) }) }))
    .find(({ total }) => total);

  const asked = users ?? setting.batch;
  const fewer = (count: number) =>
    users === undefined ? at({ batch: count }) : at({}, { users: count });
  const fitting = largestCount(asked - 1, (count) => fewer(count) !== undefined);
  const context = roundedTokens(
    largestCount(setting.context - 1, (tokens) => at({ context: tokens }) !== undefined),
  );
  const { gpu, gpus } = setting.cluster;
  const more = fewestForServing(model, question);
  const isMore = more !== undefined && more.gpus > gpus;
  const wider = isMore && { cluster: more.cluster };
  const gpuFlags = isMore && {
    ...(more.cluster.network !== setting.cluster.network && { gpu: more.cluster.machine }),
    gpus: more.gpus,
  };
  // Axes that the user wrote are written again where they change.
  const axes = isSharingChosen &&
    more && {
      tensorParallel: more.tensorParallel,
      ...(more.expertParallel !== undefined && { expertParallel: more.expertParallel }),
    };
  const capacity = capacityOf(gpu).value;
  const larger = COMMON_HARDWARE.filter(
    (each) =>
      each.gpus === 1 &&
      capacityOf(each.gpu).value > capacity &&
      (gpus === 1 || areLinked(each.gpu)),
  )
    .map((each) => ({
      ...each,
      total: at({
        cluster: { gpu: withReserved(each.gpu, gpu.reservedBytes), gpus, network: null },
      }),
    }))
    .find(({ total }) => total);
  return [
    ...(narrower ? remedy({ dtype: narrower.dtype }, narrower.total) : []),
    ...(more && (isMore || axes)
      ? remedy({ ...gpuFlags, ...axes }, at({ ...wider, ...axes }))
      : []),
    ...(larger ? remedy({ gpu: larger.name, ...(gpus > 1 && { gpus }) }, larger.total) : []),
    ...(context >= SHORTEST_CONTEXT ? remedy({ context }, at({ context })) : []),
    ...(fitting > 0
      ? remedy(users === undefined ? { batch: fitting } : { users: fitting }, fewer(fitting))
      : []),
  ];
}

/** Number of tokens that is easy to read, at most `tokens`. */
export const roundedTokens = (tokens: number): number => {
  const step = 2 ** Math.max(0, Math.floor(Math.log2(tokens || 1)) - 3);
  return Math.floor(tokens / step) * step;
};

/** Memory of one GPU; undefined if it does not fit, has no speed, or leaves GPUs unused that were used before. */
function fittingTotal(model: LanguageModel, question: ServingQuestion): Bounds | undefined {
  const { total, verdict, setting } = placedServing(model, question);
  const isLinked = withoutLink(setting.cluster, linkedGpus(setting)) === null;
  const isIdle = idleGpusOf(setting) !== 0;
  return verdict === 'fits' && isLinked && !isIdle ? total : undefined;
}
