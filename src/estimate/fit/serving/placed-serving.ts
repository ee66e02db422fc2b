/** Serving on the GPUs of a cluster: replicas, and as few GPUs for each layer as fit. */

import { usageError } from '../../../base/errors.js';
import { setting as settingText } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Bounds } from '../../../model/budget/figure.js';
import type { Cluster } from '../../hardware/gpu.js';
import { capacityOf } from '../../hardware/gpu.js';
import { largestCount } from '../bounds.js';
import { withoutLink } from '../parallelism/collectives.js';
import { doubled } from '../parallelism/divisors.js';
import { linkedCluster, mostSharing } from '../parallelism/linked-cluster.js';
import type { FitVerdict } from '../training/training-fit.js';
import { memoryVerdict } from '../training/training-memory.js';
import { type DividedSetting, decodingGpus, requireDecodingGpus } from './disaggregation.js';
import { type DraftedServing, replicaMemoryOf } from './replica-memory.js';
import { keptAxes, replicaWays, withAxes } from './replica-ways.js';
import { axesOfReplica, gpusOfReplica, type ServingAxes } from './serving-axes.js';
import type { ServingFitSetting } from './serving-work.js';

/** Serving that was asked for. */
export interface ServingQuestion extends DraftedServing {
  /** Users at the same time, spread over the replicas; undefined: `setting.batch` for each replica. */
  readonly users: number | undefined;
  /** Whether the user fixed the number of GPUs that share the layers. */
  readonly isSharingChosen: boolean;
}

/** A way to serve on the GPUs of a setting. */
export interface PlacedServing {
  readonly setting: ServingFitSetting;
  /** Memory of one GPU. */
  readonly total: Bounds;
  readonly verdict: FitVerdict;
}

/** Limit far beyond any link. With uneven attention spans, the GPUs of a layer are checked one by one. */
const MOST_SHARING = 4_096;

/** @throws UserError when there are fewer GPUs, of those that decode or read prompts, than hold a replica. */
export function requireGpus(setting: DividedSetting): void {
  requireDecodingGpus(setting);
  const gpus = gpusOfKind(setting);
  const replica = gpusOfReplica(setting);
  const names = axesOfReplica(setting)
    .map((name) => settingText(name))
    .join(' × ');
  if (replica > MOST_SHARING) {
    throw usageError(
      `${names}: expected at most ${formatInteger(MOST_SHARING)} GPUs that share a model, found ${formatInteger(replica)}`,
      `write at most ${MOST_SHARING}`,
    );
  }
  if (replica <= gpus) return;
  throw usageError(
    `${names}: expected at most the ${counted(gpus, 'GPU')} ${setting.prefillGpus === undefined ? `of ${settingText('gpus')}` : 'that decode, or read prompts'}, found ${formatInteger(replica)}`,
    `write at most ${gpus}, or ask for more with ${settingText('gpus')}`,
  );
}

/** GPUs of the smaller of two groups: those that decode, and those that only read prompts. */
const gpusOfKind = (setting: DividedSetting): number =>
  Math.min(decodingGpus(setting), setting.prefillGpus ?? Number.POSITIVE_INFINITY);

/** Replicas of the model that decode. */
export const decodingReplicas = (setting: DividedSetting): number =>
  Math.floor(decodingGpus(setting) / gpusOfReplica(setting));

/**
 * Serving on the fewest GPUs of a replica that fit by the upper bound, those first that use all GPUs and have one copy of the
 * attention; with the least memory if none fits. Only GPUs with a known link hold a replica. Axes that the user fixed are kept.
 * @throws UserError when there are fewer GPUs than hold a replica.
 */
export function placedServing(model: LanguageModel, question: ServingQuestion): PlacedServing {
  const { setting: asked, isSharingChosen } = question;
  requireGpus(asked);
  const first = placedBy(model, question, asked);
  if (first.verdict === 'fits' || isSharingChosen) return first;
  let best = first;
  for (const axes of waysOn(model, asked)) {
    const placed = placedBy(model, question, axes);
    if (placed.verdict === 'fits') return placed;
    if (placed.total.upper.value < best.total.upper.value) best = placed;
  }
  return best;
}

/** Ways to hold a replica on the GPUs of a setting, in the order in which they are preferred. */
function waysOn(model: LanguageModel, asked: ServingFitSetting): readonly ServingAxes[] {
  const { cluster } = asked;
  const gpus = gpusOfKind(asked);
  const most = mostSharing(cluster, gpus);
  const isLinked = withoutLink(cluster, gpus) === null;
  // All GPUs too, of a number that no doubling reaches, such as the 72 of an NVL72.
  const sizes = [
    ...doubled(2 * asked.tensorParallel, most),
    ...(isLinked && gpus > most ? [gpus] : []),
  ];
  const ways = sizes.flatMap((size) => replicaWays(model, asked, size));
  // Groups read the weights of the attention many times, and are chosen where sharing alone does not fit.
  const cost = (axes: ServingAxes) =>
    (idleGpusOf({ ...asked, ...axes }) === 0 ? 0 : 2) +
    (axes.dataParallelAttention === undefined ? 0 : 1);
  return ways.toSorted((a, b) => cost(a) - cost(b));
}

/** GPUs that are in no server. */
export function idleGpusOf(setting: DividedSetting): number {
  const each = gpusOfReplica(setting);
  return (decodingGpus(setting) % each) + ((setting.prefillGpus ?? 0) % each);
}

function placedBy(
  model: LanguageModel,
  { setting: asked, users, draft }: ServingQuestion,
  axes: ServingAxes,
): PlacedServing {
  const wider = withAxes(asked, axes);
  const replicas = decodingReplicas(wider);
  const setting = users === undefined ? wider : { ...wider, batch: Math.ceil(users / replicas) };
  const total = memoryAt(model, { setting, draft })(setting.batch);
  return { setting, total, verdict: memoryVerdict(total, capacityOf(setting.cluster.gpu)) };
}

/** Memory of a GPU as a function of the sequences of its replica. */
function memoryAt(model: LanguageModel, served: DraftedServing): (batch: number) => Bounds {
  const at = replicaMemoryOf(model, served);
  return (batch) => at(batch, served.setting.context).total;
}

/** Limit of users in a search. */
const MOST_USERS = 2 ** 24;

/** Most GPUs that share each layer in a search. */
const MOST_SHARING_TRIED = 64;

/** Largest number of users of one replica, by a bound of the memory. @param most Limit of the search. */
export function usersPerReplica(
  model: LanguageModel,
  served: DraftedServing,
  most = MOST_USERS,
): (bound: keyof Bounds) => number {
  const { value: capacity } = capacityOf(served.setting.cluster.gpu);
  const total = memoryAt(model, served);
  return (bound) => largestCount(most, (count) => total(count)[bound].value <= capacity);
}

/** GPUs that serve a number of users. */
export interface NeededGpus extends ServingAxes {
  /** Number of GPUs. @integer @minimum 1 */
  readonly gpus: number;
  /** Copies of the model on them. @integer @minimum 1 */
  readonly replicas: number;
  /** Users of a copy. @integer @minimum 1 */
  readonly perReplica: number;
}

/** GPUs of a search, with their links. */
export type NeededCluster = NeededGpus & { readonly cluster: Cluster };

/**
 * Fewest GPUs whose memory surely fits the users, or one replica with the batch of the setting. Undefined if no number
 * is enough, or more GPUs have no known link. Of the axes that the user fixed only the GPUs that share a layer change.
 */
export function fewestForServing(
  model: LanguageModel,
  { setting, users, draft, isSharingChosen = false }: FewestQuestion,
): NeededCluster | undefined {
  let best: NeededCluster | undefined;
  for (const shared of doubled(1, MOST_SHARING_TRIED)) {
    const ways = isSharingChosen
      ? keptAxes(model, setting, shared)
      : replicaWays(model, setting, shared);
    for (const axes of ways) {
      const found = neededWith(model, { setting, users, draft }, axes);
      if (found === undefined) continue;
      if (best === undefined || found.gpus < best.gpus) best = found;
      if (found.replicas === 1) return best;
    }
  }
  return best;
}

type FewestQuestion = Pick<ServingQuestion, 'setting' | 'users' | 'draft'> &
  Partial<Pick<ServingQuestion, 'isSharingChosen'>>;

/** GPUs for users with replicas of some axes; undefined if not even one fits, or without a link. */
function neededWith(
  model: LanguageModel,
  { setting, users, draft }: FewestQuestion,
  axes: ServingAxes,
): NeededCluster | undefined {
  const each = gpusOfReplica(axes);
  const { prefillGpus = 0 } = setting;
  // A server that reads prompts holds the model as one that decodes does.
  if (prefillGpus > 0 && prefillGpus < each) return undefined;
  const cluster = linkedCluster(setting.cluster, each + prefillGpus);
  if (cluster === undefined) return undefined;
  const wider = { setting: withAxes({ ...setting, cluster }, axes), draft };
  const perReplica =
    users === undefined ? batchIfFits(model, wider) : usersPerReplica(model, wider, users)('upper');
  if (perReplica === 0) return undefined;
  const replicas = Math.ceil((users ?? perReplica) / perReplica);
  const gpus = replicas * each + prefillGpus;
  return { gpus, replicas, ...axes, perReplica, cluster: { ...cluster, gpus } };
}

function batchIfFits(model: LanguageModel, served: DraftedServing): number {
  const { setting } = served;
  const { upper } = memoryAt(model, served)(setting.batch);
  return upper.value <= capacityOf(setting.cluster.gpu).value ? setting.batch : 0;
}
