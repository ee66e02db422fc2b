/** Whether a model can be served by some GPUs, how fast, and how many a load needs. */
import type { LanguageModel } from '../../architecture/layer.js';
import { v } from '../../budget/expression.js';
import type { Figure } from '../../budget/figure.js';
import { type Bounds, type Quantity, quantity } from '../../budget/quantity.js';
import { UserError } from '../../errors.js';
import type { Cluster } from '../../hardware/gpu.js';
import { capacityOf, noPeakText, peakFor, peakIfKnown } from '../../hardware/gpu.js';
import { largest } from '../bounds.js';
import { withoutLink } from '../parallelism/collectives.js';
import type { Verdict } from '../training/training.js';
import { verdictOf } from '../training/training-memory.js';
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

export type { ServingFitSetting };

/** How many GPUs a load needs at the speed of each bound. */
export interface ServingLoad {
  readonly lower: LoadAnswer;
  readonly expected: LoadAnswer;
  readonly upper: LoadAnswer;
  readonly assumption: string;
}

export interface ServingFit {
  /** What weighs on the fullest GPU, by what it is for. */
  readonly weightParts: readonly { readonly part: string; readonly bytes: Figure }[];
  /** With their scales, on the fullest GPU. */
  readonly weights: Figure;
  /** Of the whole model. */
  readonly wholeWeights: Figure;
  /** Keys and values of one sequence at the context, on one GPU. */
  readonly cachePerSequence: Figure;
  /** … and what one more token adds, while all windows have room. */
  readonly cachePerToken: Figure;
  /** Mamba's states of one sequence, on one GPU. */
  readonly state: Figure;
  readonly workspace: Bounds;
  readonly workspaceParts: readonly { readonly part: string; readonly bytes: Bounds }[];
  /** Of one GPU. */
  readonly total: Bounds;
  readonly capacity: Quantity;
  readonly verdict: Verdict;
  /** In what the products are computed; null where none is published. */
  readonly peak: Quantity | null;
  /** What is not told, or not counted, because no peak is published; null where one is. */
  readonly withoutPeak: string | null;
  /** That all-reduces are not counted, as nobody knows a link for them; null where they are. */
  readonly withoutLink: string | null;
  /** That it does not fit, so that all times are those of such GPUs with more memory; null where it may. */
  readonly withoutRoom: string | null;
  /** Of one prompt; null without a peak. */
  readonly prefill: Prefill | null;
  /** At the batch and context; without a peak of reading alone. */
  readonly decode: DecodeStep & { readonly tokensPerSecond: Bounds };
  /** Whose expected memory fits at the context; null when not even one sequence's does. */
  readonly largestBatch: Quantity | null;
  /** … at the batch; null when not even one token does. */
  readonly largestContext: Quantity | null;
  readonly load?: ServingLoad;
}

/**
 * @param model Counted as it is described; what is asked beyond its positions is not refused here.
 * @throws UserError when there are fewer GPUs than are to share a layer, or a load is asked for and no peak is known.
 */
export function fitServing(model: LanguageModel, setting: ServingFitSetting): ServingFit {
  const { cluster, context, batch, prompt, tensorParallel } = setting;
  requireGpus(tensorParallel, cluster);
  const served = servedModel(model, setting);
  const memoryAt = servingMemoryOf(served, cluster.gpu);
  const memory = memoryAt(batch, context);
  const capacity = capacityOf(cluster.gpu);
  const dtype = WEIGHT_DTYPES[setting.weights.dtype].computes;
  // How long requests wait for prefills is not to be told without.
  const peak = setting.load ? peakFor(cluster.gpu, dtype) : peakIfKnown(cluster.gpu, dtype);
  const rates = ratesOf(cluster, tensorParallel, peak, setting.weights.dtype);
  const step = decodeStep(decodeWork(served, context), rates, batch);
  const fits = (of: ServingMemory) => of.total.expected.value <= capacity.value;
  const largestBatch = largest(MOST_SEQUENCES, (count) => fits(memoryAt(count, context)));
  const largestContext = largest(model.positions, (tokens) => fits(memoryAt(batch, tokens)));
  const load = setting.load && loadOf(served, rates, setting, memoryAt, capacity);
  const verdict = verdictOf(memory.total, capacity);
  return {
    ...memory,
    wholeWeights: servedWeights(served.layout, setting.weights, 1).total,
    capacity,
    verdict,
    peak,
    withoutPeak: peak ? null : `${noPeakText(cluster.gpu, dtype)}: ${WITHOUT_PEAK}`,
    withoutLink: withoutLink(cluster, tensorParallel),
    withoutRoom: verdict === 'does not fit' ? WITHOUT_ROOM : null,
    prefill: prefill(prefillWork(served, prompt), rates),
    decode: { ...step, tokensPerSecond: tokensPerSecond(step.seconds, batch) },
    largestBatch: found('largest batch', 'requests', largestBatch, `at ${context} tokens each`),
    largestContext: found(
      'largest context',
      'tokens',
      largestContext,
      `at a batch of ${batch}; the model takes ${model.positions}`,
    ),
    ...(load && { load }),
  };
}

const WITHOUT_PEAK =
  'there is no time of a prefill, and of decoding reading alone is counted, so that with many sequences it is slower ' +
  'than told';

const WITHOUT_ROOM = 'no speed estimate: the model does not fit into the memory';

/** Far more than any link joins. The GPUs of a layer are looked at one by one where its heads see unlike far. */
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

/** More sequences than this are not searched for. */
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
        source: `the largest whose expected memory fits, ${at}; tried on the sum itself`,
      });

function loadOf(
  served: ServedModel,
  rates: Rates,
  { prompt, output, load, tensorParallel }: ServingFitSetting,
  memoryAt: ReturnType<typeof servingMemoryOf>,
  capacity: Quantity,
): ServingLoad | undefined {
  if (load === undefined) return undefined;
  const longest = prompt + output;
  const work = decodeWork(served, longest);
  const prefilled = prefill(prefillWork(served, prompt), rates);
  if (prefilled === null) return undefined;
  const { seconds } = prefilled;
  const answer = (bound: keyof Bounds) =>
    replicasFor(
      {
        prefill: seconds[bound].value,
        step: (batch) => secondsOfStep(work, rates, batch, bound),
        output,
        places: largest(
          LARGEST_BATCH,
          (count) => memoryAt(count, longest).total[bound].value <= capacity.value,
        ),
        gpus: tensorParallel,
      },
      load,
    );
  return {
    lower: answer('lower'),
    expected: answer('expected'),
    upper: answer('upper'),
    assumption: LOAD_ASSUMPTION,
  };
}
