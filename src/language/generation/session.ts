/** A model that is loaded for answers: prompts in, answers with all their figures out. */

import { type UserError, usageError } from '../../base/errors.js';
import type { CacheType } from '../../base/tensor/dtype.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { Decoder } from '../../engine/decoder.js';
import type { Engine, EngineInfo, Program } from '../../engine/engine.js';
import type { EngineRequest } from '../../engine/select/devices.js';
import { chooseEngineFor } from '../../engine/select/devices.js';
import { nonFiniteLogits } from '../../engine/weights/non-finite-weights.js';
import { refuseWeightForm } from '../../engine/weights/quantized-weights.js';
import type { WeightSource } from '../../engine/weights/weights.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { TextTokenizer } from '../tokenizer/tokenizer.js';
import { TextStream } from '../tokenizer/tokenizer.js';
import type { Answer, AnswerEnd, AnswerFigures, Draft, GeneratedToken } from './generate-tokens.js';
import { answerTo, compareAnswer, lookupDraft, modelDraft, plainSpeed } from './generate-tokens.js';
import type { SamplingSettings, SamplingStage, TokenDistribution } from './sampling.js';
import { NonFiniteLogits } from './sampling.js';

// Models loaded for generation on one engine.

export interface ModelToOpen {
  readonly model: LanguageModel;
  readonly weights: WeightSource;
  /** Quantization of the matrices; float32 when absent. */
  readonly form?: WeightForm | undefined;
  /** Type of cached keys and values; float32 when absent. */
  readonly cacheType?: CacheType | undefined;
}

/** Refuses models that do not fit into memory, before they are loaded. */
export type MemoryCheck = (
  models: readonly Pick<ModelToOpen, 'model' | 'form'>[],
  totalTokens: number,
  info: EngineInfo,
) => void;

export interface OpenModels {
  readonly info: EngineInfo;
  /** One decoder factory for each model, in order: a new sequence with each call. */
  readonly sequences: readonly (() => Decoder)[];
  close(): Promise<void>;
}

/**
 * Loads models for sequences of up to `totalTokens` tokens.
 * @throws UserError when no engine can run them.
 */
async function openModels(
  models: readonly ModelToOpen[],
  totalTokens: number,
  wish: EngineRequest,
  notice: (text: string) => void,
  checkMemory: MemoryCheck,
): Promise<OpenModels> {
  const size = { batch: 1, tokens: totalTokens };
  const toRun = { models: models.map(({ model }) => model), ...size };
  const { engine } = await chooseEngineFor(toRun, wish, notice);
  const programs: Program[] = [];
  try {
    checkMemory(models, totalTokens, engine.info);
    for (const { model, weights, form, cacheType } of models) {
      if (form) refuseWeightForm(engine.info);
      const options = { blocks: false, weightForm: form, decoding: { totalTokens, cacheType } };
      programs.push(await engine.load(model, weights, options));
    }
  } catch (error) {
    await closeAll(engine, programs);
    throw error;
  }
  return {
    info: engine.info,
    sequences: programs.map((program) => () => new Decoder(program)),
    close: () => closeAll(engine, programs),
  };
}

async function closeAll(engine: Engine, programs: readonly Program[]): Promise<void> {
  for (const program of programs) await program.release();
  await engine.close();
}

const sessionVocabulary = ({ embedding }: LanguageModel): number => embedding.weight.shape[0] ?? 0;

/**
 * Tokens that a sequence can have.
 * @param prompt Tokens of the longest prompt.
 * @param context Limit that the user gave.
 * @throws UserError when the model has fewer positions, or the prompt leaves no room for an answer.
 */
export function contextFor(
  { positions }: Pick<LanguageModel, 'positions'>,
  prompt: number,
  maxTokens: number,
  context: number | undefined,
): number {
  if (context !== undefined && context > positions) {
    throw usageError(
      `${setting('context')}: expected at most ${formatInteger(positions)} tokens, the positions of the model, found ${formatInteger(context)}`,
      `write ${setting('context', positions)}, or less`,
    );
  }
  const most = context ?? positions;
  if (prompt < most) return Math.min(most, prompt + maxTokens);
  const limit = context === undefined ? 'the positions of the model' : setting('context');
  throw usageError(
    `expected a prompt below ${counted(most, 'token')} (${limit}), found ${formatInteger(prompt)}`,
    'give a shorter prompt',
  );
}

/** A draft: a model, or the longest end of the text that is looked up in it. */
export type DraftSource =
  | { readonly kind: 'model'; readonly name: string; readonly model: ModelToOpen }
  | { readonly kind: 'lookup'; readonly name: string; readonly longest: number };

export interface SessionRequest {
  readonly model: ModelToOpen;
  readonly tokenizer: TextTokenizer | undefined;
  readonly settings: SamplingSettings;
  readonly maxTokens: number;
  /** Most tokens of a sequence: prompt and answer. */
  readonly context: number;
  readonly stopIds: readonly number[];
  readonly stopStrings: readonly string[];
  readonly seed: number;
  readonly topLogprobs: number;
  readonly explained: number;
  readonly draft: { readonly source: DraftSource; readonly tokens: number } | undefined;
  readonly against: { readonly name: string; readonly model: ModelToOpen } | undefined;
  readonly wish: EngineRequest;
  readonly notice: (text: string) => void;
  readonly checkMemory: MemoryCheck;
}

// The answer as it is reported. Texts are null without a tokenizer.

export interface NamedToken {
  /** Id of the token. @count */
  readonly id: number;
  /** Its text; null without a tokenizer. */
  readonly text: string | null;
}

interface LikelyToken extends NamedToken {
  /** Probability of the token. @minimum 0 @maximum 1 */
  readonly probability: number;
}

/** Distribution of a token at one stage of its sampling. */
export interface ReportedStage {
  /** Name of the stage. */
  readonly name: SamplingStage['name'];
  /** Number of tokens with a positive probability. @integer @minimum 1 */
  readonly kept: number;
  /** The likeliest tokens of the model's distribution, and of this one. */
  readonly top: readonly LikelyToken[];
}

export interface ReportedToken extends NamedToken {
  /** Logarithm of the probability before any filter. */
  readonly logprob: number;
  /** Probability in the distribution from which it was drawn. @minimum 0 @maximum 1 */
  readonly probability: number;
  /** The likeliest tokens, as many as `--logprobs` asks for. */
  readonly top: readonly (NamedToken & {
    /** Logarithm of the probability before any filter. */
    readonly logprob: number;
  })[];
  /** Distribution at each stage; null without `--explain-sampling`. */
  readonly sampling: readonly ReportedStage[] | null;
}

export interface ReportedAnswer {
  /** The prompt. */
  readonly prompt: {
    /** Text of the prompt; null without a tokenizer. */
    readonly text: string | null;
    /** Its token ids. @count */
    readonly ids: readonly number[];
  };
  /** The answer without stop strings and special tokens; null without a tokenizer. */
  readonly text: string | null;
  /** Token ids of the answer. @count */
  readonly ids: readonly number[];
  readonly ended: AnswerEnd;
  /** Figures of the answer. */
  readonly figures: AnswerFigures;
  /** Tokens of the answer. */
  readonly tokens: readonly ReportedToken[];
  /** Speculative decoding; null without `--draft`. */
  readonly draft: ReportedDraft | null;
  /** Comparison with another model; null without `--against`. */
  readonly against: ReportedComparison | null;
}

export interface ReportedDraft {
  /** Model or n-gram that drafts, as the user wrote it. */
  readonly by: string;
  /** Tokens of a draft, at most. @integer @minimum 1 */
  readonly tokens: number;
  /** Tokens proposed and accepted at each position of a draft. @count */
  readonly proposed: readonly number[];
  /** Tokens accepted at each position of a draft. @count */
  readonly accepted: readonly number[];
  /** Calls of the model after the prompt. @count */
  readonly calls: number;
  /** Speed of the same tokens one by one. */
  readonly tokensPerSecondWithout: number | null;
}

export interface ReportedComparison {
  /** The other model as the user wrote it. */
  readonly other: string;
  /** Compared tokens. @count */
  readonly tokens: number;
  /** Tokens that are also the other model's likeliest. @count */
  readonly same: number;
  /** The first places where the other model prefers another token. */
  readonly partings: readonly {
    /** Place in the answer, from 0. @count */
    readonly position: number;
    /** Token of the answer. */
    readonly own: LikelyToken;
    /** Token of the other model. */
    readonly other: LikelyToken;
  }[];
}

/** Watches one answer. */
export interface AnswerWatch {
  readonly watch: (part: string) => void | Promise<void>;
  readonly isStopped?: () => boolean;
}

/** Last tokens of the prompt that are decoded with the answer: some decoders drop the space before the first token. */
const TOKENS_BEFORE = 6;

/** Number of reported tokens of a distribution. */
const REPORTED_TOKENS = 8;

export class GenerationSession {
  readonly #request: SessionRequest;
  readonly #models: OpenModels;
  /** Decoder that each prompt continues if it begins with the same tokens, such as the next message of a chat. */
  readonly #decoder: Decoder;
  readonly #draft: Draft | undefined;
  readonly #other: Decoder | undefined;

  private constructor(request: SessionRequest, models: OpenModels) {
    this.#request = request;
    this.#models = models;
    const { draft, against } = request;
    const decoders = models.sequences.map((open) => open());
    const [own, ...others] = decoders;
    if (own === undefined) throw new Error('no model was opened');
    this.#decoder = own;
    if (draft?.source.kind === 'lookup') this.#draft = lookupDraft(draft.source.longest);
    if (draft?.source.kind === 'model') {
      const drafting = others.shift();
      this.#draft = drafting && modelDraft(drafting);
    }
    if (against) this.#other = others.shift();
  }

  /**
   * Loads the models.
   * @throws UserError when an engine cannot run them, or their vocabularies differ.
   */
  static async open(request: SessionRequest): Promise<GenerationSession> {
    const { model, draft, against, context, wish, notice, checkMemory } = request;
    const source = draft?.source;
    if (source?.kind === 'model') refuseOtherVocabulary(setting('draft'), model, source.model);
    if (against) refuseOtherVocabulary(setting('against'), model, against.model);
    const others = [
      ...(source?.kind === 'model' ? [source.model] : []),
      ...(against ? [against.model] : []),
    ];
    const models = await openModels([model, ...others], context, wish, notice, checkMemory);
    return new GenerationSession(request, models);
  }

  get engine(): EngineInfo {
    return this.#models.info;
  }

  /**
   * Answers a prompt.
   * @param ids At least one token, fewer than the context.
   */
  async answer(ids: readonly number[], { watch, isStopped }: AnswerWatch): Promise<ReportedAnswer> {
    const { tokenizer, stopStrings, context, draft } = this.#request;
    const sink =
      tokenizer &&
      new TextStream(tokenizer, { before: ids.slice(-TOKENS_BEFORE), stops: stopStrings });
    const answering = answerTo(this.#decoder, ids, {
      settings: this.#request.settings,
      maxTokens: Math.min(this.#request.maxTokens, context - ids.length),
      stopIds: new Set(this.#request.stopIds),
      seed: this.#request.seed,
      topLogprobs: this.#request.topLogprobs,
      explained: this.#request.explained,
      draft: this.#draft && draft && { by: this.#draft, tokens: draft.tokens },
      sink,
      watch: (part, token) => watch(tokenizer ? part : token ? `${token.id} ` : ''),
      ...(isStopped && { isStopped }),
    });
    const answer = await answering.catch((error) => {
      throw error instanceof NonFiniteLogits ? this.#causeOfNonFinite() : error;
    });
    return {
      prompt: { text: tokenizer?.decode(ids, { special: true }) ?? null, ids },
      text: answer.text,
      ids: answer.tokens.map(({ id }) => id),
      ended: answer.ended,
      figures: answer.figures,
      tokens: answer.tokens.map((token) => this.#reported(token)),
      draft: await this.#draftReport(answer),
      against: await this.#comparison(answer),
    };
  }

  #causeOfNonFinite(): UserError {
    const { model, draft } = this.#request;
    const drafting = draft?.source.kind === 'model' ? [draft.source.model] : [];
    return nonFiniteLogits([model, ...drafting], this.engine.compute);
  }

  close(): Promise<void> {
    return this.#models.close();
  }

  #named(id: number): NamedToken {
    return { id, text: this.#request.tokenizer?.decode([id], { special: true }) ?? null };
  }

  #reported({ id, logprob, probability, top, stages }: GeneratedToken): ReportedToken {
    const first = stages?.[0]?.distribution;
    return {
      ...this.#named(id),
      logprob,
      probability,
      top: top.map((each) => ({ ...this.#named(each.id), logprob: each.logprob })),
      sampling:
        stages?.map(({ name, distribution }) => ({
          name,
          kept: distribution.probabilities.filter((each) => each > 0).length,
          top: this.#likeliest(distribution, first ?? distribution),
        })) ?? null,
    };
  }

  /** Probabilities of the likeliest tokens of `reference`. */
  #likeliest(distribution: TokenDistribution, reference: TokenDistribution): LikelyToken[] {
    const { ids, probabilities } = reference;
    const order = Array.from(ids.keys()).sort(
      (a, b) => (probabilities[b] ?? 0) - (probabilities[a] ?? 0) || a - b,
    );
    const known = new Map(
      Array.from(distribution.ids, (id, at) => [id, distribution.probabilities[at] ?? 0] as const),
    );
    return order.slice(0, REPORTED_TOKENS).map((at) => {
      const id = ids[at] ?? 0;
      return { ...this.#named(id), probability: known.get(id) ?? 0 };
    });
  }

  async #draftReport(answer: Answer): Promise<ReportedDraft | null> {
    const { draft } = this.#request;
    if (!draft || !answer.acceptance) return null;
    const { proposed, accepted, calls } = answer.acceptance;
    return {
      by: draft.source.name,
      tokens: draft.tokens,
      proposed,
      accepted,
      calls,
      tokensPerSecondWithout:
        answer.ended === 'stopped' ? null : await plainSpeed(this.#decoder, answer),
    };
  }

  async #comparison(answer: Answer): Promise<ReportedComparison | null> {
    const { against } = this.#request;
    if (!against || !this.#other || answer.ended === 'stopped') return null;
    const { tokens, same, partings } = await compareAnswer(this.#other, answer);
    return {
      other: against.name,
      tokens,
      same,
      partings: partings.map(({ position, own, other }) => ({
        position,
        own: { ...this.#named(own.id), probability: own.probability },
        other: { ...this.#named(other.id), probability: other.probability },
      })),
    };
  }
}

function refuseOtherVocabulary(flag: string, { model }: ModelToOpen, other: ModelToOpen): void {
  const [own, given] = [sessionVocabulary(model), sessionVocabulary(other.model)];
  if (own === given) return;
  throw usageError(
    `${flag}: expected a model with a vocabulary of ${own} tokens, found one of ${given}`,
    'give a model that was trained with the same tokenizer',
  );
}

/**
 * Answers of a model to prompts.
 * @answer minimind generate --json
 */
export interface GenerateResult {
  readonly schema: 'minimind/generate@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Checkpoint of the weights; null when they are random. */
  readonly checkpoint: string | null;
  /** Origin of the weights. */
  readonly weights: 'checkpoint' | 'random';
  /** Quantization of the matrices; null for float32. */
  readonly weightForm: WeightForm | null;
  /** Path of the tokenizer.json; null without one. */
  readonly tokenizer: string | null;
  /** Type to which cached keys and values are rounded; null for float32. */
  readonly cacheType: CacheType | null;
  /** Whether the prompt was made with the chat template. */
  readonly chat: boolean;
  readonly engine: EngineInfo;
  /** Most tokens of prompt and answer together. @integer @minimum 1 */
  readonly context: number;
  /** Settings of the sampling. */
  readonly sampling: SamplingSettings & {
    /** Seed of the draws. @count */
    readonly seed: number;
    /** Limit of an answer. @integer @minimum 1 */
    readonly maxTokens: number;
    /** Settings of generation_config.json that were used. */
    readonly fromFile: readonly string[];
  };
  /** Ends of an answer. */
  readonly stop: {
    /** Token ids that end an answer. @count */
    readonly ids: readonly number[];
    /** Texts that end an answer. */
    readonly strings: readonly string[];
  };
  /** Time to load the model. @minimum 0 */
  readonly loadMilliseconds: number;
  /** An answer for each prompt. */
  readonly answers: readonly ReportedAnswer[];
}
