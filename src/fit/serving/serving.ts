/** Checks whether GPUs can serve a model, how fast, and how many a load needs. */
import type { LanguageModel } from '../../architecture/layer.js';
import { v } from '../../budget/expression.js';
import type { Figure } from '../../budget/figure.js';
import { type Bounds, type Quantity, quantity } from '../../budget/figure.js';
import { UserError } from '../../errors.js';
import type { Cluster } from '../../hardware/gpu.js';
import { capacityOf, noPeakText, peakFor, peakIfKnown } from '../../hardware/gpu.js';
import { formatInteger } from '../../text/units.js';
import { byBound, largest } from '../bounds.js';
import { withoutLink } from '../parallelism/collectives.js';
import type { FitVerdict } from '../training/training-fit.js';
import { verdictOf } from '../training/training-memory.js';
import { measuredPrefill, measuredStep } from './measured-speed.js';
import { servedWeights } from './quantized.js';
import { LARGEST_BATCH, LOAD_ASSUMPTION, type LoadAnswer, replicasFor } from './queueing.js';
import {
  type DecodeStep,
  decodeStep,
  type Prefill,
  prefill,
  type Rates,
  ratesOf,
  secondsOfStep,
  tokensPerSecond,
} from './roofline.js';
import { type ServingMemory, servingMemoryOf } from './serving-memory.js';
import type { ServedModel, ServingFitSetting } from './serving-work.js';
import { decodeWork, prefillWork, servedModel } from './serving-work.js';
import { WEIGHT_DTYPES } from './weight-types.js';

/** GPUs that a load needs, at the speed of each bound. */
export interface ServingLoad extends Readonly<Record<keyof Bounds, LoadAnswer>> {
  readonly assumption: string;
}

export interface ServingFit {
  /** Weights on the fullest GPU, by component. */
  readonly weightParts: readonly { readonly part: string; readonly bytes: Figure }[];
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
  readonly workspaceParts: readonly { readonly part: string; readonly bytes: Bounds }[];
  /** Total memory of one GPU. */
  readonly total: Bounds;
  readonly capacity: Quantity;
  readonly verdict: FitVerdict;
  /** Peak in the type of the products; null if none is published. */
  readonly peak: Quantity | null;
  /** Text about figures that are missing without a published peak; null if there is one. */
  readonly withoutPeak: string | null;
  /** Text about all-reduces that are not counted without a known link; null if they are. */
  readonly withoutLink: string | null;
  /** Text that times assume GPUs with more memory, if the model does not fit; null otherwise. */
  readonly withoutRoom: string | null;
  /** Prefill of one prompt; null without a peak. */
  readonly prefill: Prefill | null;
  /** Decoding at the batch and context; without a peak, reading only. */
  readonly decode: DecodeStep & { readonly tokensPerSecond: Bounds };
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
  const step =
    measuredStep(measured, batch, batch) ?? decodeStep(decodeWork(served, context), rates, batch);
  const fits = (of: ServingMemory) => of.total.expected.value <= capacity.value;
  const largestBatch = largest(MOST_SEQUENCES, (count) => fits(memoryAt(count, context)));
  const largestContext = largest(model.positions, (tokens) => fits(memoryAt(batch, tokens)));
  const load = setting.load && loadOf(served, rates, setting, memoryAt, capacity);
  const verdict = verdictOf(memory.total, capacity);
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
    withoutLink: withoutLink(cluster, tensorParallel),
    withoutRoom: verdict === 'does not fit' ? WITHOUT_ROOM : null,
    prefill: measuredPrefill(measured) ?? prefill(prefillWork(served, prompt), rates),
    decode: { ...step, tokensPerSecond: tokensPerSecond(step.seconds, batch) },
    largestBatch: found(
      'largest batch',
      'requests',
      largestBatch,
      `at ${formatInteger(context)} tokens each`,
    ),
    largestContext: found(
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

/** Limit far beyond any link. With uneven attention spans, the GPUs of a layer are checked one by one. */
const MOST_SHARING = 4_096;

function requireGpus(tensorParallel: number, { gpus }: Cluster): void {
  if (tensorParallel > MOST_SHARING) {
    throw new UserError(
      'usage',
      `--tensor-parallel: at most ${MOST_SHARING} GPUs can share each layer, found ${tensorParallel}`,
      { suggestion: `write at most ${MOST_SHARING}` },
    );
  }
  if (tensorParallel <= gpus) return;
  throw new UserError(
    'usage',
    `--tensor-parallel: ${tensorParallel} GPUs are to share each layer, and there are ${gpus}`,
    { suggestion: `write at most ${gpus}, or ask for more with --gpus` },
  );
}

/** Limit of sequences in the search. */
const MOST_SEQUENCES = 2 ** 24;

const found = (
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
