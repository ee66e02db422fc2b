/** What is different about models with mixtures of experts. */
import type { Layer } from '../architecture/layer.js';
import { walk } from '../architecture/walk.js';

/**
 * Whether tokens are sent to experts. Then the rows that an expert computes together depend on all tokens, and with
 * their number the order of its sums; and where two experts are nearly as good, rounding decides.
 */
export const hasExperts = (layer: Layer): boolean =>
  walk(layer).some(({ layer: each }) => each.kind === 'mixtureOfExperts');
