/** Flags of the topic kv-projector. */
import * as Flags from '@oclif/core/flags';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import type { RatioChoice } from '../kv-projector/costs.js';

/** More would be no bottleneck by any measure. */
const LARGEST_RATIO = 1024;

/** `--ratio 0.5,recommended`: of the width between the layers of an elastic adapter to a teacher's. */
export const ratios = Flags.custom<RatioChoice>({
  multiple: true,
  multipleNonGreedy: true,
  delimiter: ',',
  helpValue: 'RATIO,RATIO',
  parse: async (text) => {
    if (text === 'recommended') return text;
    const ratio = /^\d*\.?\d+$/.test(text) ? Number(text) : 0;
    if (ratio > 0 && ratio <= LARGEST_RATIO) return ratio;
    throw new UserError('usage', `--ratio: ${quote(text)} is no ratio`, {
      suggestion: `write numbers up to ${LARGEST_RATIO}, or recommended, as in --ratio 0.5,recommended`,
    });
  },
});
