/** The same question for several GPUs, batches or contexts: a row for each. */

import type { TrainingConfigAnswer } from '../../input/training-config/training-answer.js';
import { clusterName } from '../hardware/cluster-named.js';
import type { Cluster } from '../hardware/gpu.js';
import { capacityOf } from '../hardware/gpu.js';
import type { Fits } from './fits.js';
import type { Purpose } from './purpose.js';
import { type UnmetRequirement, unmetRequirementsOf } from './remedies/remedies.js';
import type { FitVerdict } from './training/training-fit.js';

export interface FitListRow {
  /** Name of the GPU. */
  readonly gpu: string;
  /** Number of GPUs. @integer @minimum 1 */
  readonly gpus: number;
  /** Tokens per sequence. @integer @minimum 1 */
  readonly context: number;
  /** Sequences at a time, per replica or micro-batch. @integer @minimum 1 */
  readonly batch: number;
  /** Whether it fits. */
  readonly verdict: FitVerdict;
  /** Estimated memory of the fullest GPU in bytes; without a GPU, of the system memory. @real */
  readonly memoryBytes: number;
  /** Usable memory of a GPU in bytes; without a GPU, the system memory, and null where its size is unknown. @real */
  readonly capacityBytes: number | null;
  /** Tokens per second of these sequences, or of the training; null without an estimate. @real */
  readonly tokensPerSecond: number | null;
  /** Output tokens per second of a server with as many requests as fit; null for a training. @real */
  readonly serverTokensPerSecond: number | null;
  /** Users of the server at the speed that they need; null for a training. @integer @minimum 0 */
  readonly users: number | null;
  /** Requirements of the user that the setup does not meet with certainty. */
  readonly doubts: readonly UnmetRequirement[];
}

/**
 * A model on several GPUs, or with several batches or contexts.
 * @answer minimind fit --json, with a list for --gpu, --batch or --context
 */
export interface FitListResult {
  readonly schema: 'minimind/fit-list@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Parameters of the model, shared tensors once. @exact */
  readonly parameters: number;
  /** The question. */
  readonly purpose: Purpose;
  /** Tokens per second that each user of the server needs; null for a training. @real */
  readonly minSpeed: number | null;
  /** A row for each combination, in the order of the lists. */
  readonly rows: readonly FitListRow[];
  /** Values read from a training config; absent without one. */
  readonly trainingConfig?: TrainingConfigAnswer;
}

/** Row of one combination. */
export function fitListRow(fits: Fits, cluster: Cluster): FitListRow {
  const { purpose, serving, training, adapters, pass } = fits;
  const doubts = unmetRequirementsOf({ cluster, ...fits });
  const of = { gpu: clusterName(cluster), gpus: cluster.gpus, doubts };
  const capacityBytes = capacityOf(cluster.gpu).value;
  if (purpose === 'serving' && serving) {
    const { setting, fit, throughput, places } = serving;
    const isRoom = fit.withoutRoom === null;
    if (places?.isAsked) {
      const { verdict, gpu, capacity, decode, system, memory } = places;
      const isAlone = cluster.gpu.kind === 'processor';
      return {
        ...of,
        context: setting.context,
        batch: setting.batch,
        verdict,
        memoryBytes: isAlone ? system.value : gpu.expected.value,
        capacityBytes: isAlone ? memory.bytes : capacity.value,
        tokensPerSecond: verdict === 'does not fit' ? null : decode.tokensPerSecond.expected.value,
        serverTokensPerSecond: null,
        users: null,
      };
    }
    return {
      ...of,
      context: setting.context,
      batch: setting.batch,
      verdict: fit.verdict,
      memoryBytes: fit.total.expected.value,
      capacityBytes: fit.capacity.value,
      tokensPerSecond: (isRoom && fit.decode?.tokensPerSecond.expected.value) || null,
      serverTokensPerSecond: throughput?.full.tokensPerSecond.expected.value ?? null,
      users: throughput === null ? null : (throughput.atSpeed?.users ?? 0),
    };
  }
  if (purpose === 'serving' && pass) {
    return {
      ...of,
      context: pass.context,
      batch: pass.batch,
      verdict: pass.verdict,
      memoryBytes: pass.total.expected.value,
      capacityBytes,
      tokensPerSecond: null,
      serverTokensPerSecond: null,
      users: null,
    };
  }
  const trained = adapters ?? training;
  if (trained === null) throw new Error('neither serving nor training was asked for');
  const { microBatch, context } = trained.setting;
  return {
    ...of,
    context,
    batch: microBatch,
    verdict: trained.fit.verdict,
    memoryBytes: trained.fit.total.expected.value,
    capacityBytes,
    tokensPerSecond: training?.fit.step?.tokensPerSecond.value ?? null,
    serverTokensPerSecond: null,
    users: null,
  };
}
