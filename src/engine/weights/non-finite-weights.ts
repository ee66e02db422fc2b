/** The first weight of a model that is not finite, and the error for logits that are not. */

import { UserError } from '../../base/errors.js';
import { commandText, setting } from '../../base/text/setting.js';
import { counted } from '../../base/text/words.js';
import { indexAt } from '../../checkpoint/non-finite.js';
import type { Layer } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { tensorsOf } from '../../model/architecture/walk.js';
import type { Compute } from '../engine.js';
import type { WeightSource } from './weights.js';

/** Values read at a time. */
const PIECE = 2 ** 20;

export interface BadWeight {
  readonly tensor: Param;
  readonly nan: number;
  readonly infinite: number;
  /** Index of the first one in each axis. */
  readonly first: readonly number[];
}

/** The first parameter with NaN or infinities, in the order of the model; undefined for finite ones. */
export function firstBadWeight(layer: Layer, weights: WeightSource): BadWeight | undefined {
  for (const tensor of tensorsOf(layer)) {
    if (tensor.role !== 'parameter') continue;
    const found = badValues(tensor, weights);
    if (found) return found;
  }
  return undefined;
}

function badValues(tensor: Param, weights: WeightSource): BadWeight | undefined {
  let [nan, infinite, first] = [0, 0, -1];
  const piece = new Float32Array(Math.min(PIECE, tensor.elements));
  for (let start = 0; start < tensor.elements; start += PIECE) {
    const values = piece.subarray(0, Math.min(PIECE, tensor.elements - start));
    weights.read(tensor, start, values);
    for (const [at, value] of values.entries()) {
      if (Number.isFinite(value)) continue;
      if (first < 0) first = start + at;
      if (Number.isNaN(value)) nan++;
      else infinite++;
    }
  }
  return first < 0 ? undefined : { tensor, nan, infinite, first: indexAt(first, tensor.shape) };
}

/** `1 NaN and 2 infinite values, the first at [5, 7]`. */
const badValuesText = ({
  nan,
  infinite,
  first,
}: Pick<BadWeight, 'nan' | 'infinite' | 'first'>): string => {
  const counts = [
    ...(nan > 0 ? [`${nan} NaN`] : []),
    ...(infinite > 0 ? [counted(infinite, 'infinite value')] : []),
  ].join(' and ');
  return `${counts}, the first at [${first.join(', ')}]`;
};

/** A model with its weights. */
interface Weighted {
  readonly model: Layer;
  readonly weights: WeightSource;
}

/** Error for logits with NaN or infinities. It names the bad weight; without one, a value overflows. */
export function nonFiniteLogits(models: readonly Weighted[], compute: Compute): UserError {
  for (const { model, weights } of models) {
    const bad = firstBadWeight(model, weights);
    if (bad === undefined) continue;
    return new UserError(
      'refused-file',
      `expected finite logits, found NaN or an infinity: the weight ${bad.tensor.name} has ${badValuesText(bad)}`,
      {
        suggestion: `use an earlier checkpoint; ${commandText('verify')} lists all weights that are broken`,
      },
    );
  }
  return new UserError(
    'refused-file',
    'expected finite logits, found NaN or an infinity: the weights are finite, so a value overflows on its way',
    {
      suggestion:
        compute === 'f16'
          ? `write ${setting('compute', 'f32')}: float16 overflows above 65,504`
          : `${commandText('quickTest')} names the layer`,
    },
  );
}
