/** One pass of an encoder on a GPU: it has no cache and generates no tokens. */

import { usageError } from '../../../base/errors.js';
import { type SettingName, setting as settingText } from '../../../base/text/setting.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { div, mul, v } from '../../../model/budget/expression.js';
import { type Bounds, type Quantity, quantity } from '../../../model/budget/figure.js';
import { forwardFlopsOf } from '../../../model/budget/flops.js';
import { generationOf, uncountedTower } from '../../../model/budget/generation.js';
import { capacityOf, noPeakText, peakIfKnown } from '../../hardware/gpu.js';
import { largestCount } from '../bounds.js';
import { type FitOptions, isChosen } from '../fit-options.js';
import type { FitVerdict } from '../training/training-fit.js';
import { memoryVerdict } from '../training/training-memory.js';
import type { Prefill } from './roofline.js';
import { prefill } from './roofline.js';
import { type ServingMemory, servingMemoryOf } from './serving-memory.js';
import { prefillWork, type ServingFitSetting, servedModel } from './serving-work.js';
import { servingRates } from './throughput/server.js';
import { WEIGHT_DTYPES } from './weight-types.js';

/** Memory and time of a pass. Each GPU has the whole model. */
export interface EncoderPass extends Pick<ServingMemory, 'weights' | 'workspace' | 'total'> {
  /** Type of the weights and its scales. */
  readonly format: ServingFitSetting['weights'];
  /** Tokens or patches of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** Sequences of a pass whose memory is counted. @integer @minimum 1 */
  readonly batch: number;
  readonly capacity: Quantity;
  /** `fits`: by the upper bound; `may fit`: by the estimate; `does not fit`: not by the estimate. */
  readonly verdict: FitVerdict;
  /** Most sequences of a pass whose expected memory fits; null if not even one fits. */
  readonly largestBatch: Quantity | null;
  /** A pass over one sequence; null without a time. */
  readonly time: Prefill | null;
  /** Sequences per second of all GPUs, one at a time on each; null without a time. */
  readonly sequencesPerSecond: Bounds | null;
  /** Why there is no time; null if there is one. */
  readonly withoutTime: string | null;
}

/** Most sequences of a search. */
const MOST_SEQUENCES = 2 ** 24;

export function encoderPass(model: LanguageModel, setting: ServingFitSetting): EncoderPass {
  const { cluster, context, batch, weights: format } = setting;
  if (cluster.gpu.kind === 'processor' || cluster.cards !== undefined) {
    throw usageError(
      'expected GPUs of one kind for an encoder: its pass is estimated only there',
      `name a GPU, as in ${settingText('gpu', 'l4')}`,
    );
  }
  const alone = { ...setting, tensorParallel: 1 };
  const served = servedModel(model, alone);
  const memoryAt = servingMemoryOf(served, cluster.gpu);
  const { weights, workspace, total } = memoryAt(batch, context);
  const capacity = capacityOf(cluster.gpu);
  const most = largestCount(
    MOST_SEQUENCES,
    (count) => memoryAt(count, context).total.expected.value <= capacity.value,
  );
  const verdict = memoryVerdict(total, capacity);
  const withoutTime = reasonWithout(model, setting, verdict);
  const { total: forward } = forwardFlopsOf(model, { batch: 1, context, causal: true });
  const work = { ...prefillWork(served, context), flops: Number(forward.value) };
  const time = withoutTime === null ? prefill(work, servingRates(alone)) : null;
  return {
    format,
    context,
    batch,
    weights,
    workspace,
    total,
    capacity,
    verdict,
    largestBatch:
      most === 0
        ? null
        : quantity({
            label: 'sequences of a pass',
            unit: 'requests',
            formula: v({ found: most }),
            source: `largest number whose estimated memory fits, at ${context} tokens each; found by search`,
          }),
    time,
    sequencesPerSecond: time && sequenceRate(time.seconds, cluster.gpus),
    withoutTime,
  };
}

function reasonWithout(
  model: LanguageModel,
  { cluster: { gpu }, weights }: ServingFitSetting,
  verdict: FitVerdict,
): string | null {
  const tower = uncountedTower(model);
  if (tower !== undefined) return `FLOPs of the ${tower} are not counted`;
  if (verdict === 'does not fit') return 'the model does not fit into the memory';
  const { computes } = WEIGHT_DTYPES[weights.dtype];
  return peakIfKnown(gpu, computes) === null ? noPeakText(gpu, computes) : null;
}

/** The shortest pass gives the highest rate. */
function sequenceRate({ lower, expected, upper }: Bounds, gpus: number): Bounds {
  const rate = ({ value }: Quantity) =>
    quantity({
      label: 'sequences per second',
      unit: 'requests/s',
      formula: div(mul(1, v({ gpus })), v({ pass: value })),
      source: 'one sequence at a time on each GPU',
    });
  return { lower: rate(upper), expected: rate(expected), upper: rate(lower) };
}

/** Options of a server, of its speed, and of a cache. */
const OF_DECODING = [
  ...['users', 'promptTokens', 'outputTokens', 'outputMix', 'tokenSeconds', 'prefillSeconds'],
  ...['requestsPerSecond', 'p95Seconds', 'minTokensPerSecond', 'calibrate', 'runtime', 'eager'],
  ...['chunkedPrefill', 'batching', 'prefixCache', 'draft', 'acceptance', 'draftTokens'],
  'prefillGpus',
] as const;

/** Options that an encoder alone does not have, either. */
const OF_CACHE = [
  ...['cacheDtype', 'dataParallelAttention', 'tensorParallel', 'pipelineParallel'],
  ...['contextParallel', 'expertParallel', 'ramBytes', 'ramSpeed', 'cpu', 'gpuLayers'],
  ...['cpuExperts', 'tensorSplit', 'offload'],
] as const;

/** Options of a decoder with an encoder that need a speed. */
const OF_SPEED: readonly string[] = OF_DECODING.filter(
  (name) => !['users', 'promptTokens', 'outputTokens', 'runtime', 'eager'].includes(name),
);

/**
 * @throws UserError for an option of generating tokens with a model that generates none, or for one of speed with a decoder
 * whose encoder runs once.
 */
export function refuseOfDecoding(model: LanguageModel, options: FitOptions): void {
  const generation = generationOf(model);
  if (generation === 'tokens' || (options.for ?? 'serving') !== 'serving') return;
  const isAlone = generation === 'none';
  const names = isAlone ? [...OF_DECODING, ...OF_CACHE] : OF_SPEED;
  const name = names.find((each) => isChosen(options, each as keyof FitOptions));
  const isPriced = options.pricePerHour !== undefined && options.trainTokens === undefined;
  const priced = isPriced ? 'pricePerHour' : undefined;
  const found = (name ?? priced) as SettingName | undefined;
  if (found === undefined) return;
  throw usageError(
    isAlone
      ? `${settingText(found)} does not apply: the model is an encoder, which has no cache and generates no tokens`
      : `${settingText(found)} does not apply: no speed is estimated of a decoder with an encoder`,
    'leave it out',
  );
}
