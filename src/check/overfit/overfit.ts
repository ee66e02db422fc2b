/**
 * Tests learning before a GPU is rented: trains a model, or a scaled-down proxy, on one batch for a few seconds. A
 * working model learns a batch by heart.
 */
import { setImmediate } from 'node:timers/promises';
import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import type { EngineInfo } from '../../engine/engine.js';
import { gigabytes, usableBytes } from '../../engine/memory.js';
import { chooseTrainer } from '../../engine/select/matmul-backends.js';
import { idLimitsOf, inputSize, randomIds } from '../../engine/token-ids.js';
import type { ModelTraining, TrainingStep } from '../../engine/trainer.js';
import { randomWeights } from '../../engine/weights/weights.js';
import type { ProxyBounds } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { walk } from '../../model/architecture/walk.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { ProxyChange, ScaledDownProxy, TestedModel } from '../test-context.js';
import { scaledDownProxy } from '../test-context.js';
import type {
  FirstNonFinite,
  LearningRateSweep,
  OverfitProblem,
  OverfitSettings,
  OverfitStep,
} from './judge.js';
import {
  clippingOf,
  judgeOverfit,
  optimizerOf,
  overfitSettings,
  SWEEP_STEPS,
  sweepLearningRates,
} from './judge.js';

export interface OverfitRequest extends TestedModel {
  readonly steps: number;
  /** Limit of the time of all steps. */
  readonly seconds: number;
  /** Undefined for that of the file. */
  readonly learningRate: number | undefined;
  /** Whether to train the model itself, at any size. */
  readonly full: boolean;
  readonly threads: number;
  /** Called with each step. */
  readonly watch: (doing: string) => void;
}

export interface Overfit {
  /** Parameters of the described model. @count */
  readonly parameters: number;
  /** The smaller model that was trained instead, or null. */
  readonly twin: {
    /** Parameters of the proxy. @count */
    readonly parameters: number;
    /** Settings that differ from the described model. */
    readonly changes: readonly ProxyChange[];
  } | null;
  /** Origin of the initial weights. */
  readonly weights: 'random' | 'checkpoint';
  /** Origin of the tokens. */
  readonly ids: 'random' | 'given';
  /** Sequences of the batch. @integer @minimum 1 */
  readonly batch: number;
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** Seed of random ids and weights. @count */
  readonly seed: number;
  readonly engine: EngineInfo;
  /** Settings by the keys of the training section. */
  readonly settings: OverfitSettings;
  /** Cross-entropy of equal probabilities, ln V. */
  readonly uniformLoss: number;
  /** Steps of the training. */
  readonly steps: readonly OverfitStep[];
  /** Loss after the last step. @real */
  readonly finalLoss: number;
  /** Reason for the end. */
  readonly stoppedBy: 'steps' | 'seconds' | 'not finite';
  /** Trained tensors, tied ones once. @count */
  readonly trainedTensors: number;
  /** Tensors, or experts of one, without a gradient in every step. */
  readonly deadParameters: readonly string[];
  /** The first value that is not finite; null if there is none. */
  readonly firstNonFinite: FirstNonFinite | null;
  /** Sweep of learning rates; null when there was no time. */
  readonly learningRates: LearningRateSweep | null;
  /** Problems of the training. */
  readonly problems: readonly OverfitProblem[];
  /** Remarks for people. */
  readonly warnings: readonly string[];
  /** Whether no problem was found. */
  readonly passed: boolean;
  /** Duration of all steps. */
  readonly seconds: number;
}

/** Default size of the batch: enough tokens for every expert of a small mixture. */
const BATCH = 2;
const CONTEXT = 32;
/**
 * Minimum tokens of a sequence: with a single key, attention has no choice, and its queries and keys have no gradient.
 */
const LEAST_TOKENS = 3;
/** Share of the time for the training; the rest is for the sweep of learning rates. */
const TRAINING_SHARE = 0.6;
/**
 * Proxies, the largest first. They are narrow, so that many steps take few seconds; smaller ones also have fewer of the
 * costly layers.
 */
const PROXIES = [
  { width: 96 },
  { width: 96, layers: 3, experts: 4 },
  { width: 96, layers: 2, experts: 2 },
] as const satisfies readonly ProxyBounds[];
/** Minimum steps, however long they take. */
const LEAST_STEPS = 5;
/** Steps that suffice to show whether a model learns. Up to them, the training can also use the time of the sweep. */
const GOOD_STEPS = 20;
/**
 * Assumed speed, with multiply-adds counted twice. Measured with wasm on one thread, with a margin for slower
 * processors.
 */
const FLOPS_PER_SECOND = 4e9;
const FLOPS_PER_PARAMETER_AND_TOKEN = 6;
/** Weights, gradients, two means, a new value and packed copies. */
const COPIES_OF_WEIGHTS = 10;

/**
 * Trains on one batch, sweeps learning rates, and judges both.
 * @throws UserError when the options do not fit the model, or no engine can train here.
 */
export async function overfit(request: OverfitRequest): Promise<Overfit> {
  const { model, seed, watch } = request;
  const size = inputSize(
    {
      ids: request.ids,
      batch: request.batch ?? (request.ids ? undefined : BATCH),
      context: request.context ?? (request.ids ? undefined : Math.min(CONTEXT, model.positions)),
    },
    model,
  );
  if (size.tokens < LEAST_TOKENS) throw tooShort(size.tokens, request.ids !== undefined);
  watch('choosing an engine');
  const { trainer } = await chooseTrainer(request.threads);
  const usable = usableBytes(trainer.info);
  const tokens = size.batch * size.tokens;
  const { parameters } = countParameters(model);
  const isSmall =
    estimatedSeconds(parameters, tokens, request.steps + SWEEP_STEPS) <= request.seconds;
  const isFitting = parameters * COPIES_OF_WEIGHTS * 4 <= usable;
  if (request.full && !isFitting) throw tooLarge(parameters, usable);
  const proxy =
    request.full || (isSmall && isFitting) ? undefined : overfitProxy(request, size.tokens, tokens);
  const ran = proxy?.model ?? model;
  const given = proxy ? undefined : request.weights;
  const limits = idLimitsOf(ran);
  const ids = request.ids
    ? { ...request.ids, data: request.ids.data.map((id) => id % limits.vocabulary) }
    : randomIds(seed, 'ids', size, limits);
  const settings = overfitSettings(request.document, request.learningRate);
  const open = () =>
    trainer.trainModel({
      model: ran,
      weights: given ?? randomWeights(ran, seed),
      ids,
      optimizer: optimizerOf(settings),
      maxGradientNorm: clippingOf(settings),
    });
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  const trained = await withTraining(open, (training) => train(training, request, elapsed));
  const stepSeconds = elapsed() / trained.steps.length;
  const learningRates = await withTraining(open, (training) =>
    sweepLearningRates(
      training,
      (request.seconds - elapsed()) / stepSeconds,
      async (step, count) => {
        watch(`learning rates: step ${step} of ${count}`);
        await setImmediate();
      },
    ),
  );
  const uniformLoss = Math.log(limits.vocabulary);
  const { problems, warnings } = judgeOverfit({
    ...trained,
    settings,
    uniformLoss,
    learningRates,
    isCheckpoint: given !== undefined,
    model: ran,
    tokens: ids.batch * (ids.tokens - 1),
  });
  return {
    parameters,
    twin: proxy ? { parameters: countParameters(ran).parameters, changes: proxy.changes } : null,
    weights: given ? 'checkpoint' : 'random',
    ids: request.ids ? 'given' : 'random',
    batch: ids.batch,
    context: ids.tokens,
    seed,
    engine: trainer.info,
    settings,
    uniformLoss,
    ...trained,
    learningRates,
    problems,
    warnings,
    passed: problems.length === 0,
    seconds: elapsed(),
  };
}

const estimatedSeconds = (parameters: number, tokens: number, steps: number) =>
  (FLOPS_PER_PARAMETER_AND_TOKEN * parameters * tokens * steps) / FLOPS_PER_SECOND;

/** The largest proxy with time for enough steps, or the smallest. All have the same kinds of layers. */
export function overfitProxy(
  {
    family,
    document,
    steps,
    seconds,
  }: Pick<OverfitRequest, 'family' | 'document' | 'steps' | 'seconds'>,
  length: number,
  tokens: number,
): ScaledDownProxy {
  const [largest, ...smaller] = PROXIES;
  let proxy = scaledDownProxy(family, document, length, largest);
  const kinds = layerKindCount(proxy.model);
  for (const bounds of smaller) {
    const { parameters } = countParameters(proxy.model);
    if (
      estimatedSeconds(parameters, tokens, Math.min(steps, GOOD_STEPS)) <=
      seconds * TRAINING_SHARE
    )
      break;
    const next = scaledDownProxy(family, document, length, bounds);
    if (layerKindCount(next.model) < kinds) break;
    proxy = next;
  }
  return proxy;
}

/** Number of kinds of layers; attention with a window counts as a kind of its own. */
const layerKindCount = (model: LanguageModel): number =>
  new Set(
    walk(model).flatMap(({ layer }) =>
      layer.kind === 'attention'
        ? layer.spans.map(({ window }) => `attention ${window?.rule}`)
        : [layer.kind],
    ),
  ).size;

async function withTraining<T>(
  open: () => Promise<ModelTraining>,
  use: (training: ModelTraining) => Promise<T>,
): Promise<T> {
  const training = await open();
  try {
    return await use(training);
  } finally {
    await training.release();
  }
}

type Trained = Pick<
  Overfit,
  'steps' | 'finalLoss' | 'stoppedBy' | 'trainedTensors' | 'deadParameters' | 'firstNonFinite'
>;

async function train(
  training: ModelTraining,
  { steps: count, seconds, watch }: OverfitRequest,
  elapsed: () => number,
): Promise<Trained> {
  const steps: TrainingStep[] = [];
  let firstNonFinite: FirstNonFinite | null = null;
  const isLate = () => {
    const share = steps.length < GOOD_STEPS ? 1 : TRAINING_SHARE;
    return elapsed() > seconds * share && steps.length >= LEAST_STEPS;
  };
  while (steps.length < count && !firstNonFinite && !isLate()) {
    const step = await training.step();
    steps.push(step);
    if (step.nonFinite) firstNonFinite = { step: steps.length, ...step.nonFinite };
    watch(`step ${steps.length} of ${count}, loss ${step.loss.toPrecision(4)}`);
    // Lets Ctrl-C and the display run between steps.
    await setImmediate();
  }
  const [first, ...others] = steps;
  const dead = (first?.withoutGradient ?? []).filter((name) =>
    others.every((each) => each.withoutGradient.includes(name)),
  );
  return {
    steps: steps.map(({ loss, gradientNorm, clipped }) => ({ loss, gradientNorm, clipped })),
    finalLoss: firstNonFinite ? Number.NaN : await training.loss(),
    stoppedBy: firstNonFinite ? 'not finite' : steps.length < count ? 'seconds' : 'steps',
    trainedTensors: training.trained.length,
    deadParameters: dead,
    firstNonFinite,
  };
}

const tooShort = (tokens: number, isGiven: boolean) =>
  usageError(
    `${setting('overfit')}: expected sequences of ${LEAST_TOKENS} tokens or more, found ${tokens}`,
    isGiven
      ? `give longer sequences with ${setting('ids')}`
      : `write ${setting('context', LEAST_TOKENS)} or more`,
  );

const tooLarge = (parameters: number, usable: number) =>
  usageError(
    `training ${formatInteger(parameters)} parameters takes about ${gigabytes(parameters * COPIES_OF_WEIGHTS * 4)}; ${gigabytes(usable)} is available`,
    `leave ${setting('full')} out, which trains a scaled-down proxy`,
  );
