/** The settings that options of a fit result in. */

import { UserError, usageError } from '../../base/errors.js';
import { cacheBlockBytes, type Dtype, stateDtypeOf } from '../../base/tensor/dtype.js';
import { type SettingName, setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { asText, present } from '../../base/values.js';
import type { TrainingHints } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { hintsOf } from '../../model/architecture/training-hints.js';
import { refuseCacheWidths } from '../../model/budget/cache-widths.js';
import { resolveSetting } from '../../model/budget/profile-model.js';
import { withGpus } from '../hardware/cluster-named.js';
import type { Cluster } from '../hardware/gpu.js';
import { USUAL_GPU, withMemoryShare } from '../hardware/gpu.js';
import { type SystemMemory, systemMemory } from '../hardware/system-memory.js';
import { COMMON_HARDWARE } from './common-hardware.js';
import {
  FIT_DEFAULTS,
  type FitOptions,
  isChosen,
  PLACES_OPTIONS,
  SERVING_OPTIONS,
  TRAINING_OPTIONS,
  trainingOffload,
} from './fit-options.js';
import type { TableRequest } from './fit-table.js';
import type { FitRequest, ModelToFit, Resolved } from './fits.js';
import { type StoredModel, type StoredWeightFormat, storedWeightFormat } from './model-memory.js';
import { dividedExperts } from './parallelism/model-axes.js';
import { parallelismOf } from './parallelism/parallelism.js';
import { trainingAxesOf, trainingReplicas } from './parallelism/training-axes.js';
import { isPlaceable, placesWish, refusePlacesOfTraining } from './places/places-options.js';
import type { Purpose } from './purpose.js';
import { refuseOfDecoding } from './serving/encoder-pass.js';
import { requireGpus } from './serving/placed-serving.js';
import { weightLayout } from './serving/quantized.js';
import { requireAxes, requireExpertsFor, type ServingAxes } from './serving/serving-axes.js';
import type { ServingFitSetting } from './serving/serving-work.js';
import { requireAxesOfRuntime, runtimeSetting } from './serving/throughput/runtimes.js';
import type { Batching } from './serving/throughput/simulation.js';
import { USUAL_SPEED } from './serving/throughput/throughput.js';
import { usualFormat, WEIGHT_DTYPES, type WeightDtype } from './serving/weight-types.js';
import { ADAPTER_DIVISION } from './training/lora.js';
import { SHARDINGS, type Sharding, type TrainingFitSetting } from './training/training-setting.js';

/** Tokens that a draft model makes for a step (vLLM, speculative decoding: num_speculative_tokens 5). */
export const USUAL_DRAFT = 5;

/** The question: the chosen one, or training where only its options are given; of adapters where one is about them. */
export function purposeOf(options: FitOptions): Purpose {
  if (options.for !== undefined) return options.for;
  if (trainingOffload(options) !== undefined) return 'training';
  const isTraining =
    chosenOf('training', options) !== undefined && chosenOf('serving', options) === undefined;
  if (!isTraining) return 'serving';
  return ADAPTER_OPTIONS.some((name) => isChosen(options, name)) ? 'lora' : 'training';
}

/** Options of adapters alone: a training of all weights has none. */
const ADAPTER_OPTIONS = ['rank', 'targets', 'baseDtype'] as const;

const OPTIONS = { training: TRAINING_OPTIONS, serving: SERVING_OPTIONS };

/** First given option of a kind. */
const chosenOf = (kind: keyof typeof OPTIONS, options: FitOptions) =>
  OPTIONS[kind].find((name) => isChosen(options, name));

/**
 * Training settings: an option takes precedence over the file's value, and this over the default.
 * @param positions The longest input of the model.
 * @throws UserError when the context is longer than that.
 */
function trainingSettingOf(
  options: FitOptions,
  hints: TrainingHints,
  positions: number,
  cluster: Cluster,
): Resolved<TrainingFitSetting> {
  const { context, precision, recompute, optimizer = FIT_DEFAULTS.optimizer } = options;
  const wish = { context, precision, optimizer, recompute, batch: options.microBatch } as const;
  const resolved = resolveSetting({ ...wish, dtype: 'bf16', causal: false }, hints, positions);
  const { batch: microBatch, ...training } = resolved.training;
  const axes = trainingAxesOf(options, cluster.gpus);
  const replicas = trainingReplicas({ ...axes, gpus: cluster.gpus });
  const sharding = shardingOf(options, hints);
  const part = trainingOffload(options);
  const memory = namedMemory(options);
  const accumulated = options.accumulation && options.accumulation * microBatch * training.context;
  return {
    contextOrigin: resolved.origins.context,
    setting: {
      ...training,
      cluster,
      microBatch,
      attention: options.attention ?? FIT_DEFAULTS.attention,
      loss: options.loss ?? FIT_DEFAULTS.loss,
      dropout: Boolean(options.dropout),
      ...sharding,
      ...(part && { offload: { part, memory: memory ?? systemMemory(null, undefined) } }),
      ...(memory && { systemMemory: memory }),
      convention: options.convention ?? FIT_DEFAULTS.convention,
      ...axes,
      globalBatchTokens: accumulated ? accumulated * replicas : options.globalBatchTokens,
      trainTokens: options.trainTokens,
      // A missing setting is left out, so that results show only what was asked for.
      ...(options.optimizerInBackward && { optimizerInBackward: true }),
      ...(options.rank !== undefined && { rank: options.rank }),
      ...(options.targets !== undefined && { targets: [...new Set(options.targets)] }),
      ...(options.baseDtype !== undefined && { frozen: usualFormat(options.baseDtype) }),
      mfu: options.mfu,
    },
  };
}

/** Division of the state: the chosen one, else the file's stage. */
export const shardingOf = (
  { zero }: Pick<FitOptions, 'zero'>,
  { zeroStage = 0 }: TrainingHints,
): Pick<TrainingFitSetting, 'zero' | 'hybrid'> => SHARDINGS[zero ?? (`${zeroStage}` as Sharding)];

/** Default output tokens of a request. */
const USUAL_OUTPUT = 128;

/** Tokens of a sequence and of its prompt and output. @throws UserError when they do not fit into each other. */
function tokensOf(options: FitOptions, hints: TrainingHints, positions: number) {
  const { promptTokens: prompt, outputTokens: output } = options;
  const both = prompt !== undefined && output !== undefined ? prompt + output : undefined;
  const wish = {
    context: options.context ?? both,
    dtype: 'bf16',
    causal: true,
    optimizer: 'adamw',
  } as const;
  const resolved = resolveSetting(wish, hints, positions);
  const { context } = resolved.inference;
  const gets = output ?? Math.min(USUAL_OUTPUT, Math.ceil(context / 2));
  const brings = prompt ?? context - gets;
  refuseTooLong(brings, gets, context);
  return { ...resolved, both, gets, brings };
}

/** @throws UserError when the tokens of a request do not fit into each other, or are more than the model's positions. */
export const requireTokens = (loaded: ModelToFit, options: FitOptions): void => {
  tokensOf(options, hintsOf(loaded), loaded.model.positions);
};

/**
 * Serving settings: the context is a request's prompt plus output, unless given.
 * @throws UserError when they are inconsistent, or exceed the model's positions.
 */
function servingSettingOf(
  options: FitOptions,
  hints: TrainingHints,
  model: LanguageModel,
  cluster: Cluster,
  stored: StoredWeightFormat | undefined,
): Resolved<ServingFitSetting> {
  const dtype = options.dtype ?? stored?.dtype ?? 'bf16';
  const { inference, origins, both, gets, brings } = tokensOf(options, hints, model.positions);
  const { context } = inference;
  const usual = usualFormat(dtype);
  const storedGroup = options.dtype === undefined ? stored?.group : undefined;
  const cacheDtype = options.cacheDtype ?? usualCache(dtype);
  const isAsStored = [options.dtype, options.groupSize, options.scaleDtype].every(
    (each) => each === undefined,
  );
  refuseGroups(options, dtype);
  const axes = servingAxesOf(options, model, cluster);
  const server = serverSettings(options, cluster, dtype);
  requireAxesOfRuntime(server.runtime.name, { ...axes, prefillGpus: options.prefillGpus });
  return {
    contextOrigin: both !== undefined && options.context === undefined ? 'flag' : origins.context,
    setting: {
      cluster: limitedMemory(cluster, options.gpuMemoryUtilization),
      weights: {
        ...usual,
        groupSize: options.groupSize ?? storedGroup ?? usual.groupSize,
        scaleDtype: options.scaleDtype ?? usual.scaleDtype,
        ...(isAsStored && stored?.label && { stored: stored.label }),
      },
      cacheDtype,
      // States keep the type of the model.
      stateDtype: cacheBlockBytes(cacheDtype) < 64 ? 'bf16' : stateDtypeOf(cacheDtype),
      context,
      batch: options.batch ?? 1,
      prompt: brings,
      output: gets,
      load:
        options.requestsPerSecond === undefined
          ? undefined
          : {
              requestsPerSecond: options.requestsPerSecond,
              p95Seconds: options.p95Seconds ?? gets / (options.minTokensPerSecond ?? USUAL_SPEED),
            },
      measured: measuredOf(options),
      ...axes,
      ...server,
      ...(options.prefillGpus !== undefined && { prefillGpus: options.prefillGpus }),
    },
  };
}

/**
 * Axes of a replica. Servers divide experts among all GPUs of a stage, so that those say how many share a layer. Copies of
 * the attention of a model without experts are replicas, as for the same flag of vLLM.
 */
function servingAxesOf(options: FitOptions, model: LanguageModel, { gpus }: Cluster): ServingAxes {
  const { expertParallel: asked = 1, dataParallelAttention: groups = 1 } = options;
  const copies = groups * (options.tensorParallel ?? 1) * (options.pipelineParallel ?? 1);
  const areReplicas = dividedExperts(model) === 0 && gpus % copies === 0;
  const dataParallelAttention = areReplicas ? 1 : groups;
  const { pipelineParallel = 1, contextParallel = 1 } = options;
  if (asked === 'all') requireExpertsFor(model, 'expertParallel');
  // All GPUs of a stage, unless groups say how many those are.
  const all = options.dataParallelAttention === undefined ? gpus / pipelineParallel : groups;
  const experts = asked === 'all' ? all : asked;
  const usual = Math.max(1, Math.floor(experts / dataParallelAttention));
  const tensorParallel = options.tensorParallel ?? usual;
  const expertParallel = asked === 'all' ? tensorParallel * dataParallelAttention : asked;
  return {
    tensorParallel,
    ...(dataParallelAttention > 1 && { dataParallelAttention }),
    ...(expertParallel > 1 && { expertParallel }),
    ...(pipelineParallel > 1 && { pipelineParallel }),
    ...(contextParallel > 1 && { contextParallel }),
  };
}

/** Whether the user chose how GPUs share a replica. */
const isSpreadChosen = (options: FitOptions): boolean =>
  [
    options.tensorParallel,
    options.expertParallel,
    options.dataParallelAttention,
    options.pipelineParallel,
    options.contextParallel,
  ].some((each) => each !== undefined);

/** Settings of the program that serves, and of its requests. */
function serverSettings(options: FitOptions, { gpu }: Cluster, dtype: WeightDtype) {
  const { draft, acceptance } = options;
  return {
    runtime: runtimeSetting(
      {
        name: options.runtime,
        launching: options.eager ? 'eager' : undefined,
        batching: batchingWish(options),
        memoryShare: options.gpuMemoryUtilization,
      },
      gpu,
      dtype,
      options.cacheDtype,
    ),
    minSpeed: options.minTokensPerSecond ?? USUAL_SPEED,
    ...(options.minTokensPerSecond !== undefined && { isSpeedChosen: true }),
    prefixCache: options.prefixCache ?? 0,
    ...(options.outputMix && { outputMix: options.outputMix }),
    ...(draft !== undefined &&
      acceptance !== undefined && {
        draft: { name: draft.file, acceptance, tokens: options.draftTokens ?? USUAL_DRAFT },
      }),
  };
}

function batchingWish({ batching, chunkedPrefill: chunked }: FitOptions): Batching | undefined {
  if (batching !== undefined || chunked === undefined) return batching;
  return chunked ? 'chunked' : 'whole';
}

/** Type of the cache for weights of a type: 16 bits or more. */
const usualCache = (dtype: WeightDtype): Dtype =>
  dtype === 'f32' || dtype === 'f16' ? dtype : 'bf16';

/** GPUs of which serving may use a share of the memory. */
function limitedMemory(cluster: Cluster, memoryShare: number | undefined): Cluster {
  if (memoryShare === undefined) return cluster;
  return withGpus(cluster, (gpu) => withMemoryShare(gpu, memoryShare));
}

function measuredOf(options: FitOptions): ServingFitSetting['measured'] {
  const { tokenSeconds, prefillSeconds } = options;
  const isMeasured = tokenSeconds !== undefined || prefillSeconds !== undefined;
  return isMeasured ? { tokenSeconds, prefillSeconds } : undefined;
}

/** @throws UserError for groups or a scale type with a type that has no scales of its own. */
function refuseGroups(options: FitOptions, dtype: WeightDtype): void {
  const name = (['groupSize', 'scaleDtype'] as const).find((each) => options[each] !== undefined);
  if (name === undefined || WEIGHT_DTYPES[dtype].usual) return;
  const why = WEIGHT_DTYPES[dtype].blocks ? 'have the scales of their blocks' : 'have no scales';
  throw usageError(
    `${setting(name)}: weights in ${dtype} ${why}`,
    `leave it out, or ask for ${setting('dtype', 'int4')}, int8 or f8`,
  );
}

/**
 * @throws UserError for groups longer than every row, whose scales would be those of the rows, and for a cache whose blocks
 * do not divide the heads.
 */
export function refuseOtherBlocks(model: LanguageModel, options: FitOptions): void {
  if (options.cacheDtype !== undefined) refuseCacheWidths(model, options.cacheDtype);
  const size = options.groupSize;
  if (size === undefined) return;
  const most = Math.max(...[...weightLayout(model).quantised.values()].map(({ length }) => length));
  if (size <= most) return;
  throw usageError(
    `${setting('groupSize')}: expected at most ${formatInteger(most)}, the longest row of a matrix, found ${formatInteger(size)}`,
    `for one scale per row, write ${setting('groupSize', most)}`,
  );
}

function refuseTooLong(prompt: number, output: number, context: number): void {
  if (prompt > 0 && prompt + output <= context) return;
  throw usageError(
    `expected prompt and output within the context of ${formatInteger(context)} tokens, found ${formatInteger(prompt)} + ${formatInteger(output)}`,
    `write ${setting('context', Math.max(1, prompt) + output)}, or fewer tokens`,
  );
}

/** Columns of the table of common hardware without a chosen type. */
const USUAL_DTYPES = ['bf16', 'int8', 'int4'] as const satisfies readonly WeightDtype[];

/** Settings whose figures depend on the hardware. */
export const OF_HARDWARE = [
  ...['gpus', 'tensorParallel', 'pipelineParallel', 'sequenceParallel', 'zero'],
  ...['dataParallelAttention', 'expertParallel', 'contextParallel', 'expertTensorParallel'],
  ...['globalBatchTokens', 'accumulation', 'trainTokens', 'mfu', 'pricePerHour', 'promptTokens'],
  ...[
    'outputTokens',
    'prefillGpus',
    'outputMix',
    'tokenSeconds',
    'prefillSeconds',
    'requestsPerSecond',
  ],
  ...PLACES_OPTIONS,
  ...['minTokensPerSecond', 'calibrate', 'runtime', 'eager', 'gpuMemoryUtilization'],
  ...['chunkedPrefill', 'batching', 'prefixCache', 'draft', 'check', 'explain', 'emit'],
] as SettingName[];

/** A card with less memory than many models, whose layers or experts are then elsewhere. */
const SMALL_GPU = 'rtx-4090';

/**
 * Hardware to add to settings that require some: as many cards as they divide a model between, a card of those who use
 * GGUF files, or only a processor.
 */
function addedHardware(name: SettingName, settings: Readonly<Record<string, unknown>>): string {
  const { tensorSplit, gpuLayers, cpuExperts, offload } = settings;
  if (Array.isArray(tensorSplit)) return `${tensorSplit.length}x${SMALL_GPU}`;
  const isOfGguf = /^(?:q\d_|iq\d)/.test(asText(settings.dtype));
  if (isOfGguf || (gpuLayers ?? cpuExperts ?? offload) !== undefined) return SMALL_GPU;
  return (PLACES_OPTIONS as readonly string[]).includes(name) ? 'none' : USUAL_GPU;
}

/** @throws UserError when a setting applies only to named hardware. */
export function refuseWithoutHardware(settings: Readonly<Record<string, unknown>>): void {
  const name = OF_HARDWARE.find((each) => settings[each] !== undefined && settings[each] !== false);
  if (name === undefined) return;
  throw usageError(
    `${setting(name)} requires hardware`,
    `add ${setting('gpu', addedHardware(name, settings))}, or your own GPU; ${setting('thisMachine')} measures this machine`,
  );
}

/**
 * Settings of the table of common hardware: those of one GPU.
 * @throws UserError as `fitRequestOf`.
 */
export function tableRequestOf(
  loaded: ModelToFit & StoredModel,
  options: FitOptions,
  reservedBytes?: number,
): TableRequest {
  const [gpu] = COMMON_HARDWARE;
  if (gpu === undefined) throw new Error('a table without rows');
  const cluster = { gpu: gpu.gpu, gpus: 1, network: null };
  const stored = storedWeightFormat(loaded)?.dtype;
  const dtypes: readonly WeightDtype[] = options.dtype
    ? [options.dtype]
    : [...new Set([...(stored ? [stored] : []), ...USUAL_DTYPES])];
  const { training, serving: first } = fitRequestOf(loaded, cluster, options);
  const serving = (first ? dtypes : []).flatMap((dtype) => {
    const isStored = options.dtype === undefined && dtype === stored;
    const wish = isStored ? options : { ...options, dtype };
    return fitRequestOf(loaded, cluster, wish).serving ?? [];
  });
  return {
    serving: serving.map(({ setting }) => setting),
    users: options.users,
    training:
      options.for === undefined || options.for === 'training' ? (training?.setting ?? null) : null,
    lora: training?.loraSetting ?? null,
    reservedBytes,
    adapters:
      options.for === undefined
        ? ['lora', 'qlora']
        : options.for === 'lora' || options.for === 'qlora'
          ? [options.for]
          : [],
    contextOrigin: (training ?? serving[0])?.contextOrigin ?? 'flag',
  };
}

/**
 * @param gpu Name of the GPU, as the user wrote it.
 * @throws UserError for options that contradict each other for any model.
 */
export function refuseContradictions(options: FitOptions, gpu?: string): void {
  refuseForeign(options);
  refuseLonePrice(options);
  refuseOffload(options);
  refuseBatchingApart(options);
  if (purposeOf(options) !== 'serving' && trainingOffload(options) === undefined) {
    refusePlacesOfTraining(options, gpu);
  }
}

/** @throws UserError for a part in system memory that the question does not have. */
function refuseOffload(options: FitOptions): void {
  const { offload } = options;
  if (offload === undefined) return;
  const part = trainingOffload(options);
  const purpose = purposeOf(options);
  if (part !== undefined && purpose !== 'training') {
    throw usageError(
      `${setting('offload', offload)} applies to a training of all weights`,
      purpose === 'serving'
        ? `write ${setting('for', 'training')}, or ${setting('offload', 'layers')}`
        : `leave it out, or write ${setting('for', 'training')}`,
    );
  }
  if (part === undefined && purpose !== 'serving') {
    throw usageError(
      `${setting('offload', offload)} applies to serving`,
      `write ${setting('offload', 'optimizer')} or ${setting('offload', 'parameters')}`,
    );
  }
  const other = (['gpuLayers', 'cpuExperts', 'tensorSplit'] as const).find(
    (name) => part !== undefined && options[name] !== undefined,
  );
  if (other === undefined) return;
  throw usageError(`${setting(other)} applies to serving`, 'leave it out');
}

/** @throws UserError for steps with prompts and answers where other GPUs read the prompts. */
function refuseBatchingApart(options: FitOptions): void {
  const name = (['batching', 'chunkedPrefill'] as const).find(
    (each) => options[each] !== undefined,
  );
  if (options.prefillGpus === undefined || name === undefined) return;
  throw usageError(
    `${setting(name)} does not apply to ${setting('prefillGpus')}: those GPUs read the prompts`,
    'leave one of them out',
  );
}

/** The system memory that the user named; undefined without one. */
function namedMemory({ ramBytes, ramSpeed, cpu }: FitOptions): SystemMemory | undefined {
  if (ramBytes === undefined && ramSpeed === undefined && cpu === undefined) return undefined;
  return systemMemory(ramBytes ?? null, ramSpeed, cpu);
}

/** @throws UserError for a price of a training without its tokens; a server has its own time. */
function refuseLonePrice(options: FitOptions): void {
  const { pricePerHour, trainTokens } = options;
  if (pricePerHour === undefined || trainTokens !== undefined || purposeOf(options) === 'serving')
    return;
  throw usageError(
    `${setting('pricePerHour')} requires the tokens of a training`,
    `add ${setting('trainTokens', '300e9')}, or write ${setting('for', 'serving')}`,
  );
}

/** Kind of the options that do not apply to each purpose. */
const FOREIGN = {
  training: 'serving',
  serving: 'training',
  lora: 'serving',
  qlora: 'serving',
} as const satisfies Record<Purpose, keyof typeof OPTIONS>;

/** @throws UserError when an option does not apply to the requested purpose. */
function refuseForeign(options: FitOptions): void {
  const { for: purpose } = options;
  if (purpose === undefined) return;
  const other = FOREIGN[purpose];
  const foreign = chosenOf(other, options);
  if (foreign === undefined) return;
  throw usageError(
    `${setting(foreign)} is a setting of ${other}, and ${setting('for', purpose)} excludes it`,
    `${counterpartText(foreign, options)}write ${setting('for', other)}, or leave ${setting('for')} out for both`,
  );
}

/** The sequences at a time have a name of their own in each purpose. */
function counterpartText(foreign: string, { batch, microBatch }: FitOptions): string {
  if (foreign === 'batch') return `write ${setting('microBatch', batch)} for a training; or `;
  if (foreign === 'microBatch') return `write ${setting('batch', microBatch)} for serving; or `;
  return '';
}

/**
 * The requested settings: options, else the config's values, else defaults.
 * @throws UserError when the options contradict each other, or the model.
 */
export function fitRequestOf(
  loaded: ModelToFit & StoredModel,
  cluster: Cluster,
  options: FitOptions,
): FitRequest {
  refuseContradictions(options, cluster.gpu.name);
  refuseOfDecoding(loaded.model, options);
  const hints = hintsOf(loaded);
  const { positions } = loaded.model;
  const training =
    options.for === 'serving' ? null : trainingSettingOf(options, hints, positions, cluster);
  return answerable(loaded.model, options, {
    price: options.pricePerHour,
    purpose: purposeOf(options),
    training: training && {
      ...training,
      loraSetting: {
        ...training.setting,
        recompute: options.recompute ?? 'full',
        offload: undefined,
        // Beside a training they show what is possible, whatever divides that.
        ...((options.zero === undefined || purposeOf(options) === 'training') && ADAPTER_DIVISION),
      },
    },
    serving:
      (options.for !== undefined && options.for !== 'serving') ||
      trainingOffload(options) !== undefined
        ? null
        : {
            ...servingSettingOf(options, hints, loaded.model, cluster, storedWeightFormat(loaded)),
            isSharingChosen: isSpreadChosen(options),
            users: options.users,
            draft: options.draft?.model,
            places: placesWish(loaded.model, options, cluster),
            isPlaceable: isPlaceable(options),
          },
  });
}

/**
 * The request without the other question, where its rules refuse axes that this one accepts.
 * @throws UserError where this one refuses them.
 */
function answerable(model: LanguageModel, options: FitOptions, request: FitRequest): FitRequest {
  const { training, serving, purpose } = request;
  if (training === null || serving === null || !isSpreadChosen(options)) return request;
  const ofTraining = refusalOf(() => parallelismOf(model, training.setting));
  const ofServing = refusalOf(() => {
    requireGpus(serving.setting);
    requireAxes(model, serving.setting);
  });
  const isServing = purpose === 'serving';
  const [own, other] = isServing ? [ofServing, ofTraining] : [ofTraining, ofServing];
  if (own !== undefined && other === undefined) {
    const instead = setting('for', isServing ? 'training' : 'serving');
    const advice = present([own.suggestion, `write ${instead}`]).join(', or ');
    throw usageError(own.message, advice);
  }
  if (own !== undefined || other === undefined) return request;
  const notWithAxes = `${isServing ? 'training' : 'serving'} is not answered with these axes: ${other.message}`;
  return { ...request, ...(isServing ? { training: null } : { serving: null }), notWithAxes };
}

/** The error of a user that a check throws. */
function refusalOf(check: () => unknown): UserError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
}

/** @throws UserError for answers of different lengths with a training. */
export function refuseMixOfTraining({ for: purpose, outputMix }: FitOptions): void {
  if (outputMix === undefined || purpose === undefined || purpose === 'serving') return;
  throw usageError(
    `${setting('outputMix')} does not apply to ${setting('for', purpose)}`,
    `leave ${setting('for')} out, or write ${setting('for', 'serving')}`,
  );
}
