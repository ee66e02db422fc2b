/**
 * What the SRTE tables of a state dict must keep to, so that they can be compared and shared, by name. A
 * problem names its rule; each is checked in exactly one place.
 */
export const SRTE_RULES = {
  'srte-present': 'Some tensor is an SRTE table.',
  'srte-one-model': 'All SRTE tables stand under the same prefix.',
  'srte-layer-number': 'A layer is numbered in plain decimal digits, at most five of them.',
  'srte-layers-complete': 'The layers that have a table are 0, 1, 2 and so on, without a gap.',
  'srte-parts': 'A table is one tensor `freqs`, or a pair of `lowrank` and `proj.weight`.',
  'srte-shape': 'A full table is [1, L, H], a pair is [1, L, r] and [H, r]; no size is 0.',
  'srte-dtype': 'The values of a table are real floating-point numbers.',
  'srte-alike': 'All tables have the same shape, and all pairs the same rank.',
  'srte-finite': 'Values of tables that are merged, factorised or compared are finite.',
  'srte-one-sharing': 'Beside a shared table, no layer has one of its own.',
} as const;

export type SrteRule = keyof typeof SRTE_RULES;
