/** Serving a model whose weights are partly on GPUs and partly in system memory, as llama.cpp runs it. */
import { sumOf } from '../../../base/text/words.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Expression } from '../../../model/budget/expression.js';
import { add, div, mul, v } from '../../../model/budget/expression.js';
import type { Bounds, Quantity } from '../../../model/budget/figure.js';
import { quantity, realValue } from '../../../model/budget/figure.js';
import { capacityOf, peakIfKnown } from '../../hardware/gpu.js';
import { isOfWorkstation, type SystemMemory } from '../../hardware/system-memory.js';
import { byBound, eachBound } from '../bounds.js';
import type { PublishedRange } from '../published-range.js';
import { publishedSpeed } from '../published-range.js';
import type { Rates } from '../serving/roofline.js';
import {
  prefill,
  ratesOf,
  stepSeconds,
  tokensPerSecond,
  weightsTerm,
} from '../serving/roofline.js';
import { servingMemoryOf } from '../serving/serving-memory.js';
import type { ServedModel, ServingFitSetting } from '../serving/serving-work.js';
import { decodeWork, prefillWork, servedModel } from '../serving/serving-work.js';
import { WEIGHT_DTYPES } from '../serving/weight-types.js';
import type { FitVerdict } from '../training/training-fit.js';
import { memoryVerdict } from '../training/training-memory.js';
import type { LayeredModel, PlaceContent, Placement } from './placed-parts.js';
import { contentOf, layeredModel } from './placed-parts.js';

/** Places that were asked for. */
export interface PlacesWish {
  readonly memory: SystemMemory;
  /** Layers on the GPUs; undefined: as many as fit. */
  readonly gpuLayers: number | undefined;
  /** Blocks with experts in system memory; undefined: as few as fit. */
  readonly cpuExperts: number | undefined;
}

/** Bytes in a place. */
export interface PlacedBytes {
  /** Weights that each token reads. @count */
  readonly weights: number;
  /** Routed experts. @count */
  readonly experts: number;
  /** Keys, values and states of all sequences. @count */
  readonly cache: number;
  /** The embedding, of which a token reads a row. @count */
  readonly embedding: number;
}

/** A model on GPUs and in system memory. */
export interface PlacesFit extends Placement {
  /** Layers of the model with its output. @integer @minimum 1 */
  readonly layers: number;
  /** Blocks with routed experts. @integer @minimum 0 */
  readonly expertBlocks: number;
  /** Whether the user asked for it. */
  readonly isAsked: boolean;
  /** What the GPUs hold together. */
  readonly onGpus: PlacedBytes;
  /** What the system memory holds. */
  readonly inSystem: PlacedBytes;
  /** Memory of each GPU. */
  readonly gpu: Bounds;
  readonly capacity: Quantity;
  /** Weights and caches in system memory. */
  readonly system: Quantity;
  readonly memory: SystemMemory;
  /** Of the GPUs and, where its size is known, of the system memory. */
  readonly verdict: FitVerdict;
  /** Installed system memory that is enough, with that of the system itself. @real */
  readonly needed: number;
  /** Bytes that the system memory lacks; 0 if it has room, or its size is unknown. @real */
  readonly lacking: number;
  /** Decoding one token of each sequence. */
  readonly decode: {
    readonly seconds: Bounds;
    readonly tokensPerSecond: Bounds;
    /** Range of published speeds. */
    readonly published: PublishedRange;
  };
  /** Prefill of one prompt; null without a published peak. */
  readonly prefill: Bounds | null;
}

/** Memory of the system and of the program itself: what a desktop needs beside the weights. */
const SYSTEM_BYTES = 3e9;

/** Share of the bandwidth of system memory that products of a processor reach. */
interface SystemShare {
  readonly share: number;
  readonly source: string;
}

/** Processors with up to two channels of memory, as in a desktop. */
const DESKTOP: SystemShare = {
  share: 0.74,
  source:
    '74% of two channels, 61 to 85% in 5 runs (llama.cpp, issues 4716, 7244 and 19480, and pull request 12922)',
};

/** Processors with more channels. */
const WORKSTATION: SystemShare = {
  share: 0.5,
  source:
    '50% of more channels, 42 to 59% in 10 runs (llmfit, pull requests 755, 774, 775 and 778; llama.cpp, pull request 23346)',
};

/** Share of that which routed experts reach, by the same runs. */
const EXPERTS = 0.9;

/** Shares at the ends: nothing but the reading, and half of the slowest run. */
const ENDS = { lower: 1, upper: 0.25 } as const;

const shareAt = (bound: keyof Bounds, memory: SystemMemory): number =>
  bound === 'expected' ? shareOf(memory).share : ENDS[bound];

const shareOf = (memory: SystemMemory): SystemShare =>
  isOfWorkstation(memory) ? WORKSTATION : DESKTOP;

/** Seconds in which a token passes from one place to another: a copy, and the start of the other part. */
const CROSSING_SECONDS = { lower: 0, expected: 40e-6, upper: 200e-6 } as const satisfies Record<
  keyof Bounds,
  number
>;

/**
 * Bytes per second from system memory to a GPU: 16 lanes of PCIe 5, of PCIe 4 at 80 %, and 8 lanes of PCIe 3 (PCI-SIG:
 * 8, 16 and 32 GT/s, 128 of 130 bits).
 */
const COPYING = { lower: 63e9, expected: 25e9, upper: 7.9e9 } as const satisfies Record<
  keyof Bounds,
  number
>;

/** Tokens of a prompt that pass through the layers at a time (llama.cpp, common/common.h: n_ubatch). */
const MICRO_BATCH = 512;

interface Serving {
  readonly served: ServedModel;
  readonly layered: LayeredModel;
  readonly setting: ServingFitSetting;
  readonly rates: Rates;
}

/**
 * The placement that was asked for, or the fastest one that fits.
 * @param isAsked Whether the user asked for it.
 */
export function placesFit(
  model: LanguageModel,
  setting: ServingFitSetting,
  wish: PlacesWish,
  isAsked: boolean,
): PlacesFit {
  const served = servedModel(model, { ...setting, tensorParallel: 1 });
  const layered = layeredModel(served, setting.context);
  const dtype = WEIGHT_DTYPES[setting.weights.dtype].computes;
  const peak = peakIfKnown(setting.cluster.gpu, dtype);
  const rates = ratesOf(setting.cluster, 1, peak, setting.weights.dtype);
  const serving = { served, layered, setting, rates };
  const placement = placementFor(serving, wish);
  const { gpu, system } = contentOf(layered, placement, setting.batch);
  const capacity = capacityOf(setting.cluster.gpu);
  const memory = gpuMemory(serving, gpu);
  const decode = decoding(serving, placement, wish.memory);
  const needed = system.bytes + SYSTEM_BYTES;
  const lacking = wish.memory.bytes === null ? 0 : Math.max(0, needed - wish.memory.bytes);
  const onGpu = gpu.bytes === 0 ? 'fits' : memoryVerdict(memory, capacity);
  return {
    ...placement,
    layers: layered.blocks.length + 1,
    expertBlocks: layered.blocks.filter(({ expertGroups }) => expertGroups.length > 0).length,
    isAsked,
    onGpus: placedBytes(gpu, setting.batch, 0),
    inSystem: placedBytes(system, setting.batch, layered.embeddingBytes),
    gpu: memory,
    capacity,
    system: quantity({
      label: 'weights and caches in system memory',
      unit: 'bytes',
      formula: v({ placed: system.bytes }),
      source: 'layers and experts that are not on a GPU, and the embedding',
    }),
    memory: wish.memory,
    verdict: lacking > 0 ? 'does not fit' : onGpu,
    needed,
    lacking,
    decode,
    prefill: promptSeconds(serving, system),
  };
}

const placedBytes = (
  { weightBytes, expertGroups, cacheBytes }: PlaceContent,
  batch: number,
  embedding: number,
): PlacedBytes => ({
  weights: weightBytes,
  experts: sumOf(expertGroups, ({ bytes }) => bytes),
  cache: batch * cacheBytes,
  embedding,
});

/** Memory of each GPU: layers in turn, and a workspace of its own. */
function gpuMemory({ served, setting }: Serving, { bytes, blocks }: PlaceContent): Bounds {
  const { gpu, gpus } = setting.cluster;
  const { workspace } = servingMemoryOf(served, gpu)(setting.batch, setting.context);
  // Several GPUs hold whole layers, so that one of them has up to a layer more than its share.
  const uneven = gpus === 1 || blocks === 0 ? 0 : bytes / blocks;
  return eachBound(workspace, ({ value }, bound) =>
    quantity({
      label: 'memory of a GPU',
      unit: 'bytes',
      formula: add(
        div(v({ layers: bytes }), v({ gpus })),
        ...(bound === 'upper' && uneven > 0 ? [v({ a_layer: uneven })] : []),
        v({ workspace: value }),
      ),
      source: 'layers with their caches, and the workspace',
    }),
  );
}

// The search for a placement.

/** The placement of the wish; what it leaves open is the fastest that surely fits, or the smallest if none does. */
function placementFor(serving: Serving, wish: PlacesWish): Placement {
  const { layered, setting } = serving;
  const all = layered.blocks.length + 1;
  const gpuLayers = wish.gpuLayers === undefined ? undefined : Math.min(wish.gpuLayers, all);
  const cpuExperts =
    wish.cpuExperts === undefined ? undefined : Math.min(wish.cpuExperts, layered.blocks.length);
  if (gpuLayers !== undefined || cpuExperts !== undefined) {
    return { gpuLayers: gpuLayers ?? all, cpuExperts: cpuExperts ?? 0 };
  }
  const capacity = capacityOf(setting.cluster.gpu).value;
  const fits = (placement: Placement) => {
    const { gpu } = contentOf(layered, placement, setting.batch);
    return gpu.bytes === 0 || gpuMemory(serving, gpu).upper.value <= capacity;
  };
  const experts = layered.blocks.map((_, index) => ({ gpuLayers: all, cpuExperts: index }));
  const whole = layered.blocks.map((_, index) => ({ gpuLayers: all - index, cpuExperts: 0 }));
  const apart = whole.map((each) => ({ ...each, cpuExperts: layered.blocks.length }));
  const hasExperts = layered.blocks.some(({ expertGroups }) => expertGroups.length > 0);
  const nothing = { gpuLayers: 0, cpuExperts: 0 };
  const candidates = [
    ...(hasExperts ? [[...experts, ...apart].find(fits)] : []),
    [...whole, nothing].find(fits),
  ].filter((each) => each !== undefined);
  const seconds = (each: Placement) => decoding(serving, each, wish.memory).seconds.expected.value;
  return candidates.toSorted((a, b) => seconds(a) - seconds(b))[0] ?? nothing;
}

// Speed.

function decoding(
  { served, layered, setting, rates }: Serving,
  placement: Placement,
  memory: SystemMemory,
): PlacesFit['decode'] {
  const { batch, context } = setting;
  const { gpu, system, crossings } = contentOf(layered, placement, batch);
  const whole = decodeWork(served, context);
  const share = placement.gpuLayers / (layered.blocks.length + 1);
  const work = {
    ...whole,
    weightBytes: gpu.weightBytes,
    expertGroups: gpu.expertGroups,
    cacheBytes: gpu.cacheBytes,
    flops: share * whole.flops,
    scoreFlops: share * whole.scoreFlops,
    launches: share * whole.launches,
  };
  const expertBytes = realValue(weightsTerm({ ...system, weightBytes: 0 }, batch));
  const systemBytes = system.weightBytes + batch * system.cacheBytes;
  const bandwidth = v({ system_bandwidth: memory.bandwidth });
  const read = (bytes: Expression, share: Expression) => div(bytes, mul(bandwidth, share));
  const seconds = byBound((bound) =>
    quantity({
      label: 'decoding step',
      unit: 'seconds',
      formula: add(
        v({ gpu_seconds: stepSeconds(work, rates, batch, bound).value }),
        read(v({ system_bytes: systemBytes }), v({ system_share: shareAt(bound, memory) })),
        ...(expertBytes > 0
          ? [
              read(
                v({ system_expert_bytes: expertBytes }),
                v({
                  system_expert_share:
                    shareAt(bound, memory) * (bound === 'expected' ? EXPERTS : 1),
                }),
              ),
            ]
          : []),
        mul(v({ crossings }), v({ crossing_seconds: CROSSING_SECONDS[bound] })),
      ),
      source:
        'the part on the GPUs, then reading the rest from system memory, and passing from one to the other; share of the ' +
        `bandwidth: ${shareOf(memory).source}; of experts 90% of that`,
    }),
  );
  const speed = tokensPerSecond(seconds, batch);
  return {
    seconds,
    tokensPerSecond: speed,
    published: publishedSpeed('decode-places', speed.expected.value),
  };
}

/**
 * Seconds of a prompt: the GPU computes all of it, and the weights in system memory are copied to it for each part of the
 * prompt (llama.cpp, ggml/src/ggml-backend.cpp: op_offload).
 */
function promptSeconds({ served, setting, rates }: Serving, system: PlaceContent): Bounds | null {
  const { prompt } = setting;
  const whole = prefill(prefillWork(served, prompt), rates);
  if (whole === null) return null;
  const passes = Math.ceil(prompt / MICRO_BATCH);
  const copied = realValue(weightsTerm(system, Math.min(prompt, MICRO_BATCH)));
  return eachBound(whole.seconds, ({ value }, bound) =>
    quantity({
      label: 'prefill',
      unit: 'seconds',
      formula: add(
        v({ gpu_seconds: value }),
        div(mul(v({ passes }), v({ copied_bytes: copied })), v({ copying: COPYING[bound] })),
      ),
      source: `all layers on the GPU, and the weights in system memory copied for each ${MICRO_BATCH} tokens of the prompt`,
    }),
  );
}
