/** Checks whether GPUs can serve a model, how fast, and how many a load needs. */

import { formatInteger } from '../../../base/text/units.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Expression } from '../../../model/budget/expression.js';
import { div, inputs, mul, v } from '../../../model/budget/expression.js';
import type { Bounds, Figure, Quantity } from '../../../model/budget/figure.js';
import { quantity } from '../../../model/budget/figure.js';
import { generationOf } from '../../../model/budget/generation.js';
import { capacityOf, noPeakText, peakFor, peakIfKnown } from '../../hardware/gpu.js';
import { eachBound, largestCount } from '../bounds.js';
import { withoutLink } from '../parallelism/collectives.js';
import type { PublishedRange } from '../published-range.js';
import { decodeGroup, publishedSeconds, publishedSpeed } from '../published-range.js';
import type { FitVerdict } from '../training/training-fit.js';
import { memoryVerdict } from '../training/training-memory.js';
import { gpusOfUnit, linkedGpus, serverUnit } from './disaggregation.js';
import type { NeededGpus, ServingQuestion } from './placed-serving.js';
import {
  decodingReplicas,
  fewestForServing,
  requireGpus,
  usersPerReplica,
} from './placed-serving.js';
import { servedWeights } from './quantized.js';
import { type DraftMemory, replicaMemoryOf, takenShare } from './replica-memory.js';
import type { DecodeStep, DecodingLimit, Prefill } from './roofline.js';
import { decodeStep, prefill, tokensPerSecond } from './roofline.js';
import { gpusOfReplica, requireAxes, sequencesOfStep } from './serving-axes.js';
import type { ServingMemory } from './serving-memory.js';
import type { ServingFitSetting } from './serving-work.js';
import {
  decodeWork,
  measuredPrefill,
  measuredStep,
  prefillWork,
  servedModel,
} from './serving-work.js';
import type { ServingLoad } from './throughput/arrivals.js';
import { servingLoad } from './throughput/arrivals.js';
import { runtimeOf, serversOf, servingRates } from './throughput/server.js';
import type { Percentiles, ServerRate } from './throughput/throughput.js';
import { serverLoad } from './throughput/throughput.js';
import { WEIGHT_DTYPES } from './weight-types.js';

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
  /** Weights and caches of the draft model, a part of the total; absent without one. */
  readonly draft?: DraftMemory;
  /** Total memory of one GPU. */
  readonly total: Bounds;
  readonly capacity: Quantity;
  /** Share of the memory with which the program holds the total: its default, or more where that is too little. @real */
  readonly memoryShare: number;
  /** `fits`: by the upper bound; `may fit`: by the estimate; `does not fit`: not by the estimate. */
  readonly verdict: FitVerdict;
  /** Peak in the type of the products; null if none is published. */
  readonly peak: Quantity | null;
  /** Text about figures that are missing without a published peak; null if there is one. */
  readonly withoutPeak: string | null;
  /** Text that no speed can be computed without a known link between the GPUs of a layer, or with an encoder; null if one is known. */
  readonly withoutLink: string | null;
  /** Text that times assume GPUs with more memory, if the model does not fit; null otherwise. */
  readonly withoutRoom: string | null;
  /** Prefill of one prompt; null without a peak or a link. */
  readonly prefill:
    | (Prefill & {
        /** Range of published times; null for a measured time. */
        readonly published: PublishedRange | null;
      })
    | null;
  /** Decoding at the batch and context; without a peak, reading only. Null without a link. */
  readonly decode:
    | (DecodeStep & {
        readonly tokensPerSecond: Bounds;
        /** Range of published speeds; null for a measured time. */
        readonly published: PublishedRange | null;
      })
    | null;
  /** Largest batch whose expected memory fits at the context; null if not even one sequence fits. */
  readonly largestBatch: Quantity | null;
  /** Largest context that fits at the batch; null if not even one token fits. */
  readonly largestContext: Quantity | null;
  readonly load?: ServingLoad;
}

const withPublishedSeconds = (prefilled: Prefill) => ({
  ...prefilled,
  published:
    prefilled.limitedBy === null
      ? null
      : publishedSeconds('prefill', prefilled.seconds.expected.value),
});

/** All sequences of a replica get a token in a step. */
function withPublishedSpeed(step: DecodeStep, { cluster, batch }: ServingFitSetting) {
  const speed = tokensPerSecond(step.seconds, batch);
  const published =
    step.limitedBy === null ? null : publishedSpeed(decodeGroup(cluster.gpu), speed.expected.value);
  return { ...step, tokensPerSecond: speed, published };
}

/**
 * @param model Counted as described; a context beyond its positions is not an error here.
 * @throws UserError when there are fewer GPUs than share a layer, or a load is given without a known peak.
 */
export function fitServing(
  model: LanguageModel,
  setting: ServingFitSetting,
  draft?: LanguageModel | undefined,
): ServingFit {
  const { cluster, context, batch, prompt } = setting;
  requireGpus(setting);
  requireAxes(model, setting);
  const served = servedModel(model, setting);
  const memoryAt = replicaMemoryOf(model, { setting, draft });
  const memory = memoryAt(batch, context);
  const capacity = capacityOf(cluster.gpu);
  const dtype = WEIGHT_DTYPES[setting.weights.dtype].computes;
  const { measured = {} } = setting;
  const isMeasured = measured.tokenSeconds !== undefined && measured.prefillSeconds !== undefined;
  // The waiting time for prefills needs a peak, or measured times.
  const isPeakNeeded = setting.load && !isMeasured;
  const peak = isPeakNeeded ? peakFor(cluster.gpu, dtype) : peakIfKnown(cluster.gpu, dtype);
  const rates = servingRates(setting);
  const unlinked = withoutSpeed(model, setting);
  const step =
    measuredStep(measured, batch, batch) ??
    (unlinked === null
      ? decodeStep(decodeWork(served, context), rates, sequencesOfStep(setting, batch))
      : null);
  const fits = (of: ServingMemory) => of.total.expected.value <= capacity.value;
  const largestBatch = largestCount(MOST_SEQUENCES, (count) => fits(memoryAt(count, context)));
  const largestContext = largestCount(model.positions, (tokens) => fits(memoryAt(batch, tokens)));
  const prefilled =
    measuredPrefill(measured) ??
    (unlinked === null ? prefill(prefillWork(served, prompt), rates) : null);
  const load = setting.load && loadOf(model, setting, draft);
  const verdict = memoryVerdict(memory.total, capacity);
  return {
    ...memory,
    wholeWeights:
      gpusOfReplica(setting) === 1
        ? memory.weights
        : servedWeights(served.layout, setting.weights, 1).total,
    capacity,
    memoryShare: takenShare(memory.total, capacity.value, runtimeOf(setting)),
    verdict,
    peak,
    withoutPeak: peak || isMeasured ? null : `${noPeakText(cluster.gpu, dtype)}: ${WITHOUT_PEAK}`,
    withoutLink: isMeasured ? null : unlinked,
    withoutRoom: verdict === 'does not fit' ? WITHOUT_ROOM : null,
    prefill: prefilled && withPublishedSeconds(prefilled),
    decode: step && withPublishedSpeed(step, setting),
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

/** Why no speed is estimated: of each token of a decoder, its encoder would be counted again. */
const withoutSpeed = (model: LanguageModel, setting: ServingFitSetting): string | null =>
  generationOf(model) === 'after encoder'
    ? 'the encoder runs once for a request, which is not counted'
    : withoutLink(setting.cluster, linkedGpus(setting));

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
  model: LanguageModel,
  setting: ServingFitSetting,
  draft: LanguageModel | undefined,
): ServingLoad | undefined {
  const { load, measured = {} } = setting;
  const gpus = gpusOfUnit(setting);
  if (load === undefined) return undefined;
  const servers = serversOf(model, { setting, draft });
  if (typeof servers === 'string') return undefined;
  const isMeasured = measured.tokenSeconds !== undefined && measured.prefillSeconds !== undefined;
  return servingLoad(servers.expected, load, { gpus, isMeasured });
}

// Users that GPUs serve at the same time, and the tokens per second of each.

/** Speed of a server for a number of users. */
export interface UsersSpeed {
  /** Users at this speed. @integer @minimum 1 */
  readonly users: number;
  /** Output tokens per second of each user, with the time until the first one. */
  readonly each: Bounds;
  /** Tokens per second of a user after the first one, at the median, as in `throughput`; absent if users wait for a place. */
  readonly afterFirstToken?: Quantity;
  /** Tokens per second of a user after the first one; with the wait where users wait for a place. */
  readonly ofUser: Quantity;
  /** Output tokens per second of all users on all GPUs. */
  readonly total: ServerRate;
  /** Seconds from a request to its first token. */
  readonly firstToken: Percentiles;
  /** Limit of the decoding steps; null for a measured time. */
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

/** @param question Users that are asked for; without, the most that fit. */
export function usersOf(
  model: LanguageModel,
  { setting, users: asked, isSharingChosen, draft }: ServingQuestion,
): UsersFit {
  const replicas = decodingReplicas(setting);
  const fitting = usersPerReplica(model, { setting, draft });
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
    speed: isRoom && users > 0 ? speedFor(model, setting, users, draft) : null,
    needed:
      asked === undefined
        ? null
        : neededFor(model, { setting, users: asked, isSharingChosen, draft }),
  };
}

function neededFor(model: LanguageModel, question: ServingQuestion): NeededGpus | null {
  const found = fewestForServing(model, question);
  if (found === undefined) return null;
  const { cluster: _, ...needed } = found;
  return needed;
}

/**
 * Speed with users spread evenly over the replicas. Those whom the program does not take at a time wait for their turn.
 */
function speedFor(
  model: LanguageModel,
  setting: ServingFitSetting,
  users: number,
  draft: LanguageModel | undefined,
): UsersSpeed | null {
  const servers = serversOf(model, { setting, draft });
  if (typeof servers === 'string') return null;
  const { units: replicas, decoding } = serverUnit(setting);
  const batch = Math.min(Math.ceil(users / replicas), servers.expected.places);
  const { gpus } = setting.cluster;
  const {
    tokensPerSecond: total,
    userTokensPerSecond,
    firstToken,
  } = serverLoad(servers, {
    users: batch,
    replicas: Math.min(replicas, users / batch),
    gpus,
    price: undefined,
  });
  const each = eachBound(total, ({ value }: Quantity) =>
    quantity({
      label: 'tokens/s of a user',
      unit: 'tokens/s',
      formula: div(v({ total: value }), v({ users })),
      source: 'of all users, divided by their number',
    }),
  );
  const step =
    measuredStep(setting.measured ?? {}, batch, setting.batch) ??
    decodeStep(
      decodeWork(servedModel(model, setting), setting.context),
      servingRates(setting),
      sequencesOfStep(setting, Math.ceil(batch / decoding)),
    );
  const isServed = users <= replicas * batch;
  return {
    users,
    each,
    ...(isServed && { afterFirstToken: userTokensPerSecond }),
    ofUser: isServed ? userTokensPerSecond : each.expected,
    total,
    firstToken,
    limitedBy: step.limitedBy,
  };
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
