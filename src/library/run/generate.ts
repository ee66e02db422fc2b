/** `generate` as a function: text from a model. */
import { usageError } from '../../base/errors.js';
import { CACHE_TYPES, type CacheType } from '../../base/tensor/dtype.js';
import { refuseHub } from '../../input/hub/needs-download.js';
import type { GenerationRequest } from '../../language/generation/open-generation.js';
import type { PromptSource } from '../../language/generation/prompts.js';
import type { GenerateResult, ReportedAnswer } from '../../language/generation/session.js';
import { type AnswerNotes, withNotes } from '../answer.js';
import { checkOptions, type OptionKinds, requireReference, type ValueKind } from '../arguments.js';
import { silent } from '../warnings.js';
import { type EngineOptions, engineKinds, engineOf, SEED, WEIGHT_FORM } from './engine-options.js';
import { openModelWithWeights, WEIGHT_KINDS, type WeightOptions } from './evaluate.js';

export interface GenerateOptions extends WeightOptions, EngineOptions {
  /** The text to continue or to answer; one of `prompt` and `ids`. */
  readonly prompt?: string | undefined;
  /** Token ids in place of a text. */
  readonly ids?: readonly number[] | undefined;
  /** Whether the prompt is answered with the chat template of the model. */
  readonly chat?: boolean | undefined;
  /** System message of a chat. */
  readonly system?: string | undefined;
  /** tokenizer.json. Default: the one in the folder of the model. */
  readonly tokenizer?: string | undefined;
  /** Default: as in generation_config.json, or 256. */
  readonly maxTokens?: number | undefined;
  /** Tokens of prompt and answer together. */
  readonly context?: number | undefined;
  /** Divisor of the logits; 0 takes the likeliest token. Default: as in generation_config.json, or 0. */
  readonly temperature?: number | undefined;
  readonly topK?: number | undefined;
  readonly topP?: number | undefined;
  readonly minP?: number | undefined;
  readonly repetitionPenalty?: number | undefined;
  /** Type to which cached keys and values are rounded, as in llama.cpp. Default: float32. */
  readonly cacheType?: CacheType | undefined;
  /** Texts that end an answer. */
  readonly stop?: readonly string[] | undefined;
  /** Seed of the draws, and of random weights. Default: 0. */
  readonly seed?: number | undefined;
  /** Quantization of the matrices at load. */
  readonly weights?: GenerationRequest['weightForm'];
  /** Likeliest tokens to report at each position. */
  readonly logprobs?: number | undefined;
  /** Called with each part of the text. */
  readonly onText?: ((part: string) => void) | undefined;
}

const TEXT_WATCHER: ValueKind = {
  expected: 'a function',
  is: (value) => typeof value === 'function',
};

const GENERATE_KINDS: OptionKinds<Omit<GenerateOptions, keyof EngineOptions>> = {
  ...WEIGHT_KINDS,
  prompt: 'text',
  ids: 'list',
  chat: 'flag',
  system: 'text',
  tokenizer: 'text',
  maxTokens: 'count',
  context: 'count',
  temperature: 'amount',
  topK: 'amount',
  topP: 'amount',
  minP: 'amount',
  repetitionPenalty: 'amount',
  cacheType: CACHE_TYPES,
  stop: 'list',
  seed: SEED,
  weights: WEIGHT_FORM,
  logprobs: 'amount',
  onText: TEXT_WATCHER,
};

/** Tokens of a draft by default. */
export const DEFAULT_DRAFT_TOKENS = 4;

/**
 * Continues a prompt, or answers it.
 * @param reference A checkpoint, or a config with `checkpoint` or `random`.
 * @throws UserError when the model cannot be read, or no tokenizer reads the prompt; and for `hf:ORG/NAME`, whose weights
 * are not on disk.
 */
export async function generate(
  reference: string,
  options: GenerateOptions = {},
): Promise<GenerateResult & AnswerNotes> {
  requireReference(reference, 'generate');
  checkOptions('generate', options, { ...GENERATE_KINDS, ...(await engineKinds()) });
  for (const each of [reference, options.checkpoint]) refuseHub('generate', each);
  const request = requestOf(options);
  const side = await openModelWithWeights(reference, options);
  try {
    const { openGeneration } = await import('../../language/generation/open-generation.js');
    const surroundings = silent();
    const generation = await openGeneration(side, request, surroundings);
    try {
      const answers: ReportedAnswer[] = [];
      for (const ids of generation.prompts) {
        const watch = async (part: string) => options.onText?.(part);
        answers.push(await generation.session.answer(ids, { watch, isStopped: () => false }));
      }
      const warnings = [...side.warnings, ...surroundings.warnings];
      return withNotes({ ...generation.head, answers }, { warnings });
    } finally {
      await generation.close();
    }
  } finally {
    side.close();
  }
}

function requestOf(options: GenerateOptions): GenerationRequest {
  const { prompt, ids } = options;
  if ((prompt === undefined) === (ids === undefined)) {
    throw usageError(
      `expected one of prompt and ids, found ${prompt === undefined ? 'none' : 'both'}`,
      'give a text, or token ids',
    );
  }
  const source: PromptSource =
    ids === undefined ? { kind: 'text', text: prompt ?? '' } : { kind: 'ids', ids: ids.join(',') };
  const { temperature, topK, topP, minP, repetitionPenalty, maxTokens } = options;
  return {
    source,
    isChat: options.chat ?? false,
    system: options.system,
    tokenizer: options.tokenizer,
    settings: { temperature, topK, topP, minP, repetitionPenalty, maxTokens },
    context: options.context,
    stops: options.stop ?? [],
    seed: options.seed,
    weightForm: options.weights,
    cacheType: options.cacheType,
    topLogprobs: options.logprobs ?? 0,
    explained: 0,
    draft: undefined,
    draftTokens: DEFAULT_DRAFT_TOKENS,
    against: undefined,
    wish: engineOf(options, options.weights),
  };
}
