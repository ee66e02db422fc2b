/** Serving a model whose weights are partly on GPUs and partly in system memory, as llama.cpp runs it. */
import { sumOf } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Expression } from '../../../model/budget/expression.js';
import { add, div, mul, v } from '../../../model/budget/expression.js';
import type { Bounds, Quantity } from '../../../model/budget/figure.js';
import { quantity, realValue } from '../../../model/budget/figure.js';
import { gpusInOrder } from '../../hardware/cluster-named.js';
import type { Gpu, Link } from '../../hardware/gpu.js';
import { capacityOf } from '../../hardware/gpu.js';
import type { SystemMemory } from '../../hardware/system-memory.js';
import { usualSystemBytes } from '../../hardware/system-memory.js';
import { byBound, eachBound } from '../bounds.js';
import type { PublishedRange } from '../published-range.js';
import { publishedSpeed } from '../published-range.js';
import type { Rates } from '../serving/roofline.js';
import { prefill, secondsOfStep, tokensPerSecond, weightsTerm } from '../serving/roofline.js';
import { withoutAxes } from '../serving/serving-axes.js';
import type { ServedModel, ServingFitSetting } from '../serving/serving-work.js';
import { decodeWork, prefillWork, servedModel } from '../serving/serving-work.js';
import { runtimeSetting } from '../serving/throughput/runtimes.js';
import { servingRates } from '../serving/throughput/server.js';
import type { FitVerdict } from '../training/training-fit.js';
import { memoryVerdict } from '../training/training-memory.js';
import { improved, proportionalLayers } from './card-layers.js';
import { MICRO_BATCH, workspacesOf } from './compute-buffers.js';
import type { LayeredModel, PlaceContent, Placement } from './placed-parts.js';
import { layeredModel, placedContent } from './placed-parts.js';
import { COPYING, EXPERTS, shareAt, systemShare } from './system-speed.js';

/** Places that were asked for. */
export interface PlacesWish {
  readonly memory: SystemMemory;
  /** Layers on the GPUs; undefined: as many as fit. */
  readonly gpuLayers: number | undefined;
  /** Blocks with experts in system memory; undefined: as few as fit. */
  readonly cpuExperts: number | undefined;
  /** Proportions in which GPUs share the layers; undefined: the fastest that fits. */
  readonly tensorSplit?: readonly number[] | undefined;
  /** Whether the caches are in system memory. */
  readonly isCacheInSystem?: boolean;
  /** Whether experts stay with their layer. */
  readonly isOfLayers?: boolean;
  /** Whether weights may be in system memory. */
  readonly maySpill: boolean;
}

/** All layers on the GPUs, where system memory is not named. */
export const onGpusAlone = (wish: PlacesWish): PlacesWish =>
  wish.maySpill ? wish : { ...wish, gpuLayers: Number.POSITIVE_INFINITY, cpuExperts: 0 };

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

/** Content of one GPU of several. */
export interface CardFit {
  /** Name of the GPU. */
  readonly gpu: string;
  /** Name for people. */
  readonly title: string;
  /** Layers on it, the output counted. @integer @minimum 0 */
  readonly layers: number;
  readonly holds: PlacedBytes;
  /** Memory with the workspace. */
  readonly memory: Bounds;
  readonly capacity: Quantity;
}

/** A model on GPUs and in system memory. */
export interface PlacesFit extends Placement {
  /** Each GPU, of several. */
  readonly cards: readonly CardFit[];
  /** The slowest link between them; null for one GPU, or where it is unknown. */
  readonly link: Link | null;
  /** Whether the layers are divided otherwise than llama.cpp does by default: `--tensor-split` is needed. */
  readonly isSplit: boolean;
  /** Layers of the model with its output. @integer @minimum 1 */
  readonly layers: number;
  /** Blocks with routed experts. @integer @minimum 0 */
  readonly expertBlocks: number;
  /** Whether the user asked for it. */
  readonly isAsked: boolean;
  /** Bytes on all GPUs together. */
  readonly onGpus: PlacedBytes;
  /** Bytes in system memory. */
  readonly inSystem: PlacedBytes;
  /** Memory of the GPU with the least room. */
  readonly gpu: Bounds;
  /** Memory that this GPU has. */
  readonly capacity: Quantity;
  /** Weights and caches in system memory. */
  readonly system: Quantity;
  readonly memory: SystemMemory;
  /** Whether the GPUs and, where its size is known, the system memory have room. */
  readonly verdict: FitVerdict;
  /** Installed system memory that is enough, with that of the system itself. @real */
  readonly needed: number;
  /** The smallest usual size of system memory that is enough. @count */
  readonly usualBytes: number;
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

/** Seconds in which a token passes from one place to another: a copy, and the start of the other part. */
const CROSSING_SECONDS = { lower: 0, expected: 40e-6, upper: 200e-6 } as const satisfies Record<
  keyof Bounds,
  number
>;

/** Bytes of a value between layers: float32 (llama.cpp, src/llama-graph.cpp). */
const VALUE_BYTES = 4;

/** The slowest of the links that each GPU has to all others; null where one has none, or for one GPU. */
function slowestLink(cards: readonly Pick<Card, 'gpu'>[]): Link | null {
  const links = cards.map(({ gpu }) => gpu.links.findLast(({ gpus }) => gpus >= cards.length));
  if (cards.length < 2 || links.includes(undefined)) return null;
  return links.flatMap((link) => link ?? []).sort((a, b) => a.bandwidth - b.bandwidth)[0] ?? null;
}

/** A GPU that layers are placed on. */
interface Card {
  readonly gpu: Gpu;
  readonly rates: Rates;
  /** Workspace with the output, and of blocks alone. */
  readonly workspace: Bounds;
  readonly insideWorkspace: Bounds;
  readonly capacity: Quantity;
}

interface Serving {
  readonly served: ServedModel;
  readonly layered: LayeredModel;
  readonly setting: ServingFitSetting;
  readonly cards: readonly Card[];
}

function cardsOf(served: ServedModel, setting: ServingFitSetting): Card[] {
  const { weights, batch, context } = setting;
  const known = new Map<Gpu, Card>();
  return gpusInOrder(setting.cluster).map((gpu) => {
    const card = known.get(gpu) ?? {
      gpu,
      rates: servingRates({
        ...withoutAxes(setting),
        cluster: { gpu, gpus: 1, network: null },
        runtime: runtimeSetting({ name: 'llama.cpp' }, gpu, weights.dtype),
      }),
      ...workspacesOf(served, gpu, { batch, context }),
      capacity: capacityOf(gpu),
    };
    known.set(gpu, card);
    return card;
  });
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
  const served = servedModel(model, {
    ...withoutAxes(setting),
    // Windows have room for the tokens of a micro-batch (llama.cpp, src/llama-kv-cache-iswa.cpp: size_swa).
    beyondWindows: MICRO_BATCH,
  });
  const layered = layeredModel(served, setting.context);
  const serving = { served, layered, setting, cards: cardsOf(served, setting) };
  const placement = placementFor(serving, wish);
  const { gpu, cards: contents, system } = placedContent(layered, placement, setting.batch);
  const lastWithLayers = contents.findLastIndex(({ blocks }) => blocks > 0);
  const cards = serving.cards.map((card, at): CardFit => {
    const content = contents[at] ?? NO_CONTENT;
    return {
      gpu: card.gpu.name,
      title: card.gpu.title,
      layers: content.blocks,
      holds: placedBytes(content, setting.batch, 0),
      memory: cardMemory(card, content, at === lastWithLayers),
      capacity: card.capacity,
    };
  });
  const fullest = cards.toSorted((a, b) => roomOf(a) - roomOf(b))[0] as CardFit;
  const decode = decoding(serving, placement, wish.memory);
  const needed = system.bytes + SYSTEM_BYTES;
  const lacking = wish.memory.bytes === null ? 0 : Math.max(0, needed - wish.memory.bytes);
  return {
    ...placement,
    cards: cards.length > 1 ? cards : [],
    link: slowestLink(serving.cards),
    isSplit: isSplit(serving, placement),
    layers: layered.blocks.length + 1,
    expertBlocks: layered.blocks.filter(({ expertGroups }) => expertGroups.length > 0).length,
    isAsked,
    onGpus: placedBytes(gpu, setting.batch, 0),
    inSystem: placedBytes(system, setting.batch, layered.embeddingBytes),
    gpu: fullest.memory,
    capacity: fullest.capacity,
    system: quantity({
      label: 'weights and caches in system memory',
      unit: 'bytes',
      formula: v({ placed: system.bytes }),
      source: 'layers and experts that are not on a GPU, and the embedding',
    }),
    memory: wish.memory,
    verdict: lacking > 0 ? 'does not fit' : verdictOf(cards),
    needed,
    usualBytes: usualSystemBytes(needed),
    lacking,
    decode,
    prefill: promptSeconds(serving, placement, system),
  };
}

const NO_CONTENT: PlaceContent = {
  weightBytes: 0,
  expertGroups: [],
  cacheBytes: 0,
  bytes: 0,
  blocks: 0,
};

/** Bytes that a GPU surely has left; a GPU without layers needs none. */
const roomOf = ({ memory, capacity, layers }: CardFit): number =>
  layers === 0 ? capacity.value : capacity.value - memory.upper.value;

/** The worst verdict of the GPUs that hold something. */
function verdictOf(cards: readonly CardFit[]): FitVerdict {
  const verdicts = cards
    .filter(({ layers }) => layers > 0)
    .map(({ memory, capacity }) => memoryVerdict(memory, capacity));
  if (verdicts.includes('does not fit')) return 'does not fit';
  return verdicts.includes('may fit') ? 'may fit' : 'fits';
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

/** Memory of a GPU: its layers, and a workspace of its own; without layers, programs leave it alone. */
const cardMemory = (
  { workspace, insideWorkspace }: Card,
  { bytes, blocks }: PlaceContent,
  hasOutput: boolean,
): Bounds =>
  eachBound(hasOutput ? workspace : insideWorkspace, ({ value }) =>
    quantity({
      label: 'memory of a GPU',
      unit: 'bytes',
      formula: add(v({ layers: bytes }), v({ workspace: blocks === 0 ? 0 : value })),
      source: 'layers with their caches, and the workspace',
    }),
  );

// The search for a placement.

/** Layers of each GPU as llama.cpp divides them by default: in proportion to the free memory. */
const usualLayers = ({ cards }: Serving, gpuLayers: number): number[] =>
  proportionalLayers(
    gpuLayers,
    cards.map(({ capacity }) => capacity.value),
  );

const isSplit = (serving: Serving, { gpuLayers, cardLayers }: Placement): boolean =>
  cardLayers !== undefined &&
  usualLayers(serving, gpuLayers).some((layers, card) => layers !== cardLayers[card]);

/** Bytes that surely do not fit on the GPUs. */
function overflowOf({ cards, layered, setting }: Serving, placement: Placement): number {
  const { cards: contents } = placedContent(layered, placement, setting.batch);
  return sumOf(contents.entries(), ([at, content]) => {
    const { workspace, capacity } = cards[at] as Card;
    if (content.bytes === 0) return 0;
    return Math.max(0, content.bytes + workspace.upper.value - capacity.value);
  });
}

/** The placement with the layers divided among the GPUs so that they fit, if they can. */
function divided(
  serving: Serving,
  placement: Placement,
  tensorSplit: readonly number[] | undefined,
): Placement {
  const { gpuLayers } = placement;
  if (serving.cards.length === 1) return placement;
  if (tensorSplit) {
    return { ...placement, cardLayers: proportionalLayers(gpuLayers, tensorSplit) };
  }
  const usual = usualLayers(serving, gpuLayers);
  const overflow = (cardLayers: readonly number[]) =>
    overflowOf(serving, { ...placement, cardLayers });
  return { ...placement, cardLayers: improved(usual, overflow) };
}

/** Seconds far below those of a layer, by which equal GPUs get equal numbers of layers. */
const EVENNESS_SECONDS = 1e-9;

/** The placement with the layers divided so that decoding is fastest. GPUs of one kind keep the usual division. */
function fastestDivision(serving: Serving, placement: Placement, memory: SystemMemory): Placement {
  const { cardLayers } = placement;
  const isOneKind = new Set(serving.cards.map(({ gpu }) => gpu)).size === 1;
  if (cardLayers === undefined || isOneKind) return placement;
  const cost = (layers: readonly number[]): number => {
    const each = { ...placement, cardLayers: layers };
    const over = overflowOf(serving, each);
    if (over > 0) return Number.MAX_VALUE;
    const squares = sumOf(layers, (count) => count ** 2);
    return decodingSeconds(serving, each, memory, 'expected') + squares * EVENNESS_SECONDS;
  };
  return { ...placement, cardLayers: improved(cardLayers, cost) };
}

/** The placement of the wish; what it leaves open is the fastest that surely fits, or the smallest if none does. */
function placementFor(serving: Serving, wish: PlacesWish): Placement {
  const { layered } = serving;
  const all = layered.blocks.length + 1;
  const { tensorSplit, memory, isCacheInSystem } = wish;
  const cache = isCacheInSystem ? { isCacheInSystem } : {};
  const gpuLayers = wish.gpuLayers === undefined ? undefined : Math.min(wish.gpuLayers, all);
  const cpuExperts =
    wish.cpuExperts === undefined ? undefined : Math.min(wish.cpuExperts, layered.blocks.length);
  const complete = (placement: Placement) => {
    const found = divided(serving, placement, tensorSplit);
    return tensorSplit ? found : fastestDivision(serving, found, memory);
  };
  if (gpuLayers !== undefined || cpuExperts !== undefined) {
    return complete({ gpuLayers: gpuLayers ?? all, cpuExperts: cpuExperts ?? 0, ...cache });
  }
  const fits = (placement: Placement) =>
    overflowOf(serving, divided(serving, placement, tensorSplit)) === 0;
  const experts = layered.blocks.map((_, index) => ({
    gpuLayers: all,
    cpuExperts: index,
    ...cache,
  }));
  const whole = layered.blocks.map((_, index) => ({
    gpuLayers: all - index,
    cpuExperts: 0,
    ...cache,
  }));
  const apart = whole.map((each) => ({ ...each, cpuExperts: layered.blocks.length }));
  const hasExperts =
    !wish.isOfLayers && layered.blocks.some(({ expertGroups }) => expertGroups.length > 0);
  const nothing = { gpuLayers: 0, cpuExperts: 0, ...cache };
  const candidates = [
    ...(hasExperts ? [[...experts, ...apart].find(fits)] : []),
    [...whole, nothing].find(fits),
  ].flatMap((each) => (each === undefined ? [] : [complete(each)]));
  const seconds = (each: Placement) => decodingSeconds(serving, each, memory, 'expected');
  return candidates.toSorted((a, b) => seconds(a) - seconds(b))[0] ?? complete(nothing);
}

// Speed.

/** Work of a step on each GPU that has layers. */
function cardWork({ served, layered, setting, cards }: Serving, placement: Placement) {
  const { batch, context } = setting;
  const { cards: contents, system, crossings } = placedContent(layered, placement, batch);
  const whole = decodeWork(served, context);
  const steps = contents.flatMap((content, at) => {
    const card = cards[at];
    if (card === undefined || content.blocks === 0) return [];
    const share = content.blocks / (layered.blocks.length + 1);
    const work = {
      ...whole,
      weightBytes: content.weightBytes,
      expertGroups: content.expertGroups,
      cacheBytes: content.cacheBytes,
      flops: share * whole.flops,
      scoreFlops: share * whole.scoreFlops,
      launches: share * whole.launches,
    };
    return [{ work, rates: card.rates }];
  });
  return { steps, system, crossings };
}

/** Seconds of a decoding step, for searches. */
const decodingSeconds = (
  serving: Serving,
  placement: Placement,
  memory: SystemMemory,
  bound: keyof Bounds,
): number => realValue(decodingFormula(serving, placement, memory, bound));

/** The GPUs in turn, then reading the rest from system memory, and the passages between them. */
function decodingFormula(
  serving: Serving,
  placement: Placement,
  memory: SystemMemory,
  bound: keyof Bounds,
): Expression {
  const { batch } = serving.setting;
  const { steps, system, crossings } = cardWork(serving, placement);
  const expertBytes = realValue(weightsTerm({ ...system, weightBytes: 0 }, batch));
  const systemBytes = system.weightBytes + batch * system.cacheBytes;
  const bandwidth = v({ system_bandwidth: memory.bandwidth });
  const read = (bytes: Expression, share: Expression) => div(bytes, mul(bandwidth, share));
  const gpuSeconds = sumOf(steps, ({ work, rates }) => secondsOfStep(work, rates, batch, bound));
  return add(
    v({ gpu_seconds: gpuSeconds }),
    read(v({ system_bytes: systemBytes }), v({ system_share: shareAt(bound, memory) })),
    ...(expertBytes > 0
      ? [
          read(
            v({ system_expert_bytes: expertBytes }),
            v({
              system_expert_share: shareAt(bound, memory) * (bound === 'expected' ? EXPERTS : 1),
            }),
          ),
        ]
      : []),
    mul(v({ crossings }), v({ crossing_seconds: CROSSING_SECONDS[bound] })),
  );
}

function decoding(
  serving: Serving,
  placement: Placement,
  memory: SystemMemory,
): PlacesFit['decode'] {
  const seconds = byBound((bound) =>
    quantity({
      label: 'decoding step',
      unit: 'seconds',
      formula: decodingFormula(serving, placement, memory, bound),
      source:
        'the part on each GPU in turn, then reading the rest from system memory, and passing from one to the other; share of the ' +
        `bandwidth: ${systemShare(memory).source}; of experts 90% of that`,
    }),
  );
  const speed = tokensPerSecond(seconds, serving.setting.batch);
  return {
    seconds,
    tokensPerSecond: speed,
    published: publishedSpeed('decode-places', speed.expected.value),
  };
}

/**
 * Seconds of a prompt: the GPUs compute all of it in turn, and the weights in system memory are copied to it for each part of the
 * prompt (llama.cpp, ggml/src/ggml-backend.cpp: op_offload).
 */
function promptSeconds(
  { served, setting, cards }: Serving,
  { gpuLayers, cardLayers = [gpuLayers] }: Placement,
  system: PlaceContent,
): Bounds | null {
  const { prompt } = setting;
  const work = prefillWork(served, prompt);
  // Without layers of its own, the first GPU computes those in system memory.
  const layers = gpuLayers === 0 ? [1] : cardLayers;
  const total = sumOf(layers, (count) => count);
  const used = cards.flatMap(({ rates }, at) => {
    const share = (layers[at] ?? 0) / total;
    return share === 0 ? [] : [{ share, whole: prefill(work, rates) }];
  });
  // The values of each token go from one GPU to the next over the slower of their links.
  const between = Math.max(0, used.length - 1) * prompt * served.model.hidden * VALUE_BYTES;
  const link = slowestLink(cards);
  const passes = Math.ceil(prompt / MICRO_BATCH);
  const copied = realValue(weightsTerm(system, Math.min(prompt, MICRO_BATCH)));
  const known = used.flatMap(({ share, whole }) => (whole === null ? [] : [{ share, whole }]));
  if (known.length < used.length) return null;
  return byBound((bound) =>
    quantity({
      label: 'prefill',
      unit: 'seconds',
      formula: add(
        v({ gpu_seconds: sumOf(known, ({ share, whole }) => share * whole.seconds[bound].value) }),
        div(mul(v({ passes }), v({ copied_bytes: copied })), v({ copying: COPYING[bound] })),
        ...(between > 0
          ? [div(v({ between_gpus: between }), v({ link: link?.bandwidth ?? COPYING[bound] }))]
          : []),
      ),
      source: `all layers on the GPUs in turn, and the weights in system memory copied for each ${MICRO_BATCH} tokens of the prompt`,
    }),
  );
}
