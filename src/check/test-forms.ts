/** The forms of a quick test, from an opened model to the result: checks, a training, a comparison, a trace. */
import type { Problem } from '../base/errors.js';
import { readText } from '../base/files/read-file.js';
import type { ProgressDisplay } from '../base/progress-display.js';
import { setting } from '../base/text/setting.js';
import type { AgainstRequest, ComparedModel } from '../engine/compare/compare-outputs.js';
import type { TokenIds } from '../engine/engine.js';
import { idLimitsOf, inputSize, listedIds, parseIds } from '../engine/token-ids.js';
import { checkpointWeights } from '../engine/weights/weights.js';
import type { ModelFile } from '../input/model-input/model-file.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import type { CheckWish } from './checks.js';
import { checksFor, isRandomCheck, refuseUnread } from './checks.js';
import type { OverfitRequest } from './overfit/overfit.js';
import type {
  AgainstResult,
  OverfitResult,
  QuickTestResult,
  TraceResult,
} from './quick-test-result.js';
import type { QuickTestRequest, QuickTestRun } from './run-quick-test.js';
import type { TestedModel } from './test-context.js';

/** Input of a test as the user wrote it. */
export interface GivenInput {
  /** Token ids, or a file with them; undefined for random ids: `batch` sequences of `context` tokens. */
  readonly ids: string | undefined;
  readonly batch: number | undefined;
  readonly context: number | undefined;
  readonly seed: number;
}

/** Whether the user gave the seed, which some tests do not use. */
interface GivenSeed {
  readonly isSeedGiven: boolean;
}

type Watching = 'watch' | 'notice';

export type ChecksRequest = GivenInput &
  GivenSeed &
  Pick<CheckWish, 'only' | 'isCrossChecked'> &
  Omit<QuickTestRequest, keyof TestedModel | Watching | 'checks'>;

export type TrainingRequest = GivenInput & Omit<OverfitRequest, keyof TestedModel | Watching>;

export type ComparisonRequest = GivenInput &
  GivenSeed &
  Omit<AgainstRequest, keyof GivenInput | Watching | 'own' | 'other' | 'threads'> & {
    /** The other model, where `otherWay` is undefined. */
    readonly source: string;
    readonly threads: number | undefined;
  };

interface Messages {
  readonly display: ProgressDisplay;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/**
 * Runs a model and checks it.
 * @throws UserError for a setting that no check reads, and as `quickTest`.
 */
export async function checkModel(
  side: ComparedModel,
  request: ChecksRequest,
  { display, warn }: Messages,
): Promise<{ readonly result: QuickTestResult; readonly output: QuickTestRun['output'] }> {
  const { only, isCrossChecked, compute, weightForm, isSeedGiven } = request;
  // A test of given ids on the weights of a checkpoint has nothing random, so a seed has no effect.
  const isSettled = request.ids !== undefined && only !== undefined && !only.some(isRandomCheck);
  if (isSeedGiven && side.checkpoint && isSettled) await warn([idleSeed(side.loaded)]);
  refuseUnread(only, request);
  const { quickTest } = await import('./run-quick-test.js');
  const shown = display.steps();
  try {
    const { test, output } = await quickTest({
      ...request,
      ...(await testedModel(side, request)),
      checks: checksFor({
        only,
        isCrossChecked,
        isReduced: compute !== 'f32',
        isQuantized: weightForm !== undefined,
      }),
      watch: shown.doing,
      notice: shown.say,
    });
    return { result: { ...ranFile(side), ...test }, output };
  } finally {
    shown.end();
  }
}

/**
 * Trains a model on one batch.
 * @throws UserError as `overfit`.
 */
export async function trainModel(
  side: ComparedModel,
  request: TrainingRequest,
  display: ProgressDisplay,
): Promise<OverfitResult> {
  const { overfit } = await import('./overfit/overfit.js');
  const shown = display.steps();
  try {
    const trained = await overfit({
      ...request,
      ...(await testedModel(side, request)),
      watch: shown.doing,
    });
    const { batch, context } = trained;
    return { ...ranFile(side), batch, context, overfit: trained };
  } finally {
    shown.end();
  }
}

/**
 * Compares a model with another one, or with itself on another engine.
 * @throws UserError as `compareTwoModels`.
 */
export async function compareModel(
  own: ComparedModel,
  { source, isSeedGiven, ...request }: ComparisonRequest,
  { display, warn }: Messages,
): Promise<AgainstResult> {
  const { compareTwoModels, openComparedModel, shorterContext } = await import(
    '../engine/compare/compare-outputs.js'
  );
  const opened = request.otherWay ? undefined : await openComparedModel(source, own, display);
  try {
    const other = opened ?? own;
    await warn(opened?.warnings ?? []);
    if (isSeedGiven && request.ids !== undefined && own.checkpoint && other.checkpoint) {
      await warn([idleSeed(own.loaded)]);
    }
    const ids = await givenIds(request, shorterContext(own.loaded.model, other.loaded.model));
    const against = await compareTwoModels(own, other, { ...request, ids }, display);
    const { file, family, checkpoint } = against.own;
    const { batch, context } = against;
    const schema = 'minimind/quick-test@1';
    return { schema, file, family, checkpoint, batch, context, against };
  } finally {
    opened?.checkpoint?.close();
  }
}

/** Shape of every step, without running one. */
export async function traceModel(
  { file, family, model }: ModelFile,
  { batch, context, ...input }: Omit<GivenInput, 'seed'>,
): Promise<TraceResult> {
  const { traceOf } = await import('../model/budget/trace/trace.js');
  const { lossStepsOf } = await import('../model/budget/trace/loss-steps.js');
  const size = inputSize({ batch, context, ids: await givenIds(input, model) }, model);
  return {
    schema: 'minimind/quick-test@1',
    file,
    family: family.name,
    batch: size.batch,
    context: size.tokens,
    trace: traceOf(model, size),
    loss: lossStepsOf(model, size),
  };
}

/** The model, its weights and its input. */
async function testedModel(
  { loaded: { family, document, model }, checkpoint }: ComparedModel,
  { batch, context, seed, ...input }: GivenInput,
): Promise<TestedModel> {
  const weights = checkpoint && checkpointWeights(model, checkpoint);
  const ids = await givenIds(input, model);
  return { family, document, model, weights, ids, batch, context, seed };
}

/** Limit of a file of ids: two million or more, which exceeds any test. */
const IDS_READ = { most: 16_000_000, suggestion: 'give fewer sequences' };

/** The given ids, or those of the given file. */
async function givenIds(
  { ids }: Pick<GivenInput, 'ids'>,
  model: LanguageModel,
): Promise<TokenIds | undefined> {
  if (ids === undefined) return undefined;
  const limits = idLimitsOf(model);
  const listed = listedIds(ids, limits.vocabulary);
  if (listed) return parseIds(JSON.stringify([listed]), setting('ids'), limits);
  return parseIds(await readText(ids, IDS_READ), ids, limits);
}

const ranFile = ({ loaded: { file, family }, checkpoint }: ComparedModel) => ({
  schema: 'minimind/quick-test@1' as const,
  file,
  family: family.name,
  checkpoint: checkpoint?.path ?? null,
});

/** Warning about a seed without an effect. It is not an error, because scripts give a seed for all models. */
const idleSeed = ({ file }: ModelFile): Problem => ({
  severity: 'warning',
  file,
  message: `${setting('seed')} is not used: the weights are those of the checkpoint, and the tokens those of ${setting('ids')}`,
});
