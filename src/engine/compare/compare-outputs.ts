/**
 * Compares two models, or one model on two engines, on the same tokens. They run one after the other, and only logits
 * and block outputs of the first are kept: memory never holds two models.
 */

import os from 'node:os';
import path from 'node:path';
import { type Problem, usageError } from '../../base/errors.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import { isSameShape, shapeText } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import type { Checkpoint, CheckpointPath } from '../../checkpoint/checkpoint.js';
import {
  checkpointWarnings,
  findConfig,
} from '../../input/model-input/checkpoint/checkpoint-config.js';
import { verifiedModel } from '../../input/model-input/checkpoint/verify-checkpoint.js';
import { openModelCheckpoint } from '../../input/model-input/gguf/gguf-checkpoint.js';
import { hasWeights, locateModel } from '../../input/model-input/locate.js';
import type { ModelFile } from '../../input/model-input/model-file.js';
import { modelOf } from '../../input/model-input/model-file.js';
import { loadModelFile } from '../../input/model-input/read-model-file.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { CallSize, EngineInfo, RunOutput, TokenIds } from '../engine.js';
import { DEVICES, ENGINES } from '../engine.js';
import { runLayerByLayer, withProgram } from '../layer-by-layer.js';
import {
  activationsTooLarge,
  fitsInMemory,
  memoryNeed,
  streamedNeed,
  usableBytes,
} from '../memory.js';
import type { ChosenEngine, EngineRequest, ModelsToRun } from '../select/devices.js';
import { chooseEngineFor, isRequestedEngine } from '../select/devices.js';
import type { SelfCheck } from '../select/self-check.js';
import { idLimitsOf, inputSize, randomIds } from '../token-ids.js';
import type { WeightSource } from '../weights/weights.js';
import { checkpointWeights, randomWeights } from '../weights/weights.js';
import type { LogitDifference } from './differences.js';
import {
  largestDifference,
  logitDifference,
  relativeDifference,
  relativeLimit,
} from './differences.js';

// The two compared models: located, opened with their weights, and run on the same tokens.

/** A model and the source of its weights. */
export interface ComparedModel {
  readonly loaded: ModelFile;
  /** An open checkpoint; undefined for random weights. */
  readonly checkpoint: Checkpoint | undefined;
}

export interface OpenedModel extends ComparedModel {
  readonly warnings: readonly Problem[];
}

/**
 * Opens the other model from a checkpoint or a config. A checkpoint without a config uses the model's own. A config has
 * random weights, unless the model has a checkpoint's and a checkpoint is next to the config.
 * @throws UserError when it cannot be read, or does not match its config. Everything is closed then.
 */
export async function openComparedModel(
  source: string,
  own: ComparedModel,
  display: ProgressDisplay,
): Promise<OpenedModel> {
  if (source === '-' && own.loaded.file === '<stdin>') {
    throw usageError(
      'standard input cannot be read twice',
      'name a file for one of the two models',
    );
  }
  const place = locateModel(source);
  if (place.kind === 'checkpoint') return checkpointSide(place, own.loaded, display);
  const loaded = await loadModelFile(place);
  const folder = path.dirname(place.config);
  return own.checkpoint && place.kind !== 'stdin' && hasWeights(folder)
    ? checkpointSide({ path: folder }, loaded, display, loaded)
    : { loaded, checkpoint: undefined, warnings: loaded.warnings };
}

/**
 * Opens a checkpoint with its own config.
 * @param otherwise Config to use when it has none.
 * @param named Config that takes precedence.
 */
export async function checkpointSide(
  { path: source, listing }: CheckpointPath,
  otherwise: ModelFile,
  display: ProgressDisplay,
  named?: ModelFile,
): Promise<OpenedModel> {
  const checkpoint = openModelCheckpoint(source, { listing });
  try {
    const config = named ? undefined : await findConfig(checkpoint, undefined);
    const described = named ?? (config ? await modelOf(config.document) : otherwise);
    const held = await verifiedModel(described, checkpoint, display);
    const warnings = [
      ...(described === otherwise ? [] : described.warnings),
      ...checkpointWarnings(checkpoint),
      ...held.warnings,
    ];
    return { loaded: held.loaded, checkpoint, warnings };
  } catch (error) {
    checkpoint.close();
    throw error;
  }
}

type Wishes = Omit<AgainstRequest, 'own' | 'other' | 'threads' | 'watch' | 'notice'> & {
  readonly threads: number | undefined;
};

/** One of the two models after its run. */
export interface ComparedRun extends RanModel {
  /** Path of the config as given. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** The checkpoint with the weights; null for random weights. */
  readonly checkpoint: string | null;
}

export interface TwoModelComparison extends ModelComparison {
  readonly own: ComparedRun;
  readonly other: ComparedRun;
}

/**
 * Runs both.
 * @throws UserError as `compareOutputs`.
 */
export async function compareTwoModels(
  own: ComparedModel,
  other: ComparedModel,
  wishes: Wishes,
  display: ProgressDisplay,
): Promise<TwoModelComparison> {
  const toRun = ({ loaded: { model }, checkpoint }: ComparedModel) => ({
    model,
    weights: checkpoint && checkpointWeights(model, checkpoint),
  });
  const shown = display.steps();
  try {
    const found = await compareOutputs({
      ...wishes,
      own: toRun(own),
      other: toRun(other),
      threads: wishes.threads ?? os.availableParallelism(),
      watch: shown.doing,
      notice: shown.say,
    });
    return {
      ...found,
      own: { ...comparedNames(own), ...found.own },
      other: { ...comparedNames(other), ...found.other },
    };
  } finally {
    shown.end();
  }
}

const comparedNames = ({ loaded: { file, family }, checkpoint }: ComparedModel) => ({
  file,
  family: family.name,
  checkpoint: checkpoint?.path ?? null,
});

export interface ModelToRun {
  readonly model: LanguageModel;
  /** Weights of a checkpoint; undefined for random weights. */
  readonly weights: WeightSource | undefined;
}

/** An engine with its device and number type. */
export type EngineTarget = Pick<EngineRequest, 'engine' | 'device' | 'compute'>;

export interface AgainstRequest extends EngineRequest {
  readonly own: ModelToRun;
  readonly other: ModelToRun;
  /** Undefined for random ids: `batch` sequences of `context` tokens. */
  readonly ids: TokenIds | undefined;
  readonly batch?: number | undefined;
  readonly context?: number | undefined;
  /** Seed of random ids and of random weights, which are the same for tensors of the same name. */
  readonly seed: number;
  /** Whether to run layer by layer, at any model size. */
  readonly full: boolean;
  /** Engine for `other`, when it differs from the one for `own`. */
  readonly otherWay: EngineTarget | undefined;
  /** Called with each step. */
  readonly watch: (doing: string) => void;
  /** Called with notices about the chosen engine. */
  readonly notice: (text: string) => void;
}

export interface RanModel {
  /** Parameters of the model. @count */
  readonly parameters: number;
  /** Origin of the weights; random ones are the same for tensors of the same name. */
  readonly weights: 'random' | 'checkpoint';
  /** Whether the model ran at once, or one layer at a time. */
  readonly mode: 'whole' | 'streamed';
  readonly engine: EngineInfo;
  /** A tiny model, run before anything else. */
  readonly selfCheck: SelfCheck;
}

/** Difference between the outputs [B, T, H] of two blocks. */
export interface BlockDistance {
  /** Path of the block. */
  readonly block: string;
  /** Name of the block in the other model. */
  readonly other: string;
  /** ‖own − other‖ / ‖own‖ in Frobenius norms. @real */
  readonly relativeDifference: number;
  /** Largest difference of a value of its output. @real */
  readonly largestDifference: number;
}

export interface ModelComparison {
  /** Origin of the tokens that both are given. */
  readonly ids: 'random' | 'given';
  /** Sequences. @integer @minimum 1 */
  readonly batch: number;
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** Seed of random tokens and random weights. @count */
  readonly seed: number;
  readonly own: RanModel;
  readonly other: RanModel;
  readonly logits: LogitDifference;
  /** Blocks in their order; null when they cannot be compared. */
  readonly blocks: readonly BlockDistance[] | null;
  /** Reason why the blocks are not compared. */
  readonly blocksDiffer: string | null;
  /** Relative differences up to this count as rounding. */
  readonly threshold: number;
  /** The first block, or `logits`, whose relative difference is above the threshold. */
  readonly partsAt: string | null;
}

/**
 * Runs both and compares them. A model that does not fit in memory runs layer by layer.
 * @throws UserError when they do not share a vocabulary, when even a layer does not fit in memory, or without an
 * engine.
 */
async function compareOutputs(request: AgainstRequest): Promise<ModelComparison> {
  const { own, other, otherWay, seed } = request;
  refuseOtherVocabulary(own.model, other.model);
  const model = shorterContext(own.model, other.model);
  const ids = request.ids ?? randomIds(seed, 'ids', inputSize(request, model), idLimitsOf(model));
  const size = { batch: ids.batch, tokens: ids.tokens };
  const passOf = (each: ModelToRun) => (chosen: ChosenEngine) => pass(chosen, each, ids, request);
  const [first, second] =
    otherWay === undefined
      ? await onEngine(request, { ...size, models: [own.model, other.model] }, async (chosen) => [
          await passOf(own)(chosen),
          await passOf(other)(chosen),
        ])
      : await onTwo(request, otherWay, size, passOf);
  return {
    ids: request.ids ? 'given' : 'random',
    batch: ids.batch,
    context: ids.tokens,
    seed,
    own: first.ran,
    other: second.ran,
    ...comparisonOf(first, second),
  };
}

/** The model with the shorter context, which limits the tokens of both. */
export const shorterContext = (own: LanguageModel, other: LanguageModel): LanguageModel =>
  other.positions < own.positions ? other : own;

function refuseOtherVocabulary(own: LanguageModel, other: LanguageModel): void {
  const [here, there] = [own, other].map((model) => [
    idLimitsOf(model).vocabulary,
    model.head.weight.shape[0] ?? 0,
  ]) as [number[], number[]];
  const at = here.findIndex((size, index) => size !== there[index]);
  if (at < 0) return;
  throw usageError(
    `the models do not share a vocabulary: ${formatInteger(here[at] ?? 0)} and ${formatInteger(there[at] ?? 0)} tokens`,
    'compare models that take the same tokens',
  );
}

/** Runs one model on the engine of the request, the other on another engine. */
async function onTwo<T>(
  request: AgainstRequest,
  otherWay: EngineTarget,
  size: CallSize,
  passOf: (model: ModelToRun) => (chosen: ChosenEngine) => Promise<T>,
): Promise<[T, T]> {
  const { own, other } = request;
  const first = await onEngine(request, { ...size, models: [own.model] }, (chosen) => {
    refuseSameEngine(chosen.engine.info, otherWay);
    return passOf(own)(chosen);
  });
  const second = await onEngine(
    { ...request, ...otherWay },
    { ...size, models: [other.model] },
    passOf(other),
  );
  return [first, second];
}

/** Rejects a second engine that equals the first. */
function refuseSameEngine(info: EngineInfo, other: EngineTarget): void {
  if (!isRequestedEngine(info, other)) return;
  const [what, flag, example]: readonly [string, 'engine' | 'device', string] =
    other.device === 'auto'
      ? [ENGINES[info.name], 'engine', info.name === 'onnx' ? 'tfjs' : 'onnx']
      : [DEVICES[info.deviceKind], 'device', info.deviceKind === 'cpu' ? 'webgpu' : 'cpu'];
  throw usageError(
    `expected another engine or device than ${what}, which already runs the model`,
    `choose another for the first model, as in ${setting(flag, example)}`,
  );
}

async function onEngine<T>(
  request: AgainstRequest,
  models: ModelsToRun,
  use: (chosen: ChosenEngine) => Promise<T>,
): Promise<T> {
  request.watch('choosing an engine');
  const chosen = await chooseEngineFor(models, request, request.notice);
  try {
    return await use(chosen);
  } finally {
    await chosen.engine.close();
  }
}

type ModelOutput = Pick<RunOutput, 'output' | 'blocks'>;

interface ModelPass {
  readonly ran: RanModel;
  readonly output: ModelOutput;
}

async function pass(
  { engine, selfCheck }: ChosenEngine,
  { model, weights: given }: ModelToRun,
  ids: TokenIds,
  { full, seed, watch }: AgainstRequest,
): Promise<ModelPass> {
  const usable = usableBytes(engine.info);
  const whole = memoryNeed(model, ids, engine.info);
  const mode = full || !fitsInMemory(whole, usable) ? 'streamed' : 'whole';
  const least = streamedNeed(model, ids, engine.info);
  if (mode === 'streamed' && !fitsInMemory(least, usable))
    throw activationsTooLarge(ids, least, usable, false);
  const weights = given ?? randomWeights(model, seed);
  watch(`running ${model.name}`);
  const output = await (mode === 'whole'
    ? withProgram(engine, model, weights, (program) => program.run({ ids }))
    : runLayerByLayer({
        ...{ engine, model, weights, ids, keepsBlocks: true },
        watch: (layer) => watch(`running ${layer}`),
      }));
  const { parameters } = countParameters(model);
  const from = given ? 'checkpoint' : 'random';
  return { ran: { parameters, weights: from, mode, engine: engine.info, selfCheck }, output };
}

type Distances = Pick<
  ModelComparison,
  'logits' | 'blocks' | 'blocksDiffer' | 'threshold' | 'partsAt'
>;

/** Comparison of the outputs of two models for the same tokens. */
function comparisonOf(
  { ran, output: own }: ModelPass,
  { ran: otherRan, output: other }: ModelPass,
): Distances {
  const threshold = Math.max(relativeLimit(ran.engine), relativeLimit(otherRan.engine));
  const logits = logitDifference(own.output, other.output);
  const blocksDiffer = whyApart(own, other);
  const blocks = blocksDiffer === null ? distancesOf(own, other) : null;
  const steps = [...(blocks ?? []), { block: 'logits', ...logits }];
  const partsAt = steps.find((each) => each.relativeDifference > threshold)?.block ?? null;
  return { logits, blocks, blocksDiffer, threshold, partsAt };
}

function whyApart({ blocks: own }: ModelOutput, { blocks: other }: ModelOutput): string | null {
  if (own.size !== other.size) {
    return `one model has ${counted(own.size, 'block')}, the other ${formatInteger(other.size)}`;
  }
  const others = [...other.values()];
  for (const [at, { shape }] of [...own.values()].entries()) {
    const there = others[at]?.shape ?? [];
    if (!isSameShape(shape, there)) {
      return `block ${at} gives ${shapeText(shape)} in one model, ${shapeText(there)} in the other`;
    }
  }
  return null;
}

/** Blocks are paired by their order: families name them differently. */
function distancesOf({ blocks: own }: ModelOutput, { blocks }: ModelOutput): BlockDistance[] {
  const others = [...blocks];
  return [...own].flatMap(([block, { data }], at) => {
    const [other, value] = others[at] ?? [];
    if (other === undefined || value === undefined) return [];
    return {
      block,
      other,
      relativeDifference: relativeDifference(data, value.data),
      largestDifference: largestDifference(data, value.data),
    };
  });
}
