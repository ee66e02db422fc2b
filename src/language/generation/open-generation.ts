/** Prepares a generation: settings, prompts as token ids, and the loaded models. */
import { type Problem, usageError } from '../../base/errors.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import type { CacheType } from '../../base/tensor/dtype.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { setting } from '../../base/text/setting.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { refuseCacheType } from '../../engine/cache-types.js';
import type { ComparedModel } from '../../engine/compare/compare-outputs.js';
import { refuseDecoding, usableBytes } from '../../engine/memory.js';
import type { EngineRequest } from '../../engine/select/devices.js';
import { checkpointWeights, randomWeights } from '../../engine/weights/weights.js';
import { foldersOf } from '../../input/model-input/checkpoint/weighted-model.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { openModelText } from '../tokenizer/model-text.js';
import type { ChosenSettings, GivenSettings } from './defaults.js';
import { chooseSettings, refuseUnsampled } from './defaults.js';
import type { PromptReader, PromptSource } from './prompts.js';
import { promptsFrom } from './prompts.js';
import type { DraftSource, GenerateResult, ModelToOpen } from './session.js';
import { contextFor, GenerationSession } from './session.js';

/** Maximum tokens of a conversation on a terminal, if the model has more positions. */
const CONVERSATION_CONTEXT = 4096;

export interface GenerationRequest {
  readonly source: PromptSource;
  readonly isChat: boolean;
  readonly system: string | undefined;
  /** File of the tokenizer; undefined for that in the folder of the model. */
  readonly tokenizer: string | undefined;
  readonly settings: GivenSettings;
  /** Tokens of prompt and answer together; undefined for as many as they need. */
  readonly context: number | undefined;
  /** Texts that end an answer. */
  readonly stops: readonly string[];
  /** Seed of the draws, and of random weights. */
  readonly seed: number | undefined;
  readonly weightForm: WeightForm | undefined;
  /** Type of cached keys and values; undefined for float32. */
  readonly cacheType: CacheType | undefined;
  /** Number of likeliest tokens to report at each position. */
  readonly topLogprobs: number;
  /** Number of first tokens whose sampling is reported. */
  readonly explained: number;
  /** Draft: a model, or `ngram:N`. */
  readonly draft: string | undefined;
  readonly draftTokens: number;
  /** A model to compare with. */
  readonly against: string | undefined;
  readonly wish: EngineRequest;
}

/** The loaded models with their prompts. */
export interface Generation {
  readonly session: GenerationSession;
  readonly reader: PromptReader;
  /** Empty for a conversation. */
  readonly prompts: readonly (readonly number[])[];
  /** The result without its answers. */
  readonly head: Omit<GenerateResult, 'answers'>;
  readonly close: () => Promise<void>;
}

interface Messages {
  readonly display: ProgressDisplay;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/**
 * Reads the prompts and loads the models. The caller closes the result, and then the model.
 * @throws UserError for settings without an effect, a prompt that is not valid, or models that cannot run.
 */
export async function openGeneration(
  side: ComparedModel,
  request: GenerationRequest,
  messages: Messages,
): Promise<Generation> {
  const folders = foldersOf(side);
  const text = await openModelText(folders, request.tokenizer);
  const settings = chooseSettings(request.settings, text.generation);
  // A seed of random weights always has an effect.
  refuseUnsampled(request.settings, side.checkpoint && request.seed, settings.sampling);
  await messages.warn(settings.warnings);
  const { isChat, system, source } = request;
  const { model } = side.loaded;
  const reader: PromptReader = { folders, text, isChat, system, positions: model.positions };
  if (request.cacheType) refuseCacheType(model, request.cacheType);
  const prompts = await promptsFrom(source, reader, model);
  const context = contextOf(model, prompts, settings, request);
  if (request.stops.length > 0 && !text.tokenizer) throw stopWithoutText();
  const start = performance.now();
  const { session, close } = await openSession(side, reader, settings, context, request, messages);
  const milliseconds = performance.now() - start;
  const head = headOf(side, reader, settings, session, request, { context, milliseconds });
  return { session, reader, prompts, head, close };
}

function contextOf(
  model: LanguageModel,
  prompts: readonly (readonly number[])[],
  { maxTokens }: ChosenSettings,
  { source, context }: GenerationRequest,
): number {
  const longest = Math.max(1, ...prompts.map((ids) => ids.length));
  if (source.kind !== 'talk') return contextFor(model, longest, maxTokens, context);
  const wanted = context ?? Math.min(model.positions, CONVERSATION_CONTEXT);
  return contextFor(model, longest, Number.POSITIVE_INFINITY, wanted);
}

/** Loads the model, and those of a draft and a comparison, whose checkpoints `close` closes too. */
async function openSession(
  side: ComparedModel,
  { text }: PromptReader,
  { sampling, maxTokens }: ChosenSettings,
  context: number,
  request: GenerationRequest,
  { display, warn }: Messages,
): Promise<Pick<Generation, 'session' | 'close'>> {
  const { draft, draftTokens, against, seed = 0 } = request;
  const others: (Checkpoint | undefined)[] = [];
  const closeOthers = () => {
    for (const checkpoint of others) checkpoint?.close();
  };
  const other = async (source: string) => {
    const { openComparedModel } = await import('../../engine/compare/compare-outputs.js');
    const found = await openComparedModel(source, side, display);
    others.push(found.checkpoint);
    await warn(found.warnings);
    return weighted(found, seed);
  };
  const steps = display.steps();
  steps.doing('loading the model');
  try {
    const session = await GenerationSession.open({
      model: {
        ...weighted(side, seed),
        form: request.weightForm,
        cacheType: request.cacheType,
      },
      tokenizer: text.tokenizer,
      settings: sampling,
      maxTokens,
      context,
      stopIds: text.endIds,
      stopStrings: request.stops,
      seed,
      topLogprobs: request.topLogprobs,
      explained: request.explained,
      draft:
        draft === undefined
          ? undefined
          : { source: await draftSource(draft, other), tokens: draftTokens },
      against: against === undefined ? undefined : { name: against, model: await other(against) },
      wish: request.wish,
      notice: steps.say,
      checkMemory: (models, tokens, info) =>
        refuseDecoding(models, tokens, info, usableBytes(info)),
    });
    return { session, close: () => session.close().finally(closeOthers) };
  } catch (error) {
    closeOthers();
    throw error;
  } finally {
    steps.end();
  }
}

const weighted = ({ loaded: { model }, checkpoint }: ComparedModel, seed: number): ModelToOpen => ({
  model,
  weights: checkpoint ? checkpointWeights(model, checkpoint) : randomWeights(model, seed),
});

/** The source of drafts that the user names. @throws UserError for a lookup without a length. */
async function draftSource(
  source: string,
  open: (source: string) => Promise<ModelToOpen>,
): Promise<DraftSource> {
  const lookup = /^ngram(?::(.*))?$/.exec(source);
  if (lookup === null) return { kind: 'model', name: source, model: await open(source) };
  const [, length] = lookup;
  const longest = Number(length);
  if (Number.isSafeInteger(longest) && longest > 0)
    return { kind: 'lookup', name: source, longest };
  throw usageError(
    `${setting('draft')}: expected ngram:N with N from 1 on, found ${source}`,
    `write ${setting('draft', 'ngram:3')}`,
  );
}

function headOf(
  { loaded, checkpoint }: ComparedModel,
  { text, isChat }: PromptReader,
  { sampling, maxTokens, fromFile }: ChosenSettings,
  { engine }: GenerationSession,
  { seed = 0, stops, weightForm, cacheType }: GenerationRequest,
  { context, milliseconds }: { readonly context: number; readonly milliseconds: number },
): Generation['head'] {
  return {
    schema: 'minimind/generate@1',
    file: loaded.file,
    family: loaded.family.name,
    checkpoint: checkpoint?.path ?? null,
    weights: checkpoint ? 'checkpoint' : 'random',
    weightForm: weightForm ?? null,
    cacheType: cacheType ?? null,
    tokenizer: text.tokenizer?.file ?? null,
    chat: isChat,
    engine,
    context,
    sampling: { ...sampling, seed, maxTokens, fromFile },
    stop: { ids: text.endIds, strings: stops },
    loadMilliseconds: milliseconds,
  };
}

const stopWithoutText = () =>
  usageError(
    `${setting('stop')} requires a tokenizer, found none: the answer is token ids`,
    `name one with ${setting('tokenizer', 'FILE')}, or leave ${setting('stop')} out`,
  );
