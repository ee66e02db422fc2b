/** Training and serving of a model on some hardware, and a forward pass on this machine. */

import type { TrainingConfigAnswer } from '../../input/training-config/training-answer.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { type FamilyConfig, hintsOf } from '../../model/architecture/training-hints.js';
import type { Bounds } from '../../model/budget/figure.js';
import type { GenerationFlops } from '../../model/budget/flops.js';
import { answerFlopsOf } from '../../model/budget/flops.js';
import { generationOf } from '../../model/budget/generation.js';
import type { SettingOrigin } from '../../model/budget/profile-model.js';
import { resolveSetting } from '../../model/budget/profile-model.js';
import type { Emitted } from '../emit/emitted.js';
import { MOST_CARDS } from '../hardware/cluster-named.js';
import type { Cluster, GpuMemory } from '../hardware/gpu.js';
import { memoryOf } from '../hardware/gpu.js';
import type { MachineProfile } from '../hardware/machine-profile.js';
import { LARGEST_DESKTOP, systemMemory } from '../hardware/system-memory.js';
import type { PlacesFit, PlacesWish } from './places/places.js';
import { onGpusAlone, placesFit } from './places/places.js';
import type { Purpose } from './purpose.js';
import { placesRemedies } from './remedies/places-remedies.js';
import type { ServingRemedy, UnmetRequirement } from './remedies/remedies.js';
import { adapterRemedies, fitTraining, servingRemedies } from './remedies/remedies.js';
import type { BatchingComparison } from './serving/batching.js';
import { type EncoderPass, encoderPass } from './serving/encoder-pass.js';
import { placedServing, usersPerReplica } from './serving/placed-serving.js';
import type { ServingCost, ServingFit, UsersFit } from './serving/serving.js';
import { fitServing, servingCost, usersOf } from './serving/serving.js';
import type { ServingFitSetting } from './serving/serving-work.js';
import type { ForwardNeed, ForwardSize } from './serving/this-machine-forward.js';
import { forwardBytesOf, forwardSecondsOf } from './serving/this-machine-forward.js';
import type { ServerThroughput } from './serving/throughput/throughput.js';
import { serverThroughput } from './serving/throughput/throughput.js';
import type { ClusterLora } from './training/lora.js';
import { loraOn, QLORA_BASE } from './training/lora.js';
import { trainingCost } from './training/step-time.js';
import type { FitVerdict, Remedy, TrainingFit } from './training/training-fit.js';
import type { TrainingFitSetting } from './training/training-setting.js';

/** Parts of a loaded config that a fit needs. */
export interface ModelToFit extends FamilyConfig {
  readonly model: LanguageModel;
}

/** Setting with the origin of its sequence length. */
export interface Resolved<Setting> {
  /** Sizes and types that the figures are counted for. */
  readonly setting: Setting;
  readonly contextOrigin: SettingOrigin;
}

/** Settings to fit; null for a purpose that was not requested. */
export interface FitRequest {
  /** Why the other question is not answered: the axes are none of it. */
  readonly notWithAxes?: string;
  /** The question: verdict, proposals and exit code are about it. */
  readonly purpose: Purpose;
  /** Whether proposals for what was not asked are left out: only the details show them. */
  readonly isBrief?: boolean;
  /** Price of a GPU for an hour. */
  readonly price?: number | undefined;
  readonly training:
    | (Resolved<TrainingFitSetting> & {
        /** Setting of training adapters. */
        readonly loraSetting: TrainingFitSetting;
      })
    | null;
  readonly serving:
    | (Resolved<ServingFitSetting> & {
        /** Whether the user fixed the number of GPUs that share the layers. */
        readonly isSharingChosen: boolean;
        /** Users at the same time, spread over the replicas; undefined: `setting.batch` for each replica. */
        readonly users: number | undefined;
        /** Model that drafts tokens; undefined without speculative decoding. */
        readonly draft?: LanguageModel | undefined;
        /** Places beside the GPUs that were asked for. */
        readonly places?: PlacesWish | undefined;
        /** Whether the other settings allow weights in system memory, which can be proposed then. */
        readonly isPlaceable?: boolean;
      })
    | null;
}

/** Training of adapters, as it was asked for. */
export interface AdaptersFit extends Resolved<TrainingFitSetting> {
  /** Memory of a GPU. */
  readonly fit: ClusterLora;
  /** Single changes that make it fit; empty if it does. */
  readonly remedies: readonly Remedy[];
}

/** Results; null for a purpose that was not requested. */
export interface Fits {
  /** The question: verdict, proposals and exit code are about it. */
  readonly purpose: Purpose;
  /** Training of adapters; null without `--for lora` and `--for qlora`. */
  readonly adapters: AdaptersFit | null;
  /** Training; null with `--for serving`, `--for lora` and `--for qlora`. */
  readonly training:
    | (Resolved<TrainingFitSetting> & {
        /** Memory and time of a step. */
        readonly fit: TrainingFit;
        /** Training of low-rank adapters instead of the whole model. */
        readonly lora: ClusterLora;
        /** The same with the weights of the model in 4 bits. */
        readonly qlora: ClusterLora;
        /** Cost of all steps; absent without a price, or without tokens of the whole training. */
        readonly cost?: Bounds;
      })
    | null;
  /** A pass of an encoder, in place of serving; absent for a model that generates tokens. */
  readonly pass?: EncoderPass;
  /** Serving; null with `--for training`, and for an encoder. */
  readonly serving:
    | (Resolved<ServingFitSetting> & {
        /** Memory and speed of serving. */
        readonly fit: ServingFit;
        /** Users at the same time, each with a sequence of the context. */
        readonly users: UsersFit;
        /** Throughput and latency of a server; null where no speed is known, or no request fits. */
        readonly throughput: ServerThroughput | null;
        /** The first tokens of an answer; absent where no prompt or no answer is counted. */
        readonly generation?: GenerationFlops;
        /** Cost of the GPUs for the load; absent without a price, without a load, or where no number meets it. */
        readonly cost?: ServingCost;
        /** Single changes that make it fit; empty if it does. */
        readonly remedies: readonly ServingRemedy[];
        /** The model on the GPUs and in system memory; absent where the GPUs hold all of it, unless the user chose the layers. */
        readonly places?: PlacesFit;
      })
    | null;
}

/** This machine, as `--gpu auto` found it. */
export interface FoundMachine {
  /** Its graphics cards, each with the source of its name. */
  readonly cards: readonly string[];
  /** Cards that are left out: those that the table of GPUs lacks, and graphics of the processor if there is a card. */
  readonly ignored: readonly string[];
  /** System memory. @real */
  readonly memoryBytes: number;
  /** Model of the processor; null if the system does not name it. */
  readonly processor: string | null;
  /** Assumptions in place of values that could not be read. */
  readonly assumed: readonly string[];
}

/**
 * Whether a model fits on some hardware, and how fast it runs there.
 * @answer minimind fit --json
 */
export interface FitResult extends Fits {
  readonly schema: 'minimind/fit@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Parameters of the model, shared tensors once. @exact */
  readonly parameters: number;
  /** The hardware. */
  readonly cluster: Cluster;
  /** Memory of each GPU. */
  readonly memory: GpuMemory;
  /** Hardware found on this machine; absent without `--gpu auto`. */
  readonly found?: FoundMachine;
  /** Static and continuous batching of answers of different lengths; absent without `--output-mix`. */
  readonly batching?: BatchingComparison;
  /** Requirements of the user that the setup does not meet with certainty. */
  readonly doubts: readonly UnmetRequirement[];
  /** Measured profile when the hardware is this machine. */
  readonly profile: MachineProfile | null;
  /** A forward pass on this machine. */
  readonly forward: MachineForward | null;
  /** Values read from a training config; absent without one. */
  readonly trainingConfig?: TrainingConfigAnswer;
  /** The plan as the command or config of a program; absent without `--emit`. */
  readonly emitted?: Emitted;
}

/** @throws UserError when the model cannot be spread over the GPUs as the settings ask. */
export function fitsOf(
  model: LanguageModel,
  { purpose, training, serving, price, isBrief = false }: FitRequest,
): Fits {
  const isAlone = generationOf(model) === 'none';
  const isOfAdapters = purpose === 'lora' || purpose === 'qlora';
  return {
    purpose,
    adapters: isOfAdapters && training ? adaptersOf(model, training, purpose) : null,
    training: isOfAdapters
      ? null
      : training &&
        trainingOf(model, training, { price, isSearched: !isBrief || purpose === 'training' }),
    ...(serving && isAlone && { pass: encoderPass(model, serving.setting) }),
    serving: serving && !isAlone ? servingOf(model, serving, price) : null,
  };
}

function adaptersOf(
  model: LanguageModel,
  { contextOrigin, loraSetting: setting }: NonNullable<FitRequest['training']>,
  purpose: 'lora' | 'qlora',
): AdaptersFit {
  const base = purpose === 'qlora' ? QLORA_BASE : undefined;
  const fit = loraOn(model, setting, base);
  const remedies = fit.verdict === 'fits' ? [] : adapterRemedies(model, setting, fit, base);
  // One GPU divides nothing.
  const counted = setting.cluster.gpus === 1 ? { ...setting, zero: 0 as const } : setting;
  return { setting: counted, contextOrigin, fit, remedies };
}

function trainingOf(
  model: LanguageModel,
  { setting, contextOrigin, loraSetting }: NonNullable<FitRequest['training']>,
  { price, isSearched }: { readonly price: number | undefined; readonly isSearched: boolean },
): NonNullable<Fits['training']> {
  const fit = fitTraining(model, setting, { isSearched });
  const isPriced = price !== undefined && fit.time !== undefined;
  return {
    setting,
    contextOrigin,
    fit,
    lora: loraOn(model, loraSetting),
    qlora: loraOn(model, loraSetting, QLORA_BASE),
    ...(isPriced && { cost: trainingCost(fit.time.totalSeconds, setting.cluster.gpus, price) }),
  };
}

function servingOf(
  model: LanguageModel,
  request: NonNullable<FitRequest['serving']>,
  price: number | undefined,
): NonNullable<Fits['serving']> {
  const { setting } = placedServing(model, request);
  const { draft } = request;
  const fit = fitServing(model, setting, draft);
  const { prompt, output } = setting;
  const throughput = serverThroughput(model, { setting, draft }, price);
  const cost = price !== undefined && fit.load && servingCost(fit.load, setting, price);
  const generation = answerFlopsOf(model, { prompt, generated: output });
  const places = placementFit(model, request, fit);
  return {
    contextOrigin: request.contextOrigin,
    setting,
    fit,
    users: usersOf(model, { ...request, setting }),
    throughput: typeof throughput === 'string' ? null : throughput,
    ...(generation && { generation }),
    ...(cost && { cost }),
    remedies: remediesOf(model, request, { fit, places }),
    ...(places && { places }),
  };
}

/** Changes that make serving fit, of the places that were asked for or of the GPUs. */
function remediesOf(
  model: LanguageModel,
  request: NonNullable<FitRequest['serving']>,
  { fit, places }: { readonly fit: ServingFit; readonly places: PlacesFit | undefined },
): ServingRemedy[] {
  const wish = request.places;
  if (wish === undefined) return fit.verdict === 'fits' ? [] : servingRemedies(model, request);
  return (places ?? fit).verdict === 'fits' ? [] : placesRemedies(model, request, wish);
}

/** Where a model is placed that the GPUs do not hold: as asked, or on a card of a desktop as its memory allows. */
function placementFit(
  model: LanguageModel,
  { setting, users, places: wish, isPlaceable = false }: NonNullable<FitRequest['serving']>,
  { verdict }: ServingFit,
): PlacesFit | undefined {
  if (wish !== undefined) return askedPlaces(model, setting, { wish, users, verdict });
  if (setting.cluster.gpus > MOST_CARDS) return undefined;
  const isDesktop = memoryOf(setting.cluster.gpu).kind === 'screen';
  if (verdict !== 'does not fit' || !isDesktop || !isPlaceable) return undefined;
  const batch = users ?? setting.batch;
  // The GPUs hold the weights: the caches of more users in system memory would be read by the processor, far too slowly.
  if (batch > 1 && usersPerReplica(model, { setting })('upper') > 0) return undefined;
  const usual = {
    memory: systemMemory(null, undefined),
    gpuLayers: undefined,
    cpuExperts: undefined,
    maySpill: true,
  };
  const found = placesFit(model, { ...setting, batch }, usual, false);
  return found.system.value <= LARGEST_DESKTOP ? found : undefined;
}

/** The placement that the user asked for; undefined where GPUs of one kind hold the model, and no layers were chosen. */
function askedPlaces(
  model: LanguageModel,
  setting: ServingFitSetting,
  asked: {
    readonly wish: PlacesWish;
    readonly users: number | undefined;
    /** Verdict for the same number of the smallest of these GPUs. */
    readonly verdict: FitVerdict;
  },
): PlacesFit | undefined {
  const { wish, users, verdict } = asked;
  const isMixed = setting.cluster.cards !== undefined;
  const isChosen =
    (wish.gpuLayers ?? wish.cpuExperts ?? wish.tensorSplit ?? wish.isCacheInSystem) !== undefined;
  if (!isChosen && !isMixed && verdict === 'fits') return undefined;
  return placesFit(model, { ...setting, batch: users ?? setting.batch }, onGpusAlone(wish), true);
}

/** Forward pass on this machine, as quick-test runs it. */
export interface MachineForward extends ForwardSize {
  readonly seconds: Bounds;
  /** Memory beyond that of the process before the pass. */
  readonly bytes: Bounds;
}

/**
 * Bounds of a forward pass at the size of serving, from measurements of this machine.
 * @param memoryNeed Bytes of a forward pass in an engine, as `quicktest` counts them.
 */
export function forwardOn(
  profile: MachineProfile,
  loaded: ModelToFit,
  wish: { readonly context: number | undefined; readonly batch: number | undefined },
  memoryNeed: (
    model: LanguageModel,
    size: ForwardSize,
    runner: Pick<MachineProfile['engine'], 'name' | 'compute'> & { readonly provider: string },
  ) => ForwardNeed,
): MachineForward {
  const { model } = loaded;
  const asked = { context: wish.context, batch: wish.batch, ...COUNTED } as const;
  const { inference } = resolveSetting(asked, hintsOf(loaded), model.positions);
  const size = { batch: inference.batch, tokens: inference.context };
  const { name, compute, isOnCpu, device } = profile.engine;
  const provider = isOnCpu ? 'cpu' : device;
  return {
    ...size,
    seconds: forwardSecondsOf(model, size, profile),
    bytes: forwardBytesOf(memoryNeed(model, size, { name, compute, provider })),
  };
}

/** Setting in which only the sizes matter. */
const COUNTED = { dtype: 'f32', causal: false, optimizer: 'adamw' } as const;
