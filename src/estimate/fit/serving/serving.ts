/** Checks whether GPUs can serve a model, how fast, and how many a load needs. */

import { formatInteger } from '../../../base/text/units.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Expression } from '../../../model/budget/expression.js';
import { div, inputs, mul, v } from '../../../model/budget/expression.js';
import type { Bounds, Figure, Quantity } from '../../../model/budget/figure.js';
import { quantity } from '../../../model/budget/figure.js';
import { capacityOf, noPeakText, peakFor, peakIfKnown } from '../../hardware/gpu.js';
import { byBound, eachBound, largest } from '../bounds.js';
import { withoutLink } from '../parallelism/collectives.js';
import type { FitVerdict } from '../training/training-fit.js';
import { memoryVerdict } from '../training/training-memory.js';
import type { NeededGpus } from './placed-serving.js';
import { fewestForServing, replicasOf, requireGpus, usersPerReplica } from './placed-serving.js';
import { servedWeights } from './quantized.js';
import type { LoadAnswer } from './queueing.js';
import { LARGEST_BATCH, LOAD_ASSUMPTION, replicasFor } from './queueing.js';
import type { DecodeStep, DecodingLimit, Prefill, Rates } from './roofline.js';
import { decodeStep, prefill, ratesOf, secondsOfStep, tokensPerSecond } from './roofline.js';
import type { ServingMemory } from './serving-memory.js';
import { servingMemoryOf } from './serving-memory.js';
import type { ServedModel, ServingFitSetting } from './serving-work.js';
import {
  decodeWork,
  measuredPrefill,
  measuredStep,
  prefillWork,
  servedModel,
} from './serving-work.js';
import { WEIGHT_DTYPES } from './weight-types.js';

/** GPUs that a load needs, at the speed of each bound. */
export interface ServingLoad extends Readonly<Record<keyof Bounds, LoadAnswer>> {
  /** Assumption about the arrivals. */
  readonly assumption: string;
}

export interface ServingFit {
  /** Weights on the fullest GPU, by component. */
  readonly weightParts: readonly {
    /** Part of the memory. */
    readonly part: string;
    readonly bytes: Figure;
  }[];
  /** Weights with scales, on the fullest GPU. */
  readonly weights: Figure;
  /** Weights of the whole model. */
  readonly wholeWeights: Figure;
  /** Keys and values of one sequence at the context, on one GPU. */
  readonly cachePerSequence: Figure;
  /** KV cache growth per token, while all windows have room. */
  readonly cachePerToken: Figure;
  /** Mamba states of one sequence, on one GPU. */
  readonly state: Figure;
  readonly workspace: Bounds;
  /** Parts of the workspace. */
  readonly workspaceParts: readonly {
    /** Name of the part. */
    readonly part: string;
    readonly bytes: Bounds;
  }[];
  /** Total memory of one GPU. */
  readonly total: Bounds;
  readonly capacity: Quantity;
  /** `fits`: by the upper bound; `may fit`: by the estimate; `does not fit`: not by the estimate. */
  readonly verdict: FitVerdict;
  /** Peak in the type of the products; null if none is published. */
  readonly peak: Quantity | null;
  /** Text about figures that are missing without a published peak; null if there is one. */
  readonly withoutPeak: string | null;
  /** Text that no speed can be computed without a known link between the GPUs of a layer; null if one is known. */
  readonly withoutLink: string | null;
  /** Text that times assume GPUs with more memory, if the model does not fit; null otherwise. */
  readonly withoutRoom: string | null;
  /** Prefill of one prompt; null without a peak or a link. */
  readonly prefill: Prefill | null;
  /** Decoding at the batch and context; without a peak, reading only. Null without a link. */
  readonly decode: (DecodeStep & { readonly tokensPerSecond: Bounds }) | null;
  /** Largest batch whose expected memory fits at the context; null if not even one sequence fits. */
  readonly largestBatch: Quantity | null;
  /** Largest context that fits at the batch; null if not even one token fits. */
  readonly largestContext: Quantity | null;
  readonly load?: ServingLoad;
}

/**
 * @param model Counted as described; a context beyond its positions is not an error here.
 * @throws UserError when there are fewer GPUs than share a layer, or a load is given without a known peak.
 */
export function fitServing(model: LanguageModel, setting: ServingFitSetting): ServingFit {
  const { cluster, context, batch, prompt, tensorParallel } = setting;
  requireGpus(tensorParallel, cluster);
  const served = servedModel(model, setting);
  const memoryAt = servingMemoryOf(served, cluster.gpu);
  const memory = memoryAt(batch, context);
  const capacity = capacityOf(cluster.gpu);
  const dtype = WEIGHT_DTYPES[setting.weights.dtype].computes;
  const { measured = {} } = setting;
  const isMeasured = measured.tokenSeconds !== undefined && measured.prefillSeconds !== undefined;
  // The waiting time for prefills needs a peak, or measured times.
  const isPeakNeeded = setting.load && !isMeasured;
  const peak = isPeakNeeded ? peakFor(cluster.gpu, dtype) : peakIfKnown(cluster.gpu, dtype);
  const rates = ratesOf(cluster, tensorParallel, peak, setting.weights.dtype);
  const unlinked = withoutLink(cluster, tensorParallel);
  const step =
    measuredStep(measured, batch, batch) ??
    (unlinked === null ? decodeStep(decodeWork(served, context), rates, batch) : null);
  const fits = (of: ServingMemory) => of.total.expected.value <= capacity.value;
  const largestBatch = largest(MOST_SEQUENCES, (count) => fits(memoryAt(count, context)));
  const largestContext = largest(model.positions, (tokens) => fits(memoryAt(batch, tokens)));
  const prefilled =
    measuredPrefill(measured) ??
    (unlinked === null ? prefill(prefillWork(served, prompt), rates) : null);
  const load =
    setting.load &&
    (unlinked === null || isMeasured
      ? loadOf(served, rates, setting, memoryAt, capacity)
      : undefined);
  const verdict = memoryVerdict(memory.total, capacity);
  return {
    ...memory,
    wholeWeights:
      tensorParallel === 1
        ? memory.weights
        : servedWeights(served.layout, setting.weights, 1).total,
    capacity,
    verdict,
    peak,
    withoutPeak: peak || isMeasured ? null : `${noPeakText(cluster.gpu, dtype)}: ${WITHOUT_PEAK}`,
    withoutLink: isMeasured ? null : unlinked,
    withoutRoom: verdict === 'does not fit' ? WITHOUT_ROOM : null,
    prefill: prefilled,
    decode: step && { ...step, tokensPerSecond: tokensPerSecond(step.seconds, batch) },
    largestBatch: servingFound(
      'largest batch',
      'requests',
      largestBatch,
      `at ${formatInteger(context)} tokens each`,
    ),
    largestContext: servingFound(
      'largest context',
      'tokens',
      largestContext,
      `at a batch of ${formatInteger(batch)}; the model takes ${formatInteger(model.positions)}`,
    ),
    ...(load && { load }),
  };
}

const WITHOUT_PEAK = 'no speed estimate; the decoding time counts only reading weights and caches';

const WITHOUT_ROOM = 'no speed estimate: the model does not fit into the memory';

/** Limit of sequences in the search. */
const MOST_SEQUENCES = 2 ** 24;

const servingFound = (
  label: string,
  unit: Quantity['unit'],
  value: number,
  at: string,
): Quantity | null =>
  value === 0
    ? null
    : quantity({
        label,
        unit,
        formula: v({ found: value }),
        source: `largest value whose estimated memory fits, ${at}; found by search`,
      });

function loadOf(
  served: ServedModel,
  rates: Rates,
  { prompt, output, load, tensorParallel, batch: together, measured = {} }: ServingFitSetting,
  memoryAt: ReturnType<typeof servingMemoryOf>,
  capacity: Quantity,
): ServingLoad | undefined {
  if (load === undefined) return undefined;
  const longest = prompt + output;
  const work = decodeWork(served, longest);
  const prefilled = measuredPrefill(measured) ?? prefill(prefillWork(served, prompt), rates);
  if (prefilled === null) return undefined;
  const { seconds } = prefilled;
  // A measured time holds for as many requests as were measured together.
  const { tokenSeconds } = measured;
  const answer = (bound: keyof Bounds) =>
    replicasFor(
      {
        prefill: seconds[bound].value,
        step: (batch) => tokenSeconds ?? secondsOfStep(work, rates, batch, bound),
        output,
        places: largest(
          tokenSeconds === undefined ? LARGEST_BATCH : Math.min(LARGEST_BATCH, together),
          (count) => memoryAt(count, longest).total[bound].value <= capacity.value,
        ),
        gpus: tensorParallel,
      },
      load,
    );
  return { ...byBound(answer), assumption: LOAD_ASSUMPTION };
}

// Users that GPUs serve at the same time, and the tokens per second of each.

/** Speed of decoding for a number of users. */
export interface UsersSpeed {
  /** Users at this speed. @integer @minimum 1 */
  readonly users: number;
  /** Tokens per second of each user. */
  readonly each: Bounds;
  /** Tokens per second of all users on all GPUs. */
  readonly total: Bounds;
  /** Null for a measured time. */
  readonly limitedBy: DecodingLimit | null;
}

export interface UsersFit {
  /** Number of users with `--users`; null without. @integer @minimum 1 */
  readonly asked: number | null;
  /** Copies of the model on the GPUs. @integer @minimum 1 */
  readonly replicas: number;
  /** Users of one replica that fit in memory; `lower` is sure to fit. */
  readonly perReplica: Bounds;
  /** Users of all replicas. */
  readonly total: Bounds;
  /** Speed for the requested users, else for those expected to fit; null if none fit, or without a peak or a link. */
  readonly speed: UsersSpeed | null;
  /** Fewest GPUs of this kind for the users asked for; null if not asked, or if no number is enough. */
  readonly needed: NeededGpus | null;
}

/** @param asked Number of users; undefined: the most that fit. */
export function usersOf(
  model: LanguageModel,
  setting: ServingFitSetting,
  asked: number | undefined,
): UsersFit {
  const replicas = replicasOf(setting);
  const fitting = usersPerReplica(model, setting);
  const perReplica = eachBound(
    // The upper bound of the memory is the lower one of the users.
    { lower: fitting('upper'), expected: fitting('expected'), upper: fitting('lower') },
    (found) =>
      quantity({
        label: 'users of a replica',
        unit: 'requests',
        formula: v({ found }),
        source: `largest number that fits, at ${setting.context} tokens each`,
      }),
  );
  const total = eachBound(perReplica, ({ value }) =>
    quantity({
      label: 'users',
      unit: 'requests',
      formula: mul(v({ per_replica: value }), v({ replicas })),
      source: 'of all replicas',
    }),
  );
  const isRoom = asked === undefined || asked <= total.upper.value;
  const users = asked ?? total.expected.value;
  return {
    asked: asked ?? null,
    replicas,
    perReplica,
    total,
    speed: isRoom && users > 0 ? speedFor(model, setting, users) : null,
    needed: asked === undefined ? null : neededFor(model, setting, asked),
  };
}

function neededFor(
  model: LanguageModel,
  setting: ServingFitSetting,
  users: number,
): NeededGpus | null {
  const found = fewestForServing(model, { setting, users });
  if (found === undefined) return null;
  const { cluster: _, ...needed } = found;
  return needed;
}

/** Speed with users spread evenly over the replicas; the fullest replica decides. */
function speedFor(
  model: LanguageModel,
  setting: ServingFitSetting,
  users: number,
): UsersSpeed | null {
  const { cluster, weights, tensorParallel, context } = setting;
  const batch = Math.ceil(users / replicasOf(setting));
  const measured = measuredStep(setting.measured ?? {}, batch, setting.batch);
  const peak = peakIfKnown(cluster.gpu, WEIGHT_DTYPES[weights.dtype].computes);
  if ((peak === null || withoutLink(cluster, tensorParallel) !== null) && !measured) return null;
  const rates = ratesOf(cluster, tensorParallel, peak, weights.dtype);
  const { seconds, limitedBy } =
    measured ?? decodeStep(decodeWork(servedModel(model, setting), context), rates, batch);
  // The shortest step gives the highest rate.
  const steps = { lower: seconds.upper, expected: seconds.expected, upper: seconds.lower };
  const rate = (label: string, of: number) =>
    eachBound(steps, ({ value }: Quantity) =>
      quantity({
        label,
        unit: 'tokens/s',
        formula: div(v({ users: of }), v({ step: value })),
        source: `decoding step for ${batch} users of a replica, without prefills`,
      }),
    );
  return { users, each: rate('tokens/s of a user', 1), total: rate('tokens/s', users), limitedBy };
}

/** Cost of the GPUs that a load needs, busy or not. */
export interface ServingCost {
  readonly perHour: Quantity;
  readonly perThousandRequests: Quantity;
  readonly perMillionOutputTokens: Quantity;
}

/** @param price Of a GPU for an hour, in any currency. */
export function servingCost(
  { expected }: ServingLoad,
  { load, output }: Pick<ServingFitSetting, 'load' | 'output'>,
  price: number,
): ServingCost | undefined {
  if (!expected.met || load === undefined) return undefined;
  const one = inputs({ gpus: expected.gpus.value, price });
  const perHour = costQuantity(
    'cost per hour',
    mul(one.gpus, one.price),
    'GPUs that the load needs (estimate), rented whether busy or not',
  );
  const hour = v({ cost_per_hour: perHour.value });
  const requests = mul(v({ requests_per_second: load.requestsPerSecond }), SECONDS_PER_HOUR);
  return {
    perHour,
    perThousandRequests: costQuantity(
      'cost per 1,000 requests',
      div(mul(hour, 1000), requests),
      'at the stated requests per second',
    ),
    perMillionOutputTokens: costQuantity(
      'cost per million output tokens',
      div(mul(hour, 1e6), mul(requests, v({ output }))),
      'at the stated requests per second and output tokens',
    ),
  };
}

const SECONDS_PER_HOUR = 3600;

const costQuantity = (label: string, formula: Expression, source: string): Quantity =>
  quantity({ label, unit: 'currency', formula, source });
