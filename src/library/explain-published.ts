import { usageError } from '../base/errors.js';
import { asText } from '../base/values.js';
import { quote } from '../config/quote.js';
import { explainFigure } from '../model/budget/published/explain-figure.js';
import type { PublishedReport } from '../model/budget/published/explanations.js';
import {
  type PublishedNumber,
  parsePublishedNumber,
} from '../model/budget/published/published-number.js';
import type { Model } from './answer.js';
import { checkOptions, requireModel } from './arguments.js';
import { profileOf, settingOf } from './profile.js';
import { SETTING_KINDS, type SettingOptions } from './setting-options.js';

/**
 * Explains a published number by the figures of a model.
 * @param published A count, size, FLOPs, ratio, percentage, change or range: `7B`, `536MB`, `57x`.
 * @throws UserError for another text.
 */
export function explainPublished(
  model: Model,
  published: string | PublishedNumber,
  options: SettingOptions = {},
): PublishedReport {
  requireModel(model, 'explainPublished');
  checkOptions('explainPublished', options, SETTING_KINDS);
  const number = typeof published === 'string' ? parsePublishedNumber(published) : published;
  if (number === undefined) {
    throw usageError(
      `expected a count, a size, FLOPs, a ratio or a percentage, found ${quote(asText(published))}`,
      'write it as in 13.8B, ~25M, 536MB, 30.7GFLOP, 57x, 96.9% or 50-70%',
    );
  }
  return explanationOf(model, number, options);
}

/** `explainPublished` for options that are already checked, and may have further fields. */
export function explanationOf(
  model: Model,
  number: PublishedNumber,
  options: SettingOptions,
): PublishedReport {
  const dtype = number.unit === 'bytes' ? number.dtype : undefined;
  return explainFigure(model, number, profileOf(model, options), settingOf(model, options), dtype);
}
