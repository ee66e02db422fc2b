/** Checks of the data: its amount, repetition, tokenizer and lengths. */
import { formatInteger, percentText, shortCount, shortNumber } from '../../../base/text/units.js';
import type { RunSize } from '../run-size.js';
import { OPTIMAL_TOKENS_PER_PARAMETER, worthOfRepeated } from '../run-size.js';
import type { TrainingValues } from '../training-settings.js';
import type { PlanCheck } from './plan-check.js';

/** Epochs up to which repeated data is nearly as good as new data (Muennighoff et al. 2023, arXiv 2305.16264). */
const MOST_EPOCHS = 4;

/** The optimum less a tenth: a round number of tokens near it is not a mistake. */
const FEWEST_TOKENS_PER_PARAMETER = 0.9 * OPTIMAL_TOKENS_PER_PARAMETER;

/** Rows of an embedding beyond the tokenizer that padding to a multiple of 128 explains. */
const PADDED_ROWS = 128;

/** Whether the stage trains a model from the start. */
const isPretraining = ({ stage }: TrainingValues) =>
  stage === undefined || /^pre-?_?train/i.test(stage);

/** Largest batch whose step stays within a number of tokens; at least one sequence. */
function smallerBatch(size: RunSize, tokens: number): string {
  const { context, filled, gpus, replicas, microBatch, accumulation } = size;
  const sequences = Math.max(1, Math.floor((tokens / (context * filled)) * (1 + 1e-12)));
  const steps = Math.floor(sequences / (microBatch * replicas));
  if (steps >= 1) return `gradient_accumulation_steps: ${steps}`;
  return [
    `batch_size: ${Math.max(1, Math.floor(sequences / replicas))}`,
    ...(accumulation === 1 ? [] : ['gradient_accumulation_steps: 1']),
    ...(sequences < replicas ? [`gpus: ${(sequences * gpus) / replicas}`] : []),
  ].join(', ');
}

/** In the order of the answer. */
export const DATA_CHECKS = {
  'few-tokens': {
    title: 'few tokens for the model',
    severity: 'warning',
    key: 'total_tokens',
    others: ['max_steps', 'num_epochs', 'dataset_tokens'],
    find: ({ settings: { values }, size, parameters }) =>
      size.length === 'default' ||
      size.tokensPerParameter >= FEWEST_TOKENS_PER_PARAMETER ||
      !isPretraining(values)
        ? undefined
        : {
            reason: `${shortNumber(size.tokensPerParameter)} tokens a parameter; 20 is the best use of compute (Chinchilla, arXiv 2203.15556)`,
            fix: `total_tokens: ${shortNumber(OPTIMAL_TOKENS_PER_PARAMETER * parameters)}, or stage: sft after a pre-training`,
          },
  },
  'data-repeated': {
    title: 'data repeated too often',
    severity: 'warning',
    key: 'num_epochs',
    others: ['total_tokens', 'max_steps', 'dataset_tokens'],
    find: ({ size: { epochs, dataTokens } }) =>
      epochs === undefined || dataTokens === undefined || epochs <= MOST_EPOCHS * (1 + 1e-9)
        ? undefined
        : {
            reason:
              `${shortCount(dataTokens)} ${dataTokens === 1 ? 'token' : 'tokens'} read ${shortNumber(epochs)} times are worth ${shortCount(Math.round(worthOfRepeated(dataTokens, epochs)))} new tokens; ` +
              'up to 4 epochs are nearly as good as new data (Muennighoff et al., arXiv 2305.16264)',
            fix: `num_epochs: 4, or ${shortCount(Math.ceil((epochs * dataTokens) / MOST_EPOCHS))} tokens of data`,
          },
  },
  'tokenizer-apart': {
    title: 'vocabulary and tokenizer differ',
    severity: 'error',
    key: 'tokenizer_size',
    find: ({ settings: { values }, vocabulary, highestId }) => {
      const { tokenizer_size: size } = values;
      if (highestId !== undefined && highestId >= vocabulary) {
        return {
          key: size === undefined ? 'dataset_tokens' : 'tokenizer_size',
          reason: `the data has ids up to ${formatInteger(highestId)}, and the embedding ${formatInteger(vocabulary)} rows`,
          fix: `model.vocab_size: ${size ?? highestId + 1}, or the tokenizer of this model`,
        };
      }
      if (size === undefined || (size <= vocabulary && vocabulary - size < PADDED_ROWS))
        return undefined;
      return size > vocabulary
        ? {
            reason: `the tokenizer has ${formatInteger(size)} tokens, and the embedding ${formatInteger(vocabulary)} rows: ids from ${formatInteger(vocabulary)} on fail`,
            fix: `model.vocab_size: ${size}`,
          }
        : {
            reason: `the tokenizer has ${formatInteger(size)} tokens: ${formatInteger(vocabulary - size)} of ${formatInteger(vocabulary)} rows of the embedding are never trained`,
            fix: `model.vocab_size: ${size}, or the tokenizer of this model`,
          };
    },
  },
  'context-beyond-data': {
    title: 'context longer than the data',
    severity: 'warning',
    key: 'max_seq_length',
    others: ['longest_sample'],
    find: ({ settings: { values }, size: { context, dataTokens } }) => {
      const longest = values.packing === true ? undefined : values.longest_sample;
      const reach = longest ?? dataTokens;
      if (reach === undefined || context <= reach) return undefined;
      return {
        reason:
          longest === undefined
            ? `a sequence of ${formatInteger(context)} tokens is more than all ${formatInteger(reach)} tokens of the data`
            : `the longest sample has ${formatInteger(reach)} tokens, so ${percentText(1 - reach / context)} or more of each sequence of ${formatInteger(context)} is padding`,
        fix: `max_seq_length: ${reach}${longest === undefined ? '' : ', or packing: true'}`,
      };
    },
  },
  'batch-beyond-data': {
    title: 'batch larger than the data',
    severity: 'warning',
    key: 'batch_size',
    others: ['gradient_accumulation_steps'],
    find: ({ size }) => {
      const { dataTokens, length, tokensPerStep, filled, sequencesPerStep } = size;
      const stepTokens = tokensPerStep * filled;
      const reach = Math.min(
        dataTokens ?? Number.POSITIVE_INFINITY,
        // The user has not named these numbers of tokens.
        length === 'steps' || length === 'default' ? Number.POSITIVE_INFINITY : size.tokens,
      );
      // A single sequence is a matter of the context.
      if (sequencesPerStep === 1 || stepTokens <= reach * (1 + 1e-12)) return undefined;
      return {
        reason:
          `a step has ${shortCount(Math.round(stepTokens))} tokens, ` +
          (reach === dataTokens
            ? `more than the ${shortCount(reach)} of the data`
            : `more than the ${shortCount(reach)} of the training`),
        fix: smallerBatch(size, reach),
      };
    },
  },
} as const satisfies Record<string, PlanCheck>;
