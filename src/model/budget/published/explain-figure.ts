/** Explains a published number of any unit by the figures of a model. */

import type { Dtype } from '../../../base/tensor/dtype.js';
import type { PublishedFigure } from '../../../config/parse-published.js';
import { knownCounts } from '../family-counts.js';
import { flopsByConvention } from '../flops.js';
import type { ModelProfile, ResolvedSetting } from '../profile-model.js';
import { explainPublished } from './explain-published.js';
import type { PublishedReport } from './explanations.js';
import { contextCounts } from './known-ratios.js';
import { explainBytes } from './published-bytes.js';
import { explainChange } from './published-changes.js';
import { explainOperations } from './published-operations.js';
import { explainRatio, type RatioModel } from './published-ratios.js';

/** @param dtype Element type that the publication names with a size. */
export function explainFigure(
  loaded: RatioModel,
  published: PublishedFigure,
  profile: ModelProfile,
  setting: ResolvedSetting,
  dtype?: Dtype,
): PublishedReport {
  const { family, document, model } = loaded;
  switch (published.unit) {
    case 'bytes':
      return explainBytes(model, published, profile, setting, dtype);
    case 'flops':
      return explainOperations(model, published, setting);
    case 'ratio':
    case 'share':
      return explainRatio(loaded, published, setting);
    case 'change':
      return explainChange(model, published, knownCounts(family, document, model));
    case undefined: {
      const training = { ...setting.training, causal: false };
      return explainPublished(model, published, {
        operations: flopsByConvention(model, setting.inference, training),
        known: [...knownCounts(family, document, model), ...contextCounts(model, setting)],
        predictionLayers: family.predictionLayers?.(document) ?? 0,
      });
    }
  }
}
