/** `evaluate` as a function: loss, perplexity and bits per byte of a text. */
import { NO_PROGRESS, type ProgressDisplay } from '../../base/progress-display.js';
import { solveSweep } from '../../base/sweep.js';
import { sumOf } from '../../base/values.js';
import { refuseHub } from '../../input/hub/needs-download.js';
import {
  openWeighted,
  type WeightedModelFile,
} from '../../input/model-input/checkpoint/weighted-model.js';
import type {
  EvaluationInput,
  EvaluationResult,
} from '../../language/evaluation/evaluate-files.js';
import { type AnswerNotes, withNotes } from '../answer.js';
import { checkOptions, type OptionKinds, requireReference } from '../arguments.js';
import { CONFIG_KINDS, type ConfigOptions, overridesOf } from '../models/describe-model.js';
import { type EngineOptions, engineKinds, engineOf, SEED, WEIGHT_FORM } from './engine-options.js';

/** Weights of a model: those of a checkpoint, or random ones. */
export interface WeightOptions extends ConfigOptions {
  /** The checkpoint of a config. */
  readonly checkpoint?: string | undefined;
  /** State dict to read, if a PyTorch file has several. */
  readonly stateDict?: string | undefined;
  /** Whether weights are random. */
  readonly random?: boolean | undefined;
}

/** Kinds of the values of `WeightOptions`. */
export const WEIGHT_KINDS: OptionKinds<WeightOptions> = {
  ...CONFIG_KINDS,
  checkpoint: 'text',
  stateDict: 'text',
  random: 'flag',
};

export interface EvaluateOptions
  extends WeightOptions,
    EngineOptions,
    Pick<EvaluationInput, 'text' | 'ids' | 'tokenizer' | 'context' | 'stride' | 'weights'> {
  /** Token before each window: `auto`, `none` or an id. Default: `auto`. */
  readonly bos?: string | undefined;
  /** Seed of random weights. Default: 0. */
  readonly seed?: number | undefined;
  /** A second checkpoint with the same vocabulary, as the reference. */
  readonly against?: string | undefined;
}

const EVALUATE_KINDS: OptionKinds<Omit<EvaluateOptions, keyof EngineOptions>> = {
  ...WEIGHT_KINDS,
  text: 'text',
  ids: 'text',
  tokenizer: 'text',
  context: 'count',
  stride: 'count',
  weights: WEIGHT_FORM,
  bos: 'text',
  seed: SEED,
  against: 'text',
};

/** Opens a model with weights. The caller closes it. */
export const openModelWithWeights = (
  reference: string,
  { set, family, checkpoint, stateDict, random = false }: WeightOptions,
): Promise<WeightedModelFile> =>
  openWeighted(
    reference,
    { set: overridesOf(set), family, checkpoint, stateDict, random },
    NO_PROGRESS,
  );

/**
 * Scores a text with a model.
 * @param reference A checkpoint, or a config with `checkpoint` or `random`.
 * @throws UserError when the model or the text cannot be read, and for `hf:ORG/NAME`, whose weights are not on disk.
 */
export async function evaluate(
  reference: string,
  options: EvaluateOptions = {},
): Promise<EvaluationResult & AnswerNotes> {
  requireReference(reference, 'evaluate');
  checkOptions('evaluate', options, { ...EVALUATE_KINDS, ...(await engineKinds()) });
  const { against } = options;
  for (const each of [reference, options.checkpoint, against]) refuseHub('evaluate', each);
  const own = await openModelWithWeights(reference, options);
  try {
    const other = against === undefined ? undefined : await openModelWithWeights(against, {});
    try {
      const result = await evaluated({ own, reference: other }, options);
      return withNotes(result, { warnings: [...own.warnings, ...(other?.warnings ?? [])] });
    } finally {
      other?.close();
    }
  } finally {
    own.close();
  }
}

async function evaluated(
  models: Pick<EvaluationInput, 'own' | 'reference'>,
  options: EvaluateOptions,
): Promise<EvaluationResult> {
  const work = await evaluationWork(models, options, NO_PROGRESS);
  return solveSweep(work).finally(work.close);
}

/** The evaluation as work on single windows. Loads the code that runs models. */
export async function evaluationWork(
  models: Pick<EvaluationInput, 'own' | 'reference'>,
  options: Omit<EvaluateOptions, keyof WeightOptions>,
  display: ProgressDisplay,
) {
  const { evaluationOfFiles } = await import('../../language/evaluation/evaluate-files.js');
  const { decodingBytes, refuseDecoding, usableBytes } = await import('../../engine/memory.js');
  return evaluationOfFiles(
    {
      ...models,
      ...options,
      ...engineOf(options, options.weights),
      seed: options.seed ?? 0,
      bos: options.bos ?? 'auto',
      checkMemory: (all, context, info) => refuseDecoding(all, context, info, usableBytes(info)),
      memoryOf: (all, context, info) => sumOf(all, (model) => decodingBytes(model, context, info)),
    },
    display,
  );
}
