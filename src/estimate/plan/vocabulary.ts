/** Vocabularies for a parameter budget: what their rows cost, and what a text costs with them. */

import { UserError, usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import type { Family } from '../../model/architecture/family.js';
import type { Exact } from '../../model/budget/figure.js';
import { forwardFlopsOf, trainingFlopsOf } from '../../model/budget/flops.js';
import { parameterFigures } from '../../model/budget/parameters.js';
import { type PlanRequest, planning } from './plan-models.js';
import type { Searching } from './search.js';
import { ModelSpace, type Sizes } from './space.js';

/** A text, tokenized. */
export interface TokenizedText {
  /** Path of the tokenizer. */
  readonly tokenizer: string;
  /** Size of its vocabulary. @integer */
  readonly vocabulary: number;
  /** Tokens of the text. @integer */
  readonly tokens: number;
  /** Characters of the text. @integer */
  readonly characters: number;
  /** Bytes of the text. @integer */
  readonly bytes: number;
}

export interface VocabularyRow extends TokenizedText {
  /** Tokens per character. */
  readonly tokensPerCharacter: number;
  /** Bytes per token. */
  readonly bytesPerToken: number;
  /** Figures of the model with this vocabulary; null when no model of the budget has it. */
  readonly model: {
    readonly parameters: Exact;
    /** Embedding and head, tied or not. */
    readonly embedding: Exact;
    /** Share of the embedding in all parameters. */
    readonly embeddingShare: number;
    /** FLOPs of a forward pass at the context, per character of the text. */
    readonly forwardFlopsPerCharacter: number;
    /** FLOPs of training per character. */
    readonly trainingFlopsPerCharacter: number;
  } | null;
}

export interface VocabularyComparison {
  /** Body of all rows: the best of the budget with the largest vocabulary that fits. */
  readonly shape: Sizes;
  /** Smallest vocabulary first. */
  readonly rows: readonly VocabularyRow[];
  /** The row with the fewest FLOPs of training per character. */
  readonly best: VocabularyRow;
}

/**
 * Compares vocabularies by counted cost: models with one body, so that only the rows of the embedding and the number of
 * tokens differ.
 * @throws UserError when no vocabulary fits the budget.
 */
export function* comparingVocabularies(
  family: Family,
  request: PlanRequest,
  texts: readonly TokenizedText[],
): Searching<VocabularyComparison> {
  const { dimensions } = family;
  const sorted = texts.toSorted((a, b) => a.vocabulary - b.vocabulary);
  const shape = yield* shapeForLargest(family, request, sorted);
  if (shape === undefined || !dimensions) {
    const smallest = sorted[0]?.vocabulary;
    throw usageError(
      `${setting('tokenizer')}: no vocabulary fits into ${request.maxParameters} parameters`,
      `raise ${setting('maxParameters')}, or give a tokenizer with fewer than ${smallest} tokens`,
    );
  }
  const rows = sorted.map((text) => {
    const space = new ModelSpace(family, dimensions, {
      ...request,
      vocabulary: text.vocabulary,
      context: request.inference.context,
    });
    const model = text.vocabulary <= shape.vocabulary ? space.model(shape.sizes) : undefined;
    return vocabularyRow(text, model, request);
  });
  const best = rows.reduce((least, row) => (costOf(row) < costOf(least) ? row : least));
  return { shape: shape.sizes, rows, best };
}

const costOf = ({ model }: VocabularyRow) =>
  model?.trainingFlopsPerCharacter ?? Number.POSITIVE_INFINITY;

/** The best shape with the largest vocabulary for which the budget has one. */
function* shapeForLargest(
  family: Family,
  request: PlanRequest,
  sorted: readonly TokenizedText[],
): Searching<{ readonly vocabulary: number; readonly sizes: Sizes } | undefined> {
  for (const { vocabulary } of sorted.toReversed()) {
    try {
      const { rows } = yield* planning(family, { ...request, vocabulary, top: 1 });
      const [best] = rows;
      if (best) return { vocabulary, sizes: best.sizes };
    } catch (error) {
      // Another vocabulary can fit; wrong flags are reported by the last one.
      if (!(error instanceof UserError) || vocabulary === sorted[0]?.vocabulary) throw error;
    }
  }
  return undefined;
}

function vocabularyRow(
  text: TokenizedText,
  model: ReturnType<ModelSpace['model']>,
  { inference }: PlanRequest,
): VocabularyRow {
  const { tokens, characters, bytes } = text;
  const tokensPerCharacter = tokens / characters;
  const row = { ...text, tokensPerCharacter, bytesPerToken: bytes / tokens };
  if (!model) return { ...row, model: null };
  const { total, body } = parameterFigures(model);
  const embedding = BigInt(total.value) - BigInt(body.value);
  const setting = { ...inference, batch: 1, causal: false };
  const perCharacter = (flops: Exact) => (Number(flops) / inference.context) * tokensPerCharacter;
  return {
    ...row,
    model: {
      parameters: total.value,
      embedding: Number(embedding),
      embeddingShare: Number(embedding) / Number(total.value),
      forwardFlopsPerCharacter: perCharacter(forwardFlopsOf(model, setting).total.value),
      trainingFlopsPerCharacter: perCharacter(
        trainingFlopsOf(model, { ...setting, recompute: 'none' }).total.value,
      ),
    },
  };
}

/** The rule of thumb √parameters × 100, and the embedding that it asks for. */
export interface SquareRootRule {
  readonly parameters: Exact;
  /** Vocabulary by the rule. @integer */
  readonly vocabulary: number;
  /** Width of the best model. @integer */
  readonly width: number;
  /** Parameters of one table of that vocabulary. @integer */
  readonly embedding: number;
  /** They as a multiple of the budget. */
  readonly timesBudget: number;
}

export function squareRootRule(parameters: Exact, width: number): SquareRootRule {
  const vocabulary = Math.round(Math.sqrt(Number(parameters)) * 100);
  const embedding = vocabulary * width;
  return { parameters, vocabulary, width, embedding, timesBudget: embedding / Number(parameters) };
}
