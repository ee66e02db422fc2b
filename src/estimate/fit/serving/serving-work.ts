/** Work of one GPU in serving: bytes read, FLOPs and communication, from the model description. */

import type { CacheDtype, Dtype } from '../../../base/tensor/dtype.js';
import { setting } from '../../../base/text/setting.js';
import { sumOf } from '../../../base/values.js';
import type { LanguageModel, Layer } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import {
  expertTensors,
  isRouted,
  memoized,
  memoizedBy,
  walkCounted,
} from '../../../model/architecture/walk.js';
import { add, div, sub, v } from '../../../model/budget/expression.js';
import type { Bounds, Figure } from '../../../model/budget/figure.js';
import { figure, quantity } from '../../../model/budget/figure.js';
import type { Work } from '../../../model/budget/flops.js';
import { decodingFlopsOf, forwardFlopsOf } from '../../../model/budget/flops.js';
import { activationsOf } from '../../../model/budget/saved-activations.js';
import { stateOf } from '../../../model/budget/state.js';
import type { Cluster } from '../../hardware/gpu.js';
import { kernelLaunchesOf } from '../efficiency.js';
import { mixturesBetween, placesOfToken } from '../parallelism/model-axes.js';
import {
  collectivesOf,
  operationsOfRank,
  ranksThatDiffer,
  tensorCuts,
} from '../parallelism/parallelism.js';
import type { WeightLayout } from './quantized.js';
import { servedWeights, weightLayout } from './quantized.js';
import type {
  DecodeStep,
  DecodeWork,
  ExpertGroup,
  Prefill,
  PrefillWork,
  SharedWork,
} from './roofline.js';
import { axesKey, expertSharing, type ServingAxes } from './serving-axes.js';
import type { RuntimeSetting } from './throughput/runtimes.js';
import type { WeightFormat } from './weight-types.js';
import { WEIGHT_DTYPES } from './weight-types.js';

/** Load of incoming requests. */
export interface LoadRequest {
  /** Requests per second. @real */
  readonly requestsPerSecond: number;
  /** Target of the 95th percentile, in seconds to the last token. @real */
  readonly p95Seconds: number;
}

export interface ServingFitSetting extends ServingAxes {
  readonly cluster: Cluster;
  readonly weights: WeightFormat;
  /** Type of keys and values. */
  readonly cacheDtype: CacheDtype;
  /** Type of Mamba states and convolution inputs. */
  readonly stateDtype: Dtype;
  /** Maximum tokens per sequence, prompt and output. @integer @minimum 1 */
  readonly context: number;
  /** Sequences at a time. @integer @minimum 1 */
  readonly batch: number;
  /** Prompt tokens per request. @integer @minimum 1 */
  readonly prompt: number;
  /** Output tokens per request. @integer @minimum 1 */
  readonly output: number;
  readonly load?: LoadRequest | undefined;
  /** Times that replace the estimates; the token time is of `batch` sequences at a time. */
  readonly measured?: MeasuredSpeed | undefined;
  /** Program that serves; absent: the usual one for the weights and the GPU. */
  readonly runtime?: RuntimeSetting | undefined;
  /** Tokens per second that each user of a server needs at least. @real */
  readonly minSpeed?: number | undefined;
  /** Whether the user named that speed, so that it is a requirement. */
  readonly isSpeedChosen?: boolean | undefined;
  /** Share of a prompt that a prefix cache holds. @real */
  readonly prefixCache?: number | undefined;
  /** Output tokens of requests in equal shares, instead of `output`. */
  readonly outputMix?: readonly number[] | undefined;
  /** Speculative decoding. */
  readonly draft?: DraftSetting | undefined;
  /** GPUs that only read prompts, of those of the cluster; absent where those that decode read them. @integer @minimum 1 */
  readonly prefillGpus?: number | undefined;
}

/** Speculative decoding: a small model drafts tokens, and the model checks them in one step. */
export interface DraftSetting {
  /** Draft model as the user wrote it. */
  readonly name: string;
  /** Probability that a drafted token is accepted. @real */
  readonly acceptance: number;
  /** Tokens that are drafted for a step. @integer @minimum 1 */
  readonly tokens: number;
}

/** Settings of serving that do not depend on the load. */
export interface ServingFormat
  extends Pick<ServingFitSetting, 'weights' | 'cacheDtype' | 'stateDtype' | keyof ServingAxes> {
  /** Tokens that the program keeps of each window beyond it; undefined: none. */
  readonly beyondWindows?: number | undefined;
}

/** Equal only for formats that are the same. */
export const formatKey = (form: ServingFormat): string => {
  const { weights, cacheDtype, stateDtype, beyondWindows } = form;
  return JSON.stringify([weights, cacheDtype, stateDtype, axesKey(form), beyondWindows]);
};

/** Model with its serving data, computed once for many queries. */
export interface ServedModel {
  readonly model: LanguageModel;
  /** Operations of each GPU that could have the most work. */
  readonly work: readonly Work[];
  readonly form: ServingFormat;
  readonly layout: WeightLayout;
  /** Bytes of weights that every pass reads: all except lookup tables and routed experts. */
  readonly weightBytes: number;
  readonly expertGroups: readonly ExpertGroup[];
  readonly shared: SharedWork;
}

/** Settings that determine the memory. */
export type ServedLayout = Pick<ServedModel, 'model' | 'form' | 'layout'>;

export function servedModel(model: LanguageModel, form: ServingFormat): ServedModel {
  const layout = weightLayout(model);
  const experts = expertSharing(form);
  const bytesOf = (which: Parameters<typeof servedWeights>[3]) =>
    Number(servedWeights(layout, form.weights, form.tensorParallel, which, experts).total.value);
  return {
    model,
    work: workOf(model, form.tensorParallel),
    form,
    layout,
    weightBytes: bytesOf((tensor) => !layout.lookups.has(tensor) && !layout.experts.has(tensor)),
    expertGroups: expertGroupsOf([model], bytesOf).map((group) => ({
      ...group,
      // Tokens of all groups of GPUs reach the experts.
      ...((form.dataParallelAttention ?? 1) > 1 && { tokens: form.dataParallelAttention }),
    })),
    shared: sharedWork(model, form),
  };
}

/** Operations per rank; a single GPU has the whole model. */
const workOf = memoizedBy(
  (gpus: number) => gpus,
  (model: LanguageModel, gpus): readonly Work[] => {
    if (gpus === 1) return [model];
    const sharing = { cuts: tensorCuts(model), gpus, byTokens: false };
    return ranksThatDiffer([model], gpus).map((rank) => operationsOfRank(model, sharing, rank));
  },
);

/** Keys, values and states of one sequence on one GPU. */
export interface SequenceState {
  readonly cache: Figure;
  readonly perToken: Figure;
  /** Mamba states and convolution inputs. */
  readonly state: Figure;
}

export function sequenceState({ model, form }: ServedLayout, context: number): SequenceState {
  const parts = form.contextParallel ?? 1;
  // Each GPU has the keys of every so many tokens.
  const setting = {
    batch: 1,
    context: Math.ceil(context / parts),
    gpus: form.tensorParallel,
    beyondWindows: form.beyondWindows,
  };
  const { cacheDtype, stateDtype } = form;
  const caches = stateOf(model, { ...setting, dtype: stateDtype, cacheDtype });
  const states =
    stateDtype === cacheDtype ? caches : stateOf(model, { ...setting, dtype: stateDtype });
  const { keyValueCache, keyValuePerToken } = caches;
  const { mambaState, convolutionState } = states;
  return {
    cache: keyValueCache,
    perToken: keyValuePerToken,
    state: figure({
      label: `${(mambaState.value > 0 ? mambaState : convolutionState).label}s`,
      unit: 'bytes',
      formula: add(
        v({ scan_state: mambaState.value }),
        v({ convolution_state: convolutionState.value }),
      ),
      source: `in ${form.stateDtype}: ${mambaState.source}; ${convolutionState.source}`,
    }),
  };
}

/** @param context Tokens of each sequence, including the new one. */
export function decodeWork(served: ServedModel, context: number): DecodeWork {
  const { cache, state } = sequenceState(served, context);
  const flops = served.work.map((work) => decodingFlopsOf(work, context));
  return {
    ...served.shared,
    weightBytes: served.weightBytes,
    expertGroups: served.expertGroups,
    // States are read and written.
    cacheBytes: Number(cache.value) + 2 * Number(state.value),
    scoreFlops: most(flops.map(({ scores }) => scores)),
    flops: most(flops.map(({ perToken }) => perToken)),
  };
}

/** @param batch Prompts per pass. */
export function prefillWork(served: ServedModel, prompt: number, batch = 1): PrefillWork {
  const { cache, state } = sequenceState(served, prompt);
  return {
    ...served.shared,
    tokens: batch * prompt,
    flops: most(served.work.map((work) => prefillFlops(work, prompt, batch))),
    weightBytes: served.weightBytes,
    expertGroups: served.expertGroups,
    activationBytes: 2 * keptActivationBytes(served, prompt, batch),
    cacheBytes: batch * (Number(cache.value) + Number(state.value)),
  };
}

/** Largest value over the GPUs. */
const most = (figures: readonly Figure[]): number =>
  Math.max(...figures.map(({ value }) => Number(value)));

/** Prefill FLOPs; only the last token of a prompt needs logits. */
function prefillFlops(work: Work, prompt: number, batch: number): Figure {
  const { parts, total } = forwardFlopsOf(work, { batch, context: prompt, causal: true });
  const head = parts.find(({ component, kind }) => component === 'head' && kind === 'projection');
  const ofHead = v({ head: head?.flops.value ?? 0 });
  return figure({
    label: 'prefill',
    unit: 'FLOP',
    formula: add(sub(v({ forward: total.value }), ofHead), div(ofHead, v({ prompt }))),
    source:
      'a forward pass, of the pairs that the mask lets through; logits of the last token alone',
  });
}

/** Bytes of an activation: 16 bits with quantised weights, even if products use narrower inputs made from these. */
export const valueBytes = ({ weights }: ServingFormat): number =>
  WEIGHT_DTYPES[weights.dtype].otherBits / 8;

/** Bytes of all values passed between layers, once; scores and scan states stay within fused kernels. */
function keptActivationBytes({ model, form }: ServedModel, context: number, batch: number): number {
  const setting = { batch, context, bytesPerValue: valueBytes(form), tensor: form.tensorParallel };
  return sumOf(
    activationsOf(model, { ...setting, recompute: 'selective' }).parts.filter(
      ({ part }) => part !== 'logits',
    ),
    ({ bytes }) => Number(bytes.value),
  );
}

/** Routed experts grouped by their counts. */
export function expertGroupsOf(
  layers: readonly Layer[],
  bytesOf: (which: (tensor: Param) => boolean) => number,
): ExpertGroup[] {
  const groups = new Map<string, { experts: number; perToken: number; tensors: Set<Param> }>();
  for (const { layer } of layers.flatMap(walkCounted)) {
    if (!isRouted(layer)) continue;
    const experts = layer.router.weight.shape[0] ?? 0;
    const perToken = layer.router.expertsPerToken;
    const key = `${perToken} of ${experts}`;
    const group = groups.get(key) ?? { experts, perToken, tensors: new Set() };
    for (const { tensor } of expertTensors(layer)) group.tensors.add(tensor);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ experts, perToken, tensors }) => ({
    experts,
    expertsPerToken: perToken,
    bytes: bytesOf((tensor) => tensors.has(tensor)),
  }));
}

/** All-reduces of a pass. Gathering the logits of one token per sequence is left out. */
function sharedWork(model: LanguageModel, form: ServingFormat): SharedWork {
  const bytesPerValue = valueBytes(form);
  // Rows of a shared embedding are reduced too.
  const { values, times, launches } = passOf(model);
  // An all-reduce counts twice in `values`.
  return {
    allReduces: times,
    reducedBytes: (bytesPerValue * values) / 2,
    launches,
    ...expertExchange(model, form),
  };
}

/**
 * Tokens go to the GPUs of their experts and back where groups of GPUs have sequences of their own. GPUs that share all
 * sequences reduce the results instead, as without expert parallelism (vLLM, allgather_reducescatter).
 */
function expertExchange(
  model: LanguageModel,
  form: ServingFormat,
): Pick<SharedWork, 'exchanges' | 'exchangedBytes'> {
  if ((form.dataParallelAttention ?? 1) === 1) return {};
  const mixtures = mixturesBetween(model, { from: 0, to: model.blocks.length });
  const bytes = valueBytes(form);
  // Tokens leave in the type of the products, and come back in 16 bits (DeepSeek-V3, arXiv 2412.19437, section 3.4).
  const dispatch = WEIGHT_DTYPES[form.weights.dtype].bits === 8 ? 1 : bytes;
  return {
    exchanges: 2 * sumOf(mixtures, ({ count }) => count),
    exchangedBytes: (places) =>
      ((dispatch + bytes) / form.tensorParallel) *
      sumOf(mixtures, (group) => group.count * group.width * placesOfToken(group, places)),
  };
}

const passOf = memoized((model: LanguageModel) => ({
  ...collectivesOf([model.embedding, ...model.blocks]).forward,
  launches: kernelLaunchesOf([model]).layers,
}));

// Measured times of serving, which replace the estimates of the roofline.

/** Times that a user measured on the GPUs of one replica. */
export interface MeasuredSpeed {
  /** Seconds per token of a sequence, with the batch of the setting in service. @real */
  readonly tokenSeconds?: number | undefined;
  /** Seconds from one prompt to its first token. @real */
  readonly prefillSeconds?: number | undefined;
}

/** Measured decoding step for up to `most` sequences; undefined for more, or where nothing was measured. */
export function measuredStep(
  { tokenSeconds }: MeasuredSpeed,
  batch: number,
  most: number,
): DecodeStep | undefined {
  if (tokenSeconds === undefined || batch > most) return undefined;
  const source = `${setting('tokenSeconds')}, measured with ${most} ${most === 1 ? 'sequence' : 'sequences'} at a time`;
  return {
    seconds: measuredBounds('decoding step', tokenSeconds, source),
    limitedBy: null,
    limits: [],
  };
}

/** Measured prefill of one prompt; undefined where it was not measured. */
export const measuredPrefill = ({ prefillSeconds }: MeasuredSpeed): Prefill | undefined =>
  prefillSeconds === undefined
    ? undefined
    : {
        seconds: measuredBounds(
          'prefill',
          prefillSeconds,
          `${setting('prefillSeconds')}, measured with one prompt`,
        ),
        limitedBy: null,
        limits: [],
      };

/** A measurement has no bounds of its own. */
function measuredBounds(label: string, measured: number, source: string): Bounds {
  const one = quantity({ label, unit: 'seconds', formula: v({ measured }), source });
  return { lower: one, expected: one, upper: one };
}
