/** The size of a training: tokens, optimizer steps, micro-steps and epochs. */
import { usageError } from '../../base/errors.js';
import { shortCount, shortNumber } from '../../base/text/units.js';
import type { TrainingValues } from './training-settings.js';

/** Tokens per parameter at which a given compute trains the best model (Chinchilla, arXiv 2203.15556). */
export const OPTIMAL_TOKENS_PER_PARAMETER = 20;

/**
 * Small models that were trained far longer, because a small model is cheap to serve: TinyLlama about 3 epochs of 1
 * trillion tokens, Llama 3 over 15 trillion, SmolLM2 about 11 trillion.
 */
export const OVER_TRAINED = [
  { model: 'TinyLlama-1.1B', parameters: 1.1e9, tokens: 3e12, source: 'arXiv 2401.02385' },
  { model: 'Llama-3-8B', parameters: 8.03e9, tokens: 15e12, source: 'arXiv 2407.21783' },
  { model: 'SmolLM2-1.7B', parameters: 1.71e9, tokens: 11e12, source: 'arXiv 2502.02737' },
] as const;

/** Tokens of a step without a batch: those of nanoGPT's training of GPT-2 (train.py: about 0.5M). */
const USUAL_STEP_TOKENS = 2 ** 19;

export type LengthOrigin = 'tokens' | 'steps' | 'epochs' | 'default';

export interface RunSize {
  /** Sequences of a replica at a time. @integer */
  readonly microBatch: number;
  /** Micro-batches of a step on each replica. @integer */
  readonly accumulation: number;
  /** Number of GPUs. @integer */
  readonly gpus: number;
  /** Copies of the model that each have their own sequences. @integer */
  readonly replicas: number;
  /** Tokens of a sequence. @integer */
  readonly context: number;
  /** Micro-batch × accumulation × replicas. @integer */
  readonly sequencesPerStep: number;
  /** Positions of a step, padding included. @integer */
  readonly tokensPerStep: number;
  /** Share of these positions that are tokens: 1 without padding. */
  readonly filled: number;
  /** Optimizer steps. @integer */
  readonly steps: number;
  /** Forward and backward passes of each GPU. @integer */
  readonly microSteps: number;
  /** Tokens of the training. */
  readonly tokens: number;
  /** Tokens ÷ parameters. */
  readonly tokensPerParameter: number;
  /** Tokens of the data; undefined where unknown. */
  readonly dataTokens: number | undefined;
  /** Passes over the data. */
  readonly epochs: number | undefined;
  /** Origin of the length; `default`: 20 tokens a parameter. */
  readonly length: LengthOrigin;
  /** Whether the batch is a default. */
  readonly isUsualBatch: boolean;
}

/**
 * Size of a run. The length is the number of steps, else of tokens, else of epochs, else 20 tokens a parameter.
 * @param replicas Copies of the model; undefined: one for each GPU.
 * @param filled Share of the positions that are tokens, where samples of the data are padded.
 * @param isBatchInFile Whether the file has the batch: then it accumulates nothing that it does not mention.
 * @throws UserError where a count passes 2^53 − 1, up to which counts are exact.
 */
export function runSizeOf(
  values: TrainingValues,
  {
    parameters,
    context,
    gpus = values.gpus ?? 1,
    replicas = gpus,
    filled = 1,
    isBatchInFile = values.batch_size !== undefined,
  }: {
    readonly parameters: number;
    readonly context: number;
    readonly gpus?: number | undefined;
    readonly replicas?: number | undefined;
    readonly filled?: number | undefined;
    readonly isBatchInFile?: boolean;
  },
): RunSize {
  const { batch_size: batch, gradient_accumulation_steps: accumulations } = values;
  const isUsualBatch = batch === undefined && accumulations === undefined;
  const microBatch = batch ?? 1;
  const accumulation =
    accumulations ??
    (!isBatchInFile
      ? Math.max(1, Math.round(USUAL_STEP_TOKENS / (microBatch * context * replicas)))
      : 1);
  const sequencesPerStep = microBatch * accumulation * replicas;
  const tokensPerStep = sequencesPerStep * context;
  const dataTokens = values.dataset_tokens;
  const stepTokens = tokensPerStep * filled;
  requireExact(
    'tokens in a step',
    tokensPerStep,
    'write a smaller batch, accumulation or number of GPUs',
  );
  const { length, steps, tokens } = epochLength(values, { parameters, stepTokens });
  if (tokens < 1) throw NO_TOKENS;
  requireExact(
    'tokens',
    Math.max(tokens, steps * accumulation),
    'write fewer tokens, steps or epochs',
  );
  return {
    microBatch,
    accumulation,
    gpus,
    replicas,
    context,
    sequencesPerStep,
    tokensPerStep,
    filled,
    steps,
    microSteps: steps * accumulation,
    tokens,
    tokensPerParameter: tokens / parameters,
    dataTokens,
    epochs: dataTokens === undefined ? undefined : tokens / dataTokens,
    length,
    isUsualBatch,
  };
}

const NO_TOKENS = usageError(
  'the training: expected at least 1 token, found fewer',
  'write more tokens or epochs',
);

function requireExact(what: string, count: number, suggestion: string): void {
  if (count <= Number.MAX_SAFE_INTEGER) return;
  const most = shortCount(Number.MAX_SAFE_INTEGER);
  throw usageError(
    `the training: expected at most ${most} ${what}, found ${shortNumber(count)}`,
    suggestion,
  );
}

function epochLength(
  { max_steps, total_tokens, num_epochs, dataset_tokens: dataTokens }: TrainingValues,
  { parameters, stepTokens }: { readonly parameters: number; readonly stepTokens: number },
): Pick<RunSize, 'length' | 'steps' | 'tokens'> {
  if (max_steps !== undefined) {
    return { length: 'steps', steps: max_steps, tokens: Math.round(max_steps * stepTokens) };
  }
  const epochTokens =
    dataTokens === undefined || num_epochs === undefined ? undefined : num_epochs * dataTokens;
  const tokens = total_tokens ?? epochTokens ?? OPTIMAL_TOKENS_PER_PARAMETER * parameters;
  const length =
    total_tokens !== undefined ? 'tokens' : epochTokens !== undefined ? 'epochs' : 'default';
  return { length, steps: Math.max(1, stepsFor(tokens, stepTokens)), tokens };
}

/** Steps for a number of tokens, where a rounding error makes no step. */
export const stepsFor = (tokens: number, stepTokens: number): number =>
  Math.ceil((tokens / stepTokens) * (1 - 1e-12));

/** The last accumulation of an epoch, where the sequences of the data do not fill it. */
export interface PartialAccumulation {
  /** Micro-steps of an epoch on each GPU. */
  readonly microSteps: number;
  /** Micro-steps of the last step of an epoch, fewer than the others have. */
  readonly last: number;
}

/** Undefined where the data is unknown, or fills all steps. */
export function partialAccumulation({
  dataTokens,
  filled,
  context,
  microBatch,
  replicas,
  accumulation,
}: RunSize): PartialAccumulation | undefined {
  if (dataTokens === undefined || accumulation === 1) return undefined;
  const microSteps = Math.ceil(
    Math.floor((dataTokens / (context * filled)) * (1 + 1e-12)) / (microBatch * replicas),
  );
  const last = microSteps % accumulation;
  return last === 0 || microSteps < accumulation ? undefined : { microSteps, last };
}

/** Constant of the value of repeated tokens (Muennighoff et al. 2023, arXiv 2305.16264, appendix A: R*_D = 15.387756). */
const REPETITION = 15.387756;

/**
 * Tokens of new data that training on repeated data is worth: U + U · R* · (1 − exp(−R / R*)), with R repetitions after
 * the first epoch.
 */
export function worthOfRepeated(dataTokens: number, epochs: number): number {
  if (epochs <= 1) return dataTokens * epochs;
  return dataTokens * (1 + REPETITION * (1 - Math.exp(-(epochs - 1) / REPETITION)));
}

/** Divisions of a step's sequences into micro-batches, from the largest micro-batch that is a power of two. */
export function accumulationChoices({ sequencesPerStep, gpus, replicas }: RunSize): readonly {
  readonly microBatch: number;
  readonly accumulation: number;
  readonly gpus: number;
}[] {
  const each = sequencesPerStep / replicas;
  const divisors = Array.from(
    { length: Math.min(each, MOST_MICRO_BATCH) },
    (_, index) => index + 1,
  );
  const fitting = divisors.filter((size) => each % size === 0);
  const powers = fitting.filter((size) => Number.isInteger(Math.log2(size)));
  return (powers.length > 2 ? powers : fitting.slice(0, MOST_CHOICES)).map((microBatch) => ({
    microBatch,
    accumulation: each / microBatch,
    gpus,
  }));
}

const MOST_MICRO_BATCH = 1024;
const MOST_CHOICES = 11;
