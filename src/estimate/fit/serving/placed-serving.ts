/** Serving on the GPUs of a cluster: replicas, and as few GPUs for each layer as fit. */

import { usageError } from '../../../base/errors.js';
import { setting as settingText } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Bounds } from '../../../model/budget/figure.js';
import type { Cluster } from '../../hardware/gpu.js';
import { capacityOf } from '../../hardware/gpu.js';
import { largest } from '../bounds.js';
import { linkedCluster, mostSharing } from '../parallelism/linked-cluster.js';
import type { FitVerdict } from '../training/training-fit.js';
import { memoryVerdict } from '../training/training-memory.js';
import { weightLayout } from './quantized.js';
import { axesOfReplica, gpusOfReplica, type ServingAxes } from './serving-axes.js';
import { servingMemoryOf } from './serving-memory.js';
import type { ServingFitSetting } from './serving-work.js';

/** Serving that was asked for. */
export interface ServingQuestion {
  readonly setting: ServingFitSetting;
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

/** @throws UserError when there are fewer GPUs than hold a replica. */
export function requireGpus(axes: ServingAxes, { gpus }: Cluster): void {
  const replica = gpusOfReplica(axes);
  const names = axesOfReplica(axes)
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
    `${names}: expected at most the ${counted(gpus, 'GPU')} of ${settingText('gpus')}, found ${formatInteger(replica)}`,
    `write at most ${gpus}, or ask for more with ${settingText('gpus')}`,
  );
}

/** Replicas of the model on all GPUs. */
export const replicasOf = (
  setting: Pick<ServingFitSetting, 'cluster' | keyof ServingAxes>,
): number => Math.floor(setting.cluster.gpus / gpusOfReplica(setting));

/**
 * Serving on the fewest GPUs per layer that fit by the upper bound, or on the most if none fits. Only GPUs with a known
 * link share layers. A number that the user fixed is kept.
 * @throws UserError when there are fewer GPUs than share a layer.
 */
export function placedServing(model: LanguageModel, question: ServingQuestion): PlacedServing {
  const { setting: asked, isSharingChosen } = question;
  const { cluster } = asked;
  requireGpus(asked, cluster);
  const most = isSharingChosen ? asked.tensorParallel : mostSharing(cluster, cluster.gpus);
  let best = sharedBy(model, question, asked.tensorParallel);
  for (let shared = 2 * asked.tensorParallel; shared <= most; shared *= 2) {
    if (best.verdict === 'fits') break;
    best = sharedBy(model, question, shared);
  }
  return best;
}

function sharedBy(
  model: LanguageModel,
  { setting: asked, users }: ServingQuestion,
  tensorParallel: number,
): PlacedServing {
  const wider = { ...asked, tensorParallel };
  const replicas = replicasOf(wider);
  const setting = users === undefined ? wider : { ...wider, batch: Math.ceil(users / replicas) };
  const total = memoryAt(model, setting)(setting.batch);
  return { setting, total, verdict: memoryVerdict(total, capacityOf(setting.cluster.gpu)) };
}

/** Memory of a GPU as a function of the sequences of its replica. */
function memoryAt(model: LanguageModel, setting: ServingFitSetting): (batch: number) => Bounds {
  const served = { model, form: setting, layout: weightLayout(model) };
  const at = servingMemoryOf(served, setting.cluster.gpu);
  return (batch) => at(batch, setting.context).total;
}

/** Limit of users in a search. */
const MOST_USERS = 2 ** 24;

/** Most GPUs that share each layer in a search. */
const MOST_SHARING_TRIED = 64;

/** Largest number of users of one replica, by a bound of the memory. */
export function usersPerReplica(
  model: LanguageModel,
  setting: ServingFitSetting,
): (bound: keyof Bounds) => number {
  const { value: capacity } = capacityOf(setting.cluster.gpu);
  const total = memoryAt(model, setting);
  return (bound) => largest(MOST_USERS, (count) => total(count)[bound].value <= capacity);
}

/** GPUs that serve a number of users. */
export interface NeededGpus {
  /** Number of GPUs. @integer @minimum 1 */
  readonly gpus: number;
  /** Copies of the model on them. @integer @minimum 1 */
  readonly replicas: number;
  /** GPUs that share each layer. @integer @minimum 1 */
  readonly tensorParallel: number;
  /** GPUs of a copy. @integer @minimum 1 */
  readonly perReplica: number;
}

/**
 * Fewest GPUs whose memory surely fits the users, or one replica with the batch of the setting. Undefined if no number
 * is enough, or more GPUs have no known link.
 */
export function fewestForServing(
  model: LanguageModel,
  { setting, users }: Pick<ServingQuestion, 'setting' | 'users'>,
): (NeededGpus & { readonly cluster: Cluster }) | undefined {
  let best: (NeededGpus & { readonly cluster: Cluster }) | undefined;
  for (let tensorParallel = 1; tensorParallel <= MOST_SHARING_TRIED; tensorParallel *= 2) {
    const cluster = linkedCluster(setting.cluster, tensorParallel);
    if (cluster === undefined) break;
    const wider = { ...setting, cluster, tensorParallel };
    const perReplica = Math.min(
      users ?? setting.batch,
      users === undefined ? batchIfFits(model, wider) : usersPerReplica(model, wider)('upper'),
    );
    if (perReplica === 0) continue;
    const replicas = Math.ceil((users ?? perReplica) / perReplica);
    const gpus = replicas * tensorParallel;
    if (best === undefined || gpus < best.gpus) {
      best = { gpus, replicas, tensorParallel, perReplica, cluster: { ...cluster, gpus } };
    }
    if (replicas === 1) break;
  }
  return best;
}

function batchIfFits(model: LanguageModel, setting: ServingFitSetting): number {
  const { upper } = memoryAt(model, setting)(setting.batch);
  return upper.value <= capacityOf(setting.cluster.gpu).value ? setting.batch : 0;
}
