/** Everything that a checkpoint must keep to for its SRTE to be converted, by name. */
import { SRTE_RULES } from './srte-rules.js';

export const CONVERSION_RULES = {
  ...SRTE_RULES,
  'conversion-changes':
    'A conversion to a layout is of a checkpoint that does not have it already.',
} as const;
