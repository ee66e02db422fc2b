/** Users that GPUs serve at the same time, and the tokens per second of each. */
import type { LanguageModel } from '../../architecture/layer.js';
import { div, mul, v } from '../../budget/expression.js';
import type { Bounds, Quantity } from '../../budget/figure.js';
import { quantity } from '../../budget/figure.js';
import { capacityOf, peakIfKnown } from '../../hardware/gpu.js';
import { eachBound, largest } from '../bounds.js';
import { measuredStep } from './measured-speed.js';
import { weightLayout } from './quantized.js';
import type { DecodingLimit } from './roofline.js';
import { decodeStep, ratesOf } from './roofline.js';
import { servingMemoryOf } from './serving-memory.js';
import type { ServingFitSetting } from './serving-work.js';
import { decodeWork, servedModel } from './serving-work.js';
import { WEIGHT_DTYPES } from './weight-types.js';

/** Speed of decoding for a number of users. */
export interface UsersSpeed {
  readonly users: number;
  /** Tokens per second of each user. */
  readonly each: Bounds;
  /** Tokens per second of all users on all GPUs. */
  readonly total: Bounds;
  /** Null for a measured time. */
  readonly limitedBy: DecodingLimit | null;
}

export interface UsersFit {
  /** Number of users with `--users`; null without. */
  readonly asked: number | null;
  readonly replicas: number;
  /** Users of one replica that fit in memory; `lower` is sure to fit. */
  readonly perReplica: Bounds;
  /** Users of all replicas. */
  readonly total: Bounds;
  /** Speed for the requested users, else for those expected to fit; null if none fit, or without a peak. */
  readonly speed: UsersSpeed | null;
  /** Fewest GPUs of this kind for the users asked for; null if not asked, or if no number is enough. */
  readonly needed: NeededGpus | null;
}

/** GPUs that serve a number of users. */
export interface NeededGpus {
  readonly gpus: number;
  readonly replicas: number;
  /** GPUs that share each layer. */
  readonly tensorParallel: number;
  readonly perReplica: number;
}

/** Limit of users in a search. */
const MOST_USERS = 2 ** 24;

/** Most GPUs that share each layer in a search. */
const MOST_SHARING = 64;

/** Replicas of the model on all GPUs. */
export const replicasOf = ({ cluster, tensorParallel }: ServingFitSetting): number =>
  Math.floor(cluster.gpus / tensorParallel);

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
    needed: asked === undefined ? null : gpusForUsers(model, setting, asked),
  };
}

/** Memory of one GPU by batch. */
function memoryOf(model: LanguageModel, setting: ServingFitSetting): (batch: number) => Bounds {
  const served = { model, form: setting, layout: weightLayout(model) };
  const memoryAt = servingMemoryOf(served, setting.cluster.gpu);
  return (batch) => memoryAt(batch, setting.context).total;
}

function usersPerReplica(model: LanguageModel, setting: ServingFitSetting) {
  const totalAt = memoryOf(model, setting);
  const { value: capacity } = capacityOf(setting.cluster.gpu);
  return (bound: keyof Bounds): number =>
    largest(MOST_USERS, (users) => totalAt(users)[bound].value <= capacity);
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
  if (peak === null && !measured) return null;
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

/** Fewest GPUs of this kind whose memory surely fits the users; undefined if no number is enough. */
export function gpusForUsers(
  model: LanguageModel,
  setting: ServingFitSetting,
  users: number,
): NeededGpus | null {
  let best: NeededGpus | null = null;
  // Without links, GPUs can be replicas, but not share layers.
  const most = setting.cluster.gpu.links.length === 0 ? 1 : MOST_SHARING;
  for (let tensorParallel = 1; tensorParallel <= most; tensorParallel *= 2) {
    const perReplica = Math.min(
      users,
      usersPerReplica(model, { ...setting, tensorParallel })('upper'),
    );
    if (perReplica === 0) continue;
    const replicas = Math.ceil(users / perReplica);
    const gpus = replicas * tensorParallel;
    if (best === null || gpus < best.gpus) best = { gpus, replicas, tensorParallel, perReplica };
    if (replicas === 1) break;
  }
  return best;
}
