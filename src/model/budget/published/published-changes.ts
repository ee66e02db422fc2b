/** Explains a published change of a count, as in `+96M`: another vocabulary, or another form of the model. */

import { formatInteger } from '../../../base/text/units.js';
import type { PublishedChange } from '../../../config/parse-published.js';
import type { LanguageModel } from '../../architecture/layer.js';
import type { KnownCount } from '../family-counts.js';
import { parameterFigures } from '../parameters.js';
import type { Explanation, PublishedReport } from './explanations.js';
import { judged } from './explanations.js';
import { roundVocabularies } from './round-vocabularies.js';

type ChangeExplanation = Explanation<bigint>;

/** Tries each form of the model in place of it, and each round vocabulary. */
export function explainChange(
  model: LanguageModel,
  published: PublishedChange,
  known: readonly KnownCount[],
): PublishedReport<bigint> {
  const own = BigInt(parameterFigures(model).total.value);
  const forms = known
    .filter(({ isWhole }) => isWhole)
    .map(({ id, text, value, weight = 1.2 }): ChangeExplanation => {
      const reason = { id: `to-${id}`, text: `from this model to ${text}`, weight };
      return { value: value - own, reasons: [reason] };
    });
  const all = [...vocabularyChanges(model, published), ...forms];
  return { unit: 'change', difference: null, ...judged(all, published) };
}

/** Matrices of the new and of the old vocabulary that a change counts, and its implausibility. */
const COUNTED_MATRICES = [
  { after: 1, before: 1, text: 'one matrix of each', weight: 1.2 },
  { after: 2, before: 2, text: 'embedding and head', weight: 1.3 },
  { after: 2, before: 1, text: 'two matrices of the new against one of the old', weight: 2 },
] as const;

function vocabularyChanges(model: LanguageModel, published: PublishedChange): ChangeExplanation[] {
  const { value, tolerance, above = tolerance } = published;
  const { weight: matrix } = model.embedding;
  const [rows = 0, hidden = 0] = matrix.shape;
  const isTied = model.head.weight === matrix;
  const changeOf = (vocabulary: number, after: number, before: number) =>
    BigInt(hidden) * (BigInt(after) * BigInt(vocabulary) - BigInt(before) * BigInt(rows));
  return COUNTED_MATRICES.flatMap(({ after, before, text, weight }) => {
    const old = BigInt(before) * BigInt(matrix.elements);
    const sizes = roundVocabularies(
      value - tolerance + old,
      value + above + old,
      after * hidden,
    ).filter(({ size }) => size !== rows);
    return sizes.map(({ size: vocabulary, weight: odd }): ChangeExplanation => {
      const own = isTied ? 1 : 2;
      const isRight = after === own && before === own;
      const change = changeOf(vocabulary, own, own);
      const truth = `the head is ${isTied ? '' : 'not '}tied, so the model changes by ${signedCount(change)}`;
      return {
        value: changeOf(vocabulary, after, before),
        reasons: [
          {
            id: `vocabulary-${vocabulary}-${after}-${before}`,
            text: `a vocabulary of ${formatInteger(vocabulary)} rows instead of ${formatInteger(rows)}, ${text}${isRight ? '' : `; ${truth}`}`,
            weight: (isRight ? 1 : weight) + odd,
          },
        ],
      };
    });
  });
}

/** `+47,923,200` */
const signedCount = (value: bigint): string => `${value > 0n ? '+' : ''}${formatInteger(value)}`;
